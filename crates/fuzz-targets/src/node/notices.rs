//! Packets of a script that notify of congestion, or request that: Fast CNPs, data with a trace, RDMA CM messages, and
//! refusals of hosts.

use super::congestion::{NAMESPACE, TRANSLATED, TRANSLATED_PEER};
use super::plan::*;
use super::world::{designated_qpn, responders};
use crate::choices::Choices;
use srdma_wire::fast_cnp::{FastCnpValue, MAX_FAST_CNP_LEN, OptionTypes};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ioam::{MAX_SPACE, NodeData, Trace, TraceHeader, TraceType, fill};
use srdma_wire::{NextHeader, Qpn};
use std::net::Ipv6Addr;

/// The queue pair of a receiver, as in [`record`](super::world).
fn receiver_qpn(choices: &mut Choices<'_>) -> Qpn {
    Qpn::from_octets([0, 1, 0x10 + choices.octet() % 3])
}

/// A Hop-by-Hop Options header with a trace that some nodes have written to, UDP behind it.
pub(super) fn trace_header(choices: &mut Choices<'_>) -> Vec<u8> {
    let form = choices.octet();
    let namespace = if form & 0xC0 == 0xC0 { choices.u16() } else { NAMESPACE };
    let fields = match form & 7 {
        7 => TraceType(choices.u32() >> 8),
        6 => TraceType::NODE.and(TraceType::OPAQUE),
        few => TraceType(0x80_0000 >> few | 0x00_2000),
    };
    let mut octets = [0; 12 + MAX_SPACE + 8];
    let header = TraceHeader::for_nodes(namespace, fields, 1 + usize::from(form >> 3 & 7));
    let Some(len) = header.and_then(|header| header.emit_hop_by_hop(NextHeader::UDP, &mut octets)) else {
        return Vec::new();
    };
    let written = NodeData { hop_limit: Some(63), node_id: Some(9), ..NodeData::default() };
    for _ in 0..choices.below(4) {
        fill(&mut octets[..len], |_| Some(written), |_| {});
    }
    octets[..len].to_vec()
}

/// A Fast CNP as a switch or a receiver sends it: to a group's Proxy Address, to a source, to a host that is translated
/// for, or to any address. Octets from its IPv6 header on.
pub(super) fn fast_cnp(choices: &mut Choices<'_>, group: u16) -> Vec<u8> {
    let form = choices.octet();
    let header = if form & 1 != 0 { trace_header(choices) } else { Vec::new() };
    let receiver = choices.of(responders(group));
    let (destination, original_destination, dest_qpn) = match form >> 1 & 3 {
        0 => (proxy(group), receiver, receiver_qpn(choices)),
        1 => (source(group), proxy(group), designated_qpn(group)),
        2 => (TRANSLATED, TRANSLATED_PEER.0, TRANSLATED_PEER.1),
        _ => (choices.of(&DESTINATIONS), choices.of(&SOURCES), receiver_qpn(choices)),
    };
    let source = match form >> 3 & 7 {
        0..=3 => choices.of(&[BELOW[0], BELOW[1], ABOVE]),
        4 | 5 => original_destination,
        _ => choices.of(&SOURCES),
    };
    let trace = Trace::find(&header).and_then(Result::ok);
    written(&FastCnpValue {
        source,
        destination,
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xC001,
        dest_qpn,
        original_destination,
        trace: trace.map(|trace| trace.octets()),
    })
}

/// The octets of a Fast CNP; without its trace when that is too long.
fn written(value: &FastCnpValue<'_>) -> Vec<u8> {
    let mut octets = [0; MAX_FAST_CNP_LEN];
    let len = value.emit(OptionTypes::default(), &mut octets);
    let len = len.or_else(|| FastCnpValue { trace: None, ..*value }.emit(OptionTypes::default(), &mut octets));
    octets[..len.unwrap_or(0)].to_vec()
}

/// UDP, BTH, DETH and MAD of an RDMA CM message, its ICRC still to be filled in.
pub(super) fn cm_message(choices: &mut Choices<'_>, into: &mut Vec<u8>) {
    into.extend([0xC0, 0, 0x12, 0xB7, 0, 0, 0, 0]);
    into.extend([0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 1]);
    into.extend([0x80, 1, 0, 0, 0, 0, 0, 1]);
    let mut mad = [0; 24 + 232];
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[17] = choices.of(&[0x10, 0x13, 0x15, 0x14]);
    // Communication ids and queue pairs, wherever the three messages have theirs.
    let ids = choices.octet();
    (mad[24 + 3], mad[24 + 7]) = (ids & 3, ids >> 2 & 3);
    for at in [8, 12, 32] {
        mad[24 + at + 2] = choices.octet() & 7;
    }
    mad[24 + 43] = choices.octet() & 6;
    into.extend(mad);
    into.extend([0; 4]);
}

/// Writes a host's answer to a Fast CNP of the node: ICMPv6 Parameter Problem, its IPv6 header before it.
pub(super) fn refusal(choices: &mut Choices<'_>, host: Ipv6Addr, group: u16) -> Vec<u8> {
    let form = choices.octet();
    let own = FastCnpValue {
        source: if form & 1 == 0 { LOOPBACK } else { choices.of(&SOURCES) },
        destination: host,
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xC001,
        dest_qpn: if form & 2 == 0 { designated_qpn(group) } else { Qpn::from_octets([0, 1, 1]) },
        original_destination: if form & 4 == 0 { proxy(group) } else { choices.of(&DESTINATIONS) },
        trace: None,
    };
    let quoted = written(&own);
    let pointer = if form & 0xC0 == 0xC0 { choices.u16().into() } else { 42 };
    let mut message = [0; 400];
    let error = Icmpv6Error::UnrecognisedOption(pointer);
    let len = error.emit(host, LOOPBACK, &quoted, &mut message).unwrap_or(0);
    let mut packet = Vec::new();
    super::headers::ipv6(&mut packet, NextHeader::ICMPV6.0, 64, host, LOOPBACK);
    packet.extend(&message[..len]);
    packet
}
