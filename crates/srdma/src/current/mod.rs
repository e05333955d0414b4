//! The current version by unicast (D190): a source serves the version that it published last, over TCP, to receivers
//! that have joined late.
//!
//! ```text
//!   receiver                                        source
//!      │ ◄────────────────────────── greeting, nonce ──│
//!      │ ── request, HMAC of nonce and request ──────► │
//!      │ ◄─────── status; begin, octets, end, HMAC ────│
//! ```
//!
//! Begin and end are the messages of the group (D170), each behind its length. The octets are those of the buffers, one
//! behind the other. The key is known to those that may change the group, from the controller.

mod fetch;
mod serve;
#[cfg(test)]
mod tests;

pub use fetch::FetchError;
pub(crate) use fetch::{Fetch, Piece};
pub(crate) use serve::{Current, Server};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{Error, Read};
use std::time::Duration;

const MAGIC: [u8; 4] = *b"SRVC";
const FORM: u8 = 1;
const NONCE_OCTETS: usize = 32;
const MAC_OCTETS: usize = 32;
/// Magic, form, and three octets that are sent as 0.
const HEAD_OCTETS: usize = 8;
/// Octets that are read and sent at once.
const PIECE_OCTETS: usize = 256 << 10;
/// Time in which a peer has to take or give octets.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the source has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// The version follows.
    Version,
    /// It has published none.
    Nothing,
    /// Too many receivers are served.
    Busy,
}

impl Status {
    const ALL: [Status; 3] = [Status::Version, Status::Nothing, Status::Busy];

    fn code(self) -> u8 {
        match self {
            Status::Version => 0,
            Status::Nothing => 1,
            Status::Busy => 2,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }
}

/// The key by which both sides recognize each other.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// A new one.
    fn new() -> Result<Self, Error> {
        Ok(Key(random()?))
    }

    /// From hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key).ok()?;
        Some(Key(key))
    }

    fn text(&self) -> String {
        hex::encode(self.0)
    }

    /// The MAC of a message with its purpose.
    fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        mac.update(purpose);
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

/// Purposes of MACs: none stands for another one.
const OF_REQUEST: &[u8] = b"srdma request";
const OF_VERSION: &[u8] = b"srdma version";

fn head() -> [u8; HEAD_OCTETS] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, FORM, 0, 0, 0]
}

/// Octets that a peer does not know.
fn random() -> Result<[u8; 32], Error> {
    let mut octets = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(octets)
}
