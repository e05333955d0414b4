//! The TLVs of SRv6 (RFC 9513; CN-5.2-1), of which the draft leaves open: the C-flag beside the O-flag of SRv6
//! Capabilities, and END.C and END.E as End SIDs of a locator.
//!
//! ```text
//! | Type 2 | Length 2 | Value, filled up to whole words |            a TLV, a sub-TLV
//!
//! TLV 20:     | Flags 2 | reserved 2 | sub-TLVs … |                 0 O C …: O = 0x4000, C = 0x2000
//! TLV 1:      | Route Type 1 | Algorithm 1 | length in bits 1 | PrefixOptions 1 | Metric 4 |
//!             | locator, filled up to whole words | sub-TLVs … |
//! sub-TLV 1:  | Flags 1 | reserved 1 | Endpoint Behavior 2 | SID 16 | sub-TLVs … |
//! sub-TLV 10: | Block 1 | Node 1 | Function 1 | Argument 1 |        lengths in bits
//!
//! In an E-Router-LSA (RFC 8362):
//! sub-TLV 31: | Endpoint Behavior 2 | Flags 1 | reserved 1 | Algorithm 1 | Weight 1 | reserved 2 | SID 16 |
//!             | sub-TLVs … |
//! sub-TLV 30: | Block 1 | Node 1 | Function 1 | Argument 1 |
//! ```

use crate::tlv::{put, tlvs};
use srdma_isis::reader::{Malformed, Reader};
use srdma_isis::tlv::{CapabilityFlags, EndSid, EndXSid, SidStructure, prefix_of};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// SRv6 Capabilities, among the TLVs of a Router Information LSA (RFC 9513 section 2).
pub const SRV6_CAPABILITIES: u16 = 20;
/// SRv6 Locator, among the TLVs of an SRv6 Locator LSA (RFC 9513 section 7.1).
pub const SRV6_LOCATOR: u16 = 1;

const SUB_END_SID: u16 = 1;
const SUB_SID_STRUCTURE: u16 = 10;
/// SRv6 End.X SID, and SRv6 SID Structure below it, among the sub-TLVs of Extended LSAs (RFC 9513 section 13).
const SUB_END_X_SID: u16 = 31;
const SUB_END_X_SID_STRUCTURE: u16 = 30;
/// The metric of what cannot be reached (RFC 9513 section 7.1).
pub const UNREACHABLE: u32 = u32::MAX;
const WORD: usize = 4;

/// Type of a locator's route (RFC 9513 section 7.1).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteType {
    IntraArea = 1,
    /// In another area.
    InterArea,
    /// Outside, metric of type 1.
    External1,
    /// Outside, metric of type 2.
    External2,
    /// Outside a not-so-stubby area, metric of type 1.
    Nssa1,
    /// Outside a not-so-stubby area, metric of type 2.
    Nssa2,
}

impl RouteType {
    const ALL: [RouteType; 6] = {
        use RouteType::{External1, External2, InterArea, IntraArea, Nssa1, Nssa2};
        [IntraArea, InterArea, External1, External2, Nssa1, Nssa2]
    };

    fn of(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// A locator and the SIDs below it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locator {
    pub route_type: RouteType,
    /// The algorithm of its paths; 0 for shortest ones.
    pub algorithm: u8,
    /// PrefixOptions (RFC 5340 section A.4.1.1; RFC 9513 section 6).
    pub options: u8,
    /// Its metric; all ones: it is not reachable.
    pub metric: u32,
    pub prefix: Prefix,
    pub sids: Vec<EndSid>,
}

/// The flags of the first SRv6 Capabilities TLV of a Router Information LSA's body; `None` for a router without SRv6.
///
/// # Errors
///
/// A TLV that overruns the body, or one too short for its flags.
pub fn parse_capabilities(body: &[u8]) -> Result<Option<CapabilityFlags>, Malformed> {
    for tlv in tlvs("a Router Information LSA", body) {
        let (kind, value) = tlv?;
        if kind == SRV6_CAPABILITIES {
            return Reader::new("SRv6 capabilities", value).u16().map(|flags| Some(CapabilityFlags(flags)));
        }
    }
    Ok(None)
}

/// Appends an SRv6 Capabilities TLV.
pub fn put_capabilities(flags: CapabilityFlags, out: &mut Vec<u8>) {
    let [high, low] = flags.0.to_be_bytes();
    put(out, SRV6_CAPABILITIES, &[high, low, 0, 0]);
}

impl Locator {
    /// The locators of an SRv6 Locator LSA's body. Those of unknown route types are left out, as are SIDs that are not
    /// in their locator, and SIDs whose structure is wrong or repeated (RFC 9513 sections 7.1, 8, 10).
    ///
    /// # Errors
    ///
    /// A TLV that overruns the body, or a locator that overruns its TLV or is longer than 128 bits.
    pub fn parse_all(body: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut locators = Vec::new();
        for tlv in tlvs("an SRv6 Locator LSA", body) {
            let (kind, value) = tlv?;
            if kind == SRV6_LOCATOR {
                locators.extend(Self::parse(value)?);
            }
        }
        Ok(locators)
    }

    fn parse(value: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new("an SRv6 locator", value);
        let [route_type, algorithm, bits, options] = reader.array()?;
        let metric = reader.u32()?;
        let prefix = prefix_of(bits, reader.take(octets_of_words(bits))?)?;
        let mut sids = Vec::new();
        for tlv in tlvs("an SRv6 locator", reader.rest()) {
            let (kind, value) = tlv?;
            if kind == SUB_END_SID {
                sids.extend(parse_sid(value).ok().filter(|sid| prefix.contains(sid.sid)));
            }
        }
        let route_type = RouteType::of(route_type);
        Ok(route_type.map(|route_type| Locator { route_type, algorithm, options, metric, prefix, sids }))
    }

    /// Appends the SRv6 Locator TLV.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let bits = self.prefix.prefix_len();
        let mut value = vec![self.route_type as u8, self.algorithm, bits, self.options];
        value.extend(self.metric.to_be_bytes());
        value.extend(self.prefix.address().octets().iter().take(octets_of_words(bits)));
        for sid in &self.sids {
            put_sid(sid, &mut value);
        }
        put(out, SRV6_LOCATOR, &value);
    }
}

fn parse_sid(value: &[u8]) -> Result<EndSid, Malformed> {
    let mut reader = Reader::new("an SRv6 End SID", value);
    let [_flags, _reserved] = reader.array()?;
    let (behavior, sid) = (reader.u16()?, Ipv6Addr::from(reader.array::<16>()?));
    let structure = structure_of(&reader, SUB_SID_STRUCTURE)?;
    Ok(EndSid { behavior, sid, structure })
}

/// The structure among the sub-TLVs of a SID.
fn structure_of(reader: &Reader<'_>, wanted: u16) -> Result<Option<SidStructure>, Malformed> {
    let mut structure = None;
    for tlv in tlvs("an SRv6 SID", reader.rest()) {
        let (kind, value) = tlv?;
        if kind == wanted && structure.replace(SidStructure::parse(value)?).is_some() {
            return Err(Malformed::Value { field: "a SID's structures", found: 2, expected: "at most one" });
        }
    }
    Ok(structure)
}

/// Reads the value of an End.X SID sub-TLV.
///
/// # Errors
///
/// A value too short for its fields, or a structure that is wrong or repeated.
pub(crate) fn parse_end_x(kind: u16, value: &[u8]) -> Result<Option<EndXSid>, Malformed> {
    if kind != SUB_END_X_SID {
        return Ok(None);
    }
    let mut reader = Reader::new("an SRv6 End.X SID", value);
    let behavior = reader.u16()?;
    let [flags, _reserved, algorithm, weight, _, _] = reader.array()?;
    let sid = Ipv6Addr::from(reader.array::<16>()?);
    let structure = structure_of(&reader, SUB_END_X_SID_STRUCTURE)?;
    Ok(Some(EndXSid { neighbour: None, flags, algorithm, weight, behavior, sid, structure }))
}

/// Appends an End.X SID sub-TLV.
pub(crate) fn put_end_x(sid: &EndXSid, out: &mut Vec<u8>) {
    let mut value = sid.behavior.to_be_bytes().to_vec();
    value.extend([sid.flags, 0, sid.algorithm, sid.weight, 0, 0]);
    value.extend(sid.sid.octets());
    put_structure(sid.structure, SUB_END_X_SID_STRUCTURE, &mut value);
    put(out, SUB_END_X_SID, &value);
}

fn put_structure(structure: Option<SidStructure>, kind: u16, out: &mut Vec<u8>) {
    if let Some(SidStructure { block, node, function, argument }) = structure {
        put(out, kind, &[block, node, function, argument]);
    }
}

fn put_sid(sid: &EndSid, out: &mut Vec<u8>) {
    let mut value = vec![0, 0];
    value.extend(sid.behavior.to_be_bytes());
    value.extend(sid.sid.octets());
    put_structure(sid.structure, SUB_SID_STRUCTURE, &mut value);
    put(out, SUB_END_SID, &value);
}

/// Octets of the fewest words that hold so many bits (RFC 5340 section A.4.1).
pub(crate) fn octets_of_words(bits: u8) -> usize {
    usize::from(bits).div_ceil(8 * WORD) * WORD
}
