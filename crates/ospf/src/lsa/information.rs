//! Router Information LSA (RFC 7770): name and capabilities of a router.
//!
//! ```text
//! TLV 7:  | name … |                     RFC 5642
//! TLV 8:  | Algorithm 1 | … |            RFC 8665 section 3.1
//! TLV 20: | Flags 2 | reserved 2 | … |   RFC 9513 section 2
//! ```

use crate::srv6::{parse_capabilities, put_capabilities};
use crate::tlv::{put, tlvs};
use srdma_isis::reader::Malformed;
use srdma_isis::tlv::CapabilityFlags;

const HOSTNAME: u16 = 7;
const SR_ALGORITHM: u16 = 8;

/// What a router says about itself.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Information {
    pub hostname: Option<String>,
    /// Its algorithms of paths; 0 for shortest ones.
    pub algorithms: Vec<u8>,
    pub srv6: Option<CapabilityFlags>,
}

impl Information {
    /// Unknown TLVs are ignored.
    ///
    /// # Errors
    ///
    /// A TLV that overruns the body, or one too short for its fields.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut information = Information { srv6: parse_capabilities(body)?, ..Information::default() };
        for tlv in tlvs("a Router Information LSA", body) {
            match tlv? {
                (HOSTNAME, name) => information.hostname = Some(String::from_utf8_lossy(name).into_owned()),
                (SR_ALGORITHM, algorithms) => information.algorithms = algorithms.to_vec(),
                _ => {}
            }
        }
        Ok(information)
    }

    /// Its octets. A name is cut off behind 255 octets.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(name) = self.hostname.as_ref().map(String::as_bytes).filter(|name| !name.is_empty()) {
            put(&mut out, HOSTNAME, name.get(..name.len().min(255)).unwrap_or_default());
        }
        if !self.algorithms.is_empty() {
            put(&mut out, SR_ALGORITHM, &self.algorithms);
        }
        if let Some(flags) = self.srv6 {
            put_capabilities(flags, &mut out);
        }
        out
    }
}
