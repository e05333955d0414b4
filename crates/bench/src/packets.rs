//! Input frames of the node.

use srdma_wire::ipv6::NextHeader;
use srdma_wire::rocev2::{Extended, PacketValue};
use srdma_wire::tlv::{ReceiverView, TlvTypes, TlvWriter};
use srdma_wire::{Aeth, Bth, EtherType, Ipv6, Opcode, Psn, Qpn, SrhValue, Syndrome};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Octets of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// Octets of an Ethernet header and an IPv6 header.
pub(super) const AFTER_IPV6: usize = ETHERNET + Ipv6::LEN;

/// The hop limit that every header arrives with.
pub(super) const HOP_LIMIT: u8 = 64;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);
const OUTER_SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1);

/// The source's own address and port entropy, as in RoCEv2 packets.
const SOURCE_PORT: u16 = 0xC001;

/// An Ethernet header with room for what follows.
fn ethernet(destination: [u8; 6]) -> Vec<u8> {
    let mut frame = destination.to_vec();
    frame.extend([2, 0, 0, 0, 0, 0xFF]);
    frame.extend(EtherType::IPV6.0.to_be_bytes());
    frame
}

fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: NextHeader, payload: usize) -> Ipv6 {
    let payload_length = payload as u16;
    Ipv6 {
        traffic_class: 0,
        flow_label: 0x1_2345,
        payload_length,
        next_header,
        hop_limit: HOP_LIMIT,
        source,
        destination,
    }
}

/// A plain packet of `len` octets to `destination`.
fn plain(destination: Ipv6Addr, len: usize) -> Vec<u8> {
    let mut packet = ipv6(SOURCE, destination, NextHeader::NONE, len - Ipv6::LEN).emit().as_bytes().to_vec();
    packet.resize(len, 0x5A);
    packet
}

/// An SRH with one segment.
fn srh(segment: Ipv6Addr, segments_left: u8, tlvs: &[u8]) -> Vec<u8> {
    let len = SrhValue::len_octets(1, tlvs.len()).expect("the lists of eleven receivers fit");
    let mut srh = vec![0; len];
    let value = SrhValue { next_header: NextHeader::IPV6, segments_left, flags: 0, tag: 0 };
    value.emit(&[segment], tlvs, &mut srh).expect("the length was asked for");
    srh
}

/// A frame of `len` octets that carries a plain packet to `destination`.
pub(super) fn unencapsulated(mac: [u8; 6], destination: Ipv6Addr, len: usize) -> Vec<u8> {
    [ethernet(mac), plain(destination, len - ETHERNET)].concat()
}

/// A frame of `len` octets to a SID, with an SRH of one segment, around a plain packet.
pub(super) fn with_srh(mac: [u8; 6], sid: Ipv6Addr, segment: (Ipv6Addr, u8), inner: Ipv6Addr, len: usize) -> Vec<u8> {
    let srh = srh(segment.0, segment.1, &[]);
    let inner = plain(inner, len - AFTER_IPV6 - srh.len());
    let outer = ipv6(OUTER_SOURCE, sid, NextHeader::ROUTING, len - AFTER_IPV6).emit();
    [ethernet(mac), outer.as_bytes().to_vec(), srh, inner].concat()
}

/// A frame of `len` octets to a SID, without an SRH, around a plain packet.
pub(super) fn without_srh(mac: [u8; 6], sid: Ipv6Addr, inner: Ipv6Addr, len: usize) -> Vec<u8> {
    in_tunnel(mac, (OUTER_SOURCE, sid), &plain(inner, len - AFTER_IPV6))
}

/// A frame that carries a packet in an outer header, without an SRH.
pub(super) fn in_tunnel(mac: [u8; 6], (source, sid): (Ipv6Addr, Ipv6Addr), inner: &[u8]) -> Vec<u8> {
    let outer = ipv6(source, sid, NextHeader::IPV6, inner.len()).emit();
    [&ethernet(mac), outer.as_bytes(), inner].concat()
}

/// The octets of an End.MT TLV.
pub(super) fn end_mt_tlv(edge: Ipv6Addr, receivers: &[(Ipv6Addr, Qpn)]) -> Vec<u8> {
    let mut octets = vec![0; 512];
    let mut writer = TlvWriter::new(&mut octets, TlvTypes::default());
    let views: Vec<ReceiverView> = receivers.iter().map(|(address, qpn)| ReceiverView::new(*address, *qpn)).collect();
    writer.end_mt(edge, &views).expect("eleven receivers fit a TLV");
    let len = writer.len();
    octets.truncate(len);
    octets
}

/// Octets of the headers and the ICRC around the payload of a multicast frame.
pub(super) fn multicast_overhead(tlvs: &[u8]) -> usize {
    const UDP_BTH_ICRC: usize = 8 + 12 + 4;
    AFTER_IPV6 + 8 + 16 + tlvs.len() + Ipv6::LEN + UDP_BTH_ICRC
}

/// A frame that carries a data packet of a group to a SID: a WRITE Middle with `payload_octets`, a multiple of four.
pub(super) fn multicast(
    mac: [u8; 6],
    sid: Ipv6Addr,
    (proxy, qpn): (Ipv6Addr, Qpn),
    tlvs: &[u8],
    psn: Psn,
    payload_octets: usize,
) -> Vec<u8> {
    let inner = data_packet(proxy, qpn, psn, &vec![0x5A; payload_octets]);
    let srh = srh(proxy, 1, tlvs);
    let outer = ipv6(OUTER_SOURCE, sid, NextHeader::ROUTING, srh.len() + inner.len()).emit();
    [ethernet(mac), outer.as_bytes().to_vec(), srh, inner].concat()
}

/// A frame that carries a receiver's response to a group.
pub(super) fn response(
    mac: [u8; 6],
    receiver: Ipv6Addr,
    (proxy, qpn): (Ipv6Addr, Qpn),
    psn: Psn,
    syndrome: Syndrome,
) -> Vec<u8> {
    let aeth = Aeth { syndrome, msn: 1 }.emit();
    let value = PacketValue {
        ipv6: ipv6(receiver, proxy, NextHeader::UDP, 0),
        source_port: SOURCE_PORT,
        bth: Bth::new(Opcode::ACKNOWLEDGE, qpn, psn),
        extended: Extended::Aeth(&aeth),
        payload: &[],
    };
    let mut packet = vec![0; value.len_octets()];
    value.emit(&mut packet).expect("the length was asked for");
    [ethernet(mac), packet].concat()
}

/// A data packet of a group as its source sends it.
pub(super) fn data_packet(proxy: Ipv6Addr, qpn: Qpn, psn: Psn, payload: &[u8]) -> Vec<u8> {
    let value = PacketValue {
        ipv6: ipv6(SOURCE, proxy, NextHeader::UDP, 0),
        source_port: SOURCE_PORT,
        bth: Bth::new(Opcode::WRITE_MIDDLE, qpn, psn),
        extended: Extended::None,
        payload,
    };
    let mut packet = vec![0; value.len_octets()];
    value.emit(&mut packet).expect("the length was asked for");
    packet
}
