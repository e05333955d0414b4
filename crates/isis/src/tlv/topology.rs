//! Topologies (RFC 5120): membership of an interface or a system, and the id in front of TLVs of one topology.
//!
//! ```text
//! TLV 229, entries:     | O A R R, MT ID 2 |
//! TLV 222, 237, 27:     | R R R R, MT ID 2 | …
//! ```

use super::{Tlvs, kind, put};
use crate::reader::{Malformed, Reader};

const FLAG_OVERLOADED: u16 = 0x8000;
const FLAG_ATTACHED: u16 = 0x4000;
const ID_MASK: u16 = 0x0FFF;

/// Entries of one TLV.
const GREATEST_COUNT: usize = super::GREATEST_VALUE / 2;

/// A topology (IANA, IS-IS Multi-Topology ID Values), 12 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyId(u16);

impl TopologyId {
    /// The standard topology, that of systems without multi-topology.
    pub const STANDARD: TopologyId = TopologyId(0);

    /// IPv6 unicast.
    pub const IPV6_UNICAST: TopologyId = TopologyId(2);

    /// The topology of an id; its upper four bits are no part of it.
    pub const fn new(id: u16) -> Self {
        TopologyId(id & ID_MASK)
    }

    /// Its id.
    pub const fn id(self) -> u16 {
        self.0
    }

    /// As it lies in front of a TLV of one topology.
    pub(crate) const fn octets(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    /// Splits the id off a TLV's value.
    pub(crate) fn split(value: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new("a topology id", value);
        let topology = TopologyId::new(reader.u16()?);
        Ok((topology, reader.rest()))
    }
}

/// Membership in a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The topology.
    pub topology: TopologyId,
    /// O: no path of the topology may lead through the system. Only LSPs have it.
    pub is_overloaded: bool,
    /// A: the system leads out of its area. Only LSPs have it.
    pub is_attached: bool,
}

/// The topologies of an interface, in its hellos, or of a system, in the first fragment of its LSP. Without the TLV it
/// is the standard topology alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topologies(Option<Vec<Member>>);

impl Topologies {
    /// Membership in one topology. The TLV is left out for the standard one.
    pub fn only(member: Member) -> Self {
        Topologies((member.topology != TopologyId::STANDARD).then(|| vec![member]))
    }

    /// These topologies, with a TLV even if there are none.
    pub fn listed(members: Vec<Member>) -> Self {
        Topologies(Some(members))
    }

    /// The union of all TLVs (RFC 5120 section 7.1).
    ///
    /// # Errors
    ///
    /// A length in the middle of an entry.
    pub fn parse(tlvs: Tlvs<'_>) -> Result<Self, Malformed> {
        let mut members = None;
        for value in tlvs.of_kind(kind::MULTI_TOPOLOGY) {
            let members: &mut Vec<Member> = members.get_or_insert_default();
            let mut reader = Reader::new("multi-topology", value);
            while !reader.is_empty() {
                let entry = reader.u16()?;
                members.push(Member {
                    topology: TopologyId::new(entry),
                    is_overloaded: entry & FLAG_OVERLOADED != 0,
                    is_attached: entry & FLAG_ATTACHED != 0,
                });
            }
        }
        Ok(Topologies(members))
    }

    /// Membership in a topology; `None` if it is none of them. Its bits are those of the TLV: those of the standard
    /// topology are in the header of the LSP.
    pub fn member(&self, topology: TopologyId) -> Option<Member> {
        match &self.0 {
            None => (topology == TopologyId::STANDARD).then(Member::default),
            Some(members) => members.iter().find(|member| member.topology == topology).copied(),
        }
    }

    /// Whether a topology is among them.
    pub fn contains(&self, topology: TopologyId) -> bool {
        self.member(topology).is_some()
    }

    /// Appends the TLV, unless it is the standard topology alone.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let Some(members) = &self.0 else { return };
        let octets = |member: &Member| {
            let flag = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
            let flags = flag(member.is_overloaded, FLAG_OVERLOADED) | flag(member.is_attached, FLAG_ATTACHED);
            (flags | member.topology.id()).to_be_bytes()
        };
        let value: Vec<u8> = members.iter().take(GREATEST_COUNT).flat_map(octets).collect();
        put(out, kind::MULTI_TOPOLOGY, &value);
    }
}

/// The values of TLVs of one topology, for a TLV that has two types: without an id for the standard topology, with one
/// for the others. Id 0 in the latter is ignored, and so are other topologies.
pub(crate) fn values_of<'a>(
    tlvs: Tlvs<'a>,
    topology: TopologyId,
    standard: u8,
    with_id: u8,
) -> impl Iterator<Item = &'a [u8]> {
    let is_standard = topology == TopologyId::STANDARD;
    let wanted = if is_standard { standard } else { with_id };
    tlvs.of_kind(wanted).filter_map(move |value| {
        if is_standard {
            return Some(value);
        }
        TopologyId::split(value).ok().filter(|(found, _)| *found == topology).map(|(_, rest)| rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_tlv_it_is_the_standard_topology() {
        let topologies = Topologies::parse(Tlvs::new(&[])).unwrap();
        assert!(topologies.contains(TopologyId::STANDARD) && !topologies.contains(TopologyId::IPV6_UNICAST));
        let mut out = Vec::new();
        topologies.emit(&mut out);
        assert_eq!(out, []);
    }

    #[test]
    fn an_empty_tlv_is_membership_in_none() {
        let topologies = Topologies::parse(Tlvs::new(&[229, 0])).unwrap();
        assert!(!topologies.contains(TopologyId::STANDARD));
    }

    #[test]
    fn several_tlvs_count_together_and_reserved_bits_are_ignored() {
        let topologies = Topologies::parse(Tlvs::new(&[229, 2, 0, 0, 229, 4, 0xB0, 2, 0x4F, 0xFF])).unwrap();
        assert!(topologies.contains(TopologyId::STANDARD));
        let of_ipv6 = topologies.member(TopologyId::IPV6_UNICAST).unwrap();
        assert!(of_ipv6.is_overloaded && !of_ipv6.is_attached);
        assert!(topologies.member(TopologyId::new(0xFFF)).unwrap().is_attached);
        assert!(Topologies::parse(Tlvs::new(&[229, 3, 0, 0, 0])).is_err());
    }
}
