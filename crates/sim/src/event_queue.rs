//! Event queue as a calendar queue: an event costs the same with a dozen pending and with a hundred thousand.
//!
//! ```text
//!            now                              horizon
//!  current ┤ sorted ├ slot ┤ slot ┤ … ┤ slot ├ later: a heap
//! ```
//!
//! Time is divided into slots of [`SLOT_NS`]. Events of the current slot are sorted; those of later slots up to the
//! horizon are in one unsorted list for each slot; those beyond it are in a heap.

use srdma_wire::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

const SLOT_SHIFT: u32 = 6;

/// Length of a slot in nanoseconds.
pub const SLOT_NS: u64 = 1 << SLOT_SHIFT;

const SLOTS: usize = 4096;

/// Events ordered by time, rank and order of insertion.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// The events of `current_slot` and before, latest first.
    current: Vec<Entry<T>>,
    current_slot: u64,
    slots: Vec<Vec<Entry<T>>>,
    /// One bit for each slot: whether it has events.
    occupied: Vec<u64>,
    /// The number of these bits.
    occupied_slots: usize,
    later: BinaryHeap<Reverse<Entry<T>>>,
    pushed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    time_ns: u64,
    /// Rank, then number.
    order: u64,
    event: T,
}

/// Bits of an event's number in `order`, below its rank.
const NUMBER_BITS: u32 = 40;

impl<T: Copy> EventQueue<T> {
    /// An empty queue that begins at the origin of time.
    pub fn new() -> Self {
        EventQueue {
            current: Vec::new(),
            current_slot: 0,
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: vec![0; SLOTS / 64],
            occupied_slots: 0,
            later: BinaryHeap::new(),
            pushed: 0,
        }
    }

    /// Removes all events and returns to the origin of time.
    pub fn clear(&mut self) {
        for (index, word) in self.occupied.iter_mut().enumerate() {
            while *word != 0 {
                self.slots[index * 64 + word.trailing_zeros() as usize].clear();
                *word &= *word - 1;
            }
        }
        self.current.clear();
        self.later.clear();
        (self.current_slot, self.pushed, self.occupied_slots) = (0, 0, 0);
    }

    /// Adds an event with a rank below 2^24. An event before the one popped last is popped next.
    #[inline]
    pub fn push(&mut self, time: Instant, rank: u32, event: T) {
        let number = self.pushed & ((1 << NUMBER_BITS) - 1);
        let entry = Entry { time_ns: time.as_ns(), order: u64::from(rank) << NUMBER_BITS | number, event };
        self.pushed += 1;
        let slot = entry.time_ns >> SLOT_SHIFT;
        if slot <= self.current_slot {
            let place = self.current.partition_point(|other| other.key() > entry.key());
            self.current.insert(place, entry);
        } else if slot - self.current_slot < SLOTS as u64 {
            let index = slot as usize % SLOTS;
            self.occupied_slots += usize::from(self.slots[index].is_empty());
            self.slots[index].push(entry);
            self.occupied[index / 64] |= 1 << (index % 64);
        } else {
            self.later.push(Reverse(entry));
        }
    }

    /// Time of the first event.
    pub fn next_time(&mut self) -> Option<Instant> {
        if self.current.is_empty() {
            self.open_next_slot()?;
        }
        self.current.last().map(|entry| Instant::from_ns(entry.time_ns))
    }

    /// Pops the first event unless it lies after `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Instant) -> Option<(Instant, T)> {
        if self.current.is_empty() {
            self.open_next_slot()?;
        }
        let entry = self.current.pop_if(|entry| entry.time_ns <= limit.as_ns())?;
        Some((Instant::from_ns(entry.time_ns), entry.event))
    }

    /// Pops the first event if it lies in the current slot and `wanted` accepts it. Events at the time of the one
    /// popped last are always in the current slot.
    #[inline]
    pub fn pop_if(&mut self, wanted: impl FnOnce(Instant, T) -> bool) -> Option<T> {
        self.current.pop_if(|entry| wanted(Instant::from_ns(entry.time_ns), entry.event)).map(|entry| entry.event)
    }

    fn open_next_slot(&mut self) -> Option<()> {
        let near = self.next_occupied_slot();
        let far = self.later.peek().map(|Reverse(entry)| entry.time_ns >> SLOT_SHIFT);
        let slot = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (near, far) => near.or(far)?,
        };
        self.current_slot = slot;
        let index = slot as usize % SLOTS;
        if near == Some(slot) {
            std::mem::swap(&mut self.current, &mut self.slots[index]);
            self.occupied[index / 64] &= !(1 << (index % 64));
            self.occupied_slots -= 1;
        }
        while let Some(Reverse(entry)) = self.later.peek()
            && entry.time_ns >> SLOT_SHIFT == slot
        {
            self.current.extend(self.later.pop().map(|Reverse(entry)| entry));
        }
        self.current.sort_unstable_by_key(|entry| Reverse(entry.key()));
        Some(())
    }

    /// The number of the first slot after the current one that has events.
    fn next_occupied_slot(&self) -> Option<u64> {
        if self.occupied_slots == 0 {
            return None;
        }
        let first = (self.current_slot as usize + 1) % SLOTS;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (first / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (first % 64);
            }
            if bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (index + SLOTS - first) % SLOTS;
                return Some(self.current_slot + 1 + ahead as u64);
            }
        }
        None
    }
}

impl<T: Copy> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.time_ns, self.order)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    #[test]
    fn events_of_one_time_are_ordered_by_rank_and_insertion() {
        let mut queue = EventQueue::new();
        let far = Instant::from_ns(10 * SLOT_NS * SLOTS as u64);
        for event in 0..5 {
            queue.push(far, 1, event);
        }
        queue.push(Instant::ZERO, 2, 9);
        assert_eq!(queue.pop_until(Instant::NEVER), Some((Instant::ZERO, 9)));
        assert_eq!(queue.pop_until(Instant::NEVER), Some((far, 0)));
        queue.push(far, 1, 5);
        queue.push(far, 0, 6);
        let rest: Vec<i32> = std::iter::from_fn(|| queue.pop_until(Instant::NEVER)).map(|(_, event)| event).collect();
        assert_eq!(rest, [6, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn events_after_the_limit_stay() {
        let mut queue = EventQueue::new();
        queue.push(Instant::from_ns(1000), 0, 'a');
        queue.push(Instant::from_ns(1000), 0, 'b');
        assert_eq!(queue.pop_until(Instant::from_ns(999)), None);
        queue.push(Instant::from_ns(3), 0, 'c');
        assert_eq!(queue.pop_until(Instant::from_ns(999)), Some((Instant::from_ns(3), 'c')));
        assert_eq!(queue.pop_until(Instant::from_ns(1000)), Some((Instant::from_ns(1000), 'a')));
        assert_eq!(queue.pop_until(Instant::NEVER), Some((Instant::from_ns(1000), 'b')));
    }

    #[test]
    fn only_a_wanted_event_is_popped() {
        let mut queue = EventQueue::new();
        queue.push(Instant::from_ns(3), 0, 'a');
        queue.push(Instant::from_ns(3), 0, 'b');
        assert_eq!(queue.pop_until(Instant::NEVER), Some((Instant::from_ns(3), 'a')));
        assert_eq!(queue.pop_if(|_, event| event == 'a'), None);
        assert_eq!(queue.pop_if(|time, _| time.as_ns() == 3), Some('b'));
        assert_eq!(queue.pop_if(|_, _| true), None);
    }

    /// Nanoseconds from now: within a slot, within the horizon, at its edge, and beyond.
    fn delay() -> impl Strategy<Value = u64> {
        let horizon = SLOT_NS * SLOTS as u64;
        prop_oneof![0..2 * SLOT_NS, 0..horizon, horizon - 2 * SLOT_NS..horizon + 2 * SLOT_NS, 0..20 * horizon]
    }

    proptest! {
        /// The queue compared with a list that is searched for its minimum.
        #[test]
        fn order_is_that_of_a_sorted_list(steps in prop::collection::vec((any::<bool>(), delay(), 0..3_u32), 1..400)) {
            let mut queue = EventQueue::new();
            let mut list: Vec<(u64, u32, usize)> = Vec::new();
            let mut now = 0;
            for (number, (pop, delay, rank)) in steps.into_iter().enumerate() {
                if pop {
                    let expected = list.iter().copied().min();
                    list.retain(|entry| Some(*entry) != expected);
                    prop_assert_eq!(queue.pop_until(Instant::NEVER), expected.map(|(time, _, event)| (Instant::from_ns(time), event)));
                    now = expected.map_or(now, |(time, _, _)| time);
                } else {
                    queue.push(Instant::from_ns(now + delay), rank, number);
                    list.push((now + delay, rank, number));
                }
            }
            list.sort_unstable();
            for (time, _, event) in list {
                prop_assert_eq!(queue.pop_until(Instant::NEVER), Some((Instant::from_ns(time), event)));
            }
            prop_assert_eq!(queue.pop_until(Instant::NEVER), None);
        }
    }
}
