//! E-Router-LSA (RFC 8362 section 4.1): the links again, with the SIDs of packets that are to take them (RFC 9513
//! section 9).
//!
//! ```text
//! | flags 1 | Options 3 | TLVs … |
//!
//! TLV 1: | Type 1 | 0 1 | Metric 2 | Interface ID 4 | Neighbor Interface ID 4 | Neighbor Router ID 4 | sub-TLVs … |
//! ```

use super::router::RouterLinkKind;
use crate::id::RouterId;
use crate::packet::with_options;
use crate::srv6::{parse_end_x, put_end_x};
use crate::tlv::{put, tlvs};
use srdma_isis::reader::{Malformed, Reader};
use srdma_isis::tlv::EndXSid;

const ROUTER_LINK: u16 = 1;

/// A link of a router.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterLink {
    pub kind: RouterLinkKind,
    pub metric: u16,
    /// The router's number of the circuit.
    pub interface: u32,
    /// The neighbour's; of a LAN that of its designated router.
    pub neighbour_interface: u32,
    pub neighbour: RouterId,
    /// SIDs of packets that are to take it; none in a Router-LSA.
    pub end_x: Vec<EndXSid>,
}

impl RouterLink {
    /// Reads a link; `None` if its type is unknown.
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let [kind, _] = reader.array()?;
        let (metric, interface, neighbour_interface) = (reader.u16()?, reader.u32()?, reader.u32()?);
        let neighbour = RouterId(reader.u32()?);
        let link = |kind| RouterLink { kind, metric, interface, neighbour_interface, neighbour, end_x: Vec::new() };
        Ok(RouterLinkKind::of(kind).map(link))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.kind as u8, 0]);
        out.extend(self.metric.to_be_bytes());
        out.extend(self.interface.to_be_bytes());
        out.extend(self.neighbour_interface.to_be_bytes());
        out.extend(self.neighbour.0.to_be_bytes());
    }
}

/// The body of an E-Router-LSA.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedRouter {
    pub flags: u8,
    pub options: u32,
    pub links: Vec<RouterLink>,
}

impl ExtendedRouter {
    /// Links of unknown types are left out, and so are SIDs that are malformed.
    ///
    /// # Errors
    ///
    /// A TLV that overruns the body, or one too short for a link.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an E-Router-LSA", body);
        let (flags, options) = (reader.u8()?, reader.u24()?);
        let mut links = Vec::new();
        for tlv in tlvs("an E-Router-LSA", reader.rest()) {
            let (kind, value) = tlv?;
            if kind != ROUTER_LINK {
                continue;
            }
            let mut reader = Reader::new("a Router-Link TLV", value);
            let Some(mut link) = RouterLink::parse(&mut reader)? else { continue };
            for sub_tlv in tlvs("a Router-Link TLV", reader.rest()) {
                let (kind, value) = sub_tlv?;
                link.end_x.extend(parse_end_x(kind, value).ok().flatten());
            }
            links.push(link);
        }
        Ok(ExtendedRouter { flags, options, links })
    }

    /// Its octets.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = with_options(self.flags, self.options).to_vec();
        for link in &self.links {
            let mut value = Vec::new();
            link.emit(&mut value);
            link.end_x.iter().for_each(|sid| put_end_x(sid, &mut value));
            put(&mut out, ROUTER_LINK, &value);
        }
        out
    }
}
