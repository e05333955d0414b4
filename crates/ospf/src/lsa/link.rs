//! Link-LSA: a router's address on a link (RFC 5340 section A.4.9).
//!
//! ```text
//! | Priority 1 | Options 3 | Link-local Interface Address 16 | number of prefixes 4 | prefixes … |
//! ```

use crate::packet::with_options;
use srdma_isis::reader::{Malformed, Reader};
use std::net::Ipv6Addr;

/// The body of a Link-LSA, whose prefixes matter on LANs alone.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub priority: u8,
    pub options: u32,
    pub address: Ipv6Addr,
}

impl Link {
    /// # Errors
    ///
    /// Fewer octets than the fields in front of the prefixes.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a Link-LSA", body);
        let (priority, options) = (reader.u8()?, reader.u24()?);
        let address = Ipv6Addr::from(reader.array::<16>()?);
        reader.u32()?;
        Ok(Link { priority, options, address })
    }

    /// Its octets, without prefixes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = with_options(self.priority, self.options).to_vec();
        out.extend(self.address.octets());
        out.extend([0; 4]);
        out
    }
}
