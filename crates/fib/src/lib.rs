//! Longest-prefix match: a hash table per prefix length in use, the longest length first.
//!
//! Tables in use hold few lengths (4–6), so that a look-up is a handful of independent probes, each one cache line,
//! whether there are ten routes or a hundred thousand.

use srdma_wire::Prefix;

/// Routes to values of type `T`.
#[derive(Clone, Debug)]
pub struct Fib<T> {
    /// Lengths above 64, longest first.
    long: Vec<Table<u128, T>>,
    /// Lengths up to 64, longest first: half the key, half the work.
    short: Vec<Table<u64, T>>,
}

impl<T> Default for Fib<T> {
    fn default() -> Self {
        Fib { long: Vec::new(), short: Vec::new() }
    }
}

impl<T: Copy> Fib<T> {
    /// The value of the longest prefix that holds the address.
    #[inline(always)]
    pub fn lookup(&self, address: &[u8; 16]) -> Option<T> {
        let address = u128::from_be_bytes(*address);
        let long = self.long.iter().find_map(|table| table.get(address & table.mask));
        let high = (address >> 64) as u64;
        long.or_else(|| self.short.iter().find_map(|table| table.get(high & table.mask)))
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
        match prefix.prefix_len() {
            len @ 65.. => table_of(&mut self.long, len, prefix.mask()).insert(prefix.bits(), value),
            len => table_of(&mut self.short, len, high(prefix.mask())).insert(high(prefix.bits()), value),
        }
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
    used: usize,
    slots: Vec<Slot<K, T>>,
}

#[derive(Clone, Copy, Debug)]
struct Slot<K, T> {
    key: K,
    value: Option<T>,
}

impl<K: Key, T: Copy> Table<K, T> {
    const LEAST_SLOTS: usize = 16;

    fn new(len: u8, mask: K) -> Self {
        let mut table = Table { mask, len, shift: 0, used: 0, slots: Vec::new() };
        table.resize(Self::LEAST_SLOTS);
        table
    }

    fn routes(&self) -> impl Iterator<Item = (K, T)> {
        self.slots.iter().filter_map(|slot| Some((slot.key, slot.value?)))
    }

    #[inline]
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

    fn insert(&mut self, key: K, value: T) -> Option<T> {
        if (self.used + 1) * 2 > self.slots.len() {
            self.resize(self.slots.len() * 2);
        }
        let index = self.find(key);
        let before = self.slots[index].value;
        self.slots[index] = Slot { key, value: Some(value) };
        self.used += usize::from(before.is_none());
        before
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
        self.used = 0;
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
