//! SRv6 Locator (RFC 9352 section 7.1) with SRv6 End SIDs (section 7.2): CN-5.1-2, D65.
//!
//! ```text
//! | R, MT ID 2 | entries … |
//!
//! entry:     | Metric 4 | Flags 1 | Algorithm 1 | size 1 | locator … | length of sub-TLVs 1 | sub-TLVs … |
//! sub-TLV 5: | Flags 1 | Endpoint Behavior 2 | SID 16 | length 1 | sub-sub-TLVs … |
//! structure: | Block 1 | Node 1 | Function 1 | Argument 1 |      lengths in bits, sub-sub-TLV 1
//! ```
//!
//! The draft's Figure 3 puts END.C and END.E into one sub-TLV with behaviours of 24 bits. That is no sub-TLV of RFC
//! 9352, and no implementation accepts it: each SID has a sub-TLV of its own (D65).

use super::reachability::{parse_prefix, put_prefix};
use super::topology::TopologyId;
use super::{GREATEST_VALUE, Leak, Tlvs, kind, put};
use crate::reader::{Malformed, Reader};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

const FLAG_DOWN: u8 = 0x80;

const SUB_END_SID: u8 = 5;
const SUB_SID_STRUCTURE: u8 = 1;

/// MT ID, metric, flags, algorithm, size, sixteen octets of a locator, and the length of its sub-TLVs.
const GREATEST_FRONT: usize = 2 + 4 + 1 + 1 + 1 + 16 + 1;

/// A locator and the SIDs below it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    /// The topology of its paths.
    pub topology: TopologyId,
    /// Its metric behind the system.
    pub metric: u32,
    /// Whether it comes from the other level; D: from level 2 down.
    pub leak: Leak,
    /// The algorithm of its paths; 0 for shortest ones.
    pub algorithm: u8,
    pub prefix: Prefix,
    pub sids: Vec<EndSid>,
}

/// A SID of the node itself.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSid {
    /// Its behaviour (IANA, SRv6 Endpoint Behaviors).
    pub behavior: u16,
    pub sid: Ipv6Addr,
    /// Lengths of its parts.
    pub structure: Option<SidStructure>,
}

/// The lengths of a SID's parts in bits (RFC 9352 section 9).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidStructure {
    pub block: u8,
    pub node: u8,
    pub function: u8,
    pub argument: u8,
}

impl Locator {
    /// The locators of a TLV's value. SIDs outside their locator are left out (RFC 9352 section 7.2), as are sub-TLVs
    /// that are malformed.
    ///
    /// # Errors
    ///
    /// A length in the middle of a field, or a locator longer than 128 bits.
    pub fn parse_all(value: &[u8]) -> Result<Vec<Self>, Malformed> {
        let (topology, rest) = TopologyId::split(value)?;
        let mut reader = Reader::new("SRv6 locator", rest);
        let mut locators = Vec::new();
        while !reader.is_empty() {
            let (metric, flags, algorithm) = (reader.u32()?, reader.u8()?, reader.u8()?);
            let prefix = parse_prefix(&mut reader)?;
            let length = reader.u8()?;
            let subs = Tlvs::new(reader.take(usize::from(length))?);
            let sids = subs.of_kind(SUB_END_SID).filter_map(|value| EndSid::parse(value).ok());
            let sids = sids.filter(|sid| prefix.contains(sid.sid)).collect();
            let leak = Leak::parse(flags & FLAG_DOWN != 0, subs);
            locators.push(Locator { topology, metric, leak, algorithm, prefix, sids });
        }
        Ok(locators)
    }

    /// The locators that TLVs have in a topology, for shortest paths. TLVs that are malformed are left out.
    pub fn of_topology(tlvs: Tlvs<'_>, topology: TopologyId) -> impl Iterator<Item = Self> {
        let all = tlvs.of_kind(kind::SRV6_LOCATOR).flat_map(|value| Locator::parse_all(value).unwrap_or_default());
        all.filter(move |locator| locator.algorithm == 0 && locator.topology == topology)
    }

    /// Appends the locator; in several TLVs, if its SIDs need them.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let subs = self.sids.iter().map(EndSid::octets);
        let mut front = Vec::new();
        self.leak.emit(&mut front);
        let mut parts = vec![front.clone()];
        for sub in subs {
            if parts.last().is_some_and(|part| part.len() + sub.len() > GREATEST_VALUE - GREATEST_FRONT) {
                parts.push(front.clone());
            }
            if let Some(part) = parts.last_mut() {
                part.extend(sub);
            }
        }
        for part in parts {
            let mut value = self.topology.octets().to_vec();
            value.extend(self.metric.to_be_bytes());
            value.extend([if self.leak.is_down() { FLAG_DOWN } else { 0 }, self.algorithm]);
            put_prefix(&mut value, self.prefix);
            value.push(part.len() as u8);
            value.extend(part);
            put(out, kind::SRV6_LOCATOR, &value);
        }
    }
}

impl EndSid {
    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an SRv6 End SID", value);
        let _flags = reader.u8()?;
        let (behavior, sid) = (reader.u16()?, Ipv6Addr::from(reader.array::<16>()?));
        let length = reader.u8()?;
        let structure = SidStructure::find(reader.take(usize::from(length))?)?;
        Ok(EndSid { behavior, sid, structure })
    }

    fn octets(&self) -> Vec<u8> {
        let mut value = vec![0];
        value.extend(self.behavior.to_be_bytes());
        value.extend(self.sid.octets());
        SidStructure::emit(self.structure, &mut value);
        let mut octets = Vec::new();
        put(&mut octets, SUB_END_SID, &value);
        octets
    }
}

impl SidStructure {
    /// F3216: a block of 32 bits, a node or function of 16, the rest a container of more of them.
    pub const F3216: SidStructure = SidStructure { block: 32, node: 16, function: 0, argument: 80 };

    /// The structure among sub-sub-TLVs.
    pub(super) fn find(sub_subs: &[u8]) -> Result<Option<Self>, Malformed> {
        Tlvs::new(sub_subs).of_kind(SUB_SID_STRUCTURE).next().map(Self::parse).transpose()
    }

    /// Reads the lengths.
    ///
    /// # Errors
    ///
    /// Fewer octets than four, or lengths of more than 128 bits together.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a SID structure", value);
        let [block, node, function, argument] = reader.array()?;
        let bits = [block, node, function, argument].into_iter().map(u32::from).sum();
        if bits > 128 {
            return Err(Malformed::Value { field: "the sum of a SID structure", found: bits, expected: "at most 128" });
        }
        Ok(SidStructure { block, node, function, argument })
    }

    /// Appends the length of the sub-sub-TLVs, and the structure if there is one.
    pub(super) fn emit(structure: Option<Self>, out: &mut Vec<u8>) {
        match structure {
            None => out.push(0),
            Some(SidStructure { block, node, function, argument }) => {
                out.extend([6, SUB_SID_STRUCTURE, 4, block, node, function, argument]);
            }
        }
    }
}
