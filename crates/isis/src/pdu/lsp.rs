//! Link State PDU (ISO 10589 section 9.9). Its octets are kept as they came, and flooded as they came.
//!
//! ```text
//! | common header 8 | PDU length 2 | Remaining Lifetime 2 | LSP ID 8 | Sequence Number 4 | Checksum 2 | flags 1 | …
//! ```

use super::{HEADER_LEN, Level, Pdu, PduKind, begin, finish};
use crate::authentication::Key;
use crate::checksum::fletcher;
use crate::id::LspId;
use crate::reader::Malformed;
use crate::tlv::{LspEntry, PurgeOriginator, Tlvs, kind};

/// The longest LSP that is flooded everywhere (ReceiveLSPBufferSize).
pub const GREATEST_LSP: usize = 1492;

const LIFETIME_AT: usize = HEADER_LEN + 2;
/// The checksum covers everything from here on.
const ID_AT: usize = LIFETIME_AT + 2;
const CHECKSUM_AT: usize = ID_AT + LspId::LEN + 4;

/// The octet behind the checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LspFlags {
    /// ATT: the system leads out of its area.
    pub is_attached: bool,
    /// LSPDBOL: paths must not lead through the system.
    pub is_overloaded: bool,
    /// The system works at level 2.
    pub is_level_2: bool,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lsp {
    pub level: Level,
    /// Its id, sequence number, checksum and remaining lifetime.
    pub entry: LspEntry,
    pub flags: LspFlags,
    octets: Vec<u8>,
}

impl Lsp {
    /// The LSP of a PDU, whose checksum is valid. One with a lifetime of zero is a purge: its checksum is not checked.
    ///
    /// # Errors
    ///
    /// A wrong checksum, or one of zero where the LSP is valid (RFC 3719 section 7).
    pub fn parse(pdu: &Pdu<'_>, level: Level) -> Result<Self, Malformed> {
        let mut fields = pdu.fields();
        let _length = fields.u16()?;
        let (lifetime_s, id) = (fields.u16()?, fields.lsp_id()?);
        let (sequence, checksum, flags) = (fields.u32()?, fields.u16()?, fields.u8()?);
        let expected = pdu.octets.get(ID_AT..).map(|octets| fletcher(octets, CHECKSUM_AT - ID_AT));
        if lifetime_s != 0 && expected != Some(checksum) {
            let found = u32::from(checksum);
            return Err(Malformed::Value { field: "the checksum", found, expected: "that of the octets" });
        }
        let flags = LspFlags {
            is_attached: flags & 0x78 != 0,
            is_overloaded: flags & 0x04 != 0,
            is_level_2: flags & 0x02 != 0,
        };
        let entry = LspEntry { lifetime_s, id, sequence, checksum };
        Ok(Lsp { level, entry, flags, octets: pdu.octets.to_vec() })
    }

    /// An LSP of this system, from its TLVs. Those for authentication are first.
    pub fn new(level: Level, entry: LspEntry, flags: LspFlags, tlvs: &[u8]) -> Self {
        let kind = PduKind::Lsp(level);
        let mut octets = begin(kind);
        octets.extend([0, 0]);
        octets.extend(entry.lifetime_s.to_be_bytes());
        octets.extend(entry.id.octets());
        octets.extend(entry.sequence.to_be_bytes());
        octets.extend([0, 0]);
        let kind_of_system = if flags.is_level_2 { 3 } else { 1 };
        octets.push(u8::from(flags.is_attached) << 3 | u8::from(flags.is_overloaded) << 2 | kind_of_system);
        octets.extend(tlvs);
        finish(kind, &mut octets);
        let mut lsp = Lsp { level, entry, flags, octets };
        lsp.seal();
        lsp
    }

    /// Recomputes the checksum.
    pub(crate) fn seal(&mut self) {
        let checksum = self.octets.get(ID_AT..).map_or(0, |octets| fletcher(octets, CHECKSUM_AT - ID_AT));
        self.entry.checksum = checksum;
        self.write(CHECKSUM_AT, checksum);
    }

    /// The same LSP, valid for so many seconds. The lifetime is no part of the checksum.
    pub fn set_lifetime(&mut self, lifetime_s: u16) {
        self.entry.lifetime_s = lifetime_s;
        self.write(LIFETIME_AT, lifetime_s);
    }

    fn write(&mut self, at: usize, value: u16) {
        if let Some(field) = self.octets.get_mut(at..at + 2) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// All of it, as it is sent.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }

    /// Its TLVs.
    pub fn tlvs(&self) -> Tlvs<'_> {
        Tlvs::new(self.octets.get(PduKind::Lsp(self.level).header_len()..).unwrap_or_default())
    }

    /// Whether its lifetime is zero.
    pub fn is_purge(&self) -> bool {
        self.entry.lifetime_s == 0
    }

    /// The generator of a purge (RFC 6232), if it is stated.
    pub fn purge_originator(&self) -> Option<PurgeOriginator> {
        let value = self.tlvs().of_kind(kind::PURGE_ORIGINATOR).next().filter(|_| self.is_purge())?;
        PurgeOriginator::parse(value).ok()
    }

    /// Whether all of its TLVs are those that a signed purge may have (RFC 5304 section 2, RFC 6233; D93). Since the
    /// digest does not cover the lifetime, other TLVs are the sign of an LSP whose lifetime was set to zero on the way.
    pub(crate) fn has_only_tlvs_of_purges(&self) -> bool {
        self.tlvs().all(|tlv| tlv.is_ok_and(|tlv| ALLOWED_IN_PURGES.contains(&tlv.kind)))
    }

    /// Its purge: a header whose lifetime is zero, and nothing behind it but what authenticates it and who has
    /// generated it (ISO 10589 section 7.3.16.4, RFC 5304 section 2, RFC 6232).
    pub(crate) fn purge(&self, key: Option<&Key>, originator: PurgeOriginator) -> Self {
        let mut tlvs = key.map(Key::tlv).unwrap_or_default();
        originator.emit(&mut tlvs);
        let mut purge = Lsp::new(self.level, LspEntry { lifetime_s: 0, ..self.entry }, self.flags, &tlvs);
        if let Some(key) = key {
            key.sign_lsp(&mut purge);
        }
        // Other systems identify this version by its checksum.
        purge.entry.checksum = self.entry.checksum;
        purge.write(CHECKSUM_AT, self.entry.checksum);
        purge
    }
}

/// TLVs that purges may have where PDUs are signed (D93).
const ALLOWED_IN_PURGES: [u8; 3] = [kind::AUTHENTICATION, kind::PURGE_ORIGINATOR, kind::HOSTNAME];

/// Offsets of the fields that are zero for authentication.
pub(crate) const LSP_UNAUTHENTICATED: [usize; 2] = [LIFETIME_AT, CHECKSUM_AT];
