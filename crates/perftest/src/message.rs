//! Messages other than keys, and their lengths (D206).
//!
//! ```text
//!   version      16   text such as "6.06", then zeros
//!   buffer size   4   octets, most significant first
//!   cache line    4   octets, most significant first
//!   path MTU      2   "1" to "5" for 256 to 4096 octets, then zero
//!   key         108   see `key`
//!   figure        8   one of five: message octets and iterations as integers, then peak and average in the unit that
//!                     the client prints and 10^6 messages per second, as binary64; most significant octet first
//!   done          5   "done", then zero
//! ```

use crate::key::Key;
use crate::refusal::Problem;
use srdma_wire::PathMtu;
use std::fmt;

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Version,
    Size,
    PathMtu,
    Key,
    Figure,
    Done,
}

/// The last message of both.
pub(crate) const DONE: &[u8; 5] = b"done\0";
/// Figures of a result.
pub(crate) const FIGURES: usize = 5;

impl Kind {
    /// Length in octets.
    pub(crate) const fn octets(self) -> usize {
        match self {
            Kind::Version => Version::LEN,
            Kind::Size => 4,
            Kind::PathMtu => 2,
            Kind::Key => Key::LEN,
            Kind::Figure => 8,
            Kind::Done => DONE.len(),
        }
    }

    /// The kind of a message behind the first key, from its first two octets; `None`: there are not so many.
    pub(crate) fn of_beginning(octets: &[u8]) -> Result<Option<Self>, Problem> {
        match octets {
            [] | [_] => Ok(None),
            [b'd', b'o', ..] => Ok(Some(Kind::Done)),
            // Messages have fewer than 2^56 octets.
            [0, _, ..] => Ok(Some(Kind::Figure)),
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => Ok(Some(Kind::Key)),
            [_, _, ..] => Err(Problem::NoMessage),
        }
    }
}

/// Version of perftest in hundredths, which is another number than that of its releases: 4.5-0.17 has 6.06.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// Length in octets.
    pub const LEN: usize = 16;
    /// The oldest that perftest itself accepts.
    pub const OLDEST: Version = Version(570);
    /// The newest with these messages, that of release 25.10: the next one exchanges more between path MTU and key.
    pub const NEWEST: Version = Version(627);

    /// Reads a version, of any age.
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, Problem> {
        if octets.get(4) == Some(&b':') {
            return Err(Problem::NoVersion);
        }
        let end = octets.iter().position(|octet| *octet == 0).ok_or(Problem::NoMessage)?;
        let (text, padding) = octets.split_at(end);
        let text = str::from_utf8(text).map_err(|_| Problem::NoMessage)?;
        let (major, minor) = text.split_once('.').ok_or(Problem::NoMessage)?;
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit())
        };
        if !is_number(major, 2) || !is_number(minor, 2) || minor.len() != 2 || padding.iter().any(|octet| *octet != 0) {
            return Err(Problem::NoMessage);
        }
        match (major.parse::<u32>(), minor.parse::<u32>()) {
            (Ok(major), Ok(minor)) => Ok(Version(major * 100 + minor)),
            (Err(_), _) | (_, Err(_)) => Err(Problem::NoMessage),
        }
    }

    /// Whether its messages are those of this crate.
    pub(crate) fn is_known(self) -> bool {
        (Self::OLDEST..=Self::NEWEST).contains(&self)
    }

    pub(crate) fn emit(self) -> Vec<u8> {
        let mut octets = self.to_string().into_bytes();
        octets.resize(Self::LEN, 0);
        octets
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// Reads a size in octets: positive, and at most a GiB.
pub(crate) fn parse_size(octets: [u8; 4]) -> Result<u32, Problem> {
    let size = u32::from_be_bytes(octets);
    if (1..=1 << 30).contains(&size) { Ok(size) } else { Err(Problem::Size(size)) }
}

/// Reads a path MTU.
pub(crate) fn parse_path_mtu(octets: [u8; 2]) -> Result<PathMtu, Problem> {
    let [digit, end] = octets;
    let place = usize::from(digit.wrapping_sub(b'1'));
    PathMtu::ALL.get(place).copied().filter(|_| end == 0).ok_or(Problem::PathMtu)
}

/// A path MTU as a message.
pub(crate) fn emit_path_mtu(path_mtu: PathMtu) -> Vec<u8> {
    // 256 is "1", and each next one doubles.
    let digit = (path_mtu.octets() / 256).trailing_zeros() as u8 + b'1';
    vec![digit, 0]
}

/// Operations that a group carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// RDMA WRITE.
    Write,
    /// SEND.
    Send,
}

/// The result of a WRITE as its client measured it. That of a SEND is not exchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Octets of a message; of the last one if there were several sizes.
    pub message_octets: u64,
    /// Messages.
    pub iterations: u64,
    /// Messages per second.
    pub messages_per_second: f64,
}

impl Figures {
    /// Reads the figures; `None` if a rate is no number. Peak and average in octets have a unit that the client chooses
    /// and does not tell; they are left out.
    pub(crate) fn parse(messages: &[[u8; 8]; FIGURES]) -> Option<Self> {
        let [message_octets, iterations, _, _, rate] = *messages;
        let millions = f64::from_be_bytes(rate);
        (millions.is_finite() && millions >= 0.0).then(|| Figures {
            message_octets: u64::from_be_bytes(message_octets),
            iterations: u64::from_be_bytes(iterations),
            messages_per_second: millions * 1e6,
        })
    }

    /// Octets of messages per second.
    pub fn octets_per_second(&self) -> f64 {
        self.messages_per_second * self.message_octets as f64
    }
}
