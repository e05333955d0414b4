use super::{EdgeListView, HmacView, ReceiverView, RegionView, TlvTypes};
use crate::codepoints;
use crate::view::View;
use core::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Writes TLVs one after the other. Each method returns `None` when the TLV does not fit, and then writes nothing.
#[derive(Debug)]
pub struct TlvWriter<'a> {
    into: &'a mut [u8],
    len: usize,
    types: TlvTypes,
}

impl<'a> TlvWriter<'a> {
    /// Writes to the front of `into`.
    pub fn new(into: &'a mut [u8], types: TlvTypes) -> Self {
        TlvWriter { into, len: 0, types }
    }

    /// Octets written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An End.MT TLV and the PadN that brings it to a multiple of eight (D7).
    pub fn end_mt(&mut self, edge: Ipv6Addr, receivers: &[ReceiverView]) -> Option<()> {
        let view = EdgeListView::new(self.types.end_mt, edge, receivers.len(), ReceiverView::LEN)?;
        self.put_padded(view.as_bytes(), receivers.as_bytes())
    }

    /// An MR TLV and the PadN that brings it to a multiple of eight.
    pub fn mr(&mut self, edge: Ipv6Addr, regions: &[RegionView]) -> Option<()> {
        let view = EdgeListView::new(self.types.mr, edge, regions.len(), RegionView::LEN)?;
        self.put_padded(view.as_bytes(), regions.as_bytes())
    }

    /// An HMAC TLV with its HMAC field.
    pub fn hmac(&mut self, view: &HmacView, hmac: &[u8; HmacView::HMAC_LEN]) -> Option<()> {
        self.put_padded(view.as_bytes(), hmac)
    }

    fn put_padded(&mut self, header: &[u8], entries: &[u8]) -> Option<()> {
        let len = header.len() + entries.len();
        let padding = len.wrapping_neg() % 8;
        let place = self.into.get_mut(self.len..self.len + len + padding)?;
        let (first, rest) = place.split_at_mut_checked(header.len())?;
        let (second, pad) = rest.split_at_mut_checked(entries.len())?;
        first.copy_from_slice(header);
        second.copy_from_slice(entries);
        // Entries are multiples of four octets, so that what is missing is nothing or at least two octets.
        pad.fill(0);
        if let [kind, length, value @ ..] = pad {
            *kind = codepoints::srh_tlv::PADN;
            *length = value.len() as u8;
        }
        self.len += len + padding;
        Some(())
    }
}
