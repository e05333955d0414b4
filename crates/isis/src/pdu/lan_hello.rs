//! Hello of a LAN (ISO 10589 sections 9.5 and 9.6), one for each level.
//!
//! ```text
//! | common header 8 | circuit type 1 | Source ID 6 | Holding Time 2 | PDU length 2 | Priority 1 | LAN ID 7 | TLVs … |
//! ```

use super::hello::{addresses, areas_of, level_bits, levels_of, put_addresses};
use super::{Level, Pdu, PduKind, begin, finish, put_areas};
use crate::id::{NodeId, SystemId};
use crate::reader::Malformed;
use crate::tlv::{NLPID_IPV6, Topologies, kind, lan_neighbours, put};
use srdma_wire::MacAddress;
use std::net::Ipv6Addr;

/// A hello's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanHello {
    /// The levels of the circuit.
    pub levels: Vec<Level>,
    /// The sender.
    pub source: SystemId,
    /// Holding time, in seconds.
    pub holding_time_s: u16,
    /// The sender's priority in the election, 7 bits.
    pub priority: u8,
    /// The LAN's pseudonode, as the sender knows it; zero before an election.
    pub lan_id: NodeId,
    /// The areas that the sender is in.
    pub areas: Vec<Vec<u8>>,
    /// The sender's addresses on the link.
    pub addresses: Vec<Ipv6Addr>,
    /// The addresses from which the sender receives hellos of the level.
    pub heard: Vec<MacAddress>,
    /// The topologies of the sender's interface.
    pub topologies: Topologies,
}

/// The highest priority.
pub const GREATEST_PRIORITY: u8 = 127;

impl LanHello {
    /// The fields of a PDU that is a hello of a LAN.
    ///
    /// # Errors
    ///
    /// A TLV whose value has no sound length.
    pub fn parse(pdu: &Pdu<'_>) -> Result<Self, Malformed> {
        let mut fields = pdu.fields();
        let levels = levels_of(fields.u8()?);
        let (source, holding_time_s) = (fields.system()?, fields.u16()?);
        let _length = fields.u16()?;
        let (priority, lan_id) = (fields.u8()? & GREATEST_PRIORITY, fields.node()?);
        let tlvs = pdu.tlvs();
        Ok(LanHello {
            levels,
            source,
            holding_time_s,
            priority,
            lan_id,
            areas: areas_of(tlvs),
            addresses: addresses(tlvs),
            heard: lan_neighbours::parse(tlvs)?,
            topologies: Topologies::parse(tlvs)?,
        })
    }

    /// The whole PDU. TLVs of `authentication` are first.
    pub fn emit(&self, level: Level, authentication: &[u8]) -> Vec<u8> {
        let mut out = begin(PduKind::LanHello(level));
        out.push(level_bits(&self.levels));
        out.extend(self.source.0);
        out.extend(self.holding_time_s.to_be_bytes());
        out.extend([0, 0, self.priority.min(GREATEST_PRIORITY)]);
        out.extend(self.lan_id.octets());
        out.extend(authentication);
        put(&mut out, kind::PROTOCOLS_SUPPORTED, &[NLPID_IPV6]);
        put_areas(&self.areas, &mut out);
        self.topologies.emit(&mut out);
        lan_neighbours::emit(&self.heard, &mut out);
        put_addresses(&self.addresses, &mut out);
        finish(PduKind::LanHello(level), &mut out);
        out
    }
}
