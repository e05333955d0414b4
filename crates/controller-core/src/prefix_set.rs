//! Sets of prefixes, and those of a set that another prefix lies in or overlaps.

use srdma_wire::Prefix;
use std::collections::BTreeSet;

/// Prefixes, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixSet {
    prefixes: BTreeSet<Prefix>,
    /// Their lengths.
    lengths: BTreeSet<u8>,
}

impl FromIterator<Prefix> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = Prefix>>(prefixes: I) -> Self {
        let prefixes: BTreeSet<Prefix> = prefixes.into_iter().collect();
        let lengths = prefixes.iter().map(Prefix::prefix_len).collect();
        PrefixSet { prefixes, lengths }
    }
}

impl PrefixSet {
    /// The shortest prefix that contains another one, or is equal to it.
    pub(crate) fn containing(&self, prefix: Prefix) -> Option<Prefix> {
        let lengths = self.lengths.range(..=prefix.prefix_len());
        let mut shorter = lengths.filter_map(|length| Prefix::new(prefix.address(), *length));
        shorter.find(|shorter| self.prefixes.contains(shorter))
    }

    /// A prefix that has an address in common with another one: one of them contains the other.
    pub(crate) fn overlapping(&self, prefix: Prefix) -> Option<Prefix> {
        let inside = || self.prefixes.range(prefix..).next().filter(|next| prefix.contains(next.address())).copied();
        self.containing(prefix).or_else(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_overlap_if_one_contains_the_other() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        let set: PrefixSet =
            ["2001:db8:a::/48", "2001:db8:b:7::/64", "2001:db8:c::1/128"].map(prefix).into_iter().collect();
        for (other, overlapped) in [
            ("2001:db8:a:1::/64", Some("2001:db8:a::/48")),
            ("2001:db8:a::/48", Some("2001:db8:a::/48")),
            ("2001:db8:b::/48", Some("2001:db8:b:7::/64")),
            ("2001:db8:c::/127", Some("2001:db8:c::1/128")),
            ("2001:db8:c::2/128", None),
            ("2001:db8:b:8::/64", None),
            ("::/0", Some("2001:db8:a::/48")),
        ] {
            assert_eq!(set.overlapping(prefix(other)), overlapped.map(prefix), "{other}");
        }
        assert_eq!(set.containing(prefix("2001:db8:b::/48")), None);
        assert_eq!(set.containing(prefix("2001:db8:b:7::1/128")), Some(prefix("2001:db8:b:7::/64")));
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_comparison_with_each_finds(
            prefixes in prop::collection::vec((0_u128..64, 122_u8..=128), 0..12),
            other in (0_u128..64, 122_u8..=128),
        ) {
            let prefix = |(bits, length): (u128, u8)| Prefix::new(std::net::Ipv6Addr::from_bits(bits), length).unwrap();
            let prefixes: Vec<Prefix> = prefixes.into_iter().map(prefix).collect();
            let other = prefix(other);
            let overlaps = |one: &Prefix| one.contains(other.address()) || other.contains(one.address());
            let set: PrefixSet = prefixes.iter().copied().collect();
            let found = set.overlapping(other);
            prop_assert_eq!(found.is_some(), prefixes.iter().any(overlaps));
            prop_assert!(found.is_none_or(|found| overlaps(&found) && prefixes.contains(&found)));
        }
    }
}
