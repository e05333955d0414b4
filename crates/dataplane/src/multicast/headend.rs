//! The outer headers that a headend puts around a group's packets (MT-5.2-1, D4, D7).

use crate::security::HmacKey;
use srdma_group::{EdgeList, GroupEntry};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::tlv::{HmacView, MAX_RECEIVERS, ReceiverView, RegionView, TlvTypes, TlvWriter};
use srdma_wire::{Ipv6, SrhValue};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Hop limit of the outer header.
const HOP_LIMIT: u8 = 64;

/// An outer IPv6 header and an SRH in the reduced form: the Proxy Address is the only segment, Segments Left is 1, the
/// active SID stands in the destination address alone, which each copy sets for itself. `None` when the TLVs do not
/// fit.
pub(crate) fn headers(
    loopback: Ipv6Addr,
    entry: &GroupEntry,
    lists: &[EdgeList],
    with_regions: bool,
    types: TlvTypes,
    hmac: Option<(u32, &HmacKey)>,
) -> Option<Vec<u8>> {
    let mut tlvs = [0; srdma_wire::srh::MAX_LEN];
    let tlv_octets = write_tlvs(&mut tlvs, lists, with_regions, types, hmac.map(|(key_id, _)| key_id))?;
    let mut headers = vec![0; 40 + SrhValue::len_octets(1, tlv_octets)?];
    let outer = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: NextHeader::ROUTING,
        hop_limit: HOP_LIMIT,
        source: loopback,
        destination: Ipv6Addr::UNSPECIFIED,
    };
    headers[..40].copy_from_slice(outer.emit().as_bytes());
    let flags = hmac.map_or(0, |(_, key)| key.srh_flags());
    let srh = SrhValue { next_header: NextHeader::IPV6, segments_left: 1, flags, tag: 0 };
    srh.emit(&[entry.proxy], &tlvs[..tlv_octets], &mut headers[40..])?;
    if let Some((_, key)) = hmac {
        key.sign_last(&loopback.octets(), &mut headers[40..], types)?;
    }
    Some(headers)
}

/// End.MT TLVs edge by edge, at most eleven receivers each, each with its MR TLV behind it; the HMAC TLV last. An MR
/// TLV has the regions of all its receivers, or of none: those are in the edge's entry (D231).
fn write_tlvs(
    into: &mut [u8],
    lists: &[EdgeList],
    with_regions: bool,
    types: TlvTypes,
    hmac_key_id: Option<u32>,
) -> Option<usize> {
    let mut writer = TlvWriter::new(into, types);
    for list in lists {
        for chunk in list.receivers.chunks(MAX_RECEIVERS) {
            let receivers: Vec<ReceiverView> =
                chunk.iter().map(|receiver| ReceiverView::new(receiver.address, receiver.qpn)).collect();
            writer.end_mt(list.edge, &receivers)?;
            if with_regions {
                let listed = chunk.iter().filter_map(|receiver| receiver.region);
                let regions: Vec<RegionView> = listed.map(|region| RegionView::new(region.base, region.rkey)).collect();
                if !regions.is_empty() && regions.len() != chunk.len() {
                    return None;
                }
                writer.mr(list.edge, &regions)?;
            }
        }
    }
    if let Some(key_id) = hmac_key_id {
        // A replication root cannot cover the destination: replication rewrites it (D4, RFC 9524).
        writer.hmac(&HmacView::new(true, key_id), &[0; HmacView::HMAC_LEN])?;
    }
    Some(writer.len())
}
