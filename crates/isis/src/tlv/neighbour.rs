//! Extended IS reachability (RFC 5305 section 3), with SRv6 End.X SIDs (RFC 9352 sections 8.1
//! and 8.2).
//!
//! ```text
//! | System ID 6 | pseudonode 1 | Metric 3 | length of sub-TLVs 1 | sub-TLVs … |      in TLV 222 behind the MT ID
//!
//! sub-TLV 43: | Flags 1 | Algorithm 1 | Weight 1 | Endpoint Behavior 2 | SID 16 | length 1 | sub-sub-TLVs … |
//! sub-TLV 44, on a LAN: | System ID 6 | as 43 |
//! ```

use super::locator::SidStructure;
use super::topology::{TopologyId, values_of};
use super::{Tlvs, kind, put, put_all};
use crate::id::{NodeId, SystemId};
use crate::reader::{Malformed, Reader};
use std::net::Ipv6Addr;

const SUB_END_X_SID: u8 = 43;
const SUB_LAN_END_X_SID: u8 = 44;

/// The metric of a link that no shortest path may use (RFC 5305 section 3).
pub const UNUSABLE_METRIC: u32 = 0xFF_FFFF;

/// A link to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour.
    pub node: NodeId,
    /// Its metric, 24 bits; [`UNUSABLE_METRIC`] excludes it from shortest paths.
    pub metric: u32,
    /// The SIDs of packets that are to take it.
    pub end_x: Vec<EndXSid>,
}

/// A SID whose packets leave by one link.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndXSid {
    /// The neighbour on a LAN that it leads to; `None` on a point-to-point link.
    pub neighbour: Option<SystemId>,
    /// B, S and P, in the highest bits.
    pub flags: u8,
    /// The algorithm of its locator.
    pub algorithm: u8,
    /// Its share, among several of a set.
    pub weight: u8,
    /// Its behaviour (IANA, SRv6 Endpoint Behaviors).
    pub behavior: u16,
    pub sid: Ipv6Addr,
    /// Lengths of its parts.
    pub structure: Option<SidStructure>,
}

impl Neighbour {
    /// The neighbours of a TLV's value. End.X sub-TLVs that are malformed are left out.
    ///
    /// # Errors
    ///
    /// A length in the middle of a field.
    pub fn parse_all(value: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut reader = Reader::new("extended IS reachability", value);
        let mut neighbours = Vec::new();
        while !reader.is_empty() {
            let (node, metric) = (reader.node()?, reader.u24()?);
            let length = reader.u8()?;
            let subs = Tlvs::new(reader.take(usize::from(length))?);
            let end_x = subs.map_while(Result::ok).filter_map(|sub| match sub.kind {
                SUB_END_X_SID => EndXSid::parse(sub.value).ok(),
                SUB_LAN_END_X_SID => EndXSid::parse_of_lan(sub.value).ok(),
                _ => None,
            });
            let end_x = end_x.collect();
            neighbours.push(Neighbour { node, metric, end_x });
        }
        Ok(neighbours)
    }

    /// The neighbours that TLVs have in a topology. TLVs that are malformed are left out.
    pub fn of_topology(tlvs: Tlvs<'_>, topology: TopologyId) -> impl Iterator<Item = Self> {
        let values = values_of(tlvs, topology, kind::EXTENDED_IS_REACHABILITY, kind::MT_IS_REACHABILITY);
        values.flat_map(|value| Neighbour::parse_all(value).unwrap_or_default())
    }

    /// Appends TLVs with all these neighbours. Of a neighbour's End.X SIDs there is room for eight.
    pub fn emit_all(neighbours: &[Self], topology: TopologyId, out: &mut Vec<u8>) {
        let octets = neighbours.iter().map(Neighbour::octets);
        match topology {
            TopologyId::STANDARD => put_all(out, kind::EXTENDED_IS_REACHABILITY, &[], octets),
            _ => put_all(out, kind::MT_IS_REACHABILITY, &topology.octets(), octets),
        }
    }

    fn octets(&self) -> Vec<u8> {
        let mut subs = Vec::new();
        for sid in &self.end_x {
            let mut value = sid.neighbour.map(|system| system.0.to_vec()).unwrap_or_default();
            sid.emit(&mut value);
            let kind = if sid.neighbour.is_some() { SUB_LAN_END_X_SID } else { SUB_END_X_SID };
            // 255 octets of a TLV less those in front: a topology's id, and eleven of the neighbour.
            if subs.len() + 2 + value.len() <= 255 - 2 - 11 {
                put(&mut subs, kind, &value);
            }
        }
        let mut octets = Vec::with_capacity(11 + subs.len());
        octets.extend(self.node.octets());
        octets.extend_from_slice(&self.metric.min(UNUSABLE_METRIC).to_be_bytes()[1..]);
        octets.push(subs.len() as u8);
        octets.extend(subs);
        octets
    }
}

impl EndXSid {
    /// So many have room beside one neighbour, with their structures and neighbours on a LAN.
    pub(crate) const GREATEST_OF_LAN: usize = 6;

    fn parse_of_lan(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an SRv6 LAN End.X SID", value);
        let neighbour = Some(reader.system()?);
        Ok(EndXSid { neighbour, ..EndXSid::parse(reader.rest())? })
    }

    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an SRv6 End.X SID", value);
        let (flags, algorithm, weight) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let (behavior, sid) = (reader.u16()?, Ipv6Addr::from(reader.array::<16>()?));
        let length = reader.u8()?;
        let structure = SidStructure::find(reader.take(usize::from(length))?)?;
        Ok(EndXSid { neighbour: None, flags, algorithm, weight, behavior, sid, structure })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.flags, self.algorithm, self.weight]);
        out.extend(self.behavior.to_be_bytes());
        out.extend(self.sid.octets());
        SidStructure::emit(self.structure, out);
    }
}
