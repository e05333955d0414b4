//! Innermost packets of a script: data, responses and CNPs of the node's groups, and others.

use super::congestion::{TRANSLATED, TRANSLATED_PEER};
use super::headers::ipv6;
use super::ipv4;
use super::notices;
use super::plan::*;
use super::world::{GROUPS, REGION, World, designated_qpn, psn_offset, responders};
use crate::choices::Choices;
use srdma_wire::rocev2::Packet;
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;

/// Octets to make payloads of.
const PAYLOAD: [u8; 4096] = [0xA5; 4096];

/// Opcodes of data packets: those that groups carry are first.
const OPCODES: [u8; 16] =
    [0x04, 0x0A, 0x06, 0x07, 0x08, 0x00, 0x01, 0x02, 0x05, 0x0B, 0x09, 0x03, 0x0C, 0x13, 0x10, 0x2A];

/// Syndromes: ACKs, sequence NAK, RNR NAKs, fatal NAKs, reserved ones.
const SYNDROMES: [u8; 16] =
    [0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x00, 0x60, 0x60, 0x60, 0x20, 0x2E, 0x3F, 0x61, 0x62, 0x63, 0x40];

/// The same where children repair: two in sixteen are requests (D153).
const SYNDROMES_OF_REPAIR: [u8; 16] =
    [0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x00, 0x60, 0x60, 0x60, 0x60, 0x2E, 0x3F, 0x61, 0x70, 0x70, 0x40];

/// Type of the innermost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Response,
    Cnp,
    Other,
    Unicast,
    Icmpv6,
    Extended,
    Raw,
    FastCnp,
    Traced,
    CmMessage,
    Refusal,
    Ipv4,
}

impl Kind {
    const ALL: [Kind; 16] = [
        Kind::Data,
        Kind::Data,
        Kind::Data,
        Kind::Data,
        Kind::Data,
        Kind::Response,
        Kind::Response,
        Kind::Response,
        Kind::Response,
        Kind::Cnp,
        Kind::Cnp,
        Kind::Other,
        Kind::Unicast,
        Kind::Icmpv6,
        Kind::Extended,
        Kind::Raw,
    ];

    /// Other types, chosen once in eight times.
    const NOTICES: [Kind; 4] = [Kind::FastCnp, Kind::Traced, Kind::CmMessage, Kind::Refusal];

    pub(super) fn choose(choices: &mut Choices<'_>) -> Kind {
        match usize::from(choices.octet()) {
            0xF8.. => Kind::Ipv4,
            few @ 0xE0.. => Kind::NOTICES[few % Kind::NOTICES.len()],
            octet => Kind::ALL[octet % Kind::ALL.len()],
        }
    }
}

/// Content of an innermost packet in a script, before its headers are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    pub(super) kind: Kind,
    group: u16,
    source: Ipv6Addr,
    pub(super) destination: Ipv6Addr,
    hop_limit: u8,
}

impl Inner {
    pub(super) fn choose(choices: &mut Choices<'_>) -> Inner {
        let kind = Kind::choose(choices);
        let selector = choices.octet();
        let group = 1 + u16::from(selector) % GROUPS;
        let responder = |choices: &mut Choices<'_>| choices.of(responders(group));
        let (source, destination) = match kind {
            Kind::Data => (source(group), proxy(group)),
            Kind::Response | Kind::Cnp | Kind::FastCnp => (responder(choices), proxy(group)),
            Kind::Traced => (source(group), choices.of(&DESTINATIONS)),
            Kind::CmMessage if selector & 0x80 == 0 => (TRANSLATED, TRANSLATED_PEER.0),
            Kind::CmMessage => (TRANSLATED_PEER.0, TRANSLATED),
            Kind::Refusal => (choices.of(&SOURCES), LOOPBACK),
            Kind::Other | Kind::Unicast | Kind::Icmpv6 | Kind::Extended | Kind::Raw | Kind::Ipv4 => {
                (choices.of(&SOURCES), choices.of(&DESTINATIONS))
            }
        };
        let hop_limit = match selector >> 4 {
            15 => choices.octet() & 3,
            _ => 64,
        };
        Inner { kind, group, source, destination, hop_limit }
    }

    /// The port at which such a packet comes in without outer headers.
    pub(super) fn port(&self) -> u16 {
        match self.kind {
            Kind::Response | Kind::Cnp if self.source == BELOW[0] => 1,
            Kind::Response | Kind::Cnp if self.source == BELOW[1] => 2,
            Kind::Response | Kind::Cnp => 1 + (self.source.octets()[15] & 1) as u16,
            Kind::FastCnp => 1 + self.group % 2,
            Kind::CmMessage if self.source == TRANSLATED_PEER.0 => 2,
            Kind::CmMessage | Kind::Traced | Kind::Refusal | Kind::Ipv4 => 0,
            Kind::Data | Kind::Other | Kind::Unicast | Kind::Icmpv6 | Kind::Extended | Kind::Raw => 0,
        }
    }

    /// Whether the octets that [`write`](Self::write) adds begin with an IPv6 header.
    pub(super) fn is_ipv6(&self) -> bool {
        !matches!(self.kind, Kind::Raw | Kind::Ipv4)
    }

    /// Appends the packet, its lengths and checksums still open.
    pub(super) fn write(&self, choices: &mut Choices<'_>, world: &mut World, into: &mut Vec<u8>) {
        let trace = if self.kind == Kind::Traced { notices::trace_header(choices) } else { Vec::new() };
        let next_header = match self.kind {
            Kind::FastCnp => return into.extend(notices::fast_cnp(choices, self.group)),
            Kind::Refusal => return into.extend(notices::refusal(choices, self.source, self.group)),
            Kind::Traced if !trace.is_empty() => 0,
            Kind::Traced | Kind::CmMessage => 17,
            Kind::Data | Kind::Response | Kind::Cnp | Kind::Unicast => 17,
            Kind::Other => choices.of(&[59, 6, 17, 58, 41, 43, 44, 0]),
            Kind::Icmpv6 => 58,
            Kind::Extended => choices.of(&[60, 0, 43, 44]),
            Kind::Raw => return into.extend(choices.octets(64)),
            Kind::Ipv4 => return ipv4::packet(choices, into),
        };
        let at = into.len();
        ipv6(into, next_header, self.hop_limit, self.source, self.destination);
        if matches!(self.kind, Kind::Data | Kind::Traced) && self.group.is_multiple_of(2) {
            // ECT(0).
            into[at + 1] = 0x20;
        }
        match self.kind {
            Kind::Data => self.data(choices, world, into),
            Kind::Response => self.response(choices, world, into),
            Kind::Cnp => self.cnp(choices, into),
            Kind::Unicast => {
                bth(into, 0x0A, 0, false, Qpn::from_octets([0, 1, 1]), Psn::new(choices.u16().into()));
                reth(choices, into, 16);
                into.extend(&PAYLOAD[..16]);
                into.extend([0; 4]);
            }
            Kind::Icmpv6 => {
                into.extend([choices.of(&[128, 1, 2, 3, 4, 129, 135, 137]), 0, 0, 0, 0, 0, 0, 0]);
                into.extend(&PAYLOAD[..choices.below(64)]);
            }
            Kind::Extended => {
                extension(choices, into, next_header);
                self.data(choices, world, into);
            }
            Kind::Traced => {
                into.extend(trace);
                bth(into, 0x04, 0, false, Qpn::from_octets([0, 1, 1]), Psn::new(choices.u16().into()));
                into.extend(&PAYLOAD[..16]);
                into.extend([0; 4]);
            }
            Kind::CmMessage => notices::cm_message(choices, into),
            Kind::FastCnp | Kind::Refusal | Kind::Ipv4 => {}
            Kind::Other | Kind::Raw => into.extend(choices.octets(48)),
        }
    }

    /// A request of the source. Most continue where the last one ended.
    fn data(&self, choices: &mut Choices<'_>, world: &mut World, into: &mut Vec<u8>) {
        let opcode = choices.of(&OPCODES);
        let form = choices.octet();
        let repairs = world.repairs();
        let sent = &mut world.sent[usize::from(self.group) - 1];
        let psn = match form & 3 {
            0 | 1 => sent.next(),
            2 => sent.minus(u32::from(choices.octet() & 15)),
            // A gap, which a window of the source has room for.
            _ if repairs => sent.plus(2 + u32::from(choices.octet() & 3)),
            _ => sent.plus(choices.u32() & 0x7F_FFFF).minus(0x3F_FFFF),
        };
        if (form & 3 != 3 || repairs) && psn.is_after(*sent) {
            *sent = psn;
        }
        let payload = match form >> 4 {
            0..=7 => 16,
            8..=11 => choices.below(48),
            12 | 13 => 256,
            14 => choices.below(4096),
            _ => 4096,
        };
        let qpn = if form == 0x0F { Qpn::from_octets([0, 0, 9]) } else { designated_qpn(self.group) };
        let udp = into.len();
        bth(into, opcode, (payload.wrapping_neg() % 4) as u8, form & 4 != 0, qpn, psn);
        if matches!(opcode, 0x06 | 0x0A | 0x0B | 0x0C) {
            reth(choices, into, payload as u32);
        } else if opcode == 0x13 {
            into.extend([0; 28]);
        } else if opcode == 0x10 {
            into.extend([0x1F, 0, 0, 1]);
        }
        if matches!(opcode, 0x03 | 0x05 | 0x09 | 0x0B) {
            into.extend([1, 2, 3, 4]);
        }
        into.extend(&PAYLOAD[..payload]);
        into.extend([0; 7].iter().take(payload.wrapping_neg() % 4 + 4));
        if form & 8 != 0 {
            // Not zero: a checksum is wanted, and filled in with the ICRC.
            into[udp + 7] = 1;
        }
    }

    /// An ACK or NAK near what was sent.
    fn response(&self, choices: &mut Choices<'_>, world: &World, into: &mut Vec<u8>) {
        let syndrome = choices.of(if world.repairs() { &SYNDROMES_OF_REPAIR } else { &SYNDROMES });
        let syndrome = if syndrome == 0x40 { choices.octet() } else { syndrome };
        let sent = world.sent[usize::from(self.group) - 1];
        let psn = match choices.octet() {
            back @ 0..=0xDF => sent.plus(1).minus(u32::from(back & 7)),
            ahead @ 0xE0..=0xEF => sent.plus(u32::from(ahead & 15)),
            0xF0..=0xFF => Psn::new(choices.u32()),
        };
        let psn = if self.group == 4 { psn_offset(4, choices.below(3)).of_receiver(psn) } else { psn };
        let qpn = if choices.rarely(16) { Qpn::from_octets([0, 0, 9]) } else { designated_qpn(self.group) };
        let udp = into.len();
        bth(into, if choices.rarely(32) { 0x0D } else { 0x11 }, 0, false, qpn, psn);
        if choices.rarely(8) {
            // The tag of an epoch that is long gone, or yet to come.
            into[udp] = 0xC0 | choices.octet() & 0x3F;
            into[udp + 1] = choices.octet();
        }
        into.extend([syndrome, 0, 0, choices.octet()]);
        into.extend([0; 4]);
    }

    fn cnp(&self, choices: &mut Choices<'_>, into: &mut Vec<u8>) {
        bth(into, 0x81, 0, false, designated_qpn(self.group), Psn::new(0));
        into.extend([0, 0, 0, choices.octet()]);
        into.extend([0; 12 + 4]);
    }
}

/// Appends UDP and BTH.
fn bth(into: &mut Vec<u8>, opcode: u8, pad: u8, ack_request: bool, qpn: Qpn, psn: Psn) {
    into.extend([0xD0, 0x01, 0x12, 0xB7, 0, 0, 0, 0]);
    into.extend([opcode, pad << 4, 0xFF, 0xFF, 0]);
    into.extend(qpn.to_octets());
    into.push(u8::from(ack_request) << 7);
    into.extend(psn.to_octets());
}

/// Appends a RETH, mostly of the sources' region.
fn reth(choices: &mut Choices<'_>, into: &mut Vec<u8>, length: u32) {
    let form = choices.octet();
    let offset = if form & 0xF0 == 0xF0 { choices.u64() } else { u64::from(form) };
    into.extend(REGION.base.wrapping_add(offset).to_be_bytes());
    into.extend(if form == 0xE0 { choices.u32() } else { REGION.rkey }.to_be_bytes());
    into.extend(if form == 0xE1 { choices.u32() } else { length }.to_be_bytes());
}

/// Appends an extension header of the kind before UDP.
fn extension(choices: &mut Choices<'_>, into: &mut Vec<u8>, kind: u8) {
    match kind {
        43 => {
            let (routing_type, left) = (choices.of(&[4, 0, 3, 255]), choices.octet() & 3);
            into.extend([17, 2, routing_type, left, choices.octet() & 1, 0, 0, 0]);
            into.extend(choices.of(&DESTINATIONS).octets());
        }
        44 => into.extend([17, 0, 0, choices.octet(), 0, 0, 0, 1]),
        _ => into.extend([17, 0, choices.octet(), choices.octet(), 0, 0, 0, 0]),
    }
}

/// Fills in UDP length, ICRC and, where one is wanted, the UDP checksum of the IPv6 packet.
pub(super) fn finish(packet: &mut [u8], is_rocev2: bool) {
    if !is_rocev2 {
        return;
    }
    let udp = udp_offset(packet);
    let length = (packet.len() - udp) as u16;
    if let Some(place) = packet.get_mut(udp + 4..udp + 6) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    fix_checks(packet);
    if packet.get(udp + 8) == Some(&0x64) {
        // An Unreliable Datagram: the node handles the queue pair of general services.
        let (covered, icrc) = packet.split_at_mut(packet.len() - 4);
        icrc.copy_from_slice(&srdma_testkit::checksums::icrc(covered));
    }
}

fn udp_offset(packet: &[u8]) -> usize {
    match packet.get(6) {
        Some(43 | 60 | 0 | 44) => 40 + 8 + 8 * usize::from(packet[41]),
        _ => 40,
    }
}

/// Makes ICRC and UDP checksum right, if the octets still are a RoCEv2 packet.
pub(super) fn fix_checks(packet: &mut [u8]) {
    let Some((at, computed)) = icrc(packet) else {
        return;
    };
    packet[at..at + 4].copy_from_slice(&computed);
    let Ok(view) = Packet::parse(packet, packet.len()) else {
        return;
    };
    let udp = view.udp_offset();
    if view.extension_octets() == 0 && view.udp.checksum() != 0 {
        let end = view.total_len();
        let checksum = udp_checksum(&packet[..end]);
        packet[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn icrc(packet: &[u8]) -> Option<(usize, [u8; 4])> {
    let view = Packet::parse(packet, packet.len()).ok()?;
    Some((view.icrc_offset(), view.icrc([]).ok()?.computed.0))
}

/// The UDP checksum of an IPv6 packet without extension headers.
fn udp_checksum(packet: &[u8]) -> u16 {
    use srdma_wire::NextHeader;
    use srdma_wire::checksum::Sum;
    let (source, destination) = (packet[8..24].first_chunk(), packet[24..40].first_chunk());
    let (Some(source), Some(destination)) = (source, destination) else {
        return 0;
    };
    let mut sum = Sum::pseudo_header(source, destination, (packet.len() - 40) as u32, NextHeader::UDP);
    sum.add(&packet[40..46]);
    sum.add(&packet[48..]);
    sum.udp_checksum()
}
