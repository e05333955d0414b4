//! Longest-prefix match: a hash table per prefix length in use, the longest length first.
//!
//! Tables in use hold few lengths (4–6), so that a look-up is a handful of independent probes, each one cache line,
//! whether there are ten routes or a hundred thousand. A table that is too large for the caches has a filter of a few
//! bits a slot before it, so that one line of memory is read for a look-up, whatever the lengths. Few prefixes of up to
//! 64 bits are searched without a branch.

mod intervals;
mod table;

use intervals::Intervals;
use srdma_wire::Prefix;
use table::{Key, Table};

/// Routes to values of type `T`.
#[derive(Clone, Debug)]
pub struct Fib<T> {
    /// Lengths above 64, longest first.
    long: Vec<Table<u128, T>>,
    /// Lengths up to 64, longest first: half the key, half the work.
    short: Vec<Table<u64, T>>,
    /// A bit for the first 64 bits of each prefix that is longer, found by their hash.
    long_filter: [u64; LONG_FILTER_WORDS],
    /// The prefixes of `short`, while they are few.
    intervals: Option<Box<Intervals<T>>>,
    /// A table has a filter, or had one.
    is_large: bool,
}

/// One cache line.
const LONG_FILTER_WORDS: usize = 8;

impl<T> Default for Fib<T> {
    fn default() -> Self {
        let (long, short) = (Vec::new(), Vec::new());
        Fib { long, short, long_filter: [0; LONG_FILTER_WORDS], intervals: None, is_large: false }
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
        let high = high(address);
        if let Some(value) = self.lookup_long(address, high) {
            return Some(value);
        }
        match &self.intervals {
            Some(intervals) => intervals.get(high),
            None => self.lookup_short(high),
        }
    }

    /// The value of the longest prefix above 64 bits that holds the address.
    #[inline(always)]
    fn lookup_long(&self, address: u128, high: u64) -> Option<T> {
        let (word, bit) = long_filter_place(high);
        if self.long_filter[word] >> bit & 1 == 0 {
            return None;
        }
        self.long.iter().find_map(|table| table.get(address & table.mask))
    }

    #[inline(always)]
    fn lookup_short(&self, high: u64) -> Option<T> {
        self.short.iter().find_map(|table| table.get(high & table.mask))
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
        match prefix.prefix_len() {
            65.. => mark_long(&mut self.long_filter, prefix.bits()),
            _ => self.divide(prefix),
        }
        before
    }

    /// Removes a route; returns the value that the prefix had.
    pub fn remove(&mut self, prefix: Prefix) -> Option<T> {
        match prefix.prefix_len() {
            len @ 65.. => {
                let removed = remove_from(&mut self.long, len, prefix.bits());
                self.renew_long_filter();
                removed
            }
            len => {
                let removed = remove_from(&mut self.short, len, high(prefix.bits()));
                self.divide_again();
                removed
            }
        }
    }

    /// A short prefix leads elsewhere. No intervals once the prefixes are too many.
    fn divide(&mut self, prefix: Prefix) {
        if used(&self.short) > MOST_DIVIDED {
            self.intervals = None;
            return;
        }
        let mut intervals = self.intervals.take().unwrap_or_else(Intervals::new);
        let (first, end) = bounds(prefix);
        let has_room = intervals.change(first, end, |start| self.lookup_short(start));
        self.intervals = has_room.then_some(intervals);
    }

    /// Divides all numbers into intervals again after a prefix was removed, unless the others are too many.
    fn divide_again(&mut self) {
        if used(&self.short) <= MOST_DIVIDED {
            let mut intervals = self.intervals.take().unwrap_or_else(Intervals::new);
            let prefixes = self.iter_short().map(|(prefix, _)| bounds(prefix));
            let has_room = intervals.set(prefixes, |start| self.lookup_short(start));
            self.intervals = has_room.then_some(intervals);
        }
    }

    /// Clears the filter's bits of removed prefixes, unless so many are left that it has most bits anyway.
    fn renew_long_filter(&mut self) {
        if used(&self.long) <= 64 * LONG_FILTER_WORDS {
            self.long_filter = [0; LONG_FILTER_WORDS];
            for (key, _) in self.long.iter().flat_map(Table::routes) {
                mark_long(&mut self.long_filter, key);
            }
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        used(&self.long) + used(&self.short)
    }

    /// Every route, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, T)> {
        let long = self.long.iter().flat_map(|table| table.routes().map(|(key, value)| (key, table.len, value)));
        let long = long.filter_map(|(key, len, value)| Some((Prefix::new(key.into(), len)?, value)));
        long.chain(self.iter_short())
    }

    fn iter_short(&self) -> impl Iterator<Item = (Prefix, T)> {
        let short = self.short.iter().flat_map(|table| table.routes().map(|(key, value)| (key, table.len, value)));
        short.filter_map(|(key, len, value)| Some((Prefix::new((u128::from(key) << 64).into(), len)?, value)))
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.long.is_empty() && self.short.is_empty()
    }
}

/// Prefixes of up to 64 bits that are divided into intervals: two for each, or fewer, and the one at zero.
const MOST_DIVIDED: usize = 63;

/// The first number of a prefix of up to 64 bits, and the first one behind it, if there is one.
fn bounds(prefix: Prefix) -> (u64, Option<u64>) {
    (high(prefix.bits()), high(prefix.bits() | !prefix.mask()).checked_add(1))
}

#[inline(always)]
fn long_filter_place(high: u64) -> (usize, u32) {
    let place = high.hash() >> 55;
    ((place / 64) as usize, (place % 64) as u32)
}

fn mark_long(filter: &mut [u64; LONG_FILTER_WORDS], bits: u128) {
    let (word, bit) = long_filter_place(high(bits));
    filter[word] |= 1 << bit;
}

fn high(address: u128) -> u64 {
    (address >> 64) as u64
}

/// Routes in all of these tables.
fn used<K, T>(tables: &[Table<K, T>]) -> usize {
    tables.iter().map(|table| table.used).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::FACTORS;
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

    /// D225: from few that are searched in five steps to more than are divided, and back; at both ends of the addresses
    /// too.
    #[test]
    fn intervals_agree_with_the_routes_while_they_are_made_and_given_up() {
        let route = |number: u16| {
            let address = u128::from(number.wrapping_mul(0x9E37)) << 112;
            Prefix::new(address.into(), [4, 9, 16, 17][usize::from(number % 4)]).unwrap()
        };
        let mut fib = Fib::default();
        let mut list = std::collections::BTreeMap::new();
        let check = |fib: &Fib<u16>, list: &std::collections::BTreeMap<Prefix, u16>| {
            for address in (0..=0xFFFF_u16).step_by(257).chain([1, 0x7FFF, 0xFFFE]) {
                let address = Ipv6Addr::from(u128::from(address) << 112 | 1);
                let expected = [17, 16, 9, 4].iter().find_map(|len| list.get(&Prefix::new(address, *len).unwrap()));
                assert_eq!(fib.lookup(&address.octets()), expected.copied(), "{address} of {} routes", list.len());
            }
            list.len()
        };
        let mut divided = [false; 2];
        for number in 0..200 {
            assert_eq!(fib.insert(route(number), number), list.insert(route(number), number));
            divided[usize::from(check(&fib, &list) > MOST_DIVIDED)] |= fib.intervals.is_some();
        }
        for number in 0..200 {
            assert_eq!(fib.remove(route(number)), list.remove(&route(number)));
            divided[usize::from(check(&fib, &list) > MOST_DIVIDED)] |= fib.intervals.is_some();
        }
        assert_eq!(divided, [true, false]);
    }

    /// A prefix of more than 64 bits comes before shorter ones as long as it is there, whatever its filter's bit says.
    #[test]
    fn a_long_prefix_ends_with_its_removal() {
        let mut fib = Fib::default();
        fib.insert(prefix("2001:db8::/64"), 1);
        for (number, text) in ["2001:db8::/65", "2001:db8::1/128"].iter().enumerate() {
            fib.insert(prefix(text), 2 + number);
        }
        let lookup = |fib: &Fib<usize>, text| fib.lookup(&octets(text));
        assert_eq!([lookup(&fib, "2001:db8::1"), lookup(&fib, "2001:db8::2")], [Some(3), Some(2)]);
        fib.remove(prefix("2001:db8::/65"));
        assert_eq!([lookup(&fib, "2001:db8::1"), lookup(&fib, "2001:db8::2")], [Some(3), Some(1)]);
        fib.remove(prefix("2001:db8::1/128"));
        assert_eq!(fib.long_filter, [0; LONG_FILTER_WORDS]);
        assert_eq!(lookup(&fib, "2001:db8::1"), Some(1));
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
