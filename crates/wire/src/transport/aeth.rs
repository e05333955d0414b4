//! ACK Extended Transport Header (IBTA volume 1, section 9.3.4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Syndrome    |            Message Sequence Number            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! It has no PSN: the acknowledged, or expected, PSN is that of the BTH (D18).

use crate::view::{Truncated, View};
use core::time::Duration;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// ACK Extended Transport Header as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AethView {
    syndrome: u8,
    msn: [u8; 3],
}

impl View for AethView {
    const NAME: &'static str = "AETH";
    const LEN: usize = 1 + 3;
}

impl AethView {
    /// The fields.
    pub fn value(&self) -> Aeth {
        let [a, b, c] = self.msn;
        Aeth { syndrome: Syndrome::from_octet(self.syndrome), msn: u32::from_be_bytes([0, a, b, c]) }
    }
}

/// ACK Extended Transport Header as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    pub syndrome: Syndrome,
    /// Messages completed, modulo 2^24.
    pub msn: u32,
}

impl Aeth {
    /// Length in octets.
    pub const LEN: usize = AethView::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = AethView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets; the MSN is cut to 24 bits.
    pub fn emit(&self) -> AethView {
        let [_, a, b, c] = self.msn.to_be_bytes();
        AethView { syndrome: self.syndrome.to_octet(), msn: [a, b, c] }
    }
}

/// The syndrome of an AETH, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Acknowledgement, with a credit code (0x1F: no limit).
    Ack(u8),
    /// Receiver not ready, with a timer code.
    RnrNak(u8),
    /// Negative acknowledgement, with its code (0 is a sequence error, 1–3 are fatal).
    Nak(u8),
    /// Reserved; never sent.
    Reserved(u8),
}

#[allow(missing_docs, reason = "the names say it")]
impl Syndrome {
    /// Acknowledgement without a credit limit.
    pub const ACK: Syndrome = Syndrome::Ack(0x1F);
    /// PSN sequence error.
    pub const SEQUENCE_ERROR: Syndrome = Syndrome::Nak(0);
    pub const INVALID_REQUEST: Syndrome = Syndrome::Nak(1);
    /// Remote access error.
    pub const REMOTE_ACCESS_ERROR: Syndrome = Syndrome::Nak(2);
    pub const REMOTE_OPERATIONAL_ERROR: Syndrome = Syndrome::Nak(3);

    /// The syndrome octet; its highest bit is reserved and ignored.
    pub const fn from_octet(octet: u8) -> Self {
        let value = octet & 0x1F;
        match octet >> 5 & 3 {
            0 => Syndrome::Ack(value),
            1 => Syndrome::RnrNak(value),
            2 => Syndrome::Reserved(value),
            _ => Syndrome::Nak(value),
        }
    }

    pub const fn to_octet(self) -> u8 {
        match self {
            Syndrome::Ack(value) => value & 0x1F,
            Syndrome::RnrNak(value) => 0x20 | value & 0x1F,
            Syndrome::Reserved(value) => 0x40 | value & 0x1F,
            Syndrome::Nak(value) => 0x60 | value & 0x1F,
        }
    }
}

/// The minimum wait of an RNR NAK's timer code (IBTA volume 1, table 46). Code 0 is the longest, so that codes are
/// compared by their times (D23).
pub const fn rnr_timer(code: u8) -> Duration {
    const HUNDREDTHS_OF_MS: [u32; 32] = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
        4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    #[allow(clippy::indexing_slicing)] // five bits index 32 entries
    Duration::from_micros(HUNDREDTHS_OF_MS[(code & 0x1F) as usize] as u64 * 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// Headers that scapy made, and what they mean (IBTA volume 1, table 44).
    #[test]
    fn fields_of_captured_headers() {
        let check = |octets: [u8; 4], syndrome, msn| {
            let (aeth, rest) = Aeth::parse(&octets).unwrap();
            assert_eq!((aeth, rest), (Aeth { syndrome, msn }, &[][..]));
            assert_eq!(aeth.emit().as_bytes(), octets);
        };
        check([0x1F, 0, 0, 1], Syndrome::ACK, 1);
        check([0x60, 0, 0, 0], Syndrome::SEQUENCE_ERROR, 0);
        check([0x2E, 0, 0, 0], Syndrome::RnrNak(14), 0);
        check([0x61, 0, 0, 0], Syndrome::INVALID_REQUEST, 0);
        check([0x62, 0, 0, 0], Syndrome::REMOTE_ACCESS_ERROR, 0);
        check([0x63, 0xFF, 0xFF, 0xFF], Syndrome::REMOTE_OPERATIONAL_ERROR, 0xFF_FFFF);
        check([0x40, 0, 0, 0], Syndrome::Reserved(0), 0);
    }

    #[test]
    fn an_msn_is_cut_to_24_bits() {
        assert_eq!(Aeth { syndrome: Syndrome::ACK, msn: 0x0100_0002 }.emit().value().msn, 2);
    }

    #[test]
    fn every_syndrome_octet_is_returned_without_its_reserved_bit() {
        for octet in 0..=u8::MAX {
            assert_eq!(Syndrome::from_octet(octet).to_octet(), octet & 0x7F);
        }
    }

    /// D23: code 0 is the longest time, 1 the shortest.
    #[test]
    fn rnr_timers() {
        assert_eq!(rnr_timer(0), Duration::from_micros(655_360));
        assert_eq!(rnr_timer(1), Duration::from_micros(10));
        assert_eq!(rnr_timer(14), Duration::from_micros(1_280));
        assert_eq!(rnr_timer(31), Duration::from_micros(491_520));
        assert!((2..32).all(|code| rnr_timer(code) > rnr_timer(code - 1)));
    }
}
