//! Where the slots of a group lie in a region.
//!
//! The source writes versions to slots one after the other. A slot whose version the application still reads changes
//! places with one that is free, so that it holds the source only when none is (D194).

use crate::manifest::Slots;
use std::ops::Range;

/// The places of slots: without any, each slot is at its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    slot_octets: usize,
    places: Vec<u16>,
}

impl Placement {
    /// The place of a range of a slot; `None` if it is not within one.
    pub(super) fn of(&self, range: Range<usize>) -> Option<Range<usize>> {
        if self.places.is_empty() || range.start > range.end {
            return Some(range);
        }
        let place = self.places.get(range.start.checked_div(self.slot_octets)?)?;
        let within = range.start % self.slot_octets;
        let start = usize::from(*place).checked_mul(self.slot_octets)?.checked_add(within)?;
        (within.checked_add(range.len())? <= self.slot_octets).then(|| start..start + range.len())
    }

    /// Two slots change places. The slots are the same at each call.
    pub(super) fn exchange(&mut self, slots: Slots, [a, b]: [u16; 2]) {
        if self.places.is_empty() {
            (self.slot_octets, self.places) = (slots.octets as usize, (0..slots.count).collect());
        }
        if a < slots.count && b < slots.count {
            self.places.swap(a.into(), b.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_change_places_and_nothing_crosses_their_ends() {
        let slots = Slots { count: 3, octets: 10 };
        let mut placement = Placement::default();
        assert_eq!(placement.of(5..17), Some(5..17), "without places a range may have several slots");
        placement.exchange(slots, [0, 2]);
        placement.exchange(slots, [1, 2]);
        assert_eq!(
            (placement.of(0..10), placement.of(13..15), placement.of(29..30)),
            (Some(20..30), Some(3..5), Some(19..20))
        );
        for beyond in [9..11, 25..31, 30..30, 30..31, usize::MAX - 1..usize::MAX] {
            assert_eq!(placement.of(beyond.clone()), None, "{beyond:?}");
        }
        placement.exchange(slots, [0, 3]);
        assert_eq!(placement.of(0..10), Some(20..30), "there is no such slot");
    }
}
