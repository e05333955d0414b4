//! Packets (RFC 5340 appendix A.3): the header that all have in common, and their bodies.
//!
//! ```text
//! | Version 1 | Type 1 | Packet length 2 | Router ID 4 | Area ID 4 | Checksum 2 | Instance ID 1 | 0 1 | body … |
//!
//! 1 Hello:           | Interface ID 4 | Priority 1 | Options 3 | HelloInterval 2 | RouterDeadInterval 2 |
//!                    | Designated Router 4 | Backup 4 | Neighbor ID 4 … |
//! 2 Description:     | 0 1 | Options 3 | Interface MTU 2 | 0 1 | 0 I M MS 1 | sequence number 4 | LSA headers … |
//! 3 Request:         | 0 2 | LS Type 2 | Link State ID 4 | Advertising Router 4 | …
//! 4 Update:          | number of LSAs 4 | LSAs … |
//! 5 Acknowledgment:  | LSA headers … |
//! ```

mod body;

pub use body::{Body, Description, Hello};
pub(crate) use body::{DESCRIPTION_LEN, REQUEST_LEN, UPDATE_LEN, with_options};

use crate::id::RouterId;
use srdma_isis::reader::{Malformed, Reader};
use srdma_wire::checksum::Sum;
use srdma_wire::ipv6::NextHeader;
use std::net::Ipv6Addr;

/// The protocol's number in IPv6 headers.
pub const PROTOCOL: u8 = 89;
/// AllSPFRouters, to which packets on point-to-point circuits are sent.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 5);
/// Octets of the header.
pub const HEADER_LEN: usize = 1 + 1 + 2 + 4 + 4 + 2 + 1 + 1;

const VERSION: u8 = 3;
const CHECKSUM_AT: usize = 12;

/// Options (RFC 5340 section A.2).
pub mod options {
    /// The router is to be in IPv6 paths.
    pub const V6: u32 = 0x01;
    /// AS-external LSAs are flooded: this is no stub area.
    pub const E: u32 = 0x02;
    /// This is a not-so-stubby area.
    pub const N: u32 = 0x08;
    /// Paths may lead through the router.
    pub const R: u32 = 0x10;
    /// An authentication trailer follows the packet (RFC 7166).
    pub const AT: u32 = 0x0400;
}

/// A packet.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub router: RouterId,
    pub area: u32,
    pub instance: u8,
    pub body: Body,
}

/// The reason why octets are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPacket {
    /// Another version than 3.
    #[error("version {0}: expected 3")]
    Version(u8),
    /// Another type than 1 to 5.
    #[error("type {0}: expected 1 to 5")]
    Type(u8),
    /// The checksum over pseudo-header and packet is wrong.
    #[error("wrong checksum")]
    Checksum,
    /// A length is wrong.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Packet {
    /// Reads a packet between two addresses. Octets behind its own length, such as a data block of RFC 5613, are
    /// ignored.
    ///
    /// # Errors
    ///
    /// As [`NoPacket`] has them.
    pub fn parse(octets: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self, NoPacket> {
        let mut reader = Reader::new("a header of OSPFv3", octets);
        let [version, kind] = reader.array()?;
        if version != VERSION {
            return Err(NoPacket::Version(version));
        }
        let length = usize::from(reader.u16()?);
        let octets = Reader::new("a packet of OSPFv3", octets).take(length)?;
        let (router, area) = (RouterId(reader.u32()?), reader.u32()?);
        let [_, _, instance, _] = reader.array()?;
        if checksum(octets, source, destination) != 0 {
            return Err(NoPacket::Checksum);
        }
        let body = octets.get(HEADER_LEN..).unwrap_or_default();
        let body = Body::parse(kind, body)?;
        Ok(Packet { router, area, instance, body })
    }

    /// The octets of the packet between two addresses.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let mut octets = vec![VERSION, self.body.kind(), 0, 0];
        octets.extend(self.router.0.to_be_bytes());
        octets.extend(self.area.to_be_bytes());
        octets.extend([0, 0, self.instance, 0]);
        self.body.emit(&mut octets);
        // Bodies are built to fit.
        let [high, low] = u16::try_from(octets.len()).unwrap_or(u16::MAX).to_be_bytes();
        put(&mut octets, 2, [high, low]);
        let sum = checksum(&octets, source, destination);
        put(&mut octets, CHECKSUM_AT, sum.to_be_bytes());
        octets
    }
}

/// The checksum of octets (RFC 8200 section 8.1); zero if their own checksum is right.
fn checksum(octets: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> u16 {
    let (source, destination) = (source.octets(), destination.octets());
    let mut sum = Sum::pseudo_header(&source, &destination, octets.len() as u32, NextHeader(PROTOCOL));
    sum.add(octets);
    sum.checksum()
}

/// Writes two octets over those at `at`.
fn put(octets: &mut [u8], at: usize, value: [u8; 2]) {
    if let Some(place) = octets.get_mut(at..at + 2) {
        place.copy_from_slice(&value);
    }
}
