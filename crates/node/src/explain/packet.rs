//! A captured frame, as far as groups are concerned.

use super::event::Response;
use srdma_wire::extension::ExtensionHeaders;
use srdma_wire::rocev2::{Extended, Packet};
use srdma_wire::{EthernetView, Ipv6View, MacAddress, NextHeader, Opcode, Psn, View};
use std::net::Ipv6Addr;

/// More IPv6 headers in one another than any packet of a group has.
const MOST_TUNNELS: usize = 8;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObservedFrame {
    pub(super) from: MacAddress,
    pub(super) to: MacAddress,
    /// Source and destination of the innermost IPv6 header, if it has one.
    pub(super) addresses: Option<(Ipv6Addr, Ipv6Addr)>,
    /// Content, if it is RoCEv2.
    pub(super) payload: Option<Payload>,
}

/// Content of a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Request(Psn),
    /// An ACK or NAK.
    Response(Response),
    /// Anything else.
    Other,
}

impl ObservedFrame {
    /// Parts of an Ethernet frame; `None` without an Ethernet header.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let (ethernet, rest) = EthernetView::split(frame).ok()?;
        let ethernet = ethernet.value();
        let mut frame =
            ObservedFrame { from: ethernet.source, to: ethernet.destination, addresses: None, payload: None };
        let mut octets = rest;
        for _ in 0..MOST_TUNNELS {
            let Ok((ipv6, after)) = Ipv6View::split(octets) else {
                return Some(frame);
            };
            if ipv6.version() != 6 {
                return Some(frame);
            }
            frame.addresses = Some((ipv6.source(), ipv6.destination()));
            let mut headers = ExtensionHeaders::new(ipv6.next_header(), after);
            while let Some(Ok(_)) = headers.next() {}
            match headers.next_header() {
                NextHeader::IPV6 => octets = headers.rest(),
                NextHeader::UDP => {
                    frame.payload = payload(octets);
                    return Some(frame);
                }
                _ => return Some(frame),
            }
        }
        Some(frame)
    }
}

fn payload(octets: &[u8]) -> Option<Payload> {
    let packet = Packet::parse(octets, octets.len()).ok()?;
    let (opcode, psn) = (packet.bth.opcode(), packet.bth.psn());
    Some(match packet.extended {
        Extended::Aeth(aeth) if opcode == Opcode::ACKNOWLEDGE => {
            srdma_aggregation::Response::from_aeth(psn, aeth.value())
                .map_or(Payload::Other, |response| Payload::Response(response.into()))
        }
        _ if opcode.is_request() => Payload::Request(psn),
        _ => Payload::Other,
    })
}
