//! HMAC keys as they are configured.

use srdma_dataplane::{Cover, HmacKey};
use zeroize::Zeroizing;

/// The octets of an HMAC key and what its HMAC covers. They are not shown, and are overwritten when they go.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySpec {
    secret: Zeroizing<Vec<u8>>,
    cover: Cover,
}

impl std::fmt::Debug for KeySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySpec({:?})", self.cover)
    }
}

impl KeySpec {
    /// A key of any length.
    pub fn new(secret: Vec<u8>, cover: Cover) -> Self {
        KeySpec { secret: Zeroizing::new(secret), cover }
    }

    /// Cover of its HMAC.
    pub fn cover(&self) -> Cover {
        self.cover
    }

    /// The octets, for a file that the key is written to.
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// The key, ready for use.
    pub(crate) fn prepared(&self) -> HmacKey {
        HmacKey::new(&self.secret, self.cover)
    }
}
