//! IPv6 reachability (RFC 5308 section 2), behind the MT ID in TLV 237 (RFC 5120).
//!
//! ```text
//! | Metric 4 | U X S rsv 1 | prefix length 1 | prefix … | length of sub-TLVs 1, if S | sub-TLVs … |
//! ```

use super::topology::{TopologyId, values_of};
use super::{Leak, Tlvs, kind, octets_of, put_all};
use crate::reader::{Malformed, Reader};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

const FLAG_DOWN: u8 = 0x80;
const FLAG_EXTERNAL: u8 = 0x40;
const FLAG_SUB_TLVS: u8 = 0x20;

/// A metric above this one keeps a prefix out of the routes (RFC 5308 section 2).
pub const GREATEST_PATH_METRIC: u32 = 0xFE00_0000;

/// A prefix that the LSP's system leads to.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reachability {
    /// Its metric behind the system.
    pub metric: u32,
    /// Whether it comes from the other level.
    pub leak: Leak,
    /// It has come from another protocol.
    pub is_external: bool,
    pub prefix: Prefix,
}

impl Reachability {
    /// The prefixes of a TLV's value.
    ///
    /// # Errors
    ///
    /// A length in the middle of a field, or a prefix longer than 128 bits.
    pub fn parse_all(value: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut reader = Reader::new("IPv6 reachability", value);
        let mut prefixes = Vec::new();
        while !reader.is_empty() {
            let (metric, flags) = (reader.u32()?, reader.u8()?);
            let prefix = parse_prefix(&mut reader)?;
            let subs = if flags & FLAG_SUB_TLVS == 0 {
                Tlvs::new(&[])
            } else {
                let length = reader.u8()?;
                Tlvs::new(reader.take(usize::from(length))?)
            };
            let (leak, is_external) = (Leak::parse(flags & FLAG_DOWN != 0, subs), flags & FLAG_EXTERNAL != 0);
            prefixes.push(Reachability { metric, leak, is_external, prefix });
        }
        Ok(prefixes)
    }

    /// The prefixes that TLVs have in a topology. TLVs that are malformed are left out.
    pub fn of_topology(tlvs: Tlvs<'_>, topology: TopologyId) -> impl Iterator<Item = Self> {
        let values = values_of(tlvs, topology, kind::IPV6_REACHABILITY, kind::MT_IPV6_REACHABILITY);
        values.flat_map(|value| Reachability::parse_all(value).unwrap_or_default())
    }

    /// Appends TLVs with all these prefixes.
    pub fn emit_all(prefixes: &[Self], topology: TopologyId, out: &mut Vec<u8>) {
        let octets = prefixes.iter().map(Reachability::octets);
        match topology {
            TopologyId::STANDARD => put_all(out, kind::IPV6_REACHABILITY, &[], octets),
            _ => put_all(out, kind::MT_IPV6_REACHABILITY, &topology.octets(), octets),
        }
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = self.metric.to_be_bytes().to_vec();
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let mut subs = Vec::new();
        self.leak.emit(&mut subs);
        let flags = flag(self.leak.is_down(), FLAG_DOWN) | flag(self.is_external, FLAG_EXTERNAL);
        octets.push(flags | flag(!subs.is_empty(), FLAG_SUB_TLVS));
        put_prefix(&mut octets, self.prefix);
        if !subs.is_empty() {
            octets.push(subs.len() as u8);
            octets.extend(subs);
        }
        octets
    }
}

/// A length in bits and as many octets as that needs.
pub(super) fn parse_prefix(reader: &mut Reader<'_>) -> Result<Prefix, Malformed> {
    let bits = reader.u8()?;
    prefix_of(bits, reader.take(octets_of(bits))?)
}

/// The prefix of so many bits that begins with these octets.
///
/// # Errors
///
/// More than 128 bits.
pub fn prefix_of(bits: u8, from: &[u8]) -> Result<Prefix, Malformed> {
    let wrong = Malformed::Value { field: "a prefix length", found: bits.into(), expected: "0 to 128" };
    let mut octets = [0; 16];
    for (octet, from) in octets.iter_mut().zip(from) {
        *octet = *from;
    }
    // Bits behind the length are ignored (RFC 5308 section 2).
    let beyond = 128_u32.checked_sub(bits.into()).ok_or(wrong)?;
    let mask = u128::MAX.checked_shl(beyond).unwrap_or(0);
    Prefix::new(Ipv6Addr::from(u128::from_be_bytes(octets) & mask), bits).ok_or(wrong)
}

/// The reverse of [`parse_prefix`].
pub(super) fn put_prefix(out: &mut Vec<u8>, prefix: Prefix) {
    out.push(prefix.prefix_len());
    out.extend(prefix.address().octets().iter().take(octets_of(prefix.prefix_len())));
}
