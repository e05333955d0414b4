//! A node that repairs losses: what it keeps, and what of it is not a leak.

use super::world::{GROUPS, Temper, World};
use super::{Bench, Judge, drain};
use srdma_frame::Element;
use srdma_group::{GroupId, RepairMode, RepairPolicy};

/// The window of sources whose losses are repaired: sixteen packets of 4,096 octets.
const WINDOW_OCTETS: u32 = 16 << 12;
/// Chunks of a packet in a retransmission buffer, at most.
const CHUNKS_PER_PACKET: u64 = 2;

/// Repair by the edges for group 3, by all nodes for the others.
pub(super) fn policy(group: u16) -> RepairPolicy {
    let mode = if group == 3 { RepairMode::Edge } else { RepairMode::Tree };
    RepairPolicy { mode, window_octets: WINDOW_OCTETS, ..RepairPolicy::default() }
}

/// The node releases the packets of buffers that have changed or gone.
pub(super) fn release_kept(world: &mut World, bench: &mut Bench) {
    if world.repairs() {
        world.node.tick(world.now, &mut world.pool);
        drain(world, bench, Judge::Wholeness);
    }
}

/// The node requests kept packets that have proved damaged when they were to be sent. It sends the next one then,
/// which may be damaged, too.
pub(super) fn request_damaged(world: &mut World, bench: &mut Bench) {
    let mut kept = u64::MAX;
    while world.repairs() && world.is_due() && world.kept_packets() < kept {
        kept = world.kept_packets();
        release_kept(world, bench);
    }
}

impl World {
    /// Whether the node repairs losses.
    pub(super) fn repairs(&self) -> bool {
        self.temper == Temper::Repairing
    }

    /// Groups whose source has exceeded its window are joined again, so that the node repairs them (D160).
    pub(super) fn restore_repair(&mut self) {
        for group in 1..=GROUPS {
            if self.node.repair_fill(GroupId(group.into())).is_some_and(|fill| fill.is_off) {
                self.rejoin(group);
            }
        }
    }

    /// Data of the groups that the node repairs, which it may keep or absorb, and requests of its children.
    pub(super) fn counted_by_repair(&self) -> u64 {
        let ids = (1..=GROUPS).map(|group| GroupId(group.into()));
        let counters = ids.filter_map(|id| self.node.repair_counters(id).zip(self.node.group_counters(id)));
        counters.map(|(repair, group)| repair.requests_received + group.data_packets).sum()
    }

    /// Packets in retransmission buffers.
    pub(super) fn kept_packets(&self) -> u64 {
        let fills = (1..=GROUPS).filter_map(|group| self.node.repair_fill(GroupId(group.into())));
        fills.map(|fill| fill.packets).sum()
    }

    /// Whether no chunk is in use but those of packets in retransmission buffers.
    pub(super) fn has_only_kept_chunks(&self) -> bool {
        self.pool.in_use() as u64 <= self.kept_packets() * CHUNKS_PER_PACKET
    }

    /// Whether a timer is due.
    pub(super) fn is_due(&self) -> bool {
        self.node.next_deadline().is_some_and(|deadline| deadline <= self.now)
    }
}
