//! Round-robin order and timers of queue pairs.

use srdma_wire::Instant;
use std::collections::VecDeque;
/// The earliest of one deadline per slot: a tree whose nodes hold the least of their two children.
///
/// ```text
///            tree[1]
///        tree[2]  tree[3]
///      slot 0  1   2   3
/// ```
///
/// Setting one touches only the nodes whose least changes, so that idle queue pairs cost nothing.
#[derive(Debug)]
pub(crate) struct Deadlines {
    tree: Vec<Instant>,
}

impl Deadlines {
    pub(crate) fn new() -> Self {
        Deadlines { tree: vec![Instant::NEVER; 2] }
    }

    fn slots(&self) -> usize {
        self.tree.len() / 2
    }

    /// Makes room for a slot.
    pub(crate) fn reserve(&mut self, slot: usize) {
        if slot < self.slots() {
            return;
        }
        let leaves: Vec<Instant> = self.tree[self.slots()..].to_vec();
        self.tree = vec![Instant::NEVER; 2 * (slot + 1).next_power_of_two()];
        for (slot, deadline) in leaves.into_iter().enumerate() {
            self.set(slot, Some(deadline));
        }
    }

    /// Of the slots only these are left, and numbered in their order.
    pub(crate) fn renumber(&mut self, left: &[usize]) {
        let deadlines: Vec<Instant> = left.iter().map(|slot| self.tree[self.slots() + slot]).collect();
        self.tree = vec![Instant::NEVER; 2 * left.len().next_power_of_two()];
        for (slot, deadline) in deadlines.into_iter().enumerate() {
            self.set(slot, Some(deadline));
        }
    }

    pub(crate) fn set(&mut self, slot: usize, deadline: Option<Instant>) {
        let mut node = self.slots() + slot;
        let mut least = deadline.unwrap_or(Instant::NEVER);
        while self.tree[node] != least {
            self.tree[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    pub(crate) fn earliest(&self) -> Option<Instant> {
        Some(self.tree[1]).filter(|deadline| *deadline != Instant::NEVER)
    }

    /// A slot whose deadline is not after `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<usize> {
        if self.tree[1] > now || self.tree[1] == Instant::NEVER {
            return None;
        }
        let mut node = 1;
        while node < self.slots() {
            node = if self.tree[2 * node] == self.tree[node] { 2 * node } else { 2 * node + 1 };
        }
        Some(node - self.slots())
    }
}

/// Slots that wait for their turn, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queue: VecDeque<usize>,
    waiting: Vec<bool>,
}

impl Turns {
    /// Makes room for a slot.
    pub(crate) fn reserve(&mut self, slot: usize) {
        if slot >= self.waiting.len() {
            self.waiting.resize(slot + 1, false);
            self.queue.reserve(self.waiting.len() - self.queue.len());
        }
    }

    /// Puts a slot behind all others, unless it waits already.
    pub(crate) fn push(&mut self, slot: usize) {
        if !self.waiting[slot] {
            self.waiting[slot] = true;
            self.queue.push_back(slot);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        let slot = self.queue.pop_front()?;
        self.waiting[slot] = false;
        Some(slot)
    }

    /// Slots have other numbers, of which there are so many. All that wait are among them.
    pub(crate) fn renumber(&mut self, slots: usize, number_of: impl Fn(usize) -> Option<usize>) {
        self.waiting = vec![false; slots];
        let queue = std::mem::replace(&mut self.queue, VecDeque::with_capacity(slots));
        queue.into_iter().filter_map(number_of).for_each(|slot| self.push(slot));
    }

    /// A slot waits no longer.
    pub(crate) fn remove(&mut self, slot: usize) {
        if std::mem::take(&mut self.waiting[slot]) {
            self.queue.retain(|waiting| *waiting != slot);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The slots that wait, in their order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.queue.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_deadline_is_found(
            steps in prop::collection::vec((0usize..40, prop::option::of(0u64..1000)), 1..200),
        ) {
            let mut deadlines = Deadlines::new();
            let mut model = std::collections::BTreeMap::new();
            for (slot, deadline) in steps {
                deadlines.reserve(slot);
                deadlines.set(slot, deadline.map(Instant::from_ns));
                model.remove(&slot);
                if let Some(ns) = deadline {
                    model.insert(slot, Instant::from_ns(ns));
                }
                let earliest = model.values().min().copied();
                prop_assert_eq!(deadlines.earliest(), earliest);
                if let Some(earliest) = earliest {
                    let due = deadlines.due(earliest).expect("one is due");
                    prop_assert_eq!(model.get(&due), Some(&earliest));
                    if let Some(before) = earliest.as_ns().checked_sub(1) {
                        prop_assert_eq!(deadlines.due(Instant::from_ns(before)), None);
                    }
                }
            }
        }
    }

    #[test]
    fn turns_are_round_robin() {
        let mut turns = Turns::default();
        turns.reserve(2);
        for slot in [2, 0, 2, 1, 0] {
            turns.push(slot);
        }
        assert_eq!([turns.pop(), turns.pop(), turns.pop(), turns.pop()], [Some(2), Some(0), Some(1), None]);
        turns.push(2);
        assert_eq!(turns.pop(), Some(2));
    }
}
