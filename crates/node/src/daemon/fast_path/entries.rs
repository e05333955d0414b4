//! The plan of the element as entries of the program's maps.

use srdma_dataplane::{FastPath, FastPathEntry, FastPathHop, Flavors};
use srdma_frame::PortId;
use srdma_io::fast_path::{Entry, Hop, Key, MAX_ENTRIES, MAX_SOURCES, Port, Sid, SidAction};
use srdma_wire::MacAddress;
use std::collections::BTreeMap;

/// The longest list of entries that is planned between two batches of packets.
pub(super) const MAX_PLANNED: usize = MAX_ENTRIES / 4;

/// Entries of the maps for a plan. What the program does not do is the element's.
pub fn fast_path_entries(plan: &FastPath) -> BTreeMap<Key, Entry> {
    // Beyond a few sources a comparison with one after the other costs more than the element.
    let checks_sources = plan.sources.as_ref().is_none_or(|sources| (1..=MAX_SOURCES).contains(&sources.len()));
    let entry = |entry: &FastPathEntry| match entry {
        FastPathEntry::Element => Entry::Element,
        FastPathEntry::Via(hops) => Entry::Via(hops.iter().map(hop).collect()),
        FastPathEntry::Encaps(headers) => Entry::Encapsulate(headers.clone()),
        FastPathEntry::End(_) | FastPathEntry::EndX(..) | FastPathEntry::EndDt6(_) if !checks_sources => Entry::Element,
        FastPathEntry::End(flavors) => sid(*flavors, SidAction::Next),
        FastPathEntry::EndX(flavors, to) => sid(*flavors, SidAction::Via(hop(to))),
        FastPathEntry::EndDt6(table) => sid(Flavors::default(), SidAction::Decapsulate { table: table.0 }),
    };
    plan.entries.iter().map(|((table, prefix), planned)| ((table.0, *prefix), entry(planned))).collect()
}

/// A port's program for a plan.
pub fn fast_path_port(plan: &FastPath, id: PortId, mac: MacAddress) -> Port {
    let sources = plan.sources.clone().filter(|sources| (1..=MAX_SOURCES).contains(&sources.len()));
    Port { number: id.0, mac: mac.0, sources, salt: plan.salt }
}

fn hop(hop: &FastPathHop) -> Hop {
    Hop { port: hop.port.0, addresses: hop.addresses, link_mtu: hop.link_mtu }
}

fn sid(flavors: Flavors, action: SidAction) -> Entry {
    let next_csid = flavors.next_csid.map(|csid| (csid.block_bits, csid.csid_bits));
    match next_csid {
        Some((block, csid)) if u16::from(block) + u16::from(csid) > 64 => Entry::Element,
        next_csid => Entry::Sid(Sid { action, psp: flavors.psp, usd: flavors.usd, next_csid }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_dataplane::{NextCsid, TableId};
    use srdma_wire::Prefix;

    fn plan(entry: FastPathEntry, sources: Option<usize>) -> FastPath {
        let prefix: Prefix = "2001:db8::/64".parse().expect("a prefix");
        let sources = sources.map(|count| vec![prefix; count]);
        FastPath { entries: BTreeMap::from([((TableId(3), prefix), entry)]), sources, ..FastPath::default() }
    }

    #[track_caller]
    fn only(plan: &FastPath) -> Entry {
        let entries = fast_path_entries(plan);
        let [((3, _), entry)] = &*entries.into_iter().collect::<Vec<_>>() else { panic!("one entry of table 3") };
        entry.clone()
    }

    #[test]
    fn flavors_go_over() {
        let expected = Sid { action: SidAction::Next, psp: true, usd: true, next_csid: Some((32, 16)) };
        assert_eq!(only(&plan(FastPathEntry::End(Flavors::MICRO), None)), Entry::Sid(expected));
        let long = NextCsid { block_bits: 64, csid_bits: 16 };
        let flavors = Flavors { next_csid: Some(long), ..Flavors::default() };
        assert_eq!(only(&plan(FastPathEntry::End(flavors), None)), Entry::Element);
    }

    /// RFC 8754 section 5.1: the program compares with a few prefixes; with more, SIDs are the element's.
    #[test]
    fn sids_of_a_domain_with_many_prefixes_are_the_elements() {
        for (count, is_element) in [(0, true), (1, false), (MAX_SOURCES, false), (MAX_SOURCES + 1, true)] {
            let plan = plan(FastPathEntry::EndDt6(TableId(1)), Some(count));
            assert_eq!(only(&plan) == Entry::Element, is_element, "{count}");
            let port = fast_path_port(&plan, PortId(2), MacAddress([2, 0, 0, 0, 0, 1]));
            assert_eq!((port.number, port.sources.is_some()), (2, !is_element));
        }
    }
}
