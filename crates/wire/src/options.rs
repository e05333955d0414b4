//! Hop-by-Hop and Destination Options headers (RFC 8200 sections 4.2, 4.3 and 4.6).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Next Header  |  Hdr Ext Len  |                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//! :                            Options                            :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::ipv6::NextHeader;
use crate::view::{Truncated, View};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The two octets that begin any IPv6 extension header whose length counts in eights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct OptionsView {
    next_header: u8,
    hdr_ext_len: u8,
}

impl View for OptionsView {
    const NAME: &'static str = "options header";
    const LEN: usize = 1 + 1;
}

impl OptionsView {
    /// The header of `len` octets in all (a multiple of eight, 8–2048), or `None`.
    pub fn new(next_header: NextHeader, len: usize) -> Option<Self> {
        let units = (len.is_multiple_of(8)).then_some(len / 8)?.checked_sub(1)?;
        Some(OptionsView { next_header: next_header.0, hdr_ext_len: u8::try_from(units).ok()? })
    }

    /// Type of the header after this one.
    pub fn next_header(&self) -> NextHeader {
        NextHeader(self.next_header)
    }

    /// Length of the whole header in octets.
    pub fn total_len(&self) -> usize {
        8 + 8 * usize::from(self.hdr_ext_len)
    }
}

/// A Hop-by-Hop or Destination Options header, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct OptionsHeader<'a> {
    /// The first two octets.
    pub header: &'a OptionsView,
    /// The octets of the options; [`Options`] walks them.
    pub options: &'a [u8],
}

impl<'a> OptionsHeader<'a> {
    /// The header at the front of `octets`, and what follows it.
    pub fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), Truncated> {
        let (header, _) = OptionsView::split(octets)?;
        let needed = header.total_len();
        let truncated = Truncated { header: OptionsView::NAME, needed, found: octets.len() };
        let (whole, rest) = octets.split_at_checked(needed).ok_or(truncated)?;
        let options = whole.get(OptionsView::LEN..).ok_or(truncated)?;
        Ok((OptionsHeader { header, options }, rest))
    }

    /// Walks the options.
    pub fn iter(&self) -> Options<'a> {
        Options { octets: self.options, offset: 0 }
    }
}

/// Action of a node for an unknown option: the two high bits of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownAction {
    /// 00: skip the option.
    Skip,
    /// 01: discard silently.
    Discard,
    /// 10: discard and send Parameter Problem code 2.
    DiscardAndReport,
    /// 11: as 10, unless the destination is a multicast address.
    DiscardAndReportUnlessMulticast,
}

/// One option, padding included.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionTlv<'a> {
    /// Offset of its type from the start of the options header.
    pub offset: usize,
    /// Its type; 0 is Pad1, 1 PadN.
    pub kind: u8,
    pub data: &'a [u8],
}

impl OptionTlv<'_> {
    /// Type of Pad1.
    pub const PAD1: u8 = 0;
    /// Type of PadN.
    pub const PADN: u8 = 1;

    /// The action for an unknown type.
    pub const fn unknown_action(&self) -> UnknownAction {
        match self.kind >> 6 {
            0 => UnknownAction::Skip,
            1 => UnknownAction::Discard,
            2 => UnknownAction::DiscardAndReport,
            _ => UnknownAction::DiscardAndReportUnlessMulticast,
        }
    }

    /// Whether the data may change on the way.
    pub const fn may_change(&self) -> bool {
        self.kind & 0x20 != 0
    }
}

/// An option reaches beyond its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionOverrun {
    /// Offset of its type from the start of the options header.
    pub offset: usize,
}

impl core::fmt::Display for OptionOverrun {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "option at offset {} reaches beyond its header", self.offset)
    }
}

impl core::error::Error for OptionOverrun {}

/// Walks options. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    octets: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<OptionTlv<'a>, OptionOverrun>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.octets.get(self.offset..)?;
        let offset = self.offset + OptionsView::LEN;
        let option = match rest {
            [] => return None,
            [OptionTlv::PAD1, ..] => {
                self.offset += 1;
                return Some(Ok(OptionTlv { offset, kind: OptionTlv::PAD1, data: &[] }));
            }
            [kind, len, data @ ..] => data.get(..usize::from(*len)).map(|data| OptionTlv { offset, kind: *kind, data }),
            [_] => None,
        };
        self.offset = match option {
            Some(option) => self.offset + 2 + option.data.len(),
            None => self.octets.len(),
        };
        Some(option.ok_or(OptionOverrun { offset }))
    }
}

/// Positions of an option's type: multiples of some octets from the start of the header, plus an offset (RFC 8200
/// section 4.2, "xn+y").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    multiple: usize,
    offset: usize,
}

impl Alignment {
    /// Anywhere.
    pub const ANY: Alignment = Alignment { multiple: 1, offset: 0 };
    /// 4n.
    pub const FOUR_N: Alignment = Alignment { multiple: 4, offset: 0 };
    /// 4n+2.
    pub const FOUR_N_PLUS_2: Alignment = Alignment { multiple: 4, offset: 2 };

    const EIGHT_N: Alignment = Alignment { multiple: 8, offset: 0 };

    fn padding_at(self, place: usize) -> usize {
        (self.multiple + self.offset - place % self.multiple) % self.multiple
    }
}

/// Writes a Hop-by-Hop or Destination Options header, with the padding that the options' alignments need (D40).
#[derive(Debug)]
pub struct OptionsWriter<'a> {
    into: &'a mut [u8],
    len: usize,
}

impl<'a> OptionsWriter<'a> {
    /// Writes to the front of `into`.
    pub fn new(into: &'a mut [u8]) -> Self {
        OptionsWriter { into, len: OptionsView::LEN }
    }

    /// An option, behind as much padding as its alignment needs. `None`, and nothing written, when it does not fit.
    pub fn option(&mut self, kind: u8, data: &[u8], alignment: Alignment) -> Option<()> {
        let padding = alignment.padding_at(self.len);
        let place = self.into.get_mut(self.len..self.len + padding + 2 + data.len())?;
        let (pad, option) = place.split_at_mut_checked(padding)?;
        let [kind_place, len_place, data_place @ ..] = option else { return None };
        (*kind_place, *len_place) = (kind, u8::try_from(data.len()).ok()?);
        data_place.copy_from_slice(data);
        self.len += padding + 2 + data.len();
        write_padding(pad);
        Some(())
    }

    /// Pads to a multiple of eight octets, writes the first two and returns the length. `None` when that does not fit.
    pub fn finish(self, next_header: NextHeader) -> Option<usize> {
        let len = self.len + Alignment::EIGHT_N.padding_at(self.len);
        let header = OptionsView::new(next_header, len)?;
        write_padding(self.into.get_mut(self.len..len)?);
        *OptionsView::split_mut(self.into).ok()?.0 = header;
        Some(len)
    }
}

fn write_padding(place: &mut [u8]) {
    place.fill(0);
    match place {
        [] => {}
        [kind] => *kind = OptionTlv::PAD1,
        [kind, len, data @ ..] => (*kind, *len) = (OptionTlv::PADN, data.len() as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn walk(octets: &[u8]) -> Vec<Result<(usize, u8, usize), OptionOverrun>> {
        let (header, _) = OptionsHeader::split(octets).unwrap();
        header.iter().map(|option| option.map(|o| (o.offset, o.kind, o.data.len()))).collect()
    }

    #[test]
    fn options_and_padding_are_walked() {
        let octets = [17, 1, 0, 1, 1, 0, 0x1E, 3, 7, 7, 7, 0, 1, 2, 0, 0];
        assert_eq!(walk(&octets), [Ok((2, 0, 0)), Ok((3, 1, 1)), Ok((6, 0x1E, 3)), Ok((11, 0, 0)), Ok((12, 1, 2))]);
    }

    #[test]
    fn an_overrun_ends_the_walk() {
        assert_eq!(walk(&[17, 0, 0x1E, 5, 0, 0, 0, 0]), [Err(OptionOverrun { offset: 2 })]);
        assert_eq!(walk(&[17, 0, 1, 3, 0, 0, 0, 0x1E]), [Ok((2, 1, 3)), Err(OptionOverrun { offset: 7 })]);
        assert!(OptionsHeader::split(&[17, 1, 0, 0, 0, 0, 0, 0]).is_err());
    }

    /// RFC 8200 section 4.2, on the types that the Fast CNP draft and IOAM use (FC-4-3).
    #[test]
    fn types_have_the_action_for_unknown_options() {
        let option = |kind| OptionTlv { offset: 2, kind, data: &[] };
        assert_eq!(option(0x1E).unknown_action(), UnknownAction::Skip);
        assert_eq!(option(0x5E).unknown_action(), UnknownAction::Discard);
        assert_eq!(option(0x9E).unknown_action(), UnknownAction::DiscardAndReport);
        assert_eq!(option(0xDE).unknown_action(), UnknownAction::DiscardAndReportUnlessMulticast);
        assert!(option(0x31).may_change() && !option(0x11).may_change() && !option(0x9E).may_change());
    }

    #[test]
    fn alignments() {
        let places =
            |alignment: Alignment| (0..9).map(move |place| place + alignment.padding_at(place)).collect::<Vec<_>>();
        assert_eq!(places(Alignment::ANY), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(places(Alignment::FOUR_N), [0, 4, 4, 4, 4, 8, 8, 8, 8]);
        assert_eq!(places(Alignment::FOUR_N_PLUS_2), [2, 2, 2, 6, 6, 6, 6, 10, 10]);
    }

    #[test]
    fn values_that_do_not_fit_are_not_written() {
        let mut octets = [0xEE; 8];
        let mut writer = OptionsWriter::new(&mut octets);
        assert_eq!(writer.option(0x1E, &[1, 2, 3, 4, 5], Alignment::ANY), None);
        assert_eq!(writer.option(0x1E, &[1], Alignment::ANY), Some(()));
        assert_eq!(writer.finish(NextHeader::UDP), Some(8));
        assert_eq!(octets, [17, 0, 0x1E, 1, 1, 1, 1, 0]);
        assert_eq!(OptionsWriter::new(&mut [0; 7]).finish(NextHeader::UDP), None);
        assert_eq!(OptionsWriter::new(&mut [0; 300]).option(0x1E, &[0; 256], Alignment::ANY), None);
    }
}
