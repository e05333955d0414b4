//! LSP entries: identifiers and sequence numbers of LSPs (ISO 10589 sections 9.10, 9.12).
//!
//! ```text
//! | Remaining Lifetime 2 | LSP ID 8 | Sequence Number 4 | Checksum 2 |
//! ```

use super::{kind, put_all};
use crate::id::LspId;
use crate::reader::{Malformed, Reader};

/// Identification of one version of an LSP.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LspEntry {
    /// Seconds that it is still valid.
    pub lifetime_s: u16,
    pub id: LspId,
    pub sequence: u32,
    pub checksum: u16,
}

impl LspEntry {
    /// Length in octets.
    pub const LEN: usize = 2 + LspId::LEN + 4 + 2;

    /// The entries of a TLV's value.
    ///
    /// # Errors
    ///
    /// A length in the middle of an entry.
    pub fn parse_all(value: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut reader = Reader::new("an LSP entry", value);
        let mut entries = Vec::with_capacity(value.len() / Self::LEN);
        while !reader.is_empty() {
            let (lifetime_s, id) = (reader.u16()?, reader.lsp_id()?);
            entries.push(LspEntry { lifetime_s, id, sequence: reader.u32()?, checksum: reader.u16()? });
        }
        Ok(entries)
    }

    /// Appends TLVs with all these entries.
    pub fn emit_all(entries: &[Self], out: &mut Vec<u8>) {
        put_all(out, kind::LSP_ENTRIES, &[], entries.iter().map(|entry| entry.octets()));
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(Self::LEN);
        octets.extend(self.lifetime_s.to_be_bytes());
        octets.extend(self.id.octets());
        octets.extend(self.sequence.to_be_bytes());
        octets.extend(self.checksum.to_be_bytes());
        octets
    }
}
