//! Short prefixes of a small table as intervals of addresses (D225).
//!
//! Which prefix length an address is found at changes from packet to packet, so that a processor that asks one table
//! after the other guesses wrongly where to end. Here each look-up takes the same few steps, none of them a branch.

use std::hint::select_unpredictable;

/// Intervals at most: the numbers at which they begin fill 1 KiB.
const MOST: usize = 128;

/// As many, or fewer, are searched in fewer steps.
const FEW: usize = 32;

/// What each interval leads to; the first begins at zero.
#[derive(Clone, Debug)]
pub(crate) struct Intervals<T> {
    /// First number of each interval, ascending; behind them the greatest number.
    starts: [u64; MOST],
    /// Behind those of the intervals the last one's again.
    values: [Option<T>; MOST],
    count: usize,
}

impl<T: Copy> Intervals<T> {
    /// One interval, which leads nowhere.
    pub(crate) fn new() -> Box<Self> {
        let mut starts = [u64::MAX; MOST];
        starts[0] = 0;
        Box::new(Intervals { starts, values: [None; MOST], count: 1 })
    }

    /// The intervals of these prefixes only, each from its first number to the one before its end, or to the greatest
    /// one. `false` where they are too many.
    pub(crate) fn set(
        &mut self,
        mut prefixes: impl Iterator<Item = (u64, Option<u64>)>,
        value: impl Fn(u64) -> Option<T>,
    ) -> bool {
        self.starts[1..].fill(u64::MAX);
        self.count = 1;
        let has_room = prefixes.all(|(first, end)| [Some(first), end].into_iter().flatten().all(|at| self.divide(at)));
        for index in 0..self.count {
            self.values[index] = value(self.starts[index]);
        }
        self.repeat_last();
        has_room
    }

    /// A prefix from `first` to the number before `end`, or to the greatest one, has changed: `value` tells what a
    /// number leads to. `false` where the intervals are too many.
    pub(crate) fn change(&mut self, first: u64, end: Option<u64>, value: impl Fn(u64) -> Option<T>) -> bool {
        let begins = [Some(first), end];
        if !begins.into_iter().flatten().all(|start| self.divide(start)) {
            return false;
        }
        let end = end.map_or(self.count, |end| self.place(end));
        for index in self.place(first)..end {
            self.values[index] = value(self.starts[index]);
        }
        self.repeat_last();
        true
    }

    fn repeat_last(&mut self) {
        let last = self.values[self.count - 1];
        self.values[self.count..].fill(last);
    }

    /// Lets an interval begin at a number. `false` if there is no room for it.
    fn divide(&mut self, start: u64) -> bool {
        let place = self.place(start);
        if place < self.count && self.starts[place] == start {
            return true;
        }
        if self.count == MOST {
            return false;
        }
        self.starts.copy_within(place..self.count, place + 1);
        // The new interval is a part of the one before it.
        self.values.copy_within(place - 1..self.count, place);
        self.starts[place] = start;
        self.count += 1;
        true
    }

    /// The first interval that does not begin before a number.
    fn place(&self, start: u64) -> usize {
        self.starts[..self.count].partition_point(|known| *known < start)
    }

    /// The value of the interval of a number.
    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> Option<T> {
        if self.count <= FEW { self.search::<FEW>(number) } else { self.search_all(number) }
    }

    #[inline(never)]
    fn search_all(&self, number: u64) -> Option<T> {
        self.search::<MOST>(number)
    }

    /// The value among the first `N`, a power of two: the steps are constants, and the index is within bounds.
    #[inline(always)]
    fn search<const N: usize>(&self, number: u64) -> Option<T> {
        let mut index = 0;
        let mut step = N / 2;
        while step > 0 {
            index = select_unpredictable(self.starts[index | step] <= number, index | step, index);
            step /= 2;
        }
        self.values[index]
    }
}
