//! PDUs (ISO 10589 section 9): the header that all have in common, and one file for each kind.
//!
//! ```text
//! +------------+------------------+---------+-----------+
//! |    0x83    | length of header | 0x01    | ID length |
//! +------------+------------------+---------+-----------+
//! | rsv, type  |       0x01       | 0x00    | max areas |
//! +------------+------------------+---------+-----------+
//! ```

mod hello;
mod lan_hello;
mod lsp;
mod sequence_numbers;

pub use hello::Hello;
pub(crate) use hello::{areas_of, put_areas};
pub use lan_hello::{GREATEST_PRIORITY, LanHello};
pub(crate) use lsp::LSP_UNAUTHENTICATED;
pub use lsp::{GREATEST_LSP, Lsp, LspFlags};
pub use sequence_numbers::{Complete, Partial, Range};

use crate::reader::{Malformed, Reader};
use crate::tlv::Tlvs;

/// The protocol discriminator of IS-IS.
const DISCRIMINATOR: u8 = 0x83;

/// Octets of the common header.
pub(crate) const HEADER_LEN: usize = 8;

/// Level 1 has a system's own area, level 2 what joins areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Within an area.
    One,
    /// Between areas.
    #[default]
    Two,
}

impl Level {
    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Level::One => 1,
            Level::Two => 2,
        }
    }
}

/// The levels at which a system works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Levels {
    /// Level 1 alone.
    One,
    /// Level 2 alone.
    #[default]
    Two,
    /// Both: it joins its area to the others.
    Both,
}

impl Levels {
    /// Each of them, level 1 first.
    pub const fn as_slice(self) -> &'static [Level] {
        match self {
            Levels::One => &[Level::One],
            Levels::Two => &[Level::Two],
            Levels::Both => &[Level::One, Level::Two],
        }
    }

    /// Whether a level is one of them.
    pub fn contains(self, level: Level) -> bool {
        self.as_slice().contains(&level)
    }
}

/// Type of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// Hello of a point-to-point circuit.
    Hello,
    /// Hello of a LAN.
    LanHello(Level),
    /// Link State PDU.
    Lsp(Level),
    /// Complete Sequence Numbers PDU.
    Complete(Level),
    /// Partial Sequence Numbers PDU.
    Partial(Level),
}

impl PduKind {
    fn octet(self) -> u8 {
        match self {
            PduKind::LanHello(Level::One) => 15,
            PduKind::LanHello(Level::Two) => 16,
            PduKind::Hello => 17,
            PduKind::Lsp(Level::One) => 18,
            PduKind::Lsp(Level::Two) => 20,
            PduKind::Complete(Level::One) => 24,
            PduKind::Complete(Level::Two) => 25,
            PduKind::Partial(Level::One) => 26,
            PduKind::Partial(Level::Two) => 27,
        }
    }

    fn of(octet: u8) -> Option<Self> {
        Some(match octet & 0x1F {
            15 => PduKind::LanHello(Level::One),
            16 => PduKind::LanHello(Level::Two),
            17 => PduKind::Hello,
            18 => PduKind::Lsp(Level::One),
            20 => PduKind::Lsp(Level::Two),
            24 => PduKind::Complete(Level::One),
            25 => PduKind::Complete(Level::Two),
            26 => PduKind::Partial(Level::One),
            27 => PduKind::Partial(Level::Two),
            _ => return None,
        })
    }

    /// Octets in front of the TLVs.
    pub(crate) fn header_len(self) -> usize {
        match self {
            PduKind::Hello => HEADER_LEN + 12,
            PduKind::LanHello(_) => HEADER_LEN + 19,
            PduKind::Lsp(_) => HEADER_LEN + 19,
            PduKind::Complete(_) => HEADER_LEN + 25,
            PduKind::Partial(_) => HEADER_LEN + 9,
        }
    }

    /// Offset of the PDU's own length.
    fn length_at(self) -> usize {
        match self {
            PduKind::Hello | PduKind::LanHello(_) => HEADER_LEN + 9,
            PduKind::Lsp(_) | PduKind::Complete(_) | PduKind::Partial(_) => HEADER_LEN,
        }
    }
}

/// A PDU whose header is sound: of a known kind, of the length in its header, with TLVs that end where it ends.
#[derive(Clone, Copy, Debug)]
pub struct Pdu<'a> {
    /// Type of the PDU.
    pub kind: PduKind,
    /// All of it, without what follows its length.
    pub octets: &'a [u8],
}

impl<'a> Pdu<'a> {
    /// The PDU at the front of `octets`.
    ///
    /// # Errors
    ///
    /// An error of its header, its length or the lengths of its TLVs.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the PDU header", octets);
        expect("the protocol discriminator", reader.u8()?, &[DISCRIMINATOR], "0x83")?;
        let header_len = reader.u8()?;
        expect("the version", reader.u8()?, &[1], "1")?;
        expect("the ID length", reader.u8()?, &[0, 6], "0 or 6")?;
        let kind = reader.u8()?;
        let known = "15, 16, 17, 18, 20, 24, 25, 26 or 27";
        let unknown = Malformed::Value { field: "the PDU type", found: u32::from(kind & 0x1F), expected: known };
        let kind = PduKind::of(kind).ok_or(unknown)?;
        expect("the second version", reader.u8()?, &[1], "1")?;
        let _reserved = reader.u8()?;
        expect("the number of area addresses", reader.u8()?, &[0, 3], "0 or 3")?;
        if usize::from(header_len) != kind.header_len() {
            let (field, found) = ("the length of the header", u32::from(header_len));
            return Err(Malformed::Value { field, found, expected: "that of its PDU type" });
        }
        let mut reader = Reader::new("the PDU", octets);
        reader.take(kind.length_at())?;
        let length = usize::from(reader.u16()?);
        let octets = Reader::new("the PDU", octets).take(length)?;
        let tlvs = octets.get(kind.header_len()..);
        let short = Malformed::Truncated { field: "the PDU", needed: kind.header_len(), found: length };
        Tlvs::new(tlvs.ok_or(short)?).check()?;
        Ok(Pdu { kind, octets })
    }

    /// Its TLVs.
    pub fn tlvs(&self) -> Tlvs<'a> {
        Tlvs::new(self.octets.get(self.kind.header_len()..).unwrap_or_default())
    }

    /// The fields between the common header and the TLVs.
    fn fields(&self) -> Reader<'a> {
        Reader::new("the PDU header", self.octets.get(HEADER_LEN..self.kind.header_len()).unwrap_or_default())
    }
}

fn expect(field: &'static str, found: u8, allowed: &[u8], expected: &'static str) -> Result<(), Malformed> {
    if allowed.contains(&found) { Ok(()) } else { Err(Malformed::Value { field, found: found.into(), expected }) }
}

/// The common header; the rest is appended.
fn begin(kind: PduKind) -> Vec<u8> {
    vec![DISCRIMINATOR, kind.header_len() as u8, 1, 0, kind.octet(), 1, 0, 0]
}

/// Writes the PDU's length, once it is known.
pub(crate) fn finish(kind: PduKind, octets: &mut [u8]) {
    let length = u16::try_from(octets.len()).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(field) = octets.get_mut(kind.length_at()..kind.length_at() + 2) {
        field.copy_from_slice(&length);
    }
}
