//! LSAs (RFC 5340 appendix A.4): the header that all have in common, and one file for each kind of body.
//!
//! ```text
//! | LS Age 2 | LS Type 2 | Link State ID 4 | Advertising Router 4 | Sequence Number 4 |
//! | Checksum 2 | Length 2 | body … |
//!
//! LS Type: | U 1 | S2 S1 2 | function code 13 |                   in bits; S: link, area, AS, reserved
//! ```

mod extended;
mod header;
mod information;
mod intra_area_prefix;
mod link;
mod router;

pub use extended::{ExtendedRouter, RouterLink};
pub use header::{LSA_HEADER_LEN, LsType, LsaHeader, LsaKey, MAX_AGE_S, Scope};
pub use information::Information;
pub use intra_area_prefix::{IntraAreaPrefix, PrefixEntry, PrefixOptions};
pub use link::Link;
pub use router::{NetworkMembers, RouterBody, RouterLinkKind};

use header::{AGE_LEN, CHECKSUM_AT};
use srdma_isis::checksum::fletcher;
use srdma_isis::reader::{Malformed, Reader};

/// An LSA, octet for octet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lsa {
    header: LsaHeader,
    octets: Vec<u8>,
}

impl Lsa {
    /// An LSA of this router. Length and checksum of the header are filled in. `None` if the body is too long.
    pub fn new(header: LsaHeader, body: &[u8]) -> Option<Self> {
        let length = u16::try_from(LSA_HEADER_LEN + body.len()).ok()?;
        let header = LsaHeader { length, checksum: 0, ..header };
        let mut octets = Vec::with_capacity(usize::from(length));
        header.emit(&mut octets);
        octets.extend(body);
        let checksum = fletcher(octets.get(AGE_LEN..)?, CHECKSUM_AT - AGE_LEN);
        octets.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2)?.copy_from_slice(&checksum.to_be_bytes());
        Some(Lsa { header: LsaHeader { checksum, ..header }, octets })
    }

    /// Reads one LSA, by its own length.
    ///
    /// # Errors
    ///
    /// Fewer octets than a header, or than its length says; a length that is shorter than a header.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let header = LsaHeader::parse(&mut reader.clone())?;
        if usize::from(header.length) < LSA_HEADER_LEN {
            let expected = "20 or more";
            return Err(Malformed::Value { field: "the length of an LSA", found: header.length.into(), expected });
        }
        let octets = reader.take(usize::from(header.length))?.to_vec();
        Ok(Lsa { header, octets })
    }

    /// Its header.
    pub fn header(&self) -> LsaHeader {
        self.header
    }

    /// What identifies it, but for its age.
    pub fn key(&self) -> LsaKey {
        self.header.key()
    }

    /// All octets.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The octets behind the header.
    pub fn body(&self) -> &[u8] {
        self.octets.get(LSA_HEADER_LEN..).unwrap_or_default()
    }

    /// Whether its checksum is right. Zero as an octet stands for 255, and as a whole for no checksum, which an LSA
    /// must have (RFC 2328 section 12.1.7).
    pub fn has_right_checksum(&self) -> bool {
        let one = |octet: u8| if octet == 0 { 255 } else { octet };
        let expected = self.octets.get(AGE_LEN..).map(|covered| fletcher(covered, CHECKSUM_AT - AGE_LEN));
        let found = u16::from_be_bytes(self.header.checksum.to_be_bytes().map(one));
        self.header.checksum != 0 && expected == Some(found)
    }

    /// The same at another age, in seconds.
    #[must_use]
    pub fn at_age(&self, age_s: u16) -> Self {
        let mut lsa = self.clone();
        lsa.header.age_s = age_s;
        if let Some(age) = lsa.octets.first_chunk_mut::<AGE_LEN>() {
            *age = age_s.to_be_bytes();
        }
        lsa
    }
}
