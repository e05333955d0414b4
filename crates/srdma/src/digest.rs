//! Digests of buffers (D171).

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The digest that a source computes of each buffer, and its receivers verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestKind {
    /// SHA-256 (FIPS 180-4).
    #[default]
    Sha256,
    /// CRC-32 of IEEE 802.3: faster, and enough against accidents, not against intent.
    Crc32,
}

impl DigestKind {
    pub(crate) fn code(self) -> u8 {
        match self {
            DigestKind::Sha256 => 1,
            DigestKind::Crc32 => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(DigestKind::Sha256),
            2 => Some(DigestKind::Crc32),
            _ => None,
        }
    }

    /// Octets of a digest.
    pub const fn octets(self) -> usize {
        match self {
            DigestKind::Sha256 => 32,
            DigestKind::Crc32 => 4,
        }
    }
}

/// A digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    kind: DigestKind,
    /// Zeros behind the octets of the kind.
    octets: [u8; 32],
}

impl Digest {
    /// A digest from its octets; `None` if they are not as many as the kind has.
    pub(crate) fn from_octets(kind: DigestKind, octets: &[u8]) -> Option<Self> {
        if octets.len() != kind.octets() {
            return None;
        }
        let mut digest = Digest { kind, octets: [0; 32] };
        digest.octets[..octets.len()].copy_from_slice(octets);
        Some(digest)
    }

    /// Its kind.
    pub fn kind(&self) -> DigestKind {
        self.kind
    }

    /// Its octets; those of a CRC-32 in network byte order.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.kind.octets()]
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Computes a digest piece by piece.
#[derive(Clone, Debug)]
pub(crate) enum Hasher {
    Sha256(Box<Sha256>),
    Crc32(crc32fast::Hasher),
}

impl Hasher {
    pub(crate) fn new(kind: DigestKind) -> Self {
        match kind {
            DigestKind::Sha256 => Hasher::Sha256(Box::default()),
            DigestKind::Crc32 => Hasher::Crc32(crc32fast::Hasher::new()),
        }
    }

    pub(crate) fn update(&mut self, octets: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(octets),
            Hasher::Crc32(hasher) => hasher.update(octets),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        let mut octets = [0; 32];
        let kind = match self {
            Hasher::Sha256(hasher) => {
                octets = hasher.finalize().into();
                DigestKind::Sha256
            }
            Hasher::Crc32(hasher) => {
                octets[..4].copy_from_slice(&hasher.finalize().to_be_bytes());
                DigestKind::Crc32
            }
        };
        Digest { kind, octets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(kind: DigestKind, pieces: &[&[u8]]) -> String {
        let mut hasher = Hasher::new(kind);
        pieces.iter().for_each(|piece| hasher.update(piece));
        hasher.finish().to_string()
    }

    /// D171: FIPS 180-4's example "abc"; the check value of CRC-32 for "123456789" (Koopman, and the CRC catalogue).
    #[test]
    fn digests_are_the_published_ones() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(DigestKind::Sha256, &[b"a", b"bc"]), abc);
        assert_eq!(digest(DigestKind::Crc32, &[b"1234", b"", b"56789"]), "cbf43926");
    }

    #[test]
    fn a_digest_has_the_octets_of_its_kind() {
        for kind in [DigestKind::Sha256, DigestKind::Crc32] {
            assert_eq!(DigestKind::from_code(kind.code()), Some(kind));
            let digest = Hasher::new(kind).finish();
            assert_eq!((digest.octets().len(), digest.kind()), (kind.octets(), kind));
            assert_eq!(Digest::from_octets(kind, digest.octets()), Some(digest));
            assert_eq!(Digest::from_octets(kind, &[0; 5]), None);
        }
        assert_eq!((DigestKind::from_code(0), DigestKind::from_code(3)), (None, None));
    }
}
