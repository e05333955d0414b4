//! The entropy value of a RoCEv2 packet, and its path (D254).

use crate::layer;
use srdma_wire::{Entropy, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The segments of each value's path, by the prefix that they lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntropyPaths(BTreeMap<Prefix, BTreeMap<Entropy, Vec<Ipv6Addr>>>);

impl From<BTreeMap<Prefix, BTreeMap<Entropy, Vec<Ipv6Addr>>>> for EntropyPaths {
    fn from(paths: BTreeMap<Prefix, BTreeMap<Entropy, Vec<Ipv6Addr>>>) -> Self {
        EntropyPaths(paths)
    }
}

impl EntropyPaths {
    /// What port and flow label of a packet to an address say, if they have the form of a value.
    pub(crate) fn read(&self, destination: Ipv6Addr, source_port: u16, flow_label: u32) -> Option<layer::Entropy> {
        let value = Entropy::of_fields(source_port, flow_label).ok()?;
        let routes = self.0.iter().filter(|(prefix, _)| prefix.contains(destination));
        let route = routes.max_by_key(|(prefix, _)| prefix.prefix_len());
        let segments = route.map(|(_, paths)| paths.get(&value).cloned().unwrap_or_default());
        let usids = segments.as_ref().map(|segments| segments.iter().flat_map(usids).collect());
        Some(layer::Entropy { value: value.0, segments, usids })
    }
}

/// The uSIDs of a uSID carrier with a block of 32 bits and uSIDs of 16 (F3216).
fn usids(carrier: &Ipv6Addr) -> impl Iterator<Item = String> {
    let [_, _, usids @ ..] = carrier.segments();
    usids.into_iter().take_while(|usid| *usid != 0).map(|usid| format!("{usid:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D254: 0x80000 and 49152 are those of value 0, by hand.
    #[test]
    fn a_value_has_the_path_of_the_longest_prefix() {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let route = |prefix: &str, len, value, program: &str| {
            (Prefix::new(address(prefix), len).unwrap(), [(Entropy(value), vec![address(program)])].into())
        };
        let paths = EntropyPaths::from(BTreeMap::from([
            route("2001:db8::", 32, 0, "5f00:0:9::"),
            route("2001:db8:3::", 64, 1, "5f00:0:100:e005:300::"),
        ]));
        let read = |to: &str, port, label| paths.read(address(to), port, label).map(|read| (read.value, read.usids));
        let usids = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(read("2001:db8:3::1", 49153, 0x80000), Some((1, usids(&["100", "e005", "300"]))));
        assert_eq!(read("2001:db8:3::1", 49152, 0x80000), Some((0, usids(&[]))), "no path of that route");
        assert_eq!(read("2001:db8:4::1", 49152, 0x80000), Some((0, usids(&["9"]))));
        assert_eq!(read("2001:db9::1", 49152, 0x80000), Some((0, None)), "no route");
        assert_eq!((read("2001:db8:3::1", 49151, 0x80000), read("2001:db8:3::1", 49153, 0)), (None, None));
    }
}
