//! Memory of retransmission buffers (D162): what they may take of the pool is reserved when a group entry is applied,
//! so that nothing is left to be refused when packets come.

use super::Groups;
use super::repair::buffer_packets;
use crate::config::NodeConfig;
use srdma_frame::CHUNK_ROOM;
use srdma_group::GroupEntry;

/// Octets of a large chunk, its headroom included.
const CHUNK: u64 = 4096;
/// Headers of a data packet besides those that End.MT removes: Ethernet, IPv6, UDP, BTH, RETH, immediate data and ICRC.
const HEADERS: u64 = 14 + 40 + 8 + 12 + 16 + 4 + 4;
/// Outer headers: IPv6, and an SRH with receiver lists (D7).
const OUTER: u64 = 40 + 2_048;

/// What a group's buffer takes of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferShare {
    /// Chunks of one packet; a longer packet is not kept.
    pub(crate) chunks_per_packet: u8,
    pub(crate) octets: u64,
}

impl BufferShare {
    /// Of an entry; `None` if the node does not repair by it.
    pub(super) fn of(entry: &GroupEntry, config: &NodeConfig) -> Option<Self> {
        let repair = entry.repair.as_ref()?;
        let packets = repair.window_packets.max(1);
        let payload = u64::from(entry.policy.repair.window_octets.div_ceil(packets));
        let on_links = config.ports.iter().map(|port| u64::from(port.link_mtu) + 14).max().unwrap_or(u64::MAX);
        let longest = (payload + HEADERS + OUTER).min(on_links);
        let chunks = longest.div_ceil(CHUNK_ROOM as u64).clamp(1, 255);
        let kept = u64::from(buffer_packets(packets));
        Some(BufferShare { chunks_per_packet: chunks as u8, octets: kept * chunks * CHUNK })
    }
}

impl Groups {
    /// The share of a group that is added in this slot; `None` if it does not repair, or the buffers of the other
    /// groups leave no room for it.
    pub(super) fn buffer_share(&self, slot: usize, entry: &GroupEntry, config: &NodeConfig) -> Option<BufferShare> {
        let share = BufferShare::of(entry, config).filter(|_| config.worker.owns(entry.proxy))?;
        let others = self.slots.iter().enumerate().filter(|(index, _)| *index != slot);
        let taken: u64 = others.filter_map(|(_, state)| Some(state.as_ref()?.buffer_share?.octets)).sum();
        (taken + share.octets <= config.repair_memory_octets).then_some(share)
    }

    /// Octets of the pool that are reserved for buffers.
    pub(crate) fn buffer_octets(&self) -> u64 {
        self.slots.iter().flatten().filter_map(|state| Some(state.buffer_share?.octets)).sum()
    }
}
