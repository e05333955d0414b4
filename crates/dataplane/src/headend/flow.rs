//! The flow of a packet, and the packet's position in it.
//!
//! For RoCEv2 a flow is what goes from one address to a queue pair of another: packets of a connection must not
//! overtake each other, whatever UDP source ports they have. Elsewhere it is the 5-tuple.

use crate::headers::IPV6;
use srdma_steering::{Boundary, FlowKey};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::extension::ExtensionHeaders;
use srdma_wire::{BthView, Ipv6View, NextHeader, Psn, Qpn, UdpView, View};

/// A packet that is about to be encapsulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving<'h> {
    pub(super) source: &'h [u8; 16],
    pub(super) destination: &'h [u8; 16],
    pub(super) key: FlowKey,
    pub(super) boundary: Boundary,
    /// It is a packet of RoCEv2.
    pub(super) is_connection: bool,
    /// Fields of its BTH, when it is a request of a connection.
    pub(super) request: Option<Request>,
}

/// A request of a Reliable Connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) psn: Psn,
    /// The packet requests an acknowledgement.
    pub(super) asks: bool,
}

impl<'h> Leaving<'h> {
    /// The packet behind the Ethernet header of a frame whose first segment is `head`; `None` for other frames.
    #[inline]
    pub(super) fn of(head: &'h [u8]) -> Option<Self> {
        let (ipv6, after) = Ipv6View::split(head.get(IPV6..)?).ok()?;
        let (kind, transport) = match ipv6.next_header() {
            NextHeader::UDP => (NextHeader::UDP, after),
            next_header => behind_extensions(next_header, after),
        };
        let (source, destination) = (ipv6.source_octets(), ipv6.destination_octets());
        if kind == NextHeader::UDP
            && let Ok((udp, rest)) = UdpView::split(transport)
            && udp.destination_port() == ROCEV2_PORT
            && let Ok((bth, _)) = BthView::split(rest)
        {
            let opcode = bth.opcode();
            let begins = opcode.is_first() || !(opcode.is_request() || opcode.is_read_response());
            return Some(Leaving {
                source,
                destination,
                key: key_of_connection(source, destination, bth.dest_qpn()),
                is_connection: true,
                boundary: if begins { Boundary::Message } else { Boundary::WithinMessage },
                request: opcode
                    .is_request()
                    .then(|| Request { psn: bth.psn(), asks: bth.ack_request() || opcode.is_last() }),
            });
        }
        let ports = match kind {
            NextHeader::UDP | TCP => transport.first_chunk().map_or(0, |ports: &[u8; 4]| u32::from_be_bytes(*ports)),
            _ => 0,
        };
        let key = mix(source, destination, u64::from(kind.0) << 32 | u64::from(ports));
        Some(Leaving {
            source,
            destination,
            key,
            boundary: Boundary::WithinMessage,
            is_connection: false,
            request: None,
        })
    }
}

const TCP: NextHeader = NextHeader(6);

#[cold]
fn behind_extensions(next_header: NextHeader, after: &[u8]) -> (NextHeader, &[u8]) {
    let mut headers = ExtensionHeaders::new(next_header, after);
    while headers.next().is_some_and(|header| header.is_ok()) {}
    (headers.next_header(), headers.rest())
}

/// The flow from an address to a queue pair of another.
#[inline]
pub(super) fn key_of_connection(source: &[u8; 16], destination: &[u8; 16], dest_qpn: Qpn) -> FlowKey {
    mix(source, destination, 1 << 40 | u64::from(dest_qpn.get()))
}

/// A hash of two addresses and something else, all of whose bits depend on all of theirs.
#[inline]
pub(super) fn mix(source: &[u8; 16], destination: &[u8; 16], rest: u64) -> FlowKey {
    let halves = |octets: &[u8; 16]| {
        let address = u128::from_be_bytes(*octets);
        [(address >> 64) as u64, address as u64]
    };
    let ([a, b], [c, d]) = (halves(source), halves(destination));
    let source = fold(a ^ 0x9E37_79B9_7F4A_7C15, b ^ 0xD6E8_FEB8_6659_FD93);
    let destination = fold(c ^ 0xA076_1D64_78BD_642F, d ^ 0xE703_7ED1_A0B4_28DB);
    FlowKey::new(fold(source ^ destination.rotate_left(23) ^ rest, 0x8EBC_6AF0_9C88_C6E3))
}

/// Multiplied to 128 bits, both halves together.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}
