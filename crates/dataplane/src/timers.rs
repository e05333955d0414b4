//! Deadlines by index: groups of a node, probes of a headend.

use srdma_wire::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Limit of stale entries, besides one per number.
const MOST_OVERTAKEN: usize = 64;

/// Deadlines of numbered things. Each is armed once at a time; an entry that was overtaken does nothing.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    armed: Vec<Option<Instant>>,
}

impl Timers {
    /// Sets the next deadline of an entry.
    #[inline]
    pub(crate) fn arm(&mut self, number: u32, deadline: Option<Instant>) {
        let index = number as usize;
        if index >= self.armed.len() {
            self.armed.resize(index + 1, None);
        }
        if self.armed[index] == deadline {
            return;
        }
        self.armed[index] = deadline;
        if let Some(deadline) = deadline {
            self.heap.push(Reverse((deadline, number)));
        }
        if self.heap.len() > 2 * self.armed.len() + MOST_OVERTAKEN {
            let armed = &self.armed;
            self.heap.retain(|Reverse((deadline, number))| armed[*number as usize] == Some(*deadline));
        }
        while let Some(Reverse((deadline, number))) = self.heap.peek() {
            if self.armed[*number as usize] == Some(*deadline) {
                break;
            }
            self.heap.pop();
        }
    }

    /// One whose deadline has come; it is no longer armed.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let number = self.heap.peek().filter(|Reverse((deadline, _))| *deadline <= now)?.0.1;
        self.arm(number, None);
        Some(number)
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((deadline, _))| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_and_only_as_armed_last() {
        let at = |ns| Some(Instant::from_ns(ns));
        let mut timers = Timers::default();
        timers.arm(0, at(50));
        timers.arm(1, at(20));
        timers.arm(1, at(70));
        assert_eq!(timers.next(), at(50));
        timers.arm(0, None);
        assert_eq!(timers.next(), at(70));
        assert_eq!(timers.take_due(Instant::from_ns(69)), None);
        assert_eq!(timers.take_due(Instant::from_ns(70)), Some(1));
        assert_eq!(timers.take_due(Instant::from_ns(70)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn rearming_does_not_grow_without_bound() {
        let mut timers = Timers::default();
        for ns in 0..10_000 {
            timers.arm(3, Some(Instant::from_ns(10_000 - ns)));
            timers.arm(3, None);
        }
        assert_eq!(timers.heap.len(), 0);
    }

    /// Nor behind one that stands first for long.
    #[test]
    fn superseded_entries_do_not_accumulate() {
        let at = |ns| Some(Instant::from_ns(ns));
        let mut timers = Timers::default();
        timers.arm(0, at(1));
        (2..10_000).for_each(|ns| timers.arm(1, at(ns)));
        assert!(timers.heap.len() <= 2 * 2 + MOST_OVERTAKEN + 1);
        assert_eq!(timers.take_due(Instant::from_ns(1)), Some(0));
        assert_eq!(
            (timers.take_due(Instant::from_ns(9_998)), timers.take_due(Instant::from_ns(9_999))),
            (None, Some(1))
        );
    }
}
