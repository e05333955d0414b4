//! Translation of RoCEv2 packets between IPv4 and IPv6 with IPv4-mapped addresses (D272): as by RFC 7915, and with the
//! ICRC and the UDP checksum, which no router knows of.
//!
//! ```text
//! | IPv4 20                   | UDP 8: checksum | BTH 12 | …, payload, pad | ICRC 4 |
//! | IPv6 40: ::ffff:a.b.c.d   |       "         |        same octets       |    "   |
//! ```
//!
//! The ICRC is changed by its linearity: a wrong one stays wrong. The sum of a mapped address is that of the address in
//! it, since 0xFFFF is zero in one's complement: of a UDP checksum only the ICRC in what it
//! covers changes.

use crate::checksum::Update;
use crate::codepoints::ROCEV2_PORT;
use crate::icrc::{Delta, Icrc, Shift, between_versions};
use crate::ipv4::{Ipv4, Ipv4View, header_checksum};
use crate::ipv6::{Ipv6, Ipv6View, NextHeader};
use crate::udp::UdpView;
use crate::view::View;
use core::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Octets by which the header of IPv6 is longer.
pub const LONGER: usize = Ipv6View::LEN - Ipv4View::LEN;

/// The octets of a packet that its translation reads: the network header and UDP. The longer of both versions.
pub const HEADERS: usize = Ipv6View::LEN + UdpView::LEN;

/// Reason for which a packet is not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTranslated {
    /// An IPv4 header with options, or extension headers before UDP.
    Options,
    /// It is a fragment, or no UDP to the port of RoCEv2, or its lengths disagree.
    NotRocev2,
    /// An address that is not IPv4-mapped.
    Address(Ipv6Addr),
}

/// The translation of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Translated<H> {
    /// Its network header.
    pub header: H,
    /// Its UDP checksum; zero, which means none, stays.
    pub udp_checksum: u16,
    /// Its ICRC.
    pub icrc: Icrc,
}

/// Translates an IPv4 packet, which begins with `head`, has `octets` octets in all and this ICRC. Its header checksum
/// is the caller's to verify.
pub fn to_ipv6(head: &[u8], octets: usize, icrc: Icrc) -> Result<Translated<Ipv6View>, NotTranslated> {
    let (ipv4, rest) = Ipv4View::split(head).map_err(|_| NotTranslated::NotRocev2)?;
    if ipv4.version() != 4 || usize::from(ipv4.total_length()) != octets {
        return Err(NotTranslated::NotRocev2);
    }
    if ipv4.header_len() != Ipv4View::LEN {
        return Err(NotTranslated::Options);
    }
    if ipv4.protocol != NextHeader::UDP.0 || ipv4.more_fragments() || ipv4.fragment_offset() != 0 {
        return Err(NotTranslated::NotRocev2);
    }
    let udp = rocev2(rest, octets - Ipv4View::LEN)?;
    let header = Ipv6 {
        traffic_class: ipv4.traffic_class(),
        flow_label: 0,
        payload_length: udp.length(),
        next_header: NextHeader::UDP,
        hop_limit: ipv4.ttl(),
        source: ipv4.source().to_ipv6_mapped(),
        destination: ipv4.destination().to_ipv6_mapped(),
    };
    let header = header.emit();
    Ok(changed(header, ipv4, &header, udp, icrc))
}

/// Translates an IPv6 packet, which begins with `head`, has `octets` octets in all and this ICRC.
pub fn to_ipv4(head: &[u8], octets: usize, icrc: Icrc) -> Result<Translated<Ipv4View>, NotTranslated> {
    let (ipv6, rest) = Ipv6View::split(head).map_err(|_| NotTranslated::NotRocev2)?;
    if ipv6.version() != 6 || Ipv6View::LEN + usize::from(ipv6.payload_length()) != octets {
        return Err(NotTranslated::NotRocev2);
    }
    if ipv6.next_header() != NextHeader::UDP {
        return Err(NotTranslated::Options);
    }
    let udp = rocev2(rest, octets - Ipv6View::LEN)?;
    let header = ipv4_header(ipv6)?;
    Ok(changed(header, &header, ipv6, udp, icrc))
}

/// The IPv4 header of an IPv6 packet: of an atomic datagram (RFC 6864), whose Identification is zero.
pub fn ipv4_header(ipv6: &Ipv6View) -> Result<Ipv4View, NotTranslated> {
    let mapped = |address: Ipv6Addr| address.to_ipv4_mapped().ok_or(NotTranslated::Address(address));
    let header = Ipv4 {
        traffic_class: ipv6.traffic_class(),
        total_length: ipv6.payload_length().checked_add(Ipv4View::LEN as u16).ok_or(NotTranslated::NotRocev2)?,
        ttl: ipv6.hop_limit,
        protocol: ipv6.next_header().0,
        source: mapped(ipv6.source())?,
        destination: mapped(ipv6.destination())?,
    };
    let mut view = header.emit();
    view.set_dont_fragment();
    view.set_checksum(0);
    let checksum = header_checksum(view.as_bytes());
    view.set_checksum(checksum);
    Ok(view)
}

/// The ICRC of a packet in IPv6 from that of the same atomic datagram in IPv4; and that in IPv4 from that in IPv6, for
/// the difference is one. `udp_length` is that of the datagram.
pub fn icrc_in_other_version(ipv6: &Ipv6View, udp_length: u16, icrc: Icrc) -> Result<Icrc, NotTranslated> {
    let behind = Shift::octets(udp_length.saturating_sub(Icrc::LEN as u16));
    Ok(icrc.changed_by(between_versions(&ipv4_header(ipv6)?, ipv6).then(behind)))
}

/// Whether an ICRC is that of a datagram in IPv4 with some Identification, given that with Identification 0. Receivers
/// whose socket does not tell the Identification, which the ICRC covers, verify 16 bits of the 32 by this (D292).
pub fn is_icrc_of_any_identification(udp_length: u16, icrc_without: Icrc, icrc: Icrc) -> bool {
    /// Octets of an IPv4 header behind the Identification.
    const BEHIND_IDENTIFICATION: u16 = Ipv4View::LEN as u16 - 6;
    let behind = Shift::octets(udp_length.saturating_add(BEHIND_IDENTIFICATION).saturating_sub(Icrc::LEN as u16));
    let difference = |bit: u32| {
        let delta = Delta::between(&[0; 2], &(1_u16 << bit).to_be_bytes()).then(behind);
        u32::from_be_bytes(icrc_without.changed_by(delta).0) ^ u32::from_be_bytes(icrc_without.0)
    };
    // Each bit of the Identification changes the ICRC by a value of its own, whatever the others are: the difference is
    // reduced by those values, each cleared of the leading bits of those before.
    let mut basis: [u32; 16] = [0; 16];
    for bit in 0..16 {
        let value = reduced(difference(bit), &basis);
        if let Some(place) = basis.get_mut(bit as usize) {
            *place = value;
        }
    }
    reduced(u32::from_be_bytes(icrc_without.0) ^ u32::from_be_bytes(icrc.0), &basis) == 0
}

/// Clears the leading bit of each value of a basis; zeros are none.
fn reduced(mut value: u32, basis: &[u32]) -> u32 {
    for of_basis in basis {
        let leading = of_basis.checked_ilog2().map_or(0, |place| 1 << place);
        if value & leading != 0 {
            value ^= of_basis;
        }
    }
    value
}

fn rocev2(octets: &[u8], len: usize) -> Result<&UdpView, NotTranslated> {
    let (udp, _) = UdpView::split(octets).map_err(|_| NotTranslated::NotRocev2)?;
    let is_whole = usize::from(udp.length()) == len && len >= UdpView::LEN + Icrc::LEN;
    if is_whole && udp.destination_port() == ROCEV2_PORT { Ok(udp) } else { Err(NotTranslated::NotRocev2) }
}

fn changed<H>(header: H, ipv4: &Ipv4View, ipv6: &Ipv6View, udp: &UdpView, old: Icrc) -> Translated<H> {
    let behind = udp.length().saturating_sub(Icrc::LEN as u16);
    let icrc = old.changed_by(between_versions(ipv4, ipv6).then(Shift::octets(behind)));
    let mut update = Update::default();
    // In a datagram of even length the ICRC begins a word of the checksum.
    let at_parity = |Icrc([a, b, c, d]): Icrc| {
        if udp.length() % 2 == 1 { [0, a, b, c, d, 0] } else { [a, b, c, d, 0, 0] }
    };
    update.replace(&at_parity(old), &at_parity(icrc));
    Translated { header, udp_checksum: update.apply_udp(udp.checksum()), icrc }
}
