//! The captures: port and direction of each packet.

use super::error::ExplainError;
use super::packet::{ObservedFrame, Payload};
use super::run::goes_up;
use crate::process::Progress;
use srdma_capture::{LinkType, Merge, Packet, ReadError, Reader};
use srdma_dataplane::NodeConfig;
use srdma_frame::PortId;
use srdma_group::GroupEntry;
use srdma_wire::{Instant, MacAddress, Psn};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

/// A capture of packets of one or more of the node's ports, both directions as far as it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// pcap or pcapng, of Ethernet.
    pub file: PathBuf,
    /// Port of the capture; without it, the MAC addresses of the packets show it.
    pub port: Option<PortId>,
}

/// Place where a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was received by a port.
    In(PortId),
    /// The node sent it by a port.
    Out(PortId),
}

/// Results of the first pass over all captures.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// The port of each capture: where most of its packets were seen, if that is not known.
    pub(super) ports: Vec<Option<PortId>>,
    /// Packets received and sent by each port.
    pub(super) seen: BTreeMap<PortId, [u64; 2]>,
    /// The first packet's time.
    pub(super) first: Option<Instant>,
    /// The last packet's time.
    pub(super) last: Option<Instant>,
    pub(super) packets: u64,
    /// Packets that were truncated by the capture.
    pub(super) cut_short: u64,
    /// Packets between two addresses, innermost header; not more than [`MOST_PAIRS`] pairs.
    pub(super) pairs: BTreeMap<(Ipv6Addr, Ipv6Addr), u64>,
    /// The PSN of the first request to each Proxy Address.
    pub(super) first_psn: BTreeMap<Ipv6Addr, Psn>,
    /// Groups, by Proxy Address, for which a response of the node was captured.
    pub(super) with_responses: BTreeSet<Ipv6Addr>,
    /// Groups, by Proxy Address, of which copies to receivers were seen to leave.
    pub(super) copies: BTreeSet<Ipv6Addr>,
}

/// Pairs of addresses that are counted.
const MOST_PAIRS: usize = 64;
/// Longest packet that a capture's header may claim: more than a frame of the node can be.
const MOST_OCTETS: usize = 1 << 16;
/// Packets between two reports of progress.
const PACKETS_PER_PROGRESS: u64 = 1024;

impl Observations {
    /// Reads all captures once.
    pub(super) fn read(
        captures: &[Capture],
        config: &NodeConfig,
        groups: &[GroupEntry],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ExplainError> {
        let mut observations = Observations::default();
        let mut read = Read::new(captures)?;
        let mut by_capture: Vec<BTreeMap<PortId, u64>> = vec![BTreeMap::new(); captures.len()];
        while let Some((index, packet)) = read.next(progress)? {
            let time = Instant::from_ns(packet.time_ns);
            observations.first = Some(observations.first.map_or(time, |first| first.min(time)));
            observations.last = observations.last.max(Some(time));
            observations.packets += 1;
            observations.cut_short += u64::from(packet.octets.len() < packet.original_len as usize);
            let Some(frame) = ObservedFrame::of(&packet.octets) else {
                continue;
            };
            let seen = by_mac(config, &frame);
            if let Some(port) = seen.map(port_of) {
                *by_capture[index].entry(port).or_default() += 1;
            }
            observations.count(&frame, matches!(seen, Some(Seen::Out(_))), groups);
        }
        for (capture, counts) in captures.iter().zip(by_capture) {
            let most = counts.into_iter().max_by_key(|(port, count)| (*count, std::cmp::Reverse(*port)));
            observations.ports.push(capture.port.or(most.map(|(port, _)| port)));
        }
        Ok(observations)
    }

    /// `is_own`: the node sent it.
    fn count(&mut self, frame: &ObservedFrame, is_own: bool, groups: &[GroupEntry]) {
        let Some((source, destination)) = frame.addresses else {
            return;
        };
        let pair = (source, destination);
        if self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
            *self.pairs.entry(pair).or_default() += 1;
        }
        let is_of = |entry: &&GroupEntry| entry.proxy == source || entry.proxy == destination;
        let Some(entry) = groups.iter().find(is_of) else {
            return;
        };
        match frame.payload {
            Some(Payload::Request(psn)) if entry.proxy == destination => {
                self.first_psn.entry(entry.proxy).or_insert(psn);
            }
            Some(Payload::Request(_)) if is_own => {
                self.copies.insert(entry.proxy);
            }
            Some(Payload::Response(_)) if is_own && goes_up(entry, source, destination) => {
                self.with_responses.insert(entry.proxy);
            }
            Some(Payload::Request(_) | Payload::Response(_) | Payload::Other) | None => {}
        }
    }

    /// Place where a packet of a capture was captured.
    pub(super) fn place(
        &mut self,
        capture: usize,
        named: Option<PortId>,
        config: &NodeConfig,
        frame: Option<&ObservedFrame>,
    ) -> Option<Seen> {
        let by_mac = frame.and_then(|frame| by_mac(config, frame));
        let seen = match (named, by_mac) {
            (None, Some(seen)) => seen,
            // The port is given: only the direction is in question.
            (Some(port), Some(Seen::Out(found))) if port == found => Seen::Out(port),
            (Some(port), _) => Seen::In(port),
            (None, None) => Seen::In(self.ports.get(capture).copied().flatten()?),
        };
        let counts = self.seen.entry(port_of(seen)).or_default();
        counts[usize::from(matches!(seen, Seen::Out(_)))] += 1;
        Some(seen)
    }
}

fn port_of(seen: Seen) -> PortId {
    match seen {
        Seen::In(port) | Seen::Out(port) => port,
    }
}

/// The port whose MAC address a frame has.
fn by_mac(config: &NodeConfig, frame: &ObservedFrame) -> Option<Seen> {
    let with = |mac: MacAddress| (0..).zip(&config.ports).find(|(_, port)| port.mac == mac).map(|(id, _)| PortId(id));
    with(frame.from).map(Seen::Out).or_else(|| with(frame.to).map(Seen::In))
}

/// All captures, in the order of their packets' times.
pub(super) struct Read {
    files: Vec<PathBuf>,
    merge: Merge<Reader<File>>,
    offsets: Vec<u64>,
    total_octets: u64,
    packets: u64,
}

impl Read {
    pub(super) fn new(captures: &[Capture]) -> Result<Self, ExplainError> {
        let open = |capture: &Capture| {
            Reader::open(&capture.file)
                .map_err(|error| ExplainError::Open { file: capture.file.clone(), reason: error.reason })
        };
        let readers: Vec<_> = captures.iter().map(open).collect::<Result<_, _>>()?;
        let octets = captures.iter().filter_map(|capture| capture.file.metadata().ok()).map(|file| file.len());
        Ok(Read {
            files: captures.iter().map(|capture| capture.file.clone()).collect(),
            merge: Merge::new(readers),
            offsets: vec![0; captures.len()],
            total_octets: octets.sum(),
            packets: 0,
        })
    }

    /// The next packet and the position of its capture.
    pub(super) fn next(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<(usize, Packet)>, ExplainError> {
        let Some((index, packet)) = self.merge.next() else {
            return Ok(None);
        };
        let packet = packet.map_err(|error: ReadError| self.damaged(index, error))?;
        if packet.interface.link_type != LinkType::ETHERNET {
            let (file, found) = (self.file(index).to_owned(), packet.interface.link_type);
            return Err(ExplainError::NotEthernet { file, frame: packet.frame, found });
        }
        self.offsets[index] = packet.offset;
        self.packets += 1;
        if self.packets.is_multiple_of(PACKETS_PER_PROGRESS) {
            progress(Progress { read_octets: self.offsets.iter().sum(), total_octets: self.total_octets });
        }
        Ok(Some((index, packet)))
    }

    fn file(&self, index: usize) -> &Path {
        &self.files[index]
    }

    fn damaged(&self, index: usize, error: ReadError) -> ExplainError {
        ExplainError::Read { file: self.file(index).to_owned(), error }
    }
}

/// Octets of a packet, with zeros in place of those that the capture lacks: the node reads headers and lengths, and
/// forwards truncated data like whole ones.
pub(super) fn whole(packet: &Packet) -> Vec<u8> {
    let mut octets = packet.octets.clone();
    let len = (packet.original_len as usize).min(MOST_OCTETS);
    if octets.len() < len {
        octets.resize(len, 0);
    }
    octets
}
