//! A schedule: everything that is to be said about one run of a storm, as plain data.
//!
//! Two runs of one schedule are the same to the octet. The seed decides only what the links do to which frame, by the
//! probabilities given here, and what the data are; everything else stands in the schedule, so that a part of it can be
//! left out and the rest still means the same. That is what shrinking lives on.
//!
//! Nodes, receivers and groups are named by their positions. Times are nanoseconds of virtual time since the start,
//! probabilities are parts of a million.

use serde::{Deserialize, Serialize};

/// RDMA path MTU of all groups, in octets.
pub const PATH_MTU_OCTETS: u32 = 1024;

/// Everything of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Where chances of links and octets of data come from.
    pub seed: u64,
    /// The network's nodes. Node 0 is the first hop of all sources. At least two.
    pub nodes: Vec<NodePlan>,
    /// The receiving hosts.
    pub receivers: Vec<ReceiverPlan>,
    /// Every link.
    pub link: LinkPlan,
    /// The groups, at least one.
    pub groups: Vec<GroupPlan>,
    /// What happens, in the order of time.
    pub events: Vec<Timed>,
    /// From then on links have no faults of chance. Events may still come.
    pub faults_end_ns: u64,
}

/// A node of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// The next node toward the sources, of a smaller position; `None` for node 0 alone.
    pub parent: Option<usize>,
    /// Nodes without receivers, of smaller positions, to which there is a link beside the one to the parent, so that
    /// this node may be re-homed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<usize>,
}

/// A receiving host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReceiverPlan {
    /// The node that it is attached to: not node 0, and neither another node's parent nor its spare.
    pub edge: usize,
}

/// What all links are like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Bits per second, more than 0.
    pub rate_bits_per_s: u64,
    /// Propagation delay.
    pub delay_ns: u64,
    /// How probably a frame does not arrive.
    pub loss_ppm: u32,
    /// How probably it arrives twice.
    pub duplicate_ppm: u32,
    /// How probably others overtake it.
    pub reorder_ppm: u32,
    /// How probably it is held back for `spike_ns`, and all behind it with it.
    pub spike_ppm: u32,
    /// See `spike_ppm`.
    pub spike_ns: u64,
    /// How probably one of its bits arrives changed.
    pub corrupt_ppm: u32,
}

impl LinkPlan {
    /// Links on which nothing goes wrong by chance.
    pub fn calm(rate_bits_per_s: u64, delay_ns: u64) -> Self {
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

    /// The faults that chance brings about, by the names that reports give them.
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

/// A group and what its source sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPlan {
    /// The sending host; groups with the same number share it.
    pub source: usize,
    /// The receivers from the beginning, in order, at least one.
    pub members: Vec<usize>,
    /// When the source begins.
    pub start_ns: u64,
    /// Octets to send, at least one.
    pub octets: u64,
    /// Octets of each message but the last.
    pub message_octets: u32,
    /// PSN of the first packet, below 2^24 (D28).
    pub first_psn: u32,
    /// How messages are carried.
    pub operation: OperationPlan,
    /// What its nodes are told.
    pub policy: PolicyPlan,
    /// Whether the source never gives up; else after seven retries without progress.
    pub unlimited_retries: bool,
}

/// How messages are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationPlan {
    /// RDMA WRITE into the receivers' memory (D27).
    Write,
    /// SEND into receives that the receivers posted.
    Send,
}

/// A group's policy, as far as it is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPlan {
    /// Whether responses are aggregated as the draft literally says, not by R1 to R7 (D19, D20).
    pub literal: bool,
    /// Whether stalled and failed receivers are evicted (D24, D25); else the group fails with them.
    pub evict: bool,
    /// Whether edges withhold copies of what a receiver has (D22).
    pub prune_retransmit: bool,
    /// How edges learn their receivers (D7).
    pub lists: ListsPlan,
    /// T_hold, in hundredths of the longest that D20 allows; at most 100.
    pub t_hold_percent: u8,
    /// Whether CNPs wait for the end of the window from the first one on (D29).
    pub trailing_cnps: bool,
    /// The fewest receivers that an eviction may leave.
    pub min_receivers: u32,
    /// T_stall, in hundredths of the source's ACK timeout (D25).
    #[serde(default = "usual_t_stall_percent", skip_serializing_if = "is_usual_t_stall")]
    pub t_stall_percent: u16,
}

/// T_stall unless something else is said: a packet that was sent three times over two ACK timeouts.
pub const USUAL_T_STALL_PERCENT: u16 = 200;

fn usual_t_stall_percent() -> u16 {
    USUAL_T_STALL_PERCENT
}

fn is_usual_t_stall(percent: &u16) -> bool {
    *percent == USUAL_T_STALL_PERCENT
}

/// How edges learn their receivers (D7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListsPlan {
    /// From the TLVs of each data packet.
    Tlv,
    /// From the group's record.
    Provisioned,
    /// TLV while the packets fit.
    Auto,
}

/// What happens at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// When.
    pub at_ns: u64,
    /// What.
    pub event: Event,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A node loses its frames and what it learnt from traffic, is silent for a time, and comes back with the groups
    /// that were committed.
    CrashNode {
        /// The node.
        node: usize,
        /// For how long.
        for_ns: u64,
    },
    /// Nothing passes between a node and the node that is its parent then, in either direction.
    CutNode {
        /// The lower node.
        node: usize,
        /// For how long.
        for_ns: u64,
    },
    /// Nothing passes between a receiver and its edge, in either direction.
    CutReceiver {
        /// The receiver.
        receiver: usize,
        /// For how long.
        for_ns: u64,
    },
    /// A receiver neither takes nor sends a frame ever after.
    KillReceiver {
        /// The receiver.
        receiver: usize,
    },
    /// A receiver handles nothing for a time, then all that has come meanwhile.
    FreezeReceiver {
        /// The receiver.
        receiver: usize,
        /// For how long.
        for_ns: u64,
    },
    /// A receiver takes longer over each frame.
    SlowReceiver {
        /// The receiver.
        receiver: usize,
        /// For how long.
        for_ns: u64,
        /// How much longer.
        by_ns: u64,
    },
    /// A receiver posts no receives for a time, so that SENDs to it are answered by RNR NAKs.
    StarveReceiver {
        /// The receiver.
        receiver: usize,
        /// For how long.
        for_ns: u64,
    },
    /// A receiver refuses the group's next request for good, with a remote operational error (D24).
    FailReceiver {
        /// The receiver.
        receiver: usize,
        /// The group.
        group: usize,
    },
    /// Data to a receiver arrive marked as having met congestion, so that it answers with CNPs.
    Congest {
        /// The receiver.
        receiver: usize,
        /// For how long.
        for_ns: u64,
    },
    /// Somebody sends what is not so.
    Forge(Forgery),
    /// Frames that have passed the link above a node are sent over it once more, as they were, newest first.
    Replay {
        /// The node below the link.
        node: usize,
        /// Toward the sources; else away from them.
        up: bool,
        /// How many, at most.
        frames: u32,
    },
    /// A member leaves: an eviction by its own wish.
    Leave {
        /// The group.
        group: usize,
        /// The member.
        receiver: usize,
    },
    /// A receiver joins while the source pauses (D30).
    Join {
        /// The group.
        group: usize,
        /// Not a member at that time; or nothing happens.
        receiver: usize,
    },
    /// A node, with all below it, gets another parent, in all groups.
    Rehome {
        /// The node.
        node: usize,
        /// One of its spares, or the parent that it began with.
        parent: usize,
    },
}

/// A packet that lies about somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgery {
    /// The group that it is about.
    pub group: usize,
    /// Who sends it.
    pub from: Forger,
    /// Whose source address it carries.
    pub claims: Claim,
    /// What it is.
    pub message: Message,
    /// Its PSN, from the PSN that the source sends next; beyond it for a positive number.
    pub psn_offset: i32,
    /// How many of them, one right after the other.
    pub copies: u32,
}

/// Who sends a forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forger {
    /// A receiving host, from inside.
    Receiver(usize),
    /// A host outside the domain, at a border port of this node.
    Stranger(usize),
}

/// Whose source address a forged packet carries; never the forger's own, who may say of itself what it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claim {
    /// Another receiver's.
    Receiver(usize),
    /// A node's loopback.
    Node(usize),
    /// The group's Proxy Address.
    Proxy,
    /// The source's.
    Source,
    /// The stranger's own.
    Stranger,
}

/// What a forged packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// An ACK.
    Ack,
    /// A NAK for a PSN sequence error.
    SequenceNak,
    /// An RNR NAK.
    RnrNak,
    /// A NAK for a remote operational error.
    FatalNak,
    /// A CNP.
    Cnp,
    /// A request of the group's source, encapsulated, whose End.MT TLVs name a receiver of the forger's choice.
    TamperedTlv,
    /// A request of the group's source as it would arrive at a receiver, with other data.
    Data,
}
