//! Baseline for multicast: the same data to the same hosts over the same links, by unicast Reliable Connections.

use crate::addressing;
use crate::fabric::{Fabric, Headend};
use crate::host::Host;
use crate::network::ElementId;
use crate::program::{MessageOperation, ReceiveStream, SendStream};
use crate::replica::Replica;
use crate::setup::SetupError;
use crate::timing::Timing;
use crate::topology::Topology;
use crate::transfer::TransferConfig;
use srdma_rc::{MemoryKey, QueuePairConfig, RemoteAddress};
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Algorithm that distributes data to many hosts without multicast in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// The source sends to each receiver.
    Unicast,
    /// Each host forwards to the next one, chunk by chunk.
    Chain,
    /// A binomial tree of hosts, each of which forwards chunk by chunk. Subtrees are neighbours in the topology.
    Binomial,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 3] = [Algorithm::Unicast, Algorithm::Chain, Algorithm::Binomial];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Unicast => "unicast",
            Algorithm::Chain => "chain",
            Algorithm::Binomial => "binomial",
        }
    }

    /// Pairs of sender and receiver, by rank: the source has rank 0, the receivers 1 to `receivers`. The peers of a
    /// host are in the order of its transfers.
    pub fn transfers(self, receivers: usize) -> Vec<(usize, usize)> {
        match self {
            Algorithm::Unicast => (1..=receivers).map(|rank| (0, rank)).collect(),
            Algorithm::Chain => (1..=receivers).map(|rank| (rank - 1, rank)).collect(),
            Algorithm::Binomial => {
                let mut transfers = Vec::new();
                halve(0, receivers + 1, &mut transfers);
                transfers
            }
        }
    }

    /// Chunk sizes to try for this amount of data. With unicast nothing is forwarded, and the chunk size has no effect.
    pub fn chunk_sizes(self, size_octets: u64, path_mtu_octets: u32) -> Vec<u32> {
        const MOST: u64 = 1 << 22;
        let most = size_octets.min(MOST) as u32;
        match self {
            Algorithm::Unicast => vec![most],
            Algorithm::Chain | Algorithm::Binomial => {
                let mut sizes: Vec<u32> = std::iter::successors(Some(path_mtu_octets), |size| size.checked_mul(4))
                    .take_while(|size| *size < most)
                    .collect();
                sizes.push(most);
                sizes
            }
        }
    }
}

/// The rank `first` has the data for all ranks up to `end`: it sends them to the first rank of the upper half, then
/// continues with the lower half.
fn halve(first: usize, end: usize, transfers: &mut Vec<(usize, usize)>) {
    let mut end = end;
    while end - first > 1 {
        let middle = first + (end - first).div_ceil(2);
        transfers.push((first, middle));
        halve(middle, end, transfers);
        end = middle;
    }
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineOutcome {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The chunk size.
    pub chunk_octets: u32,
    /// Time at which every transfer was acknowledged, in nanoseconds; `None` when a host failed.
    pub completion_ns: Option<u64>,
    /// RDMA payload octets that left the source, retransmissions included.
    pub source_egress_octets: u64,
    /// Whether every receiver has the source's data.
    pub is_identical: bool,
    /// Frames received by any element.
    pub hops: u64,
}

/// Runs an algorithm with one chunk size. `progress` is called periodically with the octets that the slowest
/// transfer has acknowledged.
///
/// # Errors
///
/// A host or a node rejects its configuration.
pub fn run(
    algorithm: Algorithm,
    chunk_octets: u32,
    scenario: &TransferConfig,
    data: &Arc<Vec<u8>>,
    progress: &mut dyn FnMut(u64),
) -> Result<BaselineOutcome, SetupError> {
    let topology = &scenario.topology;
    let fabric = Fabric::new(topology, &scenario.link_settings(), Headend::FirstHop, scenario.seed)?;
    let mut baseline = Baseline { fabric, scenario, data, chunk_octets, regions: Vec::new() };
    baseline.add_regions();
    let transfers = algorithm.transfers(topology.receivers().len());
    for (from, to) in &transfers {
        let peers = transfers.iter().filter(|(other, _)| other == from).count();
        baseline.add_transfer(*from, *to, peers)?;
    }
    Ok(baseline.run(algorithm, progress))
}

/// Hosts during setup.
struct Baseline<'a> {
    fabric: Fabric,
    scenario: &'a TransferConfig,
    data: &'a Arc<Vec<u8>>,
    chunk_octets: u32,
    /// Each host's region, by rank.
    regions: Vec<MemoryKey>,
}

/// Number of events between two progress reports.
const EVENTS_PER_REPORT: u64 = 1 << 16;

/// Address of a host's memory for its peers.
const REGION_BASE: u64 = 0x2000_0000_0000;

impl Baseline<'_> {
    fn hosts(&self) -> usize {
        1 + self.fabric.receivers.len()
    }

    fn host(&self, rank: usize) -> ElementId {
        match rank.checked_sub(1) {
            None => self.fabric.source,
            Some(position) => self.fabric.receivers[position],
        }
    }

    fn address(&self, rank: usize) -> Ipv6Addr {
        match rank.checked_sub(1) {
            None => addressing::SOURCE,
            Some(position) => addressing::receiver(&self.scenario.topology.receivers()[position]),
        }
    }

    fn add_regions(&mut self) {
        for rank in 0..self.hosts() {
            let data = Arc::clone(self.data);
            let replica = if rank == 0 { Replica::of_source(data) } else { Replica::empty(data) };
            let region = self.fabric.with_host(self.host(rank), |host, _| host.add_region(replica, REGION_BASE, 0));
            self.regions.push(region);
        }
    }

    /// Adds a connection between two hosts; the sender has `peers` connections.
    fn add_transfer(&mut self, from: usize, to: usize, peers: usize) -> Result<(), SetupError> {
        let (size_octets, chunk_octets) = (self.data.len() as u64, self.chunk_octets);
        let timing = Timing::unicast(
            &self.scenario.link,
            links_between(&self.scenario.topology, from, to),
            peers,
            self.scenario.path_mtu,
            self.scenario.window_packets,
        );
        let (sending, receiving) = (addressing::qpn_toward(to), addressing::receiving_qpn(to));
        let common = |own, address, remote| QueuePairConfig {
            path_mtu: self.scenario.path_mtu,
            sq_psn: self.scenario.first_psn,
            rq_psn: self.scenario.first_psn,
            ack_timeout: timing.ack_timeout,
            habits: timing.habits(),
            ..QueuePairConfig::new(own, address, remote)
        };
        let at_sender = common(sending, self.address(to), receiving);
        let at_receiver = common(receiving, self.address(from), sending);
        let remote = RemoteAddress { virtual_address: REGION_BASE, rkey: self.regions[to] };
        let operation = MessageOperation::WriteImmediate { remote };
        let stream = SendStream::new(sending, self.regions[from], size_octets, chunk_octets, operation);
        let receive_stream = ReceiveStream::new(receiving, self.regions[to], size_octets, chunk_octets);
        self.fabric.with_host(self.host(from), |host, _| {
            host.add_send_stream(stream);
            host.add_queue_pair(at_sender)
        })?;
        self.fabric.with_host(self.host(to), |host, _| {
            host.add_receive_stream(receive_stream);
            host.add_queue_pair(at_receiver)
        })?;
        Ok(())
    }

    fn run(mut self, algorithm: Algorithm, progress: &mut dyn FnMut(u64)) -> BaselineOutcome {
        // Receivers first, so that their receives are posted before data arrive.
        for rank in (0..self.hosts()).rev() {
            self.fabric.with_host(self.host(rank), |host, _| host.start());
        }
        let mut events: u64 = 0;
        while self.fabric.network.step(self.scenario.time_limit).is_some() {
            events += 1;
            if events.is_multiple_of(EVENTS_PER_REPORT) {
                progress(self.acknowledged_octets());
            }
        }
        progress(self.acknowledged_octets());
        let source = self.fabric.host(self.fabric.source);
        let sent = source.send_streams().iter().filter_map(|stream| source.counters(stream.qpn()));
        let ranks = 1..self.hosts();
        BaselineOutcome {
            algorithm,
            chunk_octets: self.chunk_octets,
            completion_ns: self.completion_ns(),
            source_egress_octets: sent.map(|counters| counters.payload_octets_sent).sum(),
            is_identical: ranks.clone().all(|rank| self.replica(rank).is_some_and(Replica::is_identical)),
            hops: self.fabric.network.hops(),
        }
    }

    /// Octets that the slowest transfer has acknowledged.
    fn acknowledged_octets(&self) -> u64 {
        let hosts = (0..self.hosts()).map(|rank| self.fabric.host(self.host(rank)));
        hosts.flat_map(Host::send_streams).map(SendStream::acknowledged_octets).min().unwrap_or(0)
    }

    fn replica(&self, rank: usize) -> Option<&Replica> {
        self.fabric.host(self.host(rank)).region(self.regions[rank])
    }

    fn completion_ns(&self) -> Option<u64> {
        let hosts = (0..self.hosts()).map(|rank| self.fabric.host(self.host(rank)));
        hosts
            .flat_map(Host::send_streams)
            .map(|stream| Some(stream.completed_at()?.as_ns()))
            .try_fold(0, |latest, time| Some(u64::max(latest, time?)))
    }
}

/// Number of links between two hosts.
fn links_between(topology: &Topology, from: usize, to: usize) -> usize {
    let path = |rank: usize| -> Vec<usize> {
        let receiver = rank.checked_sub(1).map(|position| topology.receivers()[position].edge);
        // The source is attached to the first node.
        topology.path_up(receiver.unwrap_or(0)).collect()
    };
    let (from, to) = (path(from), path(to));
    let shared = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
    // The nodes of both paths but the shared ones, the last of which is passed through, and a link to each host.
    from.len() + to.len() - 2 * shared + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_receiver_is_served_once_and_by_one_that_has_the_data() {
        for algorithm in Algorithm::ALL {
            for receivers in 1..=70 {
                let mut served = BTreeSet::from([0]);
                for (from, to) in algorithm.transfers(receivers) {
                    assert!(served.contains(&from), "{algorithm:?}: {from} sends before it is served");
                    assert!(served.insert(to), "{algorithm:?}: {to} is served twice");
                }
                assert_eq!(served.len(), receivers + 1);
            }
        }
    }

    #[test]
    fn a_binomial_tree_is_as_deep_as_the_logarithm() {
        let transfers = Algorithm::Binomial.transfers(7);
        assert_eq!(transfers, [(0, 4), (4, 6), (6, 7), (4, 5), (0, 2), (2, 3), (0, 1)]);
        assert_eq!(Algorithm::Binomial.transfers(1023).iter().filter(|(from, _)| *from == 0).count(), 10);
    }

    #[test]
    fn distances_are_those_of_figure_1() {
        let topology = Topology::figure_1();
        let distances = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)].map(|(from, to)| links_between(&topology, from, to));
        // S1-N6-N4-N1-R1; R1-N1-R2; R2-N1-N4-N2-R3; R3-N2-N4-N6-N5-N3-R4; R4-N3-R5.
        assert_eq!(distances, [4, 2, 4, 6, 2]);
    }

    #[test]
    fn chunk_sizes_reach_from_a_packet_to_all_of_the_data() {
        assert_eq!(Algorithm::Chain.chunk_sizes(100_000, 4096), [4096, 16_384, 65_536, 100_000]);
        assert_eq!(Algorithm::Chain.chunk_sizes(1 << 26, 4096).last(), Some(&(1 << 22)));
        assert_eq!(Algorithm::Binomial.chunk_sizes(1000, 4096), [1000]);
    }
}
