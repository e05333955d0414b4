//! ICMPv4 errors that the node sends about the IPv4 packets that it forwards (RFC 792, RFC 1191, RFC 1812; D259).

use crate::headers::IPV6;
use crate::ipv4;
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv4::{Icmpv4Error, Icmpv4View, MAX_DATAGRAM, PROTOCOL, is_error};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv4::header_checksum;
use srdma_wire::{Ipv4, View};
use std::net::Ipv4Addr;
use zerocopy::IntoBytes;

/// DSCP of errors: Internetwork Control (RFC 1812 section 4.3.2.5).
const TRAFFIC_CLASS: u8 = 48 << 2;

/// Where the message of an error begins in its frame.
const MESSAGE: usize = IPV6 + Ipv4::LEN;

/// What RFC 1812 has for what forwarding has met, in the terms of ICMPv6; `None`: IPv4 packets do not meet it.
pub(crate) fn equivalent(error: Icmpv6Error) -> Option<Icmpv4Error> {
    Some(match error {
        Icmpv6Error::NoRoute => Icmpv4Error::NetworkUnreachable,
        Icmpv6Error::AddressUnreachable => Icmpv4Error::HostUnreachable,
        Icmpv6Error::PacketTooBig(mtu) => Icmpv4Error::FragmentationNeeded(u16::try_from(mtu).unwrap_or(u16::MAX)),
        Icmpv6Error::HopLimitExceeded => Icmpv4Error::TimeExceeded,
        Icmpv6Error::PortUnreachable
        | Icmpv6Error::ErroneousField(_)
        | Icmpv6Error::UnrecognisedNextHeader(_)
        | Icmpv6Error::UnrecognisedOption(_)
        | Icmpv6Error::SrUpperLayer(_)
        | Icmpv6Error::TooManyExtensionHeaders(_) => return None,
    })
}

/// Whether an error may answer a packet (RFC 1812 section 4.3.2.7). Those from and to addresses of no single host are
/// not forwarded, and those that were broadcast on the link are not accepted.
pub(crate) fn may_be_reported(head: &[u8]) -> bool {
    let Ok(view) = ipv4::header(head, IPV6) else { return false };
    if view.fragment_offset() != 0 {
        return false;
    }
    let kind = head.get(IPV6 + view.header_len());
    // An ICMP message whose type is not there may be an error.
    view.protocol != PROTOCOL || kind.is_some_and(|kind| !is_error(*kind))
}

/// The error, quoting as much of the packet as fits.
pub(crate) fn build(source: Ipv4Addr, invoking: &Frame, pool: &mut Pool, error: Icmpv4Error) -> Option<Frame> {
    let mut octets = [0; IPV6 + MAX_DATAGRAM];
    let mut len = MESSAGE + Icmpv4View::LEN;
    octets[MESSAGE..len].copy_from_slice(Icmpv4View::new(error).as_bytes());
    len += invoking.copy_range(IPV6, &mut octets[len..], pool);
    let octets = &mut octets[..len];
    let checksum = header_checksum(&octets[MESSAGE..]);
    if let Ok((view, _)) = Icmpv4View::split_mut(&mut octets[MESSAGE..]) {
        view.set_checksum(checksum);
    }
    let header = Ipv4 {
        traffic_class: TRAFFIC_CLASS,
        total_length: (len - IPV6) as u16,
        ttl: 64,
        protocol: PROTOCOL,
        source,
        destination: ipv4::header(invoking.head(pool), IPV6).ok()?.source(),
    };
    octets[IPV6..MESSAGE].copy_from_slice(header.emit().as_bytes());
    Frame::from_octets(octets, pool)
}
