//! Digests of chunks.

use sha2::{Digest, Sha256};

/// SHA-256 of a chunk, or of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkDigest(pub [u8; 32]);

impl ChunkDigest {
    /// Octets of a digest.
    pub const LEN: usize = 32;

    /// The digest of these octets.
    pub fn of(octets: &[u8]) -> Self {
        ChunkDigest(Sha256::digest(octets).into())
    }

    /// A digest that was sent or stored.
    pub(crate) fn from_slice(octets: &[u8]) -> Option<Self> {
        octets.try_into().ok().map(ChunkDigest)
    }
}
