//! The UDP payload that carries a MAD (IBTA volume 1, section 9.3.3 and annex A17).
//!
//! ```text
//! | BTH 12: UD SEND Only to QP 1 | DETH 8: Q_Key 0x80010000, source QP 1 | MAD 256 | ICRC 4 |
//! ```
//!
//! Over IPv4 the ICRC covers the Identification, which a socket does not tell: a datagram that is sent has 0, one that
//! is received may have any (D292).

use crate::mad::{Mad, MadError};
use srdma_wire::bth::{Bth, BthView};
use srdma_wire::icrc::{Computation, Icrc};
use srdma_wire::ipv6::{Ipv6, NextHeader};
use srdma_wire::translation::{icrc_in_other_version, is_icrc_of_any_identification};
use srdma_wire::udp::Udp;
use srdma_wire::view::View;
use srdma_wire::{Opcode, Psn, Qpn};
use std::net::Ipv6Addr;
use thiserror::Error;
use zerocopy::IntoBytes;

/// UD SEND Only.
const UD_SEND_ONLY: Opcode = Opcode(0x64);
/// The queue pair of general services.
const GENERAL_SERVICES: Qpn = Qpn::from_octets([0, 0, 1]);
/// Its Q_Key, and that queue pair as the source.
const DETH: [u8; 8] = [0x80, 0x01, 0, 0, 0, 0, 0, 1];

/// Octets of the payload.
pub const PAYLOAD_LEN: usize = Bth::LEN + DETH.len() + Mad::LEN + Icrc::LEN;

/// Addresses and ports of a datagram; those of IPv4 are IPv4-mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The sender.
    pub source: Ipv6Addr,
    /// The receiver.
    pub destination: Ipv6Addr,
    /// UDP ports of both.
    pub ports: (u16, u16),
}

/// Why a datagram carries no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DatagramError {
    /// Another number of octets.
    #[error("a datagram with a MAD has {PAYLOAD_LEN} octets, found {0}")]
    Length(usize),
    /// To another queue pair, or of another kind.
    #[error("opcode {0:#04x} to queue pair {1:#x}, where UD SEND Only to 1 was expected")]
    NoMad(u8, u32),
    /// Another key or source than queue pairs of general services have.
    #[error("it is not from a queue pair of general services")]
    NoGeneralServices,
    /// A wrong ICRC.
    #[error("the ICRC is wrong")]
    Icrc,
    /// A MAD that is no message.
    #[error(transparent)]
    Mad(#[from] MadError),
}

impl Flow {
    fn is_ipv4(&self) -> bool {
        self.destination.to_ipv4_mapped().is_some()
    }

    /// The ICRC over everything before it.
    fn icrc(&self, covered: &[u8]) -> Option<Icrc> {
        // The ICRC covers the headers' lengths; it does not cover what a socket does not tell: traffic class, flow
        // label, hop limit and UDP checksum.
        let length = u16::try_from(Udp::LEN + covered.len() + Icrc::LEN).ok()?;
        let ipv6 = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: length,
            next_header: NextHeader::UDP,
            hop_limit: 0,
            source: self.source,
            destination: self.destination,
        };
        let udp = Udp { source_port: self.ports.0, destination_port: self.ports.1, length, checksum: 0 };
        let (bth, rest) = BthView::split(covered).ok()?;
        let mut computation = Computation::begin(&ipv6.emit(), 0, &udp.emit(), bth);
        computation.update(rest);
        let icrc = computation.finish();
        if self.is_ipv4() { icrc_in_other_version(&ipv6.emit(), length, icrc).ok() } else { Some(icrc) }
    }

    /// The message in a payload.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn parse(&self, payload: &[u8]) -> Result<Mad, DatagramError> {
        if payload.len() != PAYLOAD_LEN {
            return Err(DatagramError::Length(payload.len()));
        }
        let truncated = |_| DatagramError::Length(payload.len());
        let (bth, rest) = BthView::split(payload).map_err(truncated)?;
        if bth.opcode() != UD_SEND_ONLY
            || bth.dest_qpn() != GENERAL_SERVICES
            || bth.transport_version() != 0
            || bth.pad_count() != 0
        {
            return Err(DatagramError::NoMad(bth.opcode().0, bth.dest_qpn().get()));
        }
        let mad = rest.strip_prefix(&DETH).ok_or(DatagramError::NoGeneralServices)?;
        let (covered, icrc) = payload.split_at(PAYLOAD_LEN - Icrc::LEN);
        let computed = self.icrc(covered).ok_or(DatagramError::Icrc)?;
        let icrc = icrc.try_into().map(Icrc).map_err(|_| DatagramError::Icrc)?;
        let udp_length = (Udp::LEN + PAYLOAD_LEN) as u16;
        if computed != icrc && !(self.is_ipv4() && is_icrc_of_any_identification(udp_length, computed, icrc)) {
            return Err(DatagramError::Icrc);
        }
        Ok(Mad::parse(&mad[..Mad::LEN])?)
    }

    /// The payload that carries a message.
    pub fn emit(&self, mad: &Mad, psn: Psn) -> Vec<u8> {
        let mut payload = Vec::with_capacity(PAYLOAD_LEN);
        payload.extend_from_slice(Bth::new(UD_SEND_ONLY, GENERAL_SERVICES, psn).emit().as_bytes());
        payload.extend_from_slice(&DETH);
        payload.extend_from_slice(&mad.emit());
        let icrc = self.icrc(&payload).unwrap_or(Icrc([0; Icrc::LEN]));
        payload.extend_from_slice(&icrc.0);
        payload
    }
}
