//! Router-LSA and Network-LSA: the graph (RFC 5340 sections A.4.3 and A.4.4).
//!
//! ```text
//! Router:  | flags 1 | Options 3 | links … |
//! link:    | Type 1 | 0 1 | Metric 2 | Interface ID 4 | Neighbor Interface ID 4 | Neighbor Router ID 4 |
//! Network: | 0 1 | Options 3 | Attached Router 4 … |
//! ```

use super::extended::RouterLink;
use crate::id::RouterId;
use crate::packet::with_options;
use srdma_isis::reader::{Malformed, Reader};

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterLinkKind {
    /// Another router.
    PointToPoint = 1,
    /// A LAN, named by its designated router.
    Transit = 2,
    /// A virtual link, which belongs to other areas.
    Virtual = 4,
}

impl RouterLinkKind {
    pub(super) fn of(octet: u8) -> Option<Self> {
        use RouterLinkKind::{PointToPoint, Transit, Virtual};
        [PointToPoint, Transit, Virtual].into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// The body of a Router-LSA.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterBody {
    pub flags: u8,
    pub options: u32,
    pub links: Vec<RouterLink>,
}

impl RouterBody {
    /// Links of unknown types are left out.
    ///
    /// # Errors
    ///
    /// A length in the middle of a link.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a Router-LSA", body);
        let (flags, options) = (reader.u8()?, reader.u24()?);
        let mut links = Vec::new();
        while !reader.is_empty() {
            links.extend(RouterLink::parse(&mut reader)?);
        }
        Ok(RouterBody { flags, options, links })
    }

    /// Its octets, without the SIDs of links.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = with_options(self.flags, self.options).to_vec();
        self.links.iter().for_each(|link| link.emit(&mut out));
        out
    }
}

/// The body of a Network-LSA: the routers of a LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkMembers(pub Vec<RouterId>);

impl NetworkMembers {
    /// # Errors
    ///
    /// A length in the middle of an id.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a Network-LSA", body);
        reader.u32()?;
        let mut members = Vec::new();
        while !reader.is_empty() {
            members.push(RouterId(reader.u32()?));
        }
        Ok(NetworkMembers(members))
    }
}
