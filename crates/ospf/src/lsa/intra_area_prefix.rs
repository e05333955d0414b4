//! Intra-Area-Prefix-LSA: the prefixes of a router or of a LAN (RFC 5340 section A.4.10).
//!
//! ```text
//! | number of prefixes 2 | Referenced LS Type 2 | Referenced Link State ID 4 | Referenced Advertising Router 4 |
//! | length in bits 1 | PrefixOptions 1 | Metric 2 | prefix, filled up to whole words | …
//! ```

use super::header::{LsType, LsaKey};
use crate::id::RouterId;
use crate::srv6::octets_of_words;
use srdma_isis::reader::{Malformed, Reader};
use srdma_isis::tlv::prefix_of;
use srdma_wire::Prefix;

/// PrefixOptions (RFC 5340 section A.4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixOptions(pub u8);

impl PrefixOptions {
    /// NU: not to be in paths.
    pub const NO_UNICAST: PrefixOptions = PrefixOptions(0x01);
    /// LA: an address of the router.
    pub const LOCAL_ADDRESS: PrefixOptions = PrefixOptions(0x02);

    /// Whether all of these are set.
    pub const fn contains(self, other: PrefixOptions) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A prefix.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixEntry {
    pub prefix: Prefix,
    pub options: PrefixOptions,
    pub metric: u16,
}

/// The body of an Intra-Area-Prefix-LSA.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntraAreaPrefix {
    /// The router or the LAN behind which the prefixes are.
    pub referenced: LsaKey,
    pub prefixes: Vec<PrefixEntry>,
}

impl IntraAreaPrefix {
    /// # Errors
    ///
    /// Fewer octets than its prefixes take, or one longer than 128 bits.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an Intra-Area-Prefix-LSA", body);
        let (count, kind) = (reader.u16()?, LsType(reader.u16()?));
        let referenced = LsaKey { kind, id: reader.u32()?, router: RouterId(reader.u32()?) };
        let mut prefixes = Vec::new();
        for _ in 0..count {
            let [bits, options] = reader.array()?;
            let metric = reader.u16()?;
            let prefix = prefix_of(bits, reader.take(octets_of_words(bits))?)?;
            prefixes.push(PrefixEntry { prefix, options: PrefixOptions(options), metric });
        }
        Ok(IntraAreaPrefix { referenced, prefixes })
    }

    /// Its octets.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = (self.prefixes.len() as u16).to_be_bytes().to_vec();
        out.extend(self.referenced.kind.0.to_be_bytes());
        out.extend(self.referenced.id.to_be_bytes());
        out.extend(self.referenced.router.0.to_be_bytes());
        for PrefixEntry { prefix, options, metric } in &self.prefixes {
            let bits = prefix.prefix_len();
            out.extend([bits, options.0]);
            out.extend(metric.to_be_bytes());
            out.extend(prefix.address().octets().iter().take(octets_of_words(bits)));
        }
        out
    }
}
