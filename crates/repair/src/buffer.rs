//! The retransmission buffer: a ring of packets by their PSN.

use srdma_wire::{Instant, Psn};

/// A packet in the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot<P> {
    pub(crate) psn: Psn,
    pub(crate) packet: P,
    /// It requests an acknowledgement.
    pub(crate) ack_request: bool,
    /// It was sent again to some branch: its acknowledgement is no sample of a round trip.
    pub(crate) is_resent: bool,
    /// When it was received, and forwarded to the branches that were level.
    pub(crate) received: Instant,
}

/// Packets by PSN. A slot of the ring has one of the PSNs that are congruent modulo its size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Buffer<P> {
    slots: Box<[Option<Slot<P>>]>,
}

impl<P> Buffer<P> {
    /// A ring for `capacity` packets, rounded up to a power of two: PSNs wrap at one.
    pub(crate) fn new(capacity: u32) -> Self {
        let size = if capacity == 0 { 0 } else { capacity.next_power_of_two() };
        Buffer { slots: (0..size).map(|_| None).collect() }
    }

    /// Number of slots.
    pub(crate) fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    fn index(&self, psn: Psn) -> usize {
        psn.get() as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn get(&self, psn: Psn) -> Option<&Slot<P>> {
        self.slots.get(self.index(psn))?.as_ref().filter(|slot| slot.psn == psn)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, psn: Psn) -> Option<&mut Slot<P>> {
        let index = self.index(psn);
        self.slots.get_mut(index)?.as_mut().filter(|slot| slot.psn == psn)
    }

    #[inline]
    pub(crate) fn holds(&self, psn: Psn) -> bool {
        self.get(psn).is_some()
    }

    /// The PSN that stands where this one would be put.
    #[inline]
    pub(crate) fn occupant(&self, psn: Psn) -> Option<Psn> {
        Some(self.slots.get(self.index(psn))?.as_ref()?.psn)
    }

    /// Puts a packet into its slot; returns the packet that was there, or this one if the ring has no slots.
    pub(crate) fn put(&mut self, slot: Slot<P>) -> Option<P> {
        let index = self.index(slot.psn);
        match self.slots.get_mut(index) {
            Some(place) => place.replace(slot).map(|before| before.packet),
            None => Some(slot.packet),
        }
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, psn: Psn) -> Option<P> {
        let index = self.index(psn);
        let place = self.slots.get_mut(index)?;
        place.take_if(|slot| slot.psn == psn).map(|slot| slot.packet)
    }

    /// The packets, in no order of time.
    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot<P>> {
        self.slots.iter_mut().flatten()
    }

    /// Takes all packets out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = P> {
        self.slots.iter_mut().filter_map(|place| place.take().map(|slot| slot.packet))
    }

    /// Number of packets.
    pub(crate) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn slot(psn: u32) -> Slot<u32> {
        Slot { psn: Psn::new(psn), packet: psn, ack_request: false, is_resent: false, received: Instant::ZERO }
    }

    proptest! {
        /// Against a map, within one window anywhere on the circle.
        #[test]
        fn a_ring_equals_a_map_within_its_window(
            base in prop_oneof![Just(0xFF_FFF0_u32), 0_u32..1 << 24],
            operations in prop::collection::vec((0_u32..64, any::<bool>()), 0..200),
        ) {
            let (mut ring, mut map) = (Buffer::new(33), BTreeMap::new());
            prop_assert_eq!(ring.size(), 64);
            for (offset, is_put) in operations {
                let psn = Psn::new((base + offset) & 0xFF_FFFF);
                if is_put {
                    prop_assert_eq!(ring.put(slot(psn.get())), map.insert(offset, psn.get()));
                } else {
                    prop_assert_eq!(ring.take(psn), map.remove(&offset));
                }
                prop_assert_eq!(ring.len(), map.len());
                prop_assert_eq!(ring.holds(psn), map.contains_key(&offset));
            }
        }
    }

    #[test]
    fn a_ring_without_slots_holds_nothing() {
        let mut ring = Buffer::new(0);
        assert_eq!(ring.put(slot(5)), Some(5));
        assert!(!ring.holds(Psn::new(5)) && ring.take(Psn::new(5)).is_none());
    }

    #[test]
    fn another_turn_of_the_ring_is_another_psn() {
        let mut ring = Buffer::new(4);
        assert_eq!(ring.put(slot(1)), None);
        assert!(!ring.holds(Psn::new(5)));
        assert_eq!(ring.occupant(Psn::new(5)), Some(Psn::new(1)));
        assert_eq!(ring.put(slot(5)), Some(1));
    }
}
