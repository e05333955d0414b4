//! The routes of one prefix length.

use crate::high;

/// The bits of a prefix, those behind its length zero.
pub(crate) trait Key: Copy + Default + Eq {
    /// Spreads them over 64 bits, of which the highest are the best.
    fn hash(self) -> u64;
}

/// 2^64 divided by the golden ratio, and a factor unlike it.
pub(crate) const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

impl Key for u64 {
    #[inline]
    fn hash(self) -> u64 {
        self.wrapping_mul(FACTORS[0])
    }
}

impl Key for u128 {
    #[inline]
    fn hash(self) -> u64 {
        high(self).wrapping_mul(FACTORS[0]) ^ (self as u64).wrapping_mul(FACTORS[1])
    }
}

/// The routes of one prefix length: open addressing, at most half full.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, T> {
    pub(crate) mask: K,
    pub(crate) len: u8,
    /// 64 less the logarithm of the number of slots.
    shift: u32,
    /// 64 less the logarithm of the number of the filter's bits.
    filter_shift: u32,
    /// A bit for each key, found by its hash, and few others; empty where the slots are few.
    pub(crate) filter: Box<[u64]>,
    slots: Vec<Slot<K, T>>,
    pub(crate) used: usize,
    /// Keys that were removed since the filter was made: their bits are still set.
    stale: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot<K, T> {
    key: K,
    value: Option<T>,
}

impl<K: Key, T: Copy> Table<K, T> {
    const LEAST_SLOTS: usize = 16;
    /// Slots of the smallest table with a filter: they take a megabyte at least.
    const FILTERED_SLOTS: usize = 1 << 16;
    /// Bits of a filter for each slot: of the keys that the table does not have one in eight passes, at most.
    const FILTER_BITS: usize = 4;

    pub(crate) fn new(len: u8, mask: K) -> Self {
        let (filter, slots) = (Box::default(), Vec::new());
        let mut table = Table { mask, len, shift: 0, filter_shift: 0, filter, slots, used: 0, stale: 0 };
        table.resize(Self::LEAST_SLOTS);
        table
    }

    pub(crate) fn routes(&self) -> impl Iterator<Item = (K, T)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, slot.value?)))
    }

    /// As [`Table::get`], for keys that the table may well not have.
    #[inline(always)]
    pub(crate) fn lookup(&self, key: K) -> Option<T> {
        let bit = key.hash() >> self.filter_shift;
        if let Some(word) = self.filter.get((bit / 64) as usize)
            && word >> (bit % 64) & 1 == 0
        {
            return None;
        }
        self.get(key)
    }

    /// Sets a key's bit of the filter, if there is one.
    fn mark(&mut self, key: K) {
        let bit = key.hash() >> self.filter_shift;
        if let Some(word) = self.filter.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Makes the filter again from the keys that there are.
    fn renew_filter(&mut self) {
        self.filter.fill(0);
        self.stale = 0;
        for index in 0..self.slots.len() {
            if self.slots[index].value.is_some() {
                self.mark(self.slots[index].key);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: K) -> Option<T> {
        let mut index = self.home(key);
        loop {
            let slot = self.slots.get(index)?;
            if slot.key == key {
                return slot.value;
            }
            slot.value?;
            index = self.after(index);
        }
    }

    /// Returns the value that the key had before, and whether there is a filter.
    pub(crate) fn insert(&mut self, key: K, value: T) -> (Option<T>, bool) {
        if (self.used + 1) * 2 > self.slots.len() {
            self.resize(self.slots.len() * 2);
        }
        let index = self.find(key);
        let before = self.slots[index].value;
        self.slots[index] = Slot { key, value: Some(value) };
        if before.is_none() {
            self.used += 1;
            self.mark(key);
        }
        (before, !self.filter.is_empty())
    }

    /// Removes the slot and moves later ones up, so that no look-up ends at a hole.
    pub(crate) fn remove(&mut self, key: K) -> Option<T> {
        let mut hole = self.find(key);
        let value = self.slots[hole].value.take()?;
        self.used -= 1;
        let mut index = self.after(hole);
        while self.slots[index].value.is_some() {
            let home = self.home(self.slots[index].key);
            let from_home = index.wrapping_sub(home) & (self.slots.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.slots.len() - 1);
            if from_home >= from_hole {
                self.slots[hole] = self.slots[index];
                self.slots[index].value = None;
                hole = index;
            }
            index = self.after(index);
        }
        self.stale += 1;
        if self.stale > self.used {
            self.renew_filter();
        }
        Some(value)
    }

    /// The slot of a key, or the empty one where it belongs.
    fn find(&self, key: K) -> usize {
        let mut index = self.home(key);
        while self.slots[index].value.is_some() && self.slots[index].key != key {
            index = self.after(index);
        }
        index
    }

    fn resize(&mut self, slots: usize) {
        let empty = Slot { key: K::default(), value: None };
        let old = std::mem::replace(&mut self.slots, vec![empty; slots]);
        self.shift = 64 - slots.trailing_zeros();
        let bits = if slots < Self::FILTERED_SLOTS { 0 } else { slots * Self::FILTER_BITS };
        self.filter = vec![0; bits / 64].into_boxed_slice();
        self.filter_shift = self.shift - Self::FILTER_BITS.trailing_zeros();
        (self.used, self.stale) = (0, 0);
        for slot in old {
            if let Some(value) = slot.value {
                self.insert(slot.key, value);
            }
        }
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        (key.hash() >> self.shift) as usize
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        (index + 1) & (self.slots.len() - 1)
    }
}
