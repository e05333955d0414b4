//! Authentication of PDUs: HMAC-MD5 (RFC 5304), which every implementation has, and HMAC-SHA-256 (RFC 5310).
//!
//! ```text
//! | Type 10 | Length | 54 | digest 16 |                 RFC 5304
//! | Type 10 | Length |  3 | Key ID 2 | digest 32 |      RFC 5310
//! ```
//!
//! The digest covers the whole PDU: with zeros in its place (RFC 5304), or the pattern Apad (RFC 5310); of an LSP with
//! lifetime and checksum zero as well, since other systems change them.

use crate::pdu::{LSP_UNAUTHENTICATED, Lsp, Pdu, PduKind};
use crate::tlv::{kind, put};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const HMAC_MD5: u8 = 54;
const GENERIC: u8 = 3;

/// RFC 5310 section 3.1.
const APAD: [u8; 4] = [0x87, 0x8F, 0xE1, 0xF3];

/// A key that all systems of a level share.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// RFC 5304.
    Md5 { secret: Secret },
    /// RFC 5310 with SHA-256.
    Sha256 { key_id: u16, secret: Secret },
}

/// The octets of a key, which are overwritten when they go.
pub type Secret = Zeroizing<Vec<u8>>;

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Md5 { .. } => f.write_str("Key(HMAC-MD5)"),
            Key::Sha256 { key_id, .. } => write!(f, "Key(HMAC-SHA-256, {key_id})"),
        }
    }
}

impl Key {
    fn prefix(&self) -> Vec<u8> {
        match self {
            Key::Md5 { .. } => vec![HMAC_MD5],
            Key::Sha256 { key_id, .. } => {
                let [high, low] = key_id.to_be_bytes();
                vec![GENERIC, high, low]
            }
        }
    }

    fn digest_len(&self) -> usize {
        match self {
            Key::Md5 { .. } => 16,
            Key::Sha256 { .. } => 32,
        }
    }

    /// Contents of the digest's field while the digest is computed.
    fn placeholder(&self) -> Vec<u8> {
        match self {
            Key::Md5 { .. } => vec![0; 16],
            Key::Sha256 { .. } => APAD.repeat(8),
        }
    }

    /// The TLV without its digest, the first of a PDU.
    pub(crate) fn tlv(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, kind::AUTHENTICATION, &[self.prefix(), self.placeholder()].concat());
        out
    }

    /// Octets that [`Key::tlv`] takes.
    pub(crate) fn tlv_len(&self) -> usize {
        2 + self.prefix().len() + self.digest_len()
    }

    /// Fills in the digest of a PDU whose first TLV is [`Key::tlv`].
    pub(crate) fn sign(&self, pdu_kind: PduKind, octets: &mut [u8]) {
        let at = pdu_kind.header_len() + 2 + self.prefix().len();
        let digest = self.digest(pdu_kind, octets, at);
        if let Some(field) = octets.get_mut(at..at + self.digest_len()) {
            field.copy_from_slice(&digest);
        }
    }

    /// Fills in the digest of an LSP of one's own, and its checksum after that.
    pub(crate) fn sign_lsp(&self, lsp: &mut Lsp) {
        self.sign(PduKind::Lsp(lsp.level), lsp.octets_mut());
        lsp.seal();
    }

    /// Whether the PDU has an authentication TLV with this key's digest. There must be just one.
    pub fn verifies(&self, pdu: &Pdu<'_>) -> bool {
        let mut at = pdu.kind.header_len();
        let mut place = None;
        for tlv in pdu.tlvs().map_while(Result::ok) {
            if tlv.kind == kind::AUTHENTICATION {
                let is_of_this_key = tlv.value.strip_prefix(self.prefix().as_slice());
                if place.is_some() || is_of_this_key.map(<[u8]>::len) != Some(self.digest_len()) {
                    return false;
                }
                place = Some(at + 2 + self.prefix().len());
            }
            at += 2 + tlv.value.len();
        }
        let Some(at) = place else { return false };
        let expected = self.digest(pdu.kind, pdu.octets, at);
        pdu.octets.get(at..at + self.digest_len()).is_some_and(|found| found.ct_eq(&expected).into())
    }

    fn digest(&self, pdu_kind: PduKind, octets: &[u8], at: usize) -> Vec<u8> {
        let mut text = octets.to_vec();
        let mut overwrite = |at: usize, with: &[u8]| {
            if let Some(field) = text.get_mut(at..at + with.len()) {
                field.copy_from_slice(with);
            }
        };
        overwrite(at, &self.placeholder());
        if matches!(pdu_kind, PduKind::Lsp(_)) {
            for at in LSP_UNAUTHENTICATED {
                overwrite(at, &[0, 0]);
            }
        }
        match self {
            Key::Md5 { secret } => mac::<Hmac<Md5>>(secret, &text),
            Key::Sha256 { secret, .. } => mac::<Hmac<Sha256>>(secret, &text),
        }
    }
}

fn mac<M: Mac + KeyInit>(secret: &[u8], text: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(secret) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::ZeroizeOnDrop;

    /// Keys do not stay in memory that was freed.
    #[test]
    fn secrets_are_overwritten_when_they_go() {
        fn overwrites_itself(_: &impl ZeroizeOnDrop) {}
        match (Key::Sha256 { key_id: 1, secret: vec![7; 8].into() }) {
            Key::Md5 { secret } | Key::Sha256 { secret, .. } => overwrites_itself(&secret),
        }
    }
}
