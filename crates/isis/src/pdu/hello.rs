//! Hello of a point-to-point circuit (ISO 10589 section 9.7).
//!
//! ```text
//! | common header 8 | circuit type 1 | Source ID 6 | Holding Time 2 | PDU length 2 | Local Circuit ID 1 | TLVs … |
//! ```

use super::{Level, Pdu, PduKind, begin, finish};
use crate::id::SystemId;
use crate::reader::Malformed;
use crate::tlv::{NLPID_IPV6, ThreeWay, Tlvs, Topologies, kind, put};
use std::net::Ipv6Addr;

/// A hello's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The levels of the circuit.
    pub levels: Vec<Level>,
    /// The sender.
    pub source: SystemId,
    /// Holding time, in seconds.
    pub holding_time_s: u16,
    /// The sender's number for the circuit.
    pub circuit: u8,
    /// The areas that the sender is in.
    pub areas: Vec<Vec<u8>>,
    /// The sender's addresses on the link.
    pub addresses: Vec<Ipv6Addr>,
    /// The sender's three-way state; `None` without three-way handshake.
    pub three_way: Option<ThreeWay>,
    /// The topologies of the sender's interface.
    pub topologies: Topologies,
}

impl Hello {
    /// The fields of a PDU that is a hello.
    ///
    /// # Errors
    ///
    /// A TLV whose value has no sound length.
    pub fn parse(pdu: &Pdu<'_>) -> Result<Self, Malformed> {
        let mut fields = pdu.fields();
        let levels = levels_of(fields.u8()?);
        let (source, holding_time_s) = (fields.system()?, fields.u16()?);
        let _length = fields.u16()?;
        let circuit = fields.u8()?;
        let tlvs = pdu.tlvs();
        Ok(Hello {
            levels,
            source,
            holding_time_s,
            circuit,
            areas: areas_of(tlvs),
            addresses: addresses(tlvs),
            three_way: tlvs.of_kind(kind::THREE_WAY_ADJACENCY).next().map(ThreeWay::parse).transpose()?,
            topologies: Topologies::parse(tlvs)?,
        })
    }

    /// The whole PDU. TLVs of `authentication` are first.
    pub fn emit(&self, authentication: &[u8]) -> Vec<u8> {
        let mut out = begin(PduKind::Hello);
        out.push(level_bits(&self.levels));
        out.extend(self.source.0);
        out.extend(self.holding_time_s.to_be_bytes());
        out.extend([0, 0, self.circuit]);
        out.extend(authentication);
        put_areas(&self.areas, &mut out);
        put(&mut out, kind::PROTOCOLS_SUPPORTED, &[NLPID_IPV6]);
        self.topologies.emit(&mut out);
        put_addresses(&self.addresses, &mut out);
        if let Some(three_way) = &self.three_way {
            three_way.emit(&mut out);
        }
        finish(PduKind::Hello, &mut out);
        out
    }
}

/// The levels of a circuit type.
pub(super) fn levels_of(bits: u8) -> Vec<Level> {
    let levels = [(1, Level::One), (2, Level::Two)].into_iter();
    levels.filter(|(bit, _)| bits & bit != 0).map(|(_, level)| level).collect()
}

/// The circuit type of levels.
pub(super) fn level_bits(levels: &[Level]) -> u8 {
    let bit = |level: &Level| match level {
        Level::One => 1,
        Level::Two => 2,
    };
    levels.iter().map(bit).fold(0, |bits: u8, bit: u8| bits | bit)
}

/// The sender's addresses on the link.
pub(super) fn addresses(tlvs: Tlvs<'_>) -> Vec<Ipv6Addr> {
    let values = tlvs.of_kind(kind::IPV6_INTERFACE_ADDRESSES);
    values.flat_map(|value| value.as_chunks().0).map(|octets| Ipv6Addr::from(*octets)).collect()
}

/// Appends addresses, as many as a TLV holds.
pub(super) fn put_addresses(addresses: &[Ipv6Addr], out: &mut Vec<u8>) {
    if !addresses.is_empty() {
        let octets: Vec<u8> = addresses.iter().take(15).flat_map(|address| address.octets()).collect();
        put(out, kind::IPV6_INTERFACE_ADDRESSES, &octets);
    }
}

/// The area addresses of a hello.
pub(crate) fn areas_of(tlvs: Tlvs<'_>) -> Vec<Vec<u8>> {
    tlvs.of_kind(kind::AREA_ADDRESSES).flat_map(areas).collect()
}

/// The area addresses of a TLV's value, each with its length in front.
fn areas(value: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = value;
    let mut areas = Vec::new();
    while let Some((length, behind)) = rest.split_first() {
        let Some((area, behind)) = behind.split_at_checked(usize::from(*length)) else { break };
        areas.push(area.to_vec());
        rest = behind;
    }
    areas
}

/// Appends area addresses; of those that a system has, three at most (ISO 10589 section 7.1.5).
pub(crate) fn put_areas(areas: &[Vec<u8>], out: &mut Vec<u8>) {
    let value: Vec<u8> =
        areas.iter().take(3).flat_map(|area| std::iter::once(area.len() as u8).chain(area.iter().copied())).collect();
    put(out, kind::AREA_ADDRESSES, &value);
}
