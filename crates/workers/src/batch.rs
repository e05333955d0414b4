//! A batch of packets on their way to another worker: their octets, for pools are not shared.

use srdma_dataplane::HandoverNote;
use srdma_frame::{Frame, Pool};

/// Packets of a batch, at most.
const PACKETS: usize = 64;

/// A batch with so many octets takes no further packet.
const OCTETS: usize = 64 << 10;

/// Packets in the order in which they were handed over.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    packets: Vec<(HandoverNote, usize)>,
    /// Packets that were taken, and their octets.
    taken: (usize, usize),
}

impl Batch {
    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() >= PACKETS || self.octets.len() >= OCTETS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.0 == self.packets.len()
    }

    /// Copies a packet.
    pub(crate) fn add(&mut self, note: HandoverNote, frame: &Frame, pool: &Pool) {
        let begin = self.octets.len();
        for piece in frame.pieces(pool) {
            self.octets.extend_from_slice(piece);
        }
        self.packets.push((note, self.octets.len() - begin));
    }

    /// The next packet.
    pub(crate) fn take(&mut self) -> Option<(HandoverNote, &[u8])> {
        let (packets, begin) = self.taken;
        let (note, len) = *self.packets.get(packets)?;
        self.taken = (packets + 1, begin + len);
        Some((note, &self.octets[begin..begin + len]))
    }

    /// Empties the batch, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.packets.clear();
        self.taken = (0, 0);
    }
}
