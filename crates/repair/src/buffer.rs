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
    /// Packets that it may hold.
    capacity: u32,
    /// Packets that it holds.
    held: u32,
}

impl<P> Buffer<P> {
    /// A buffer for `capacity` packets. The size of its ring is a power of two, since PSNs wrap at one.
    pub(crate) fn new(capacity: u32) -> Self {
        let size = if capacity == 0 { 0 } else { capacity.next_power_of_two() };
        Buffer { slots: (0..size).map(|_| None).collect(), capacity, held: 0 }
    }

    /// Packets that it may hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
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

    /// Puts a packet into its slot; returns the packet with its PSN that was there. An error returns this one: another
    /// PSN has the slot, or there are as many packets as there may be.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot<P>) -> Result<Option<P>, P> {
        let index = self.index(slot.psn);
        match self.slots.get_mut(index) {
            Some(place @ None) if self.held < self.capacity => {
                self.held += 1;
                *place = Some(slot);
                Ok(None)
            }
            Some(Some(before)) if before.psn == slot.psn => Ok(Some(std::mem::replace(before, slot).packet)),
            Some(_) | None => Err(slot.packet),
        }
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, psn: Psn) -> Option<P> {
        let index = self.index(psn);
        let place = self.slots.get_mut(index)?;
        let slot = place.take_if(|slot| slot.psn == psn)?;
        self.held -= 1;
        Some(slot.packet)
    }

    /// Takes out what is there of `count` packets from `first` on.
    pub(crate) fn take_run(&mut self, first: Psn, count: u32, taken: &mut Vec<P>) {
        taken.reserve(count as usize);
        for psn in (0..count).map(|offset| first.plus(offset)) {
            let index = self.index(psn);
            if let Some(place) = self.slots.get_mut(index)
                && place.as_ref().is_some_and(|slot| slot.psn == psn)
                && let Some(slot) = place.take()
            {
                self.held -= 1;
                taken.push(slot.packet);
            }
        }
    }

    /// The packets, in no order of time.
    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot<P>> {
        self.slots.iter_mut().flatten()
    }

    /// Takes all packets out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = P> {
        self.held = 0;
        self.slots.iter_mut().filter_map(|place| place.take().map(|slot| slot.packet))
    }

    /// Number of packets.
    pub(crate) fn len(&self) -> usize {
        self.held as usize
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
                if is_put && (map.contains_key(&offset) || map.len() < 33) {
                    prop_assert_eq!(ring.put(slot(psn.get())), Ok(map.insert(offset, psn.get())));
                } else if is_put {
                    prop_assert_eq!(ring.put(slot(psn.get())), Err(psn.get()));
                } else {
                    prop_assert_eq!(ring.take(psn), map.remove(&offset));
                }
                prop_assert_eq!(ring.len(), map.len());
                prop_assert_eq!(ring.slots_mut().count(), map.len());
                prop_assert_eq!(ring.holds(psn), map.contains_key(&offset));
            }
        }
    }

    #[test]
    fn a_ring_without_slots_holds_nothing() {
        let mut ring = Buffer::new(0);
        assert_eq!(ring.put(slot(5)), Err(5));
        assert!(!ring.holds(Psn::new(5)) && ring.take(Psn::new(5)).is_none());
    }

    #[test]
    fn another_turn_of_the_ring_is_another_psn() {
        let mut ring = Buffer::new(4);
        assert_eq!(ring.put(slot(1)), Ok(None));
        assert!(!ring.holds(Psn::new(5)));
        assert_eq!(ring.put(slot(5)), Err(5));
        assert_eq!(ring.take(Psn::new(1)), Some(1));
        assert_eq!(ring.put(slot(5)), Ok(None));
    }
}
