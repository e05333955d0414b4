//! Counters of a node.

use crate::drop::DropCounters;
use srdma_repair::BranchCounters;

/// Frames and octets, without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Traffic {
    pub frames: u64,
    pub octets: u64,
}

impl Traffic {
    /// Counts a frame of `octets`.
    #[inline]
    pub fn count(&mut self, octets: usize) {
        self.frames += 1;
        self.octets += octets as u64;
    }
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Received frames.
    pub received: Traffic,
    /// Frames that entered an egress queue. Frames sent are these without those that wait or were discarded:
    /// [`Node::sent`](crate::Node::sent).
    pub enqueued: Traffic,
    /// Frames that were dropped while they waited in an egress queue.
    pub discarded: Traffic,
    /// Drops of frames that were received here, and of those that were discarded here.
    pub drops: DropCounters,
}

/// Counters of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Data packets received.
    pub data_packets: u64,
    /// Copies made of them.
    pub copies: u64,
    /// ACKs received from branches.
    pub acks_received: u64,
    /// NAKs of all kinds received from branches.
    pub naks_received: u64,
    /// CNPs received from branches.
    pub cnps_received: u64,
    /// ACKs sent upstream.
    pub acks_sent: u64,
    /// NAKs of all kinds sent upstream.
    pub naks_sent: u64,
    /// CNPs sent upstream.
    pub cnps_sent: u64,
}

/// Fill of a group's retransmission buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RepairFill {
    pub packets: u64,
    pub capacity_packets: u32,
    /// The source has exceeded its window: the group goes on without repair (D160).
    pub is_off: bool,
}

/// Repair of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct BranchRepair {
    pub counters: BranchCounters,
    /// Whether it is to be sent packets of the buffer.
    pub is_behind: bool,
}
