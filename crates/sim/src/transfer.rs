//! Parameters and results of a multicast transfer.

use crate::fabric::{Headend, LinkSettings};
use crate::invariants::{Layout, Violation};
use crate::link::LinkModel;
use crate::replica::Sha256Digest;
use crate::retransmission::Retransmission;
use crate::timing::Timing;
use crate::topology::Topology;
use srdma_dataplane::RepairCounters;
use srdma_group::{ListMode, RepairMode, RepairPolicy, Rules};
use srdma_rc::Status;
use srdma_wire::{Instant, PathMtu, Psn, Qpn};
use std::time::Duration;

/// Octets that may wait in front of a link, at least.
const MIN_QUEUE_LIMIT_OCTETS: usize = 1 << 20;

/// RDMA operations of the source's messages to the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// RDMA WRITE into the receivers' memory (D27).
    #[default]
    Write,
    /// SEND into receives that the receivers posted.
    Send,
}

/// Forwarding of data between nodes (D3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branching {
    /// Replication SIDs and End.MT SIDs.
    #[default]
    Replicate,
    /// One IPv6 multicast group from the headend to all edges.
    Multicast,
    /// The first-hop node replicates; each node below it that is no edge hands over to a multicast group of its own.
    Mixed,
}

/// A multicast run.
#[derive(Clone, Debug)]
pub struct TransferConfig {
    /// The tree.
    pub topology: Topology,
    /// Seed of all random choices.
    pub seed: u64,
    /// Every link.
    pub link: LinkModel,
    /// Largest IPv6 packet of every link, in octets.
    pub link_mtu: u16,
    /// RDMA path MTU.
    pub path_mtu: PathMtu,
    /// Octets of each message but the last, from 1 to 2^31.
    pub message_octets: u32,
    /// PSN of the first packet (D28).
    pub first_psn: Psn,
    /// WRITE or SEND.
    pub operation: Operation,
    /// Shape of the tree.
    pub branching: Branching,
    /// Place of the headend.
    pub headend: Headend,
    /// Source of the edges' receiver lists (D7).
    pub lists: ListMode,
    /// Rules of aggregation.
    pub rules: Rules,
    /// Nodes that repair losses (D150).
    pub repair: RepairMode,
    /// Packets that the source may have outstanding; `None` for as many as the path holds.
    pub window_packets: Option<u32>,
    /// Packets that the retransmission buffers are made for; `None` for the source's window.
    pub buffer_packets: Option<u32>,
    /// Whether edges withhold copies of what a receiver has (D22).
    pub prune_retransmit: bool,
    /// Whether the source never gives up, as some endpoints with a retry count of 7; else it gives up after seven
    /// retries without progress.
    pub unlimited_retries: bool,
    /// Retransmission by the hosts.
    pub retransmission: Retransmission,
    /// Time at which the run is broken off.
    pub time_limit: Instant,
}

impl TransferConfig {
    /// The draft's Figure 1 with 100 Gbit/s, 1 µs and no faults on each link, and every choice at its default.
    pub fn figure_1() -> Self {
        TransferConfig {
            topology: Topology::figure_1(),
            seed: 1,
            link: LinkModel::perfect(100_000_000_000, 1000),
            link_mtu: 4608,
            path_mtu: PathMtu::Octets4096,
            message_octets: 1 << 20,
            first_psn: Psn::new(0),
            operation: Operation::default(),
            branching: Branching::default(),
            headend: Headend::default(),
            lists: ListMode::default(),
            rules: Rules::default(),
            repair: RepairMode::Off,
            window_packets: None,
            buffer_packets: None,
            prune_retransmit: false,
            unlimited_retries: false,
            retransmission: Retransmission::default(),
            time_limit: Instant::NEVER,
        }
    }

    /// Timers and windows that fit the tree's longest path.
    pub fn timing(&self) -> Timing {
        let levels = self.topology.levels() + usize::from(self.headend == Headend::Host);
        Timing::with_window(&self.link, self.topology.levels() + 1, levels, self.path_mtu, self.window_packets)
    }

    /// Repair that fits the source's window and the links.
    pub fn repair_policy(&self) -> RepairPolicy {
        let timing = self.timing();
        RepairPolicy {
            mode: self.repair,
            window_octets: self.buffer_packets.unwrap_or(timing.window_packets) * self.path_mtu.octets(),
            ack_timeout: Duration::from_nanos(4_096 << timing.ack_timeout),
            round_trip: Duration::from_nanos(timing.round_trip_ns),
        }
    }

    /// Common settings of all links.
    pub fn link_settings(&self) -> LinkSettings {
        let window_octets = self.timing().window_packets as usize * (usize::from(self.link_mtu) + 14);
        LinkSettings {
            model: self.link,
            link_mtu: self.link_mtu,
            queue_limit_octets: MIN_QUEUE_LIMIT_OCTETS.max(2 * window_octets),
        }
    }

    /// Division of a stream of this length.
    pub fn layout(&self, size_octets: u64) -> Layout {
        Layout {
            size_octets,
            message_octets: self.message_octets,
            path_mtu_octets: self.path_mtu.octets(),
            first_psn: self.first_psn,
        }
    }
}

/// Results of a multicast run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time at which the source had everything acknowledged, in nanoseconds; `None` when it failed.
    pub completion_ns: Option<u64>,
    /// Reason for which the source's queue pair failed.
    pub failure: Option<Status>,
    /// Responses that broke MT-5.3.1-1 or MT-5.3.2-1.
    pub invariant_violations: u64,
    /// The first of them.
    pub first_violation: Option<Violation>,
    /// The source.
    pub source: SourceOutcome,
    /// The receivers, in order.
    pub receivers: Vec<ReceiverOutcome>,
    /// The links, in order.
    pub links: Vec<LinkOutcome>,
    /// What the nodes have repaired, all together.
    pub repair: RepairCounters,
    /// Frames that were sent down to receivers.
    pub frames_to_receivers: u64,
    /// Frames that arrived anywhere.
    pub hops: u64,
    /// Frames dropped because the simulator's memory for frames was exhausted.
    pub dropped_for_memory: u64,
    /// Chunks of the frames' pool still held at the end.
    pub chunks_in_use: usize,
}

impl Outcome {
    /// Whether every receiver has the source's data and no invariant was broken.
    pub fn is_good(&self) -> bool {
        self.completion_ns.is_some()
            && self.invariant_violations == 0
            && self.receivers.iter().all(|receiver| receiver.is_identical)
    }
}

/// Results of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceOutcome {
    /// SHA-256 of its data.
    pub sha256: Sha256Digest,
    /// RDMA payload octets that left it, retransmissions included.
    pub egress_octets: u64,
    /// Request packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Those that had been sent before.
    pub packets_retransmitted: u64,
    /// ACKs that arrived.
    pub acks_received: u64,
    /// NAKs of all kinds that arrived.
    pub naks_received: u64,
    /// CNPs that arrived.
    pub cnps_received: u64,
    /// Times its ACK timer ran out.
    pub timeouts: u64,
}

/// Results of a receiver.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ReceiverOutcome {
    pub name: String,
    /// Its queue pair.
    pub qpn: Qpn,
    /// Octets in its memory without a gap from the start.
    pub octets: u64,
    /// Their SHA-256.
    pub sha256: Sha256Digest,
    /// Whether its memory holds the source's data and nothing else.
    pub is_identical: bool,
    pub acks_sent: u64,
    /// NAKs of all kinds that it sent.
    pub naks_sent: u64,
}

/// Counters of a link. Octets are those of frames without FCS, lost ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// Octets away from the source.
    pub down_octets: u64,
    /// Octets toward the source.
    pub up_octets: u64,
    /// Frames lost in either direction.
    pub lost_packets: u64,
}
