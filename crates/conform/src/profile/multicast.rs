//! Common part of the profiles of the two kinds of nodes of a multicast tree.

use super::left;
use crate::octets::{ACKNOWLEDGE, SEND_ONLY, with_dscp, with_ecn, with_flow_label, with_octets};
use crate::parameters::Port;
use crate::{Expected, Remade};
use srdma_testkit::packets::rocev2;
use std::net::Ipv6Addr;

/// The AETH syndrome of an ACK without credits.
pub(super) const ACK: u8 = 0x1F;
/// That of a NAK for a PSN sequence error.
pub(super) const SEQUENCE_NAK: u8 = 0x60;
/// That of an RNR NAK, with the code of 0.64 ms.
pub(super) const RNR_NAK: u8 = 0x2C;

/// Offset of IPv6 in a frame.
pub(super) const IPV6_AT: usize = 14;
/// Offset of UDP in a frame without extension headers.
const UDP_AT: usize = IPV6_AT + 40;
/// Offset of the AETH in a response's frame.
const AETH_AT: usize = UDP_AT + 8 + 12;

/// The group's address of this number: the first one, and so many more.
pub(super) fn numbered(first: Ipv6Addr, number: u16) -> Ipv6Addr {
    let mut segments = first.segments();
    segments[7] = segments[7].wrapping_add(number);
    segments.into()
}

/// A SEND Only of 24 octets from the source to a Proxy Address: ECN-capable, with a DSCP and a flow label, so that it
/// is seen whether they stay.
pub(super) fn data(source: Ipv6Addr, proxy: Ipv6Addr, qpn: u32, psn: u32) -> Vec<u8> {
    marked(rocev2(source, proxy, SEND_ONLY, qpn, psn, b"twenty-four octets here."))
}

/// The same fields for another packet.
pub(super) fn marked(packet: Vec<u8>) -> Vec<u8> {
    with_flow_label(with_dscp(with_ecn(packet, crate::octets::ECT0), 26), 0x5_4321)
}

/// An ACK, or the response of another syndrome.
pub(super) fn response(source: Ipv6Addr, destination: Ipv6Addr, qpn: u32, psn: u32, syndrome: u8) -> Vec<u8> {
    const MSN: [u8; 3] = [0, 0, 1];
    let [a, b, c] = MSN;
    let asking = rocev2(source, destination, ACKNOWLEDGE, qpn, psn, &[syndrome, a, b, c]);
    // A response requests no ACK.
    let end = asking.len() - 4;
    let plain = with_octets(asking, 40 + 8 + 8, &[0]);
    let icrc = srdma_testkit::checksums::icrc(&plain[..end]);
    with_octets(plain, end, &icrc)
}

/// A response that leaves a port. UDP source port and checksum are the device's choice, and so is the MSN, which no
/// requester looks at.
pub(super) fn responds(port: (&'static str, Port), response: &[u8]) -> Expected {
    says(port, response).free(AETH_AT + 1, &[0xFF; 3])
}

/// A packet that a node makes itself: addresses, BTH and what follows count.
pub(super) fn says(port: (&'static str, Port), packet: &[u8]) -> Expected {
    left(port, packet)
        .free_header(IPV6_AT)
        .free(UDP_AT, &[0xFF; 2])
        .free(UDP_AT + 6, &[0xFF; 2])
        .remade(Remade::Icrc(IPV6_AT))
        .remade(Remade::UdpUnlessZero(IPV6_AT))
}

/// A CNP from one node of a tree to the next: its first four reserved octets are between them (D29).
pub(super) fn notifies(port: (&'static str, Port), cnp: &[u8]) -> Expected {
    says(port, cnp).free(UDP_AT + 8 + 12, &[0xFF; 4])
}
