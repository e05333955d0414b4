//! The expected PSN of every branch, and their minimum.

use srdma_wire::Psn;

/// The entry of a branch without an expected PSN: unknown, or removed.
const ABSENT: u32 = u32::MAX;

/// A tournament in which the serially least PSN wins (D16).
///
/// ```text
///             [1] least of all           Entry i is the lesser of entries 2i and 2i+1. The last half are the branches.
///            /        \                  A branch that moves plays its matches again, from the leaf up to the first
///         [2]          [3]               whose winner stays: one or two as a rule, never more than the logarithm.
///        /   \        /   \
///   branch 0  1      2     3
/// ```
///
/// Eight octets a branch. Serial order is an order only within half the circle; the caller keeps all expected PSNs
/// within 2^22.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExpectedPsns {
    entries: Box<[u32]>,
}

impl ExpectedPsns {
    /// State per branch (MT-8-1).
    pub(super) const OCTETS_PER_BRANCH: usize = 2 * size_of::<u32>();

    /// `branches` branches, all at `expected_psn`, or all without one.
    pub(super) fn new(branches: usize, expected_psn: Option<Psn>) -> Self {
        let entry = expected_psn.map_or(ABSENT, Psn::get);
        ExpectedPsns { entries: vec![entry; 2 * branches.max(1)].into_boxed_slice() }
    }

    /// The expected PSN of a branch.
    #[inline]
    pub(super) fn get(&self, branch: usize) -> Option<Psn> {
        present(self.entries[self.first() + branch])
    }

    /// Moves a branch.
    #[inline]
    pub(super) fn set(&mut self, branch: usize, expected_psn: Option<Psn>) {
        let mut at = self.first() + branch;
        self.entries[at] = expected_psn.map_or(ABSENT, Psn::get);
        while at > 1 {
            let winner = lesser(self.entries[at & !1], self.entries[at | 1]);
            at /= 2;
            if self.entries[at] == winner {
                break;
            }
            self.entries[at] = winner;
        }
    }

    /// The minimum; `None` when no branch has an expected PSN.
    #[inline]
    pub(super) fn minimum(&self) -> Option<Psn> {
        present(self.entries[1])
    }

    /// A branch at the minimum.
    pub(super) fn holder(&self) -> Option<usize> {
        let least = self.entries[1];
        if least == ABSENT {
            return None;
        }
        let mut at = 1;
        while at < self.first() {
            at = if self.entries[2 * at] == least { 2 * at } else { 2 * at + 1 };
        }
        Some(at - self.first())
    }

    /// The branches that expect a PSN, in order.
    pub(super) fn at(&self, expected_psn: Psn) -> impl Iterator<Item = usize> {
        let leaves = &self.entries[self.first()..];
        leaves.iter().enumerate().filter(move |&(_, &entry)| entry == expected_psn.get()).map(|(branch, _)| branch)
    }

    /// Where the branches begin.
    #[inline]
    fn first(&self) -> usize {
        self.entries.len() / 2
    }
}

#[inline]
fn present(entry: u32) -> Option<Psn> {
    (entry != ABSENT).then(|| Psn::new(entry))
}

/// The winner of a match; without a branch instruction, which could not be predicted.
#[inline]
fn lesser(left: u32, right: u32) -> u32 {
    let right_is_before = Psn::new(right).is_before(Psn::new(left));
    if (left == ABSENT) | (right_is_before & (right != ABSENT)) { right } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain scan over unbounded numbers, across the wrap (D16).
        #[test]
        fn tournament_equals_scan(
            branches in 1_usize..70,
            base in prop_oneof![Just(0xFF_FF00_u64), 0_u64..1 << 24],
            moves in prop::collection::vec((0_usize..70, prop::option::weighted(0.9, 0_u64..1 << 22)), 0..200),
        ) {
            let mut expected_psns = ExpectedPsns::new(branches, None);
            let mut slow = vec![None; branches];
            for (branch, offset) in moves {
                let branch = branch % branches;
                slow[branch] = offset.map(|offset| base + offset);
                expected_psns.set(branch, offset.map(|offset| Psn::new(((base + offset) & 0xFF_FFFF) as u32)));
                let least = slow.iter().flatten().min();
                prop_assert_eq!(expected_psns.minimum().map(|psn| u64::from(psn.get())), least.map(|psn| psn & 0xFF_FFFF));
                prop_assert_eq!(expected_psns.holder().and_then(|holder| slow[holder]), least.copied());
                let at: Vec<usize> = expected_psns.minimum().map_or(vec![], |least| expected_psns.at(least).collect());
                let expected: Vec<usize> =
                    (0..branches).filter(|&branch| slow[branch].is_some() && slow[branch].as_ref() == least).collect();
                prop_assert_eq!(at, expected);
            }
        }
    }

    #[test]
    fn no_branches_have_no_minimum() {
        let expected_psns = ExpectedPsns::new(0, None);
        assert_eq!((expected_psns.minimum(), expected_psns.holder()), (None, None));
    }
}
