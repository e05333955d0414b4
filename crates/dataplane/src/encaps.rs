//! H.Encaps and H.Encaps.Red (RFC 8986 sections 5.1, 5.2): an outer IPv6 header and an SRH around a packet; H.Encaps.L2
//! and H.Encaps.L2.Red (sections 5.3, 5.4): around an Ethernet frame.

use crate::drop::DropReason;
use crate::entropy;
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::ipv4;
use crate::security::HmacKey;
use srdma_frame::{Frame, HEADROOM, Pool};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::tlv::{HmacView, TlvTypes};
use srdma_wire::{Ipv6, SrhValue, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Outer hop limit of H.Encaps.
pub(crate) const ENCAPS_HOP_LIMIT: u8 = 64;

/// Whether the first segment is left out of the SRH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapsMode {
    /// H.Encaps: the SRH holds every segment.
    Encaps,
    /// H.Encaps.Red: the first segment stands in the destination address alone; a single one needs no SRH.
    Reduced,
}

/// The outer headers of a policy, ready to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encaps {
    headers: Vec<u8>,
    /// The key that has signed the SRH, if one has.
    key_id: Option<u32>,
}

/// Why there is no such policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncapsError {
    /// No segment.
    #[error("an encapsulation policy needs at least one segment")]
    NoSegments,
    /// The headers exceed the headroom of a frame.
    #[error("{segments} segments need {needed} octets of outer headers, there is room for {room}")]
    TooLong {
        /// Segments given.
        segments: usize,
        /// Octets needed.
        needed: usize,
        /// Octets of headroom.
        room: usize,
    },
}

impl Encaps {
    /// A policy without HMAC: the outer source address, the segments in the order of the path, and the outer hop limit.
    ///
    /// # Errors
    ///
    /// No segment, or more than a frame has room for.
    pub fn new(source: Ipv6Addr, segments: &[Ipv6Addr], mode: EncapsMode, hop_limit: u8) -> Result<Self, EncapsError> {
        Encaps::signed(source, segments, mode, hop_limit, None)
    }

    /// A policy: the outer source address, the segments in the order of the path, and the outer hop limit; signed with
    /// a key, if there is one and an SRH to carry the HMAC.
    pub(crate) fn signed(
        source: Ipv6Addr,
        segments: &[Ipv6Addr],
        mode: EncapsMode,
        hop_limit: u8,
        hmac: Option<(u32, &HmacKey)>,
    ) -> Result<Self, EncapsError> {
        let (&destination, further) = segments.split_first().ok_or(EncapsError::NoSegments)?;
        let listed = if mode == EncapsMode::Reduced { further } else { segments };
        let reversed: Vec<Ipv6Addr> = listed.iter().rev().copied().collect();
        let mut tlvs = [0; HmacView::LEN + HmacView::HMAC_LEN];
        let tlvs = match hmac {
            None => &[],
            Some((key_id, _)) => {
                // Reduced, the destination is no listed segment: flag D indicates it (RFC 8754 section 2.1.2.1).
                let is_covered = mode == EncapsMode::Encaps || hmac.is_some_and(|(_, key)| key.srh_flags() != 0);
                tlvs[..HmacView::LEN].copy_from_slice(HmacView::new(!is_covered, key_id).as_bytes());
                tlvs.as_slice()
            }
        };
        let srh_octets = if reversed.is_empty() { 0 } else { 8 + 16 * reversed.len() + tlvs.len() };
        let too_long =
            EncapsError::TooLong { segments: segments.len(), needed: 40 + srh_octets, room: HEADROOM - IPV6 };
        if 40 + srh_octets > HEADROOM - IPV6 {
            return Err(too_long);
        }
        let mut headers = vec![0; 40 + srh_octets];
        let outer = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: if srh_octets > 0 { NextHeader::ROUTING } else { NextHeader::IPV6 },
            hop_limit,
            source,
            destination,
        };
        headers[..40].copy_from_slice(outer.emit().as_bytes());
        if srh_octets > 0 {
            let segments_left = (segments.len() - 1) as u8;
            let flags = hmac.map_or(0, |(_, key)| key.srh_flags());
            SrhValue { next_header: NextHeader::IPV6, segments_left, flags, tag: 0 }
                .emit(&reversed, tlvs, &mut headers[40..])
                .ok_or(too_long)?;
        }
        let key_id = hmac.filter(|_| srh_octets > 0).map(|(key_id, _)| key_id);
        let mut policy = Encaps { headers, key_id };
        if let Some((key_id, key)) = hmac {
            policy.sign(key_id, key);
        }
        Ok(policy)
    }

    /// The same around something else than an IPv6 packet. The HMAC does not cover what follows the SRH.
    pub(crate) fn around(mut self, payload: NextHeader) -> Self {
        let at = if self.headers.len() > 40 { 40 } else { 6 };
        self.headers[at] = payload.0;
        self
    }

    /// The key that signs the SRH, if one does.
    pub(crate) fn key_id(&self) -> Option<u32> {
        self.key_id
    }

    /// Signs again, if `key_id` is the key of this policy.
    pub(crate) fn sign(&mut self, key_id: u32, key: &HmacKey) {
        let source = self.headers.get(8..24).and_then(|octets| octets.first_chunk().copied());
        if let (true, Some(source)) = (self.key_id == Some(key_id), source) {
            let signed = key.sign_last(&source, &mut self.headers[40..], TlvTypes::default());
            debug_assert!(signed.is_some(), "the SRH ends with its HMAC TLV");
        }
    }

    /// The outer headers, in which the fields that depend on the packet are zero.
    pub(crate) fn headers(&self) -> &[u8] {
        &self.headers
    }

    /// The destination of the outer header: the first segment.
    pub(crate) fn destination(&self) -> Option<&[u8; 16]> {
        self.headers.get(24..)?.first_chunk()
    }

    /// Octets of the outer headers.
    pub(crate) fn octets(&self) -> usize {
        self.headers.len()
    }

    /// Pushes the outer headers onto a packet whose hop limit the caller has seen to. Traffic class and ECN are copied
    /// outward (RFC 6040 normal mode), the flow label stands for the inner flow (RFC 6438). The Ethernet header is the
    /// caller's to write.
    ///
    /// # Errors
    ///
    /// A frame that is cut off, too long, or without room in front.
    #[inline]
    pub fn push(&self, frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
        let inner = InnerFields::of(frame.head(pool)).ok_or(DropReason::Truncated)?;
        self.push_around(inner, frame.len(), frame, pool)
    }

    /// The same onto a packet in a frame of `len` octets with these fields.
    #[inline]
    pub(crate) fn push_around(
        &self,
        inner: InnerFields,
        len: usize,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        if !frame.push(self.headers.len()) {
            return Err(DropReason::NoHeadroom);
        }
        let head = frame.head_mut(pool);
        copy_headers(&mut head[IPV6..], &self.headers);
        let payload_length = self.headers.len() - 40 + len - IPV6;
        complete_outer(head, inner.traffic_class, inner.flow, payload_length)
    }
}

/// Ethernet frames.
impl Encaps {
    /// Pushes the outer headers onto a frame, which stays whole behind them. The flow label stands for its flow.
    ///
    /// # Errors
    ///
    /// A frame that is too long, or without room in front.
    pub(crate) fn push_onto_frame(
        &self,
        traffic_class: u8,
        flow: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let payload_length = self.headers.len() - 40 + frame.len();
        if !frame.push(IPV6 + self.headers.len()) {
            return Err(DropReason::NoHeadroom);
        }
        let head = frame.head_mut(pool);
        copy_headers(&mut head[IPV6..], &self.headers);
        complete_outer(head, traffic_class, flow, payload_length)
    }
}

/// Copies outer headers to the front of `into`, those of the usual lengths in moves of a fixed length: without an SRH,
/// and with one of up to four segments.
#[inline(always)]
fn copy_headers(into: &mut [u8], headers: &[u8]) {
    match headers.len() {
        40 => copy_exactly::<40>(into, headers),
        64 => copy_exactly::<64>(into, headers),
        80 => copy_exactly::<80>(into, headers),
        96 => copy_exactly::<96>(into, headers),
        112 => copy_exactly::<112>(into, headers),
        len => into[..len].copy_from_slice(headers),
    }
}

#[inline(always)]
fn copy_exactly<const N: usize>(into: &mut [u8], from: &[u8]) {
    if let (Some(into), Some(from)) = (into.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *into = *from;
    }
}

/// What outer headers take over from a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InnerFields {
    traffic_class: u8,
    flow: u32,
}

impl InnerFields {
    /// Of the packet with these headers; `None` if it is cut off.
    #[inline]
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let traffic_class = ipv6(head).ok()?.traffic_class();
        Some(InnerFields { traffic_class, flow: entropy::of_packet(head) })
    }

    /// Of the IPv4 packet with these headers.
    #[cold]
    pub(crate) fn of_ipv4(head: &[u8]) -> Option<Self> {
        let traffic_class = ipv4::header(head, IPV6).ok()?.traffic_class();
        Some(InnerFields { traffic_class, flow: entropy::of_ipv4_packet(head) })
    }

    /// The hash of the packet's flow.
    pub(crate) fn flow(&self) -> u32 {
        self.flow
    }

    /// The same with another flow label.
    pub(crate) fn with_flow(self, flow: u32) -> Self {
        InnerFields { flow, ..self }
    }
}

/// Fills the fields of an outer IPv6 header that depend on the packet.
#[inline]
pub(crate) fn complete_outer(
    head: &mut [u8],
    traffic_class: u8,
    flow: u32,
    payload_length: usize,
) -> Result<(), DropReason> {
    let outer: &mut [u8; AFTER_IPV6] = head.first_chunk_mut().ok_or(DropReason::Truncated)?;
    let first = 6 << 28 | u32::from(traffic_class) << 20 | flow & 0xF_FFFF;
    outer[IPV6..IPV6 + 4].copy_from_slice(&first.to_be_bytes());
    let payload_length = u16::try_from(payload_length).map_err(|_| DropReason::PacketTooBig)?;
    outer[IPV6 + 4..IPV6 + 6].copy_from_slice(&payload_length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_needs_segments_that_fit() {
        let a: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let unsigned = |segments: &[Ipv6Addr], mode| Encaps::signed(a, segments, mode, 64, None);
        assert_eq!(unsigned(&[], EncapsMode::Reduced).err(), Some(EncapsError::NoSegments));
        assert_eq!(unsigned(&[a], EncapsMode::Reduced).unwrap().headers.len(), 40);
        assert_eq!(unsigned(&[a], EncapsMode::Encaps).unwrap().headers.len(), 64);
        assert_eq!(unsigned(&[a; 3], EncapsMode::Reduced).unwrap().headers.len(), 80);
        let error = unsigned(&[a; 13], EncapsMode::Encaps).unwrap_err();
        assert_eq!(error, EncapsError::TooLong { segments: 13, needed: 256, room: 242 });
    }

    /// Headers of all lengths, those that are copied in moves of a fixed length too; a packet is behind them as it was.
    #[test]
    fn headers_of_any_length_are_put_before_a_packet() {
        let a: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut pool = Pool::new(64);
        let packet = Ipv6 {
            traffic_class: 0x2D,
            flow_label: 0,
            payload_length: 60,
            next_header: NextHeader::NONE,
            hop_limit: 9,
            source: a,
            destination: a,
        };
        let packet = [packet.emit().as_bytes(), &[0x5A; 60]].concat();
        for (count, mode) in (1..=12).flat_map(|count| [(count, EncapsMode::Encaps), (count, EncapsMode::Reduced)]) {
            let policy = Encaps::new(a, &vec![a; count], mode, 64).unwrap();
            let mut frame = Frame::from_octets(&[&[0; IPV6], &packet[..]].concat(), &mut pool).unwrap();
            policy.push(&mut frame, &mut pool).unwrap();
            let octets = frame.to_vec(&pool);
            let (outer, inner) = octets[IPV6..].split_at(policy.octets());
            assert_eq!((&outer[6..], inner), (&policy.headers()[6..], &packet[..]), "{count} segments, {mode:?}");
            assert_eq!((outer[0], outer[1] >> 4), (0x62, 0xD));
            assert_eq!(usize::from(u16::from_be_bytes([outer[4], outer[5]])), policy.octets() - 40 + packet.len());
            frame.release(&mut pool);
        }
    }
}
