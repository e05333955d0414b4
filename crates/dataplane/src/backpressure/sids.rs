//! The SIDs by which a notification reaches the ingress PE of a packet (D63).
//!
//! ```text
//! | outer IPv6: source = ingress PE | … | RoCEv2 |    source ─→ longest prefix ─→ END.C, END.E of that PE
//! ```

use crate::config::ConfigError;
use crate::encaps::{Encaps, EncapsMode};
use srdma_fib::Fib;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// Hop limit of the header around a notification.
const HOP_LIMIT: u8 = 64;

/// The SIDs of an ingress PE, or of one of its tunnels where each has its own source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackpressureSids {
    /// The outer source addresses of packets that entered there. The longest prefix matches.
    pub outer_source: Prefix,
    /// Its END.C, if it is known.
    pub end_c: Option<Ipv6Addr>,
    /// Its END.E, if it is known.
    pub end_e: Option<Ipv6Addr>,
}

/// The SIDs by outer source address.
#[derive(Debug, Default)]
pub(crate) struct SidTable {
    places: Fib<u32>,
    entries: Vec<Entry>,
    /// Each END.C once, however many tunnels its PE has.
    end_cs: Vec<Outer>,
}

/// State of an ingress PE, with prepared outer headers.
#[derive(Debug)]
struct Entry {
    /// The place of its END.C.
    end_c: Option<usize>,
    end_e: Option<Outer>,
}

/// A SID, and the header that leads there (H.Encaps.Red without an SRH, CN-4.1-2, CN-4.2-2).
#[derive(Debug)]
pub(crate) struct Outer {
    pub(crate) sid: [u8; 16],
    pub(crate) around: Encaps,
}

impl SidTable {
    /// The table of a node with this loopback. Of two entries for one prefix the later one counts.
    pub(crate) fn new(loopback: Ipv6Addr, sids: &[BackpressureSids]) -> Result<Self, ConfigError> {
        let mut table = SidTable::default();
        for (place, known) in (0..).zip(sids) {
            let outer = |sid: Ipv6Addr| {
                let around = Encaps::new(loopback, &[sid], EncapsMode::Reduced, HOP_LIMIT)
                    .map_err(|error| ConfigError::Encaps { prefix: Prefix::host(sid), error })?;
                Ok::<_, ConfigError>(Outer { sid: sid.octets(), around })
            };
            let end_c = match known.end_c.map(outer).transpose()? {
                Some(end_c) => {
                    let place = table.place_of_end_c(&end_c.sid).unwrap_or(table.end_cs.len());
                    if place == table.end_cs.len() {
                        table.end_cs.push(end_c);
                    }
                    Some(place)
                }
                None => None,
            };
            table.entries.push(Entry { end_c, end_e: known.end_e.map(outer).transpose()? });
            table.places.insert(known.outer_source, place);
        }
        Ok(table)
    }

    /// Whether a notification can be routed: for a packet in no tunnel by the node's own table, for a packet in a
    /// tunnel by the END.E of the tunnel's ingress PE, if any SIDs are configured.
    #[inline]
    pub(crate) fn leads_back(&self, outer_source: Option<&[u8; 16]>) -> bool {
        match outer_source {
            Some(source) if !self.entries.is_empty() => self.find_end_e(source).is_some(),
            Some(_) | None => true,
        }
    }

    /// The place of an ingress PE whose END.E is known.
    #[inline]
    pub(crate) fn find_end_e(&self, outer_source: &[u8; 16]) -> Option<u32> {
        let place = self.places.lookup(outer_source)?;
        self.end_e(place).map(|_| place)
    }

    /// The END.E at a place.
    pub(crate) fn end_e(&self, place: u32) -> Option<&Outer> {
        self.entries.get(place as usize)?.end_e.as_ref()
    }

    /// The number of an ingress PE whose END.C is known.
    pub(crate) fn find_end_c(&self, outer_source: &[u8; 16]) -> Option<usize> {
        self.entries.get(self.places.lookup(outer_source)? as usize)?.end_c
    }

    /// The END.C of the PE with this number.
    pub(crate) fn end_c(&self, number: usize) -> Option<&Outer> {
        self.end_cs.get(number)
    }

    /// The number of the PE with this END.C.
    pub(crate) fn place_of_end_c(&self, sid: &[u8; 16]) -> Option<usize> {
        self.end_cs.iter().position(|known| known.sid == *sid)
    }

    /// How many PEs there are with an END.C.
    pub(crate) fn end_cs(&self) -> usize {
        self.end_cs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(outer_source: &str, end_e: Option<&str>) -> BackpressureSids {
        let (address, len) = outer_source.split_once('/').unwrap();
        let outer_source = Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap();
        BackpressureSids { outer_source, end_c: None, end_e: end_e.map(|sid| sid.parse().unwrap()) }
    }

    /// D63: the longest prefix, and nothing for a PE that is known to have no END.E.
    #[test]
    fn the_longest_prefix_counts() {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        let sids = [
            entry("2001:db8:53::/48", Some("5f00:0:1:e::")),
            entry("2001:db8:53::2/128", Some("5f00:0:2:e::")),
            entry("2001:db8:53::3/128", None),
        ];
        let table = SidTable::new(Ipv6Addr::LOCALHOST, &sids).unwrap();
        let found =
            |source: &str| table.find_end_e(&address(source)).and_then(|place| table.end_e(place)).map(|it| it.sid);
        assert_eq!(found("2001:db8:53::1"), Some(address("5f00:0:1:e::")));
        assert_eq!(found("2001:db8:53::2"), Some(address("5f00:0:2:e::")));
        assert_eq!([found("2001:db8:53::3"), found("2001:db8:54::1")], [None, None]);
        assert!(table.leads_back(None) && !table.leads_back(Some(&address("2001:db8:54::1"))));
        assert!(SidTable::default().leads_back(Some(&address("2001:db8:54::1"))), "nothing is known of anybody");
    }

    /// A PE with several tunnels is one PE.
    #[test]
    fn tunnels_of_one_pe_share_its_end_c() {
        let with_end_c = |outer_source, end_c: &str| BackpressureSids {
            end_c: Some(end_c.parse().unwrap()),
            ..entry(outer_source, None)
        };
        let sids = [
            with_end_c("2001:db8:53::1/128", "5f00:0:1:c::"),
            with_end_c("2001:db8:53::2/128", "5f00:0:2:c::"),
            with_end_c("2001:db8:53:1::/64", "5f00:0:1:c::"),
        ];
        let table = SidTable::new(Ipv6Addr::LOCALHOST, &sids).unwrap();
        let found = |source: &str| table.find_end_c(&source.parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(["2001:db8:53::1", "2001:db8:53::2", "2001:db8:53:1::9"].map(found), [Some(0), Some(1), Some(0)]);
        assert_eq!((table.end_cs(), found("2001:db8:54::1")), (2, None));
    }
}
