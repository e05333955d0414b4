//! Headers of the packets that a script gives to a node, written octet by octet.

use super::plan::*;
use super::world::{HMAC_KEYS, KEYS};
use crate::choices::Choices;
use srdma_wire::Srh;
use srdma_wire::srh::SrhValue;
use srdma_wire::tlv::{HmacView, ReceiverView, RegionView, TlvTypes, TlvWriter};
use srdma_wire::{NextHeader, Qpn, View};
use std::net::Ipv6Addr;

/// Octets of an IPv6 header.
pub(super) const IPV6: usize = 40;

/// Appends an IPv6 header whose payload length is still to be filled in.
pub(super) fn ipv6(into: &mut Vec<u8>, next_header: u8, hop_limit: u8, source: Ipv6Addr, destination: Ipv6Addr) {
    into.extend([0x60, 0, 0, 0, 0, 0, next_header, hop_limit]);
    into.extend(source.octets());
    into.extend(destination.octets());
}

/// Appends the outer headers around a packet to `inner`: IPv6, perhaps options, perhaps an SRH with TLVs. `next_header`
/// is that of what follows.
pub(super) fn outer(choices: &mut Choices<'_>, into: &mut Vec<u8>, inner: Ipv6Addr, next_header: u8) {
    let destination = choices.of(&DESTINATIONS);
    let form = choices.octet();
    let source = if form & 1 == 0 { ABOVE } else { choices.of(&SOURCES) };
    let with_options = form & 0x0E == 0x0E;
    let srh_form = form >> 4;
    let srh_next = if srh_form == 15 { next_header } else { 43 };
    let hop_limit = if form == 0xFE { choices.octet() } else { 64 };
    let first = if with_options { 60 } else { srh_next };
    ipv6(into, first, hop_limit, source, destination);
    if with_options {
        into.extend([srh_next, 0, 1, 4, 0, 0, 0, 0]);
    }
    if srh_form != 15 {
        srh(choices, into, srh_form, source, destination, inner, next_header);
    }
}

/// An SRH whose last segment is the destination of the inner packet. Bits of `form`: the active segment is not listed
/// (1, cleared: reduced), more segments (2), TLVs (4), exhausted (8).
fn srh(
    choices: &mut Choices<'_>,
    into: &mut Vec<u8>,
    form: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    inner: Ipv6Addr,
    next_header: u8,
) {
    let reduced = form & 1 == 0;
    let mut segments = [inner; 6];
    let mut count = 1;
    if form & 2 != 0 {
        for segment in &mut segments[1..1 + choices.below(4)] {
            *segment = choices.of(&DESTINATIONS);
            count += 1;
        }
    }
    let mut segments_left = count as u8;
    if !reduced {
        segments[count] = destination;
        count += 1;
    }
    if form & 8 != 0 {
        segments_left = choices.octet() & 7;
    }
    let mut octets = [0; 2048];
    let mut tlvs = [0; 1024];
    let mut hmac = None;
    let tlvs_len = if form & 4 == 0 { 0 } else { self::tlvs(choices, &mut tlvs, reduced, &mut hmac) };
    let flags = if hmac.is_some_and(|(_, key)| KEYS[key].0 == 9) { 8 } else { 0 };
    let value = SrhValue { next_header: NextHeader(next_header), segments_left, flags, tag: 0 };
    let Some(len) = value.emit(&segments[..count], &tlvs[..tlvs_len], &mut octets) else {
        return;
    };
    if let Some((at, index)) = hmac {
        sign(&mut octets[..len], len - tlvs_len + at, source, index);
    }
    into.extend(&octets[..len]);
}

/// Writes TLVs; where an HMAC TLV begins and the position of its key among [`KEYS`] are noted for [`sign`].
fn tlvs(choices: &mut Choices<'_>, into: &mut [u8; 1024], reduced: bool, hmac: &mut Option<(usize, usize)>) -> usize {
    let mut writer = TlvWriter::new(into, TlvTypes::default());
    let kinds = choices.octet();
    let edge = choices.of(&[LOOPBACK, END_MT, BELOW[0], END_MT_SIGNED]);
    let receivers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        .map(|host| ReceiverView::new(receiver(host), Qpn::from_octets([0, 1, host as u8])));
    let count = choices.below(12);
    let mut listed = receivers;
    match choices.octet() {
        0xF0..=0xF3 => listed[0] = listed[1],
        0xF4..=0xF7 => listed[0] = ReceiverView::new(choices.of(&DESTINATIONS), Qpn::from_octets([0, 1, 1])),
        0xF8..=0xFB => listed[0] = ReceiverView::new(receiver(1), Qpn::from_octets([0, 0, 1])),
        _ => {}
    }
    let listed = &listed[..count];
    // Headers that do not fit are left out.
    if kinds & 1 != 0 {
        let _ = writer.end_mt(edge, listed);
    }
    if kinds & 2 != 0 {
        let regions = [RegionView::new(0x5000, 9); 11];
        let _ = writer.mr(edge, &regions[..if kinds & 4 != 0 { choices.below(12) } else { count }]);
    }
    if kinds & 8 != 0 {
        let _ = writer.end_mt(edge, &receivers[..1 + choices.below(4)]);
    }
    if kinds & 0x30 != 0 {
        let index = choices.below(KEYS.len());
        let key_id = if kinds & 0x30 == 0x20 { 99 } else { KEYS[index].0 };
        let covers_destination = if index == 2 { false } else { reduced };
        *hmac = Some((writer.len(), index));
        let _ = writer.hmac(&HmacView::new(covers_destination, key_id), &[0; 32]);
    }
    let len = writer.len();
    match kinds >> 6 {
        0 | 1 => len,
        2 => {
            into[len..len + 8].copy_from_slice(&[4, 6, 0, 0, 0, 0, 0, 0]);
            len + 8
        }
        // Of any type and length.
        _ => {
            let octets = [choices.octet(), choices.octet(), 0, 0, 0, 0, 0, 0];
            into[len..len + 8].copy_from_slice(&octets);
            len + 8
        }
    }
}

/// Fills in the HMAC of the TLV at an offset.
fn sign(srh: &mut [u8], at: usize, source: Ipv6Addr, index: usize) {
    let signed = {
        let Ok((view, _)) = Srh::split(srh) else {
            return;
        };
        let Ok((tlv, _)) = HmacView::split(srh.get(at..).unwrap_or(&[])) else {
            return;
        };
        HMAC_KEYS[index].sign(&source.octets(), &view, tlv, TlvTypes::default())
    };
    if let Some(place) = srh.get_mut(at + HmacView::LEN..at + HmacView::LEN + 32) {
        place.copy_from_slice(&signed);
    }
}
