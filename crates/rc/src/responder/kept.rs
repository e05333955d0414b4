//! Packets that came before the expected one, kept until it comes.

use crate::inbound::Inbound;
use std::collections::VecDeque;

/// Packets ahead of the expected PSN; the first place is that of the PSN behind it.
#[derive(Debug, Default)]
pub(super) struct KeptPackets {
    places: VecDeque<Option<Box<[u8]>>>,
}

impl KeptPackets {
    /// Keeps a packet whose PSN is `ahead` of the expected one. The caller bounds `ahead`.
    pub(super) fn keep(&mut self, ahead: usize, packet: &Inbound<'_>) {
        if self.places.len() < ahead {
            self.places.resize(ahead, None);
        }
        if let Some(place @ None) = self.places.get_mut(ahead - 1) {
            *place = Some(packet.octets().into_boxed_slice());
        }
    }

    /// The expected PSN moves on by `packets`: returns the packet that is expected then, if it was kept.
    pub(super) fn advance(&mut self, packets: u32) -> Option<Box<[u8]>> {
        let packets = packets as usize;
        if self.places.len() < packets {
            self.places.clear();
            return None;
        }
        self.places.drain(..packets).next_back().flatten()
    }

    /// Whether a packet is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}
