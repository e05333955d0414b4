//! Lines that wait for a slow reader: bounded, in order.

use std::collections::VecDeque;

/// Entry of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Line(String),
    /// Here this number of lines was dropped.
    Dropped(u64),
}

/// A queue of lines. When it is full, lines are dropped until it is half empty, so that a slow reader gets runs of
/// lines with few gaps; an entry in place of the dropped lines has their number.
#[derive(Debug)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    limit: usize,
    /// Lines dropped behind the last entry.
    dropped: u64,
}

impl Queue {
    /// An empty one for this number of lines.
    pub(super) fn new(limit: usize) -> Self {
        Queue { entries: VecDeque::new(), limit, dropped: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a line; `false` if it is dropped.
    pub(super) fn push(&mut self, line: String) -> bool {
        let is_accepted = self.dropped == 0 && self.entries.len() < self.limit;
        if is_accepted {
            self.entries.push_back(Entry::Line(line));
        } else {
            self.dropped += 1;
        }
        is_accepted
    }

    /// Removes the first entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        if self.dropped > 0 && self.entries.len() <= self.limit / 2 {
            self.entries.push_back(Entry::Dropped(std::mem::take(&mut self.dropped)));
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, numbers: std::ops::Range<u32>) -> Vec<bool> {
        numbers.map(|number| queue.push(number.to_string())).collect()
    }

    fn lines(numbers: std::ops::Range<u32>) -> Vec<Option<Entry>> {
        numbers.map(|number| Some(Entry::Line(number.to_string()))).collect()
    }

    #[test]
    fn lines_keep_their_order() {
        let mut queue = Queue::new(4);
        assert_eq!(push(&mut queue, 0..3), [true; 3]);
        let popped: Vec<_> = (0..2).map(|_| queue.pop()).collect();
        assert_eq!(popped, lines(0..2));
        assert_eq!(push(&mut queue, 3..6), [true; 3]);
        let popped: Vec<_> = (0..4).map(|_| queue.pop()).collect();
        assert_eq!(popped, lines(2..6));
        assert!(queue.pop().is_none() && queue.is_empty());
    }

    #[test]
    fn a_full_queue_drops_lines_until_it_is_half_empty_and_counts_them() {
        let mut queue = Queue::new(4);
        assert_eq!(push(&mut queue, 0..6), [true, true, true, true, false, false]);
        // Three are left, which is more than half.
        assert_eq!(queue.pop(), lines(0..1)[0]);
        assert!(!queue.push("6".to_owned()));
        // The number is behind the lines before the gap, and in front of those behind it.
        assert_eq!(queue.pop(), lines(1..2)[0]);
        assert!(queue.push("7".to_owned()));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).map(Some).collect();
        assert_eq!(rest[..2], lines(2..4)[..]);
        assert_eq!(rest[2..], [Some(Entry::Dropped(3)), Some(Entry::Line("7".to_owned()))]);
    }

    /// The number does not wait for a line behind it.
    #[test]
    fn a_gap_at_the_end_is_reported() {
        let mut queue = Queue::new(1);
        assert_eq!(push(&mut queue, 0..3), [true, false, false]);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [lines(0..1).remove(0), Some(Entry::Dropped(2)), None]);
        assert!(queue.push("3".to_owned()));
    }

    #[test]
    fn its_size_is_bounded_whatever_is_pushed_and_popped() {
        let mut queue = Queue::new(8);
        let (mut accepted, mut dropped, mut popped, mut reported) = (0_u64, 0, 0, 0);
        let mut take = |queue: &mut Queue| match queue.pop() {
            Some(Entry::Line(_)) => popped += 1,
            Some(Entry::Dropped(number)) => reported += number,
            None => {}
        };
        for round in 0..1000_u32 {
            for number in 0..round % 23 {
                if queue.push(number.to_string()) { accepted += 1 } else { dropped += 1 }
            }
            (0..round % 7).for_each(|_| take(&mut queue));
            assert!(queue.entries.len() <= 8);
        }
        while !queue.is_empty() {
            take(&mut queue);
        }
        assert_eq!((popped, reported), (accepted, dropped));
        assert!(accepted > 1000 && dropped > 1000);
    }
}
