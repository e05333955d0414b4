//! Complete and Partial Sequence Numbers PDUs (ISO 10589 sections 9.10, 9.12): a system's database in a range of LSPs,
//! and what of single ones.
//!
//! ```text
//! CSNP: | common header 8 | PDU length 2 | Source ID 7 | Start LSP ID 8 | End LSP ID 8 | TLVs … |
//! PSNP: | common header 8 | PDU length 2 | Source ID 7 | TLVs … |
//! ```

use super::{Level, Pdu, PduKind, begin, finish};
use crate::id::{LspId, NodeId};
use crate::reader::Malformed;
use crate::tlv::{LspEntry, kind};

/// LSP IDs from one to another, both included.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: LspId,
    pub last: LspId,
}

/// All LSPs of a range.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The sender.
    pub source: NodeId,
    pub range: Range,
    pub entries: Vec<LspEntry>,
}

/// Some LSPs: acknowledged, or requested.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The sender.
    pub source: NodeId,
    pub entries: Vec<LspEntry>,
}

impl Complete {
    /// The fields of a PDU that is a CSNP.
    ///
    /// # Errors
    ///
    /// An entry that is cut off.
    pub fn parse(pdu: &Pdu<'_>) -> Result<Self, Malformed> {
        let mut fields = pdu.fields();
        let _length = fields.u16()?;
        let (source, first, last) = (fields.node()?, fields.lsp_id()?, fields.lsp_id()?);
        Ok(Complete { source, range: Range { first, last }, entries: entries(pdu)? })
    }

    /// The whole PDU. TLVs of `authentication` are first.
    pub fn emit(&self, level: Level, authentication: &[u8]) -> Vec<u8> {
        let kind = PduKind::Complete(level);
        let mut out = begin(kind);
        out.extend([0, 0]);
        out.extend(self.source.octets());
        out.extend(self.range.first.octets());
        out.extend(self.range.last.octets());
        out.extend(authentication);
        LspEntry::emit_all(&self.entries, &mut out);
        finish(kind, &mut out);
        out
    }
}

impl Partial {
    /// The fields of a PDU that is a PSNP.
    ///
    /// # Errors
    ///
    /// An entry that is cut off.
    pub fn parse(pdu: &Pdu<'_>) -> Result<Self, Malformed> {
        let mut fields = pdu.fields();
        let _length = fields.u16()?;
        Ok(Partial { source: fields.node()?, entries: entries(pdu)? })
    }

    /// The whole PDU. TLVs of `authentication` are first.
    pub fn emit(&self, level: Level, authentication: &[u8]) -> Vec<u8> {
        let kind = PduKind::Partial(level);
        let mut out = begin(kind);
        out.extend([0, 0]);
        out.extend(self.source.octets());
        out.extend(authentication);
        LspEntry::emit_all(&self.entries, &mut out);
        finish(kind, &mut out);
        out
    }
}

fn entries(pdu: &Pdu<'_>) -> Result<Vec<LspEntry>, Malformed> {
    let mut all = Vec::new();
    for value in pdu.tlvs().of_kind(kind::LSP_ENTRIES) {
        all.extend(LspEntry::parse_all(value)?);
    }
    Ok(all)
}
