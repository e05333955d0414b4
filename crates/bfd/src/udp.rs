//! A control packet in UDP over IPv6 (RFC 5881 sections 4 and 5, RFC 5883 section 4): IPv6 header, UDP header, payload,
//! with no extension header between them.

use crate::control::Control;
use crate::refusal::Refusal;
use crate::sessions::{Arrival, Hops, Peer};
use srdma_wire::checksum::Sum;
use srdma_wire::{Ipv6, Ipv6View, NextHeader, Udp, UdpView, View};
use zerocopy::IntoBytes;

/// Destination port over a single hop.
pub const SINGLE_HOP_PORT: u16 = 3784;

/// Destination port over any number of hops.
pub const MULTI_HOP_PORT: u16 = 4784;

/// The first source port; the last is 65535.
pub const FIRST_SOURCE_PORT: u16 = 49_152;

/// Hop limit of our packets, and of those of a single hop that are taken: no router lets such a one pass.
pub const HOP_LIMIT: u8 = 255;

/// Class selector 6, network control.
const TRAFFIC_CLASS: u8 = 0xC0;

/// Octets of a packet, from the IPv6 header on.
pub const LEN: usize = Ipv6::LEN + UDP_LEN;

const UDP_LEN: usize = Udp::LEN + Control::LEN;

impl Hops {
    /// The UDP destination port.
    pub const fn port(self) -> u16 {
        match self {
            Hops::Single { .. } => SINGLE_HOP_PORT,
            Hops::Multi => MULTI_HOP_PORT,
        }
    }
}

/// The IPv6 packet with a control packet for a peer.
pub fn emit(peer: &Peer, source_port: u16, control: &Control) -> [u8; LEN] {
    let ipv6 = Ipv6 {
        traffic_class: TRAFFIC_CLASS,
        flow_label: 0,
        payload_length: UDP_LEN as u16,
        next_header: NextHeader::UDP,
        hop_limit: HOP_LIMIT,
        source: peer.local,
        destination: peer.remote,
    };
    let (source, destination) = (peer.local.octets(), peer.remote.octets());
    let udp =
        |checksum| Udp { source_port, destination_port: peer.hops.port(), length: UDP_LEN as u16, checksum }.emit();
    let body = control.emit();
    let mut sum = Sum::pseudo_header(&source, &destination, UDP_LEN as u32, NextHeader::UDP);
    sum.add(udp(0).as_bytes());
    sum.add(body.as_bytes());
    let (ipv6, udp) = (ipv6.emit(), udp(sum.udp_checksum()));
    let mut packet = [0; LEN];
    let octets = [ipv6.as_bytes(), udp.as_bytes(), body.as_bytes()].into_iter().flatten();
    packet.iter_mut().zip(octets).for_each(|(place, octet)| *place = *octet);
    packet
}

/// The payload of an IPv6 packet that came by an interface. Octets behind the packet are ignored.
///
/// # Errors
///
/// If it is no UDP at one of the two ports, or damaged.
pub fn parse(octets: &[u8], interface: u32) -> Result<(Arrival, &[u8]), Refusal> {
    let (ipv6, rest) = Ipv6View::split(octets).map_err(|_| Refusal::NotIpv6)?;
    if ipv6.version() != 6 {
        return Err(Refusal::NotIpv6);
    }
    if ipv6.next_header() != NextHeader::UDP {
        return Err(Refusal::NotUdp);
    }
    let datagram = rest.get(..usize::from(ipv6.payload_length())).ok_or(Refusal::NotIpv6)?;
    let (udp, payload) = UdpView::split(datagram).map_err(|_| Refusal::DatagramLength)?;
    let hops = match udp.destination_port() {
        SINGLE_HOP_PORT => Hops::Single { interface },
        MULTI_HOP_PORT => Hops::Multi,
        _ => return Err(Refusal::OtherPort),
    };
    if udp.length() != ipv6.payload_length() {
        return Err(Refusal::DatagramLength);
    }
    let (source, destination) = (ipv6.source(), ipv6.destination());
    let length = u32::from(udp.length());
    let mut sum = Sum::pseudo_header(&source.octets(), &destination.octets(), length, NextHeader::UDP);
    sum.add(datagram);
    if udp.checksum() == 0 || sum.checksum() != 0 {
        return Err(Refusal::Checksum);
    }
    Ok((Arrival { hops, source, destination, hop_limit: ipv6.hop_limit }, payload))
}
