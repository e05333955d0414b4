//! TLVs of the SRH: Pad1, PadN and HMAC (RFC 8754 section 2.1), End.MT (multicast draft, section 7.2) and MR (D27).
//!
//! ```text
//! +-+-+-+-+-+-+-+-+   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-
//! |  Pad1: Type 0 |   |      Type     |     Length    | Value …
//! +-+-+-+-+-+-+-+-+   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-
//! ```

mod end_mt;
mod hmac;
mod mr;
mod writer;

pub use end_mt::{EdgeListView, MAX_RECEIVERS, ReceiverView};
pub use hmac::HmacView;
pub use mr::RegionView;
pub use writer::TlvWriter;

use crate::codepoints;
use crate::view::View;
use zerocopy::FromBytes;

/// The TLV types that the drafts leave to be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvTypes {
    /// Type of the End.MT TLV.
    pub end_mt: u8,
    /// Type of the MR TLV.
    pub mr: u8,
}

impl Default for TlvTypes {
    fn default() -> Self {
        TlvTypes { end_mt: codepoints::srh_tlv::END_MT, mr: codepoints::srh_tlv::MR }
    }
}

/// One TLV.
#[derive(Clone, Copy, Debug)]
pub enum Tlv<'a> {
    /// One octet of padding.
    Pad1,
    /// So many octets of padding, type and length included.
    PadN(usize),
    /// HMAC, and its HMAC field.
    Hmac(&'a HmacView, &'a [u8]),
    /// End.MT, and its receivers.
    EndMt(&'a EdgeListView, &'a [ReceiverView]),
    /// MR, and its regions.
    Mr(&'a EdgeListView, &'a [RegionView]),
    /// Any other type, to be skipped: type and value.
    Other(u8, &'a [u8]),
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvError {
    /// It reaches beyond the SRH.
    Overrun {
        /// Offset of the TLV from the first TLV.
        offset: usize,
    },
    /// Its Length does not fit its type or its Num Receivers (D8).
    Length {
        /// Offset of the TLV from the first TLV.
        offset: usize,
        /// Its type.
        kind: u8,
        length: u8,
    },
}

impl core::fmt::Display for TlvError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TlvError::Overrun { offset } => write!(f, "TLV at offset {offset} reaches beyond the SRH"),
            TlvError::Length { offset, kind, length } => {
                write!(f, "TLV at offset {offset}, type {kind}: length {length} does not fit its content")
            }
        }
    }
}

impl core::error::Error for TlvError {}

/// Walks the TLVs of an SRH. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    octets: &'a [u8],
    offset: usize,
    types: TlvTypes,
}

impl<'a> Tlvs<'a> {
    /// The TLVs in `octets` ([`crate::srh::Srh::tlvs`]).
    pub fn new(octets: &'a [u8], types: TlvTypes) -> Self {
        Tlvs { octets, offset: 0, types }
    }

    /// Offset of the next TLV from the first.
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn take(&mut self) -> Result<Tlv<'a>, TlvError> {
        let offset = self.offset;
        let rest = self.octets.get(offset..).unwrap_or(&[]);
        let (kind, length) = match rest {
            [codepoints::srh_tlv::PAD1, ..] => {
                self.offset += 1;
                return Ok(Tlv::Pad1);
            }
            [kind, length, ..] => (*kind, *length),
            _ => return Err(TlvError::Overrun { offset }),
        };
        let whole = rest.get(..2 + usize::from(length)).ok_or(TlvError::Overrun { offset })?;
        self.offset += whole.len();
        self.decode(kind, whole).ok_or(TlvError::Length { offset, kind, length })
    }

    fn decode(&self, kind: u8, whole: &'a [u8]) -> Option<Tlv<'a>> {
        if kind == codepoints::srh_tlv::PADN {
            Some(Tlv::PadN(whole.len()))
        } else if kind == codepoints::srh_tlv::HMAC {
            let (view, hmac) = HmacView::split(whole).ok()?;
            (hmac.len() % 8 == 0 && hmac.len() <= 32).then_some(Tlv::Hmac(view, hmac))
        } else if kind == self.types.end_mt {
            let (view, entries) = EdgeListView::split(whole).ok()?;
            let receivers = <[ReceiverView]>::ref_from_bytes(entries).ok()?;
            (receivers.len() == usize::from(view.count())).then_some(Tlv::EndMt(view, receivers))
        } else if kind == self.types.mr {
            let (view, entries) = EdgeListView::split(whole).ok()?;
            let regions = <[RegionView]>::ref_from_bytes(entries).ok()?;
            (regions.len() == usize::from(view.count())).then_some(Tlv::Mr(view, regions))
        } else {
            whole.get(2..).map(|value| Tlv::Other(kind, value))
        }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.octets.len() {
            return None;
        }
        let result = self.take();
        if result.is_err() {
            self.offset = self.octets.len();
        }
        Some(result)
    }
}

/// The octets of every End.MT and MR TLV, whole and in order, which an HMAC that covers the receiver lists adds to the
/// text of RFC 8754 (D9). Ends after the first error.
pub fn receiver_lists(octets: &[u8], types: TlvTypes) -> impl Iterator<Item = Result<&[u8], TlvError>> {
    let mut tlvs = Tlvs::new(octets, types);
    core::iter::from_fn(move || {
        loop {
            let start = tlvs.offset();
            match tlvs.next()? {
                Ok(Tlv::EndMt(..) | Tlv::Mr(..)) => return octets.get(start..tlvs.offset()).map(Ok),
                Ok(Tlv::Pad1 | Tlv::PadN(_) | Tlv::Hmac(..) | Tlv::Other(..)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::psn::Qpn;
    use core::net::Ipv6Addr;
    use std::vec::Vec;

    fn walk(octets: &[u8]) -> Vec<Result<Tlv<'_>, TlvError>> {
        Tlvs::new(octets, TlvTypes::default()).collect()
    }

    fn receivers<const N: usize>() -> [ReceiverView; N] {
        core::array::from_fn(|n| ReceiverView::new(Ipv6Addr::from(n as u128 + 0x100), Qpn::new(n as u32 + 2).unwrap()))
    }

    /// Pad1 is accepted although it is never sent (D7).
    #[test]
    fn padding_and_unknown_types_are_skipped() {
        let octets = [0, 4, 0, 4, 2, 0, 0, 200, 3, 1, 2, 3, 0, 0, 0];
        let found = walk(&octets);
        assert!(matches!(
            found[..],
            [
                Ok(Tlv::Pad1),
                Ok(Tlv::PadN(2)),
                Ok(Tlv::PadN(4)),
                Ok(Tlv::Other(200, [1, 2, 3])),
                Ok(Tlv::Pad1),
                Ok(Tlv::Pad1),
                Ok(Tlv::Pad1)
            ]
        ));
    }

    /// A TLV beyond the SRH is an error and the last thing found (D8).
    #[test]
    fn an_overrun_ends_the_walk() {
        assert_eq!(
            walk(&[4, 1, 0, 200, 5, 0, 0]).last().unwrap().as_ref().unwrap_err(),
            &TlvError::Overrun { offset: 3 }
        );
        assert_eq!(walk(&[0, 200]).last().unwrap().as_ref().unwrap_err(), &TlvError::Overrun { offset: 1 });
    }

    /// Num Receivers must agree with Length (D8).
    #[test]
    fn a_length_must_fit_its_type() {
        let mut octets = [0; 24 + 40];
        let mut writer = TlvWriter::new(&mut octets, TlvTypes::default());
        writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<2>()).unwrap();
        let length = |octets: &[u8]| walk(octets)[0].as_ref().map(|_| ()).map_err(|error| *error);
        let wrong = |length| Err(TlvError::Length { offset: 0, kind: 124, length });
        assert_eq!(length(&octets), Ok(()));
        for count in [0, 1, 3, 255] {
            octets[20] = count;
            assert_eq!(length(&octets), wrong(62));
        }
        (octets[1], octets[20]) = (61, 2);
        assert_eq!(length(&octets), wrong(61));
        (octets[1], octets[20]) = (21, 0);
        assert_eq!(length(&octets), wrong(21));
        assert_eq!(length(&[5, 5, 0, 0, 0, 0, 0]), Err(TlvError::Length { offset: 0, kind: 5, length: 5 }));
        let mut hmac = [0; 2 + 6 + 33];
        (hmac[0], hmac[1]) = (5, 6 + 33);
        assert_eq!(length(&hmac), Err(TlvError::Length { offset: 0, kind: 5, length: 39 }));
    }

    /// Reserved octets are zero when sent and make no difference when they are not (MT-7.2-2).
    #[test]
    fn reserved_octets_are_ignored() {
        let mut octets = [0; 24 + 20 + 4];
        TlvWriter::new(&mut octets, TlvTypes::default()).end_mt(Ipv6Addr::LOCALHOST, &receivers::<1>()).unwrap();
        for place in [2, 3, 21, 22, 23, 43] {
            assert_eq!(octets[place], 0);
            octets[place] = 0xFF;
        }
        let Ok(Tlv::EndMt(list, [receiver])) = &walk(&octets)[0] else { panic!("no End.MT TLV with one receiver") };
        assert_eq!(list.edge(), Ipv6Addr::LOCALHOST);
        assert_eq!((receiver.address(), receiver.qpn()), (Ipv6Addr::from(0x100), Qpn::new(2).unwrap()));
    }

    /// The types are configurable (MT-10-1).
    #[test]
    fn other_types_can_be_set() {
        let types = TlvTypes { end_mt: 126, mr: 253 };
        let mut octets = [0; 24];
        TlvWriter::new(&mut octets, types).end_mt(Ipv6Addr::LOCALHOST, &[]).unwrap();
        assert_eq!(octets[0], 126);
        assert!(matches!(Tlvs::new(&octets, types).next(), Some(Ok(Tlv::EndMt(_, [])))));
        assert!(matches!(walk(&octets)[0], Ok(Tlv::Other(126, _))));
    }

    /// D9: End.MT and MR TLVs, whole and in order, and neither padding nor HMAC.
    #[test]
    fn receiver_lists_are_whole_tlvs() {
        let mut octets = [0; 256];
        let mut writer = TlvWriter::new(&mut octets, TlvTypes::default());
        writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<1>()).unwrap();
        writer.hmac(&HmacView::new(true, 1), &[9; 32]).unwrap();
        writer.mr(Ipv6Addr::LOCALHOST, &[RegionView::new(1, 2)]).unwrap();
        let len = writer.len();
        let lists: Vec<_> = receiver_lists(&octets[..len], TlvTypes::default()).collect();
        assert_eq!(lists, [Ok(&octets[..44]), Ok(&octets[48 + 40..48 + 40 + 36])]);
        assert_eq!(len, 48 + 40 + 40);

        octets[1] = 250;
        let lists: Vec<_> = receiver_lists(&octets[..len], TlvTypes::default()).collect();
        assert_eq!(lists, [Err(TlvError::Overrun { offset: 0 })]);
    }

    /// Each TLV ends at a multiple of eight octets, by PadN and never by Pad1 (D7).
    #[test]
    fn odd_lists_are_padded() {
        let mut octets = [0xEE; 48];
        let mut writer = TlvWriter::new(&mut octets, TlvTypes::default());
        writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<1>()).unwrap();
        assert_eq!(writer.len(), 48);
        assert!(!writer.is_empty());
        assert_eq!(writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<1>()), None, "full");
        assert_eq!(octets[44..], [4, 2, 0, 0]);
    }

    #[test]
    fn a_writer_refuses_more_receivers_than_a_length_can_express() {
        let mut octets = [0; 512];
        let mut writer = TlvWriter::new(&mut octets, TlvTypes::default());
        assert_eq!(writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<12>()), None);
        assert!(writer.is_empty());
        assert_eq!(writer.end_mt(Ipv6Addr::LOCALHOST, &receivers::<11>()), Some(()));
        assert_eq!(writer.len(), 248);
    }
}
