//! TLVs, the variable part of every PDU, one file each.
//!
//! ```text
//! | Type 1 | Length 1 | Value, at most 255 octets |
//! ```
//!
//! Sub-TLVs, and their sub-sub-TLVs, have the same shape.

mod capability;
mod entries;
pub(crate) mod lan_neighbours;
mod leak;
mod locator;
mod neighbour;
mod purge_originator;
mod reachability;
mod three_way;
mod topology;

pub use capability::{CapabilityFlags, MaximumSidDepths, RouterCapability};
pub use entries::LspEntry;
pub use leak::Leak;
pub use locator::{EndSid, Locator, SidStructure};
pub use neighbour::{EndXSid, Neighbour, UNUSABLE_METRIC};
pub use purge_originator::PurgeOriginator;
pub use reachability::prefix_of;
pub use reachability::{GREATEST_PATH_METRIC, Reachability};
pub use three_way::{AdjacencyState, ThreeWay};
pub use topology::{Member, Topologies, TopologyId};

use crate::reader::{Malformed, Reader};

/// Types of TLVs (IANA, IS-IS TLV Codepoints).
pub mod kind {
    /// Area addresses (ISO 10589).
    pub const AREA_ADDRESSES: u8 = 1;
    /// Neighbours on a LAN (ISO 10589).
    pub const LAN_NEIGHBOURS: u8 = 6;
    /// Padding (ISO 10589).
    pub const PADDING: u8 = 8;
    /// LSP entries (ISO 10589).
    pub const LSP_ENTRIES: u8 = 9;
    /// Authentication (RFC 5304, RFC 5310).
    pub const AUTHENTICATION: u8 = 10;
    /// Purge Originator Identification (RFC 6232).
    pub const PURGE_ORIGINATOR: u8 = 13;
    /// Extended IS reachability (RFC 5305).
    pub const EXTENDED_IS_REACHABILITY: u8 = 22;
    /// SRv6 Locator (RFC 9352 section 7.1).
    pub const SRV6_LOCATOR: u8 = 27;
    /// Protocols supported (RFC 1195).
    pub const PROTOCOLS_SUPPORTED: u8 = 129;
    /// Dynamic hostname (RFC 5301).
    pub const HOSTNAME: u8 = 137;
    /// IS reachability of one topology (RFC 5120).
    pub const MT_IS_REACHABILITY: u8 = 222;
    /// Multi-topology: membership (RFC 5120).
    pub const MULTI_TOPOLOGY: u8 = 229;
    /// IPv6 interface addresses (RFC 5308).
    pub const IPV6_INTERFACE_ADDRESSES: u8 = 232;
    /// IPv6 reachability (RFC 5308).
    pub const IPV6_REACHABILITY: u8 = 236;
    /// IPv6 reachability of one topology (RFC 5120).
    pub const MT_IPV6_REACHABILITY: u8 = 237;
    /// Three-way adjacency of point-to-point circuits (RFC 5303).
    pub const THREE_WAY_ADJACENCY: u8 = 240;
    /// Router capability (RFC 7981).
    pub const ROUTER_CAPABILITY: u8 = 242;
}

/// The protocol identifier of IPv6 (ISO/IEC TR 9577).
pub const NLPID_IPV6: u8 = 0x8E;

/// The longest value.
pub const GREATEST_VALUE: usize = 255;

/// A TLV as it lies.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    pub kind: u8,
    pub value: &'a [u8],
}

/// The TLVs of some octets, up to the first that overruns them.
#[derive(Clone, Copy, Debug)]
pub struct Tlvs<'a> {
    reader: Reader<'a>,
}

impl<'a> Tlvs<'a> {
    /// The TLVs that `octets` are made of.
    pub fn new(octets: &'a [u8]) -> Self {
        Tlvs { reader: Reader::new("a TLV", octets) }
    }

    /// The values of one kind, as far as the octets are TLVs.
    pub fn of_kind(self, kind: u8) -> impl Iterator<Item = &'a [u8]> {
        self.map_while(Result::ok).filter(move |tlv| tlv.kind == kind).map(|tlv| tlv.value)
    }

    /// That no TLV overruns the octets.
    ///
    /// # Errors
    ///
    /// The first that does.
    pub fn check(mut self) -> Result<(), Malformed> {
        self.try_for_each(|tlv| tlv.map(drop))
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let tlv = next(&mut self.reader);
        if tlv.is_err() {
            self.reader = Reader::new("a TLV", &[]);
        }
        Some(tlv)
    }
}

fn next<'a>(reader: &mut Reader<'a>) -> Result<Tlv<'a>, Malformed> {
    let kind = reader.u8()?;
    let length = reader.u8()?;
    Ok(Tlv { kind, value: reader.take(usize::from(length))? })
}

/// Appends a TLV. A value longer than a TLV can be is an error of the caller, and is left out.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    debug_assert!(value.len() <= GREATEST_VALUE, "a TLV of {} octets", value.len());
    if let Ok(length) = u8::try_from(value.len()) {
        out.extend([kind, length]);
        out.extend(value);
    }
}

/// Appends items as the values of as many TLVs of one kind as they need, each with `front` in front. An item is never
/// divided.
pub(crate) fn put_all(out: &mut Vec<u8>, kind: u8, front: &[u8], items: impl IntoIterator<Item = Vec<u8>>) {
    let mut value = front.to_vec();
    for item in items {
        if value.len() + item.len() > GREATEST_VALUE && value.len() > front.len() {
            put(out, kind, &std::mem::replace(&mut value, front.to_vec()));
        }
        value.extend(item);
    }
    if value.len() > front.len() {
        put(out, kind, &value);
    }
}

/// The number of octets that hold so many bits of a prefix.
pub(crate) fn octets_of(bits: u8) -> usize {
    usize::from(bits).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_ends_the_list() {
        let octets = [1, 1, 0xAA, 22, 5, 1, 2];
        let found: Vec<_> = Tlvs::new(&octets).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Ok(Tlv { kind: 1, value: &[0xAA] }));
        assert_eq!(found[1], Err(Malformed::Truncated { field: "a TLV", needed: 5, found: 2 }));
        assert!(Tlvs::new(&octets).check().is_err());
        assert_eq!(Tlvs::new(&octets).of_kind(22).count(), 0);
    }

    #[test]
    fn items_continue_in_a_further_tlv() {
        let mut out = Vec::new();
        put_all(&mut out, 9, &[], (0..20).map(|item| vec![item; 16]));
        let lengths: Vec<usize> = Tlvs::new(&out).map(|tlv| tlv.unwrap().value.len()).collect();
        assert_eq!(lengths, [240, 80]);
        let mut out = Vec::new();
        put_all(&mut out, 222, &[0, 2], (0..20).map(|item| vec![item; 127]));
        let values = || Tlvs::new(&out).map(|tlv| tlv.unwrap().value);
        assert!(values().count() == 20 && values().all(|value| value.len() == 129 && value.starts_with(&[0, 2])));
    }
}
