//! A fuzzer's octets as a script: frames that are nearly right, and other events of a node.

use super::headers::{IPV6, outer};
use super::ipv4;
use super::packets::{Inner, Kind, finish, fix_checks};
use super::plan::{DESTINATIONS, SOURCES};
use super::world::{Change, GROUPS, PORTS, World, neighbour_mac, port_mac};
use crate::choices::Choices;

/// Octets of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The frame that was written comes in at this port.
    Frame { port: u16 },
    /// Time passes.
    Pass { ns: u64 },
    /// A new epoch of a group is committed.
    Commit { group: u16, change: Change },
    /// The node leaves a group and joins it again.
    Rejoin { group: u16 },
    /// The neighbour at a port is removed.
    RemoveNeighbour { port: u16 },
    /// All neighbours are there again.
    RestoreNeighbours,
    /// The node's configuration of congestion was changed.
    Configured,
    /// The neighbour at a port pauses these classes, each for so many quanta.
    Pause { port: u16, classes: u8, quanta: u16 },
}

impl Step {
    /// The next step; the octets of a frame are written to `into`.
    pub(super) fn choose(choices: &mut Choices<'_>, world: &mut World, into: &mut Vec<u8>) -> Step {
        let step = choices.octet();
        let group = || 1 + u16::from(step) % GROUPS;
        match step {
            0..=0xDF => Step::Frame { port: frame(choices, world, into, step) },
            0xE0..=0xE3 if !world.has_congestion => Step::Pass { ns: 1 },
            0xE0 => {
                let port = choices.octet();
                world.set_egress(u16::from(port) % PORTS, choices);
                Step::Configured
            }
            0xE1 if choices.octet() & 1 == 0 => {
                world.set_fast_cnp(choices);
                Step::Configured
            }
            0xE1 => {
                world.set_ioam(choices);
                Step::Configured
            }
            0xE2 | 0xE3 => {
                let port = u16::from(choices.octet()) % PORTS;
                Step::Pause { port, classes: choices.octet(), quanta: choices.u16() }
            }
            0xE4..=0xF3 => Step::Pass { ns: 1 << (step & 31) },
            0xF4..=0xF9 => Step::Commit { group: group(), change: choices.of(&Change::ALL) },
            0xFA..=0xFB => Step::Rejoin { group: group() },
            0xFC..=0xFE => Step::RemoveNeighbour { port: u16::from(step) - 0xFC },
            0xFF => Step::RestoreNeighbours,
        }
    }
}

/// Writes a frame; returns the port where it comes in.
fn frame(choices: &mut Choices<'_>, world: &mut World, into: &mut Vec<u8>, form: u8) -> u16 {
    let inner = Inner::choose(choices);
    let wraps = match form & 7 {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    };
    into.clear();
    into.resize(ETHERNET, 0);
    let mut offsets = [ETHERNET; 3];
    for (wrap, offset) in offsets[..wraps].iter_mut().enumerate() {
        *offset = into.len();
        let next_header = match inner.kind {
            Kind::Raw if wrap + 1 == wraps => 59,
            Kind::Ipv4 if wrap + 1 == wraps => 4,
            _ => 41,
        };
        outer(choices, into, inner.destination, next_header);
        if next_header == 4 {
            set(into, *offset + 24, &choices.of(&ipv4::SIDS).octets());
        }
    }
    offsets[wraps] = into.len();
    inner.write(choices, world, into);
    let headers = if inner.is_ipv6() { &offsets[..=wraps] } else { &offsets[..wraps] };
    fill_lengths(into, headers);
    let innermost = offsets[wraps];
    let is_rocev2 = matches!(inner.kind, Kind::Data | Kind::Response | Kind::Cnp | Kind::Unicast | Kind::Extended)
        || matches!(inner.kind, Kind::FastCnp | Kind::Traced | Kind::CmMessage);
    finish(&mut into[innermost..], is_rocev2);
    let port = if form >> 3 == 27 { choices.octet().into() } else { inner.port() };
    let port = if wraps == 0 { port } else { port & 1 };
    address(into, port);
    if inner.kind == Kind::Ipv4 && wraps == 0 {
        set(into, 0, &port_mac(port).0);
        set(into, 12, &[0x08, 0x00]);
    }
    for _ in 0..(form >> 3 & 15).saturating_sub(11) {
        mutate(choices, into, headers, innermost);
    }
    port % (PORTS + 1)
}

/// Fills the payload lengths of IPv6 headers at these offsets.
fn fill_lengths(frame: &mut [u8], headers: &[usize]) {
    let end = frame.len();
    for at in headers {
        let length = end - at - IPV6;
        frame[at + 4..at + 6].copy_from_slice(&(length as u16).to_be_bytes());
    }
}

/// Writes the Ethernet header of a frame for a port.
fn address(frame: &mut [u8], port: u16) {
    frame[..6].copy_from_slice(&port_mac(port).0);
    if frame.get(ETHERNET + 24) == Some(&0xFF) {
        frame[..2].copy_from_slice(&[0x33, 0x33]);
    }
    frame[6..12].copy_from_slice(&neighbour_mac(port).0);
    frame[12..14].copy_from_slice(&[0x86, 0xDD]);
}

/// Damages a frame, or changes it and makes its checks right again.
fn mutate(choices: &mut Choices<'_>, frame: &mut Vec<u8>, headers: &[usize], innermost: usize) {
    let kind = choices.octet();
    let place = usize::from(choices.u16()) % frame.len().max(1);
    let header = headers.get(choices.below(3)).copied().unwrap_or(ETHERNET);
    match kind & 15 {
        0 | 1 => {
            if let Some(octet) = frame.get_mut(place) {
                *octet ^= 1 << (kind >> 5);
            }
        }
        2 => set(frame, place, &[choices.octet()]),
        3 => set(frame, place, &choices.u16().to_be_bytes()),
        4 => frame.truncate(place),
        5 => frame.resize(frame.len() + usize::from(kind), kind),
        6 => set(frame, header + 7, &[choices.octet() & 3]),
        7 => set(frame, header + 1, &[choices.octet()]),
        8 => set(frame, header + 24, &choices.of(&DESTINATIONS).octets()),
        9 => set(frame, header + 8, &choices.of(&SOURCES).octets()),
        10 => set(frame, header + 6, &[choices.octet()]),
        11 => set(frame, header + 4, &choices.u16().to_be_bytes()),
        12 => set(frame, 12, &choices.of(&[[0x81, 0], [8, 0], [0x86, 0xDD]])),
        13 => set(frame, header, &[choices.octet()]),
        14 => set(frame, innermost + 48 + choices.below(12), &[choices.octet()]),
        _ => {
            let octets = choices.octets(16);
            set(frame, place, octets);
        }
    }
    if kind & 0x10 != 0 && frame.len() > innermost {
        fix_checks(&mut frame[innermost..]);
    }
}

/// Overwrites octets of a frame, as far as it is long enough.
fn set(frame: &mut [u8], at: usize, octets: &[u8]) {
    if let Some(rest) = frame.get_mut(at..) {
        let len = octets.len().min(rest.len());
        rest[..len].copy_from_slice(&octets[..len]);
    }
}
