//! The Segment Routing Header and its TLVs.

use super::dissector::{Carrier, Dissector, Next};
use super::hmac::{Match, cover_name};
use super::layer::{EndMt, Hex64, HmacTlv, Layer, Mr, OtherTlv, Receiver, Region, Srh};
use super::record::{Damage, HmacVerdict};
use srdma_dataplane::Cover;
use srdma_wire::View;
use srdma_wire::srh::{self, SrhError, SrhView};
use srdma_wire::tlv::{EdgeListView, HmacView, ReceiverView, RegionView, Tlv, TlvError, TlvTypes, Tlvs};

/// SRH, or a routing header of another type, which is not dissected.
pub(super) fn srh(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (srh, rest) = match srh::Srh::split(dissector.octets) {
        Ok(split) => split,
        Err(SrhError::RoutingType(other)) => return Ok(dissector.payload(format!("routing header of type {other}"))),
        Err(error) => return Err(dissector.damage(error)),
    };
    let header = srh.header;
    dissector.push(Layer::Srh(Srh {
        next_header: header.next_header().0,
        length_octets: header.total_len(),
        segments_left: header.segments_left,
        last_entry: header.last_entry(),
        flags: header.flags,
        tag: header.tag(),
        segments: srh.segments.iter().map(|segment| (*segment).into()).collect(),
    }));
    for tlv in Tlvs::new(srh.tlvs, TlvTypes::default()) {
        match tlv {
            Ok(tlv) => push_tlv(dissector, &srh, tlv),
            Err(error) => dissector.report(tlv_damage(dissector, header, error)),
        }
    }
    dissector.extension(rest, header.total_len());
    if let (Some(carrier), Some(last)) = (&mut dissector.carrier, srh.segment(0))
        && header.segments_left > 0
    {
        // Checksums of the transport are made for the final destination (RFC 8200 section 8.1).
        carrier.ipv6.set_destination(last);
    }
    Ok(Next::Header(header.next_header()))
}

/// The error of a TLV, and its offset in the packet.
fn tlv_damage(dissector: &Dissector<'_>, header: &SrhView, error: TlvError) -> Damage {
    let (offset, reason) = match error {
        TlvError::Overrun { offset } => (offset, "TLV reaches beyond the SRH".to_owned()),
        TlvError::Length { offset, kind, length } => {
            (offset, format!("TLV of type {kind} cannot have the length {length} with this content"))
        }
    };
    dissector.damage_at(SrhView::LEN + header.segments_len() + offset, reason)
}

fn push_tlv(dissector: &mut Dissector<'_>, srh: &srh::Srh<'_>, tlv: Tlv<'_>) {
    let layer = match tlv {
        Tlv::Pad1 | Tlv::PadN(_) => return,
        Tlv::EndMt(list, receivers) => end_mt(list, receivers),
        Tlv::Mr(list, regions) => mr(list, regions),
        Tlv::Hmac(view, digest) => {
            let tlv = hmac(dissector, srh, view, digest);
            dissector.dissection.hmac = dissector.dissection.hmac.max(tlv.verdict);
            Layer::HmacTlv(tlv)
        }
        Tlv::Other(kind, value) => Layer::Tlv(OtherTlv { kind, value: hex::encode(value) }),
    };
    dissector.push(layer);
}

fn end_mt(list: &EdgeListView, receivers: &[ReceiverView]) -> Layer {
    let receivers = receivers.iter().map(|entry| Receiver { address: entry.address(), qpn: entry.qpn().get() });
    Layer::EndMt(EndMt { edge: list.edge(), receivers: receivers.collect() })
}

fn mr(list: &EdgeListView, regions: &[RegionView]) -> Layer {
    let regions =
        regions.iter().map(|entry| Region { virtual_address: Hex64(entry.virtual_address()), rkey: entry.rkey() });
    Layer::Mr(Mr { edge: list.edge(), regions: regions.collect() })
}

fn hmac(dissector: &Dissector<'_>, srh: &srh::Srh<'_>, view: &HmacView, digest: &[u8]) -> HmacTlv {
    let found = dissector.carrier.as_ref().map(|Carrier { ipv6, .. }| {
        let matched = dissector.settings.hmac_keys.verify(ipv6.source_octets(), srh, view, digest);
        (matched, destination_is_due(ipv6.destination_octets(), srh, view, matched))
    });
    let (verdict, cover, reason) = match found {
        Some((Match::Matches(cover), true)) => (HmacVerdict::Ok, Some(cover_name(cover)), None),
        Some((Match::Matches(cover), false)) => {
            let reason = "the destination address is not Segment List[Segments Left]";
            (HmacVerdict::Bad, Some(cover_name(cover)), Some(reason))
        }
        Some((Match::Differs, _)) => (HmacVerdict::Bad, None, Some("not the HMAC of this SRH under this key")),
        Some((Match::UnknownKey, _)) => (HmacVerdict::UnknownKey, None, None),
        None => (HmacVerdict::Bad, None, Some("no IPv6 header before the SRH")),
    };
    HmacTlv {
        key_id: view.key_id(),
        d_flag: view.destination_not_covered(),
        digest: hex::encode(digest),
        verdict,
        cover,
        reason,
    }
}

/// Whether the destination address is the segment that is due, or the D flag is set, so that a reduced Segment List
/// does not have it (RFC 8754 section 2.1.2.1). Linux never sets the flag.
fn destination_is_due(destination: &[u8; 16], srh: &srh::Srh<'_>, view: &HmacView, matched: Match) -> bool {
    match srh.segments.get(usize::from(srh.header.segments_left)) {
        Some(segment) => segment == destination,
        None => view.destination_not_covered() || matched == Match::Matches(Cover::Linux),
    }
}
