//! Longest-prefix match: a hash table per prefix length in use, the longest length first.
//!
//! Tables in use hold few lengths (4–6), so that a look-up is a handful of independent probes, each one cache line,
//! whether there are ten routes or a hundred thousand. A table that is too large for the caches has a filter of a few
//! bits a slot before it, so that one line of memory is read for a look-up, whatever the lengths.

use srdma_wire::Prefix;

/// Routes to values of type `T`.
#[derive(Clone, Debug)]
pub struct Fib<T> {
    /// Lengths above 64, longest first.
    long: Vec<Table<u128, T>>,
    /// Lengths up to 64, longest first: half the key, half the work.
    short: Vec<Table<u64, T>>,
    /// A table has a filter, or had one.
    is_large: bool,
}

impl<T> Default for Fib<T> {
    fn default() -> Self {
        Fib { long: Vec::new(), short: Vec::new(), is_large: false }
    }
}

impl<T: Copy> Fib<T> {
    /// The value of the longest prefix that holds the address.
    #[inline(always)]
    pub fn lookup(&self, address: &[u8; 16]) -> Option<T> {
        let address = u128::from_be_bytes(*address);
        if self.is_large {
            return self.lookup_filtered(address);
        }
        let long = self.long.iter().find_map(|table| table.get(address & table.mask));
        let high = high(address);
        long.or_else(|| self.short.iter().find_map(|table| table.get(high & table.mask)))
    }

    /// The same where the check of filters pays.
    #[inline(never)]
    fn lookup_filtered(&self, address: u128) -> Option<T> {
        let long = self.long.iter().find_map(|table| table.lookup(address & table.mask));
        let high = high(address);
        long.or_else(|| self.short.iter().find_map(|table| table.lookup(high & table.mask)))
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<T> {
        match prefix.prefix_len() {
            len @ 65.. => self.long[position(&self.long, len).ok()?].get(prefix.bits()),
            len => self.short[position(&self.short, len).ok()?].get(high(prefix.bits())),
        }
    }

    /// Adds a route; returns the value that the prefix had before.
    pub fn insert(&mut self, prefix: Prefix, value: T) -> Option<T> {
        let (before, is_large) = match prefix.prefix_len() {
            len @ 65.. => table_of(&mut self.long, len, prefix.mask()).insert(prefix.bits(), value),
            len => table_of(&mut self.short, len, high(prefix.mask())).insert(high(prefix.bits()), value),
        };
        self.is_large |= is_large;
        before
    }

    /// Removes a route; returns the value that the prefix had.
    pub fn remove(&mut self, prefix: Prefix) -> Option<T> {
        match prefix.prefix_len() {
            len @ 65.. => remove_from(&mut self.long, len, prefix.bits()),
            len => remove_from(&mut self.short, len, high(prefix.bits())),
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        let long: usize = self.long.iter().map(|table| table.used).sum();
        let short: usize = self.short.iter().map(|table| table.used).sum();
        long + short
    }

    /// Every route, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, T)> {
        let long = self.long.iter().flat_map(|table| table.routes().map(|(key, value)| (key, table.len, value)));
        let short = self
            .short
            .iter()
            .flat_map(|table| table.routes().map(|(key, value)| (u128::from(key) << 64, table.len, value)));
        long.chain(short).filter_map(|(key, len, value)| Some((Prefix::new(key.into(), len)?, value)))
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.long.is_empty() && self.short.is_empty()
    }
}

fn high(address: u128) -> u64 {
    (address >> 64) as u64
}

fn position<K, T>(tables: &[Table<K, T>], len: u8) -> Result<usize, usize> {
    tables.binary_search_by(|table| len.cmp(&table.len))
}

/// The table of a length, made when it is missing.
fn table_of<K: Key, T: Copy>(tables: &mut Vec<Table<K, T>>, len: u8, mask: K) -> &mut Table<K, T> {
    let position = position(tables, len).unwrap_or_else(|position| {
        tables.insert(position, Table::new(len, mask));
        position
    });
    &mut tables[position]
}

/// Removes a route, and with the last one of its length the table.
fn remove_from<K: Key, T: Copy>(tables: &mut Vec<Table<K, T>>, len: u8, key: K) -> Option<T> {
    let position = position(tables, len).ok()?;
    let value = tables[position].remove(key)?;
    if tables[position].used == 0 {
        tables.remove(position);
    }
    Some(value)
}

/// The bits of a prefix, those behind its length zero.
trait Key: Copy + Default + Eq {
    /// Spreads them over 64 bits, of which the highest are the best.
    fn hash(self) -> u64;
}

/// 2^64 divided by the golden ratio, and a factor unlike it.
const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

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
struct Table<K, T> {
    mask: K,
    len: u8,
    /// 64 less the logarithm of the number of slots.
    shift: u32,
    /// 64 less the logarithm of the number of the filter's bits.
    filter_shift: u32,
    /// A bit for each key, found by its hash, and few others; empty where the slots are few.
    filter: Box<[u64]>,
    slots: Vec<Slot<K, T>>,
    used: usize,
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

    fn new(len: u8, mask: K) -> Self {
        let (filter, slots) = (Box::default(), Vec::new());
        let mut table = Table { mask, len, shift: 0, filter_shift: 0, filter, slots, used: 0, stale: 0 };
        table.resize(Self::LEAST_SLOTS);
        table
    }

    fn routes(&self) -> impl Iterator<Item = (K, T)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, slot.value?)))
    }

    /// As [`Table::get`], for keys that the table may well not have.
    #[inline(always)]
    fn lookup(&self, key: K) -> Option<T> {
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
    fn get(&self, key: K) -> Option<T> {
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
    fn insert(&mut self, key: K, value: T) -> (Option<T>, bool) {
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
    fn remove(&mut self, key: K) -> Option<T> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn prefix(text: &str) -> Prefix {
        let (address, len) = text.split_once('/').unwrap();
        Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
    }

    fn octets(text: &str) -> [u8; 16] {
        text.parse::<Ipv6Addr>().unwrap().octets()
    }

    #[test]
    fn the_longest_prefix_wins() {
        let mut fib = Fib::default();
        for (number, text) in ["::/0", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1::1/128"].iter().enumerate() {
            assert_eq!(fib.insert(prefix(text), number), None);
        }
        assert_eq!(fib.lookup(&octets("fd00::1")), Some(0));
        assert_eq!(fib.lookup(&octets("2001:db8:2::1")), Some(1));
        assert_eq!(fib.lookup(&octets("2001:db8:1::2")), Some(2));
        assert_eq!(fib.lookup(&octets("2001:db8:1::1")), Some(3));
        assert_eq!(fib.remove(prefix("2001:db8:1::1/128")), Some(3));
        assert_eq!(fib.remove(prefix("2001:db8:1::1/128")), None);
        assert_eq!(fib.lookup(&octets("2001:db8:1::1")), Some(2));
        assert_eq!(fib.remove(prefix("::/0")), Some(0));
        assert_eq!(fib.lookup(&octets("fd00::1")), None);
        assert_eq!(fib.len(), 2);
    }

    /// As many as have a filter, which agrees with the routes while they come and go.
    #[test]
    fn many_routes_are_filtered() {
        const ROUTES: u64 = 40_000;
        let route = |number: u64| {
            let address = u128::from(number.wrapping_mul(FACTORS[1])) << 64;
            Prefix::new(address.into(), 48 + (number % 2) as u8 * 16).unwrap()
        };
        let mut fib = Fib::default();
        let mut list = std::collections::BTreeMap::new();
        for number in 0..3 * ROUTES {
            assert_eq!(fib.insert(route(number), number), list.insert(route(number), number));
        }
        assert!(fib.short.iter().all(|table| !table.filter.is_empty()));
        for number in (0..3 * ROUTES).filter(|number| number % 3 > 0) {
            assert_eq!(fib.remove(route(number)), list.remove(&route(number)));
        }
        assert_eq!(fib.len(), list.len());
        for number in 0..3 * ROUTES {
            let address = route(number).address();
            let of_len = |len| list.get(&Prefix::new(address, len).unwrap()).copied();
            assert_eq!(fib.lookup(&address.octets()), of_len(64).or_else(|| of_len(48)));
        }
        let marked =
            |table: &Table<u64, u64>| table.filter.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        assert!(fib.short.iter().all(|table| marked(table) <= 2 * table.used), "removed routes leave few bits");
    }

    proptest! {
        /// Compares with a linear search of a list. Few address bits, so that prefixes overlap.
        #[test]
        fn agrees_with_a_linear_search(
            steps in prop::collection::vec((any::<bool>(), 0u8..=16, 0u8..=3, any::<u16>(), any::<u16>()), 1..300),
        ) {
            let mut fib = Fib::default();
            let mut list: Vec<(Prefix, u16)> = Vec::new();
            for (add, len, part, bits, value) in steps {
                let address = Ipv6Addr::from(u128::from(bits & 0x3FF) << (112 - 32 * u32::from(part)));
                let prefix = Prefix::new(address, (len + 32 * part).min(128)).unwrap();
                let known = list.iter().position(|(entry, _)| *entry == prefix);
                if add {
                    prop_assert_eq!(fib.insert(prefix, value), known.map(|at| list[at].1));
                    known.map(|at| list.remove(at));
                    list.push((prefix, value));
                } else {
                    prop_assert_eq!(fib.remove(prefix), known.map(|at| list.remove(at).1));
                }
                prop_assert_eq!(fib.len(), list.len());
                prop_assert_eq!(fib.get(prefix), add.then_some(value));
                let expected = list
                    .iter()
                    .filter(|(entry, _)| entry.contains(address))
                    .max_by_key(|(entry, _)| entry.prefix_len())
                    .map(|(_, value)| *value);
                prop_assert_eq!(fib.lookup(&address.octets()), expected);
            }
        }
    }
}
