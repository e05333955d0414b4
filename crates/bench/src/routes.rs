//! A table of routes like that of a fabric: nested prefixes of six lengths, half of them in the fabric's own block.

use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// The fabric's block of locators: the compressed SIDs of uN and uA come from it.
pub(super) const BLOCK: u128 = 0x5f00_0000 << 96;

/// Prefix lengths, and how many of a hundred routes have each.
const LENGTHS: [(u8, usize); 6] = [(64, 40), (48, 30), (128, 15), (56, 7), (40, 5), (32, 3)];

/// Seeded numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// The next number below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn address(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// So many different prefixes. Every length occurs.
pub(super) fn prefixes(count: usize, numbers: &mut Numbers) -> Vec<Prefix> {
    let blocks: Vec<u128> = (0..count.div_ceil(100)).map(|_| 0x2 << 124 | numbers.address() >> 4 & !0 << 96).collect();
    let mut seen = BTreeSet::new();
    let mut prefixes = Vec::with_capacity(count);
    while prefixes.len() < count {
        let len = match LENGTHS.get(prefixes.len()) {
            Some((len, _)) => *len,
            None => some_length(numbers),
        };
        let block = if numbers.below(2) == 0 { BLOCK } else { blocks[numbers.below(blocks.len())] };
        let bits = if len == 32 { 0x3 << 124 | numbers.address() >> 4 } else { block | numbers.address() >> 32 };
        let prefix = Prefix::new(bits.into(), len);
        prefixes.extend(prefix.filter(|prefix| seen.insert(*prefix)));
    }
    prefixes
}

fn some_length(numbers: &mut Numbers) -> u8 {
    let mut hundredth = numbers.below(100);
    for (len, share) in LENGTHS {
        if hundredth < share {
            return len;
        }
        hundredth -= share;
    }
    LENGTHS[0].0
}

/// Some address in a prefix.
pub(super) fn address_in(prefix: Prefix, numbers: &mut Numbers) -> Ipv6Addr {
    let host_bits = u128::MAX.checked_shr(prefix.prefix_len().into()).unwrap_or(0);
    (u128::from(prefix.address()) | numbers.address() & host_bits).into()
}

/// The position of the longest prefix that contains an address: the reference for the node.
pub(super) fn longest(prefixes: &[Prefix], address: Ipv6Addr) -> Option<usize> {
    let holds = |(_, prefix): &(usize, &Prefix)| prefix.contains(address);
    prefixes
        .iter()
        .enumerate()
        .filter(holds)
        .max_by_key(|(_, prefix)| prefix.prefix_len())
        .map(|(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_six_lengths_and_no_prefix_twice() {
        for count in [10, 1000] {
            let prefixes = prefixes(count, &mut Numbers(1));
            let different: BTreeSet<Prefix> = prefixes.iter().copied().collect();
            let lengths: BTreeSet<u8> = prefixes.iter().map(Prefix::prefix_len).collect();
            assert_eq!((prefixes.len(), different.len(), lengths.len()), (count, count, 6));
        }
    }

    #[test]
    fn an_address_lies_in_its_prefix() {
        let mut numbers = Numbers(2);
        for prefix in prefixes(100, &mut numbers) {
            let address = address_in(prefix, &mut numbers);
            assert!(prefix.contains(address));
            let found = longest(&prefixes(100, &mut Numbers(2)), address);
            assert!(found.is_some());
        }
    }
}
