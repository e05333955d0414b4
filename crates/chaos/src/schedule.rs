//! A schedule: one chaos test as plain data.
//!
//! Two runs of a schedule are identical to the octet. The seed decides only which frames meet link faults, by the given
//! probabilities, and the content of the data. Everything else is in the schedule, so that a part can be removed while
//! the rest keeps its meaning; shrinking relies on it.
//!
//! Nodes, receivers and groups are named by their positions. Times are nanoseconds of virtual time since the start,
//! probabilities are parts per million.
#![allow(missing_docs, reason = "names and types explain the other items")]

use serde::{Deserialize, Serialize};
use srdma_sim::retransmission::Retransmission;
use srdma_wire::PathMtu;

/// RDMA path MTU of all groups.
pub const PATH_MTU: PathMtu = PathMtu::Octets1024;
/// Payload of a full packet.
pub const PATH_MTU_OCTETS: u32 = PATH_MTU.octets();

/// A chaos test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Seed of link faults and data.
    pub seed: u64,
    /// At least two. Node 0 is the first hop of all sources.
    pub nodes: Vec<NodePlan>,
    pub receivers: Vec<ReceiverPlan>,
    /// Parameters of every link.
    pub link: LinkPlan,
    /// At least one.
    pub groups: Vec<GroupPlan>,
    /// Ordered by time.
    pub events: Vec<TimedEvent>,
    /// Links have no random faults from then on. Events may still follow.
    pub faults_end_ns: u64,
    /// Workers of each node.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub workers: u16,
    /// Retransmission by sources and receivers.
    #[serde(default, skip_serializing_if = "Retransmission::is_go_back_n")]
    pub retransmission: Retransmission,
    /// Sources and receivers are IPv4 hosts (D272).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv4_hosts: bool,
}

impl Schedule {
    /// The same with this retransmission by the hosts.
    pub fn with_retransmission(self, retransmission: Retransmission) -> Self {
        Schedule { retransmission, ..self }
    }

    /// Whether others are, or can be moved, below a node.
    pub fn has_nodes_below(&self, node: usize) -> bool {
        self.nodes.iter().any(|other| other.parent == Some(node) || other.spares.contains(&node))
    }

    /// The same with so many workers in each node.
    pub fn with_workers(self, workers: u16) -> Self {
        Schedule { workers, ..self }
    }
}

fn one() -> u16 {
    1
}

fn is_one(workers: &u16) -> bool {
    *workers == 1
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// The next node toward the sources, with a smaller position; `None` for node 0 alone.
    pub parent: Option<usize>,
    /// Nodes with smaller positions, that this node has a link to besides its parent: it can be
    /// re-homed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<usize>,
    /// It has retransmission buffers (D150).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_repair: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReceiverPlan {
    /// The node that it is attached to. One that is node 0 or another's parent or spare is a bud node (D246).
    pub edge: usize,
}

/// Parameters of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// More than 0.
    pub rate_bits_per_s: u64,
    /// Propagation delay.
    pub delay_ns: u64,
    /// Probability that a frame is lost.
    pub loss_ppm: u32,
    /// Probability that a frame is duplicated.
    pub duplicate_ppm: u32,
    /// Probability that a frame is overtaken by others.
    pub reorder_ppm: u32,
    /// Probability that a frame, and all behind it, is delayed by `spike_ns`.
    pub spike_ppm: u32,
    /// See `spike_ppm`.
    pub spike_ns: u64,
    /// Probability that one bit of a frame is flipped.
    pub corrupt_ppm: u32,
}

impl LinkPlan {
    /// Links without random faults.
    pub fn without_faults(rate_bits_per_s: u64, delay_ns: u64) -> Self {
        LinkPlan {
            rate_bits_per_s,
            delay_ns,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            spike_ppm: 0,
            spike_ns: 0,
            corrupt_ppm: 0,
        }
    }

    /// Names of the random faults in reports.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &'static str> {
        let of_links = [
            ("loss", self.loss_ppm),
            ("duplication", self.duplicate_ppm),
            ("reordering", self.reorder_ppm),
            ("delay spike", self.spike_ppm),
            ("corruption", self.corrupt_ppm),
        ];
        of_links.into_iter().filter(|(_, ppm)| *ppm > 0).map(|(name, _)| name)
    }
}

/// A group and its transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPlan {
    /// The sending host; groups with the same number share it.
    pub source: usize,
    /// Initial receivers, in order, at least one.
    pub members: Vec<usize>,
    /// Start of the transfer.
    pub start_ns: u64,
    /// At least one.
    pub octets: u64,
    /// Octets of each message but the last.
    pub message_octets: u32,
    /// First PSN, below 2^24 (D28).
    pub first_psn: u32,
    pub operation: OperationPlan,
    /// Memory regions to which WRITEs go in turn, 1 to [`MAX_REGIONS`] (D191).
    #[serde(default = "one_region", skip_serializing_if = "is_one_region")]
    pub regions: u8,
    /// Receivers' queue pairs expect PSNs of their own, not the group's (D270).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_psns: bool,
    pub policy: PolicyPlan,
    /// Retries are unlimited; otherwise the source fails after seven without progress.
    pub unlimited_retries: bool,
}

/// Regions of a group at most.
pub const MAX_REGIONS: u8 = 4;

fn one_region() -> u8 {
    1
}

fn is_one_region(regions: &u8) -> bool {
    *regions == 1
}

/// RDMA operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationPlan {
    /// RDMA WRITE into the receivers' memory (D27).
    Write,
    /// SEND into receives that the receivers have posted.
    Send,
}

/// The varied part of a group's policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPlan {
    /// Aggregation by the draft's literal rules instead of R1 to R7 (D19, D20).
    pub literal: bool,
    /// Stalled and failed receivers are evicted (D24, D25); otherwise the group fails with them.
    pub evict: bool,
    /// Edges drop copies for receivers that already have the data (D22).
    pub prune_retransmit: bool,
    pub lists: ListsPlan,
    /// T_hold in percent of the maximum that D20 allows.
    pub t_hold_percent: u8,
    /// CNPs are sent at the end of the window (D29).
    pub trailing_cnps: bool,
    /// Minimum number of receivers after an eviction.
    pub min_receivers: u32,
    /// T_stall in percent of the source's ACK timeout (D25).
    #[serde(default = "default_t_stall_percent", skip_serializing_if = "is_default_t_stall")]
    pub t_stall_percent: u16,
    /// T_not_ready in percent of the source's ACK timeout (D196).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_not_ready_percent: Option<u16>,
    /// In-network repair (D150).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairPlan>,
}

/// Repair by the nodes that can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairPlan {
    /// Only edges repair.
    pub edges_only: bool,
    /// Room of the buffers, in packets. Less than the source's window is never configured, and has to be safe.
    pub window_packets: u32,
    /// Round trip that nodes assume before they have measured it.
    pub round_trip_ns: u64,
}

/// Default T_stall: a packet that was sent three times over two ACK timeouts.
pub const DEFAULT_T_STALL_PERCENT: u16 = 200;

fn default_t_stall_percent() -> u16 {
    DEFAULT_T_STALL_PERCENT
}

fn is_default_t_stall(percent: &u16) -> bool {
    *percent == DEFAULT_T_STALL_PERCENT
}

/// How edges learn their receivers (D7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListsPlan {
    /// From the TLVs of each data packet.
    Tlv,
    /// From the group's record.
    Provisioned,
    /// TLVs while packets fit.
    Auto,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedEvent {
    pub at_ns: u64,
    pub event: Event,
}

/// A fault, an attack or a membership change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A node loses its frames and learned state, is down for a time, and restarts with its groups.
    CrashNode { node: usize, for_ns: u64 },
    /// The link between a node and its current parent is cut in both directions.
    CutNode { node: usize, for_ns: u64 },
    /// A receiver's link is cut in both directions.
    CutReceiver { receiver: usize, for_ns: u64 },
    /// A receiver neither receives nor sends any frame from now on.
    KillReceiver { receiver: usize },
    /// A receiver processes nothing for a time, then everything that has arrived meanwhile.
    FreezeReceiver { receiver: usize, for_ns: u64 },
    /// A receiver needs `by_ns` longer for each frame.
    SlowReceiver { receiver: usize, for_ns: u64, by_ns: u64 },
    /// A receiver posts no receives for a time and answers SENDs with RNR NAKs.
    StarveReceiver { receiver: usize, for_ns: u64 },
    /// A receiver rejects the group's next request with a remote operational error (D24).
    FailReceiver { receiver: usize, group: usize },
    /// Data to a receiver arrive with CE marks, so that it sends CNPs.
    Congest { receiver: usize, for_ns: u64 },
    /// An attacker sends forged packets.
    Forge(Forgery),
    /// An insider sends responses that are not true.
    UntrueResponse(UntrueResponse),
    /// Frames that have passed the link above a node are sent over it again, the newest first.
    Replay { node: usize, up: bool, frames: u32 },
    /// A member leaves.
    Leave { group: usize, receiver: usize },
    /// A receiver that is not a member joins while the source is paused (D30).
    Join { group: usize, receiver: usize },
    /// A node and its subtree move to another parent, in all groups.
    Rehome { node: usize, parent: usize },
}

/// A forged packet in the name of another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgery {
    pub group: usize,
    pub from: Attacker,
    pub claims: Claim,
    pub message: Message,
    /// Offset of its PSN from the source's next PSN.
    pub psn_offset: i32,
    /// Number of packets, sent back to back.
    pub copies: u32,
}

/// A response in the right name and at the right place that is not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntrueResponse {
    pub group: usize,
    pub by: Insider,
    pub kind: ResponseKind,
    /// Offset of its PSN from the source's next PSN.
    pub psn_offset: i32,
    /// Number of packets, sent back to back.
    pub copies: u32,
}

/// Kind of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResponseKind {
    Ack,
    SequenceNak,
    RnrNak,
    FatalNak,
    Cnp,
}

/// Sender of untrue responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Insider {
    /// A receiving host, in its own name.
    Receiver(usize),
    /// An attacker on the link above a node, in the name of that node.
    Link(usize),
}

/// Sender of a forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attacker {
    /// A receiving host, inside of the domain.
    Receiver(usize),
    /// A host outside of the domain, at a border port of this node.
    #[serde(alias = "Stranger")]
    External(usize),
}

/// Source address of a forged packet. Never the attacker's own, inside of the domain: that is no forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    Receiver(usize),
    Node(usize),
    Proxy,
    Source,
    /// The external host's own address.
    #[serde(alias = "Stranger")]
    External,
}

/// Kind of a forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    Ack,
    SequenceNak,
    RnrNak,
    FatalNak,
    Cnp,
    /// A request of the group's source, encapsulated, with a receiver of the attacker's choice in the End.MT TLVs.
    TamperedTlv,
    /// A request of the group's source as it arrives at a receiver, with other data.
    Data,
}

impl Message {
    /// The kind of response; `None` for a request.
    pub(crate) fn response(self) -> Option<ResponseKind> {
        match self {
            Message::Ack => Some(ResponseKind::Ack),
            Message::SequenceNak => Some(ResponseKind::SequenceNak),
            Message::RnrNak => Some(ResponseKind::RnrNak),
            Message::FatalNak => Some(ResponseKind::FatalNak),
            Message::Cnp => Some(ResponseKind::Cnp),
            Message::TamperedTlv | Message::Data => None,
        }
    }
}
