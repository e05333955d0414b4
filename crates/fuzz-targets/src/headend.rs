//! A headend of placed paths under arbitrary packets, signals, times and paths.

use crate::choices::Choices;
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendPath, Incoming, ProbeConfig, Probing};
use srdma_frame::{Frame, Pool};
use srdma_steering::{Config, Limits, Mode, Path, SetId};
use srdma_testkit::checksums;
use srdma_testkit::packets::{cnp, fast_cnp, rocev2};
use srdma_wire::{Entropy, Instant, Prefix};
use std::net::Ipv6Addr;

const ROOM: usize = 14;
const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 1, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 3, 0, 0, 0, 0, 1);

/// Probes that may leave at one moment: one of each path, and a gap between any two.
const MOST_PROBES: usize = 1;

/// The n-th spine of a few, and the path by it.
fn spine(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xDB8, 0xFF, 0, 0, 0, 0, number as u16 + 5)
}

fn program(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x5F00, 0, 0x100, (number as u16 + 5) << 8, 0x300, 0, 0, 0)
}

struct World<'a> {
    choices: Choices<'a>,
    headend: Headend,
    pool: Pool,
    set: SetId,
    /// First segments of the paths that may be taken.
    allowed: Vec<Ipv6Addr>,
    /// A flow ends its message before it leaves a path that is denied.
    keeps_order: bool,
    now: Instant,
    under_way: Vec<Vec<u8>>,
}

/// Runs one script. Hosts get their packets unchanged, a packet takes a path that is not denied, time advances, and all
/// borrowed memory is returned.
pub fn headend(input: &[u8]) {
    let mut choices = Choices::new(input);
    let config = config(&mut choices);
    let keeps_order = config.steering.mode == Mode::Ordered;
    let mut headend = Headend::new(config);
    let (paths, allowed) = paths(&mut choices);
    let Ok(set) = headend.set_paths(Instant::ZERO, None, &paths) else {
        assert!(allowed.is_empty(), "paths that may be taken are taken");
        return;
    };
    headend.lead(Prefix::new(PEER, 64).expect("a length"), set);
    let places = headend.steering().flow_capacity();
    let (pool, now, under_way) = (Pool::new(16), Instant::from_ns(1), Vec::new());
    let mut world = World { choices, headend, pool, set, allowed, keeps_order, now, under_way };
    while !world.choices.is_empty() {
        world.step();
        assert_eq!(world.pool.in_use(), 0, "a frame was kept");
    }
    assert_eq!(world.headend.steering().flow_capacity(), places);
    assert!(world.headend.flows().count() <= places);
}

impl World<'_> {
    fn step(&mut self) {
        match self.choices.below(8) {
            0 => self.pass(),
            1 | 2 => {
                let packet = self.request();
                self.send(&packet);
            }
            3 => {
                let packet = self.choices.octets(120).to_vec();
                self.send(&packet);
                self.receive(&packet);
            }
            4 | 5 => {
                let packet = self.answer();
                self.receive(&packet);
            }
            6 => self.bring_back(),
            _ => self.change(),
        }
    }

    fn pass(&mut self) {
        let shift = self.choices.below(32);
        self.now = self.now.after_ns(u64::from(self.choices.octet()) << shift);
        self.headend.tick(self.now);
        let mut probes = 0;
        while let Some(frame) = self.headend.poll_probe(self.now, &mut self.pool) {
            self.under_way.push(frame.to_vec(&self.pool)[ROOM..].to_vec());
            frame.release(&mut self.pool);
            probes += 1;
            assert!(probes <= MOST_PROBES, "probes have a gap between them");
        }
        assert!(self.headend.next_deadline().is_none_or(|deadline| deadline > self.now), "nothing is left to do now");
        self.under_way.truncate(64);
    }

    /// A request of a connection.
    fn request(&mut self) -> Vec<u8> {
        let opcode = self.choices.of(&[0x00, 0x01, 0x02, 0x04, 0x06, 0x0C, 0x0D, 0x11, 0x81]);
        let (qpn, psn) =
            (0x100 | u32::from(self.choices.octet()), self.choices.of(&[0, 1, 2, 0xFF_FFFF, 0x80_0000, 7]));
        rocev2(HOST, PEER, opcode, qpn, psn, &[0; 32])
    }

    /// An acknowledgement, a CNP or a Fast CNP.
    fn answer(&mut self) -> Vec<u8> {
        let (qpn, psn) =
            (0x100 | u32::from(self.choices.octet()), self.choices.of(&[0, 1, 2, 0xFF_FFFF, 0x80_0000, 7]));
        let kind = self.choices.below(4);
        let mut packet = match kind {
            0 => rocev2(PEER, HOST, 0x11, qpn, psn, &[self.choices.octet(), 0, 0, 1]),
            1 => cnp(PEER, HOST, qpn),
            _ => {
                let spine = spine(self.choices.below(5));
                fast_cnp(spine, HOST, PEER, qpn)
            }
        };
        if self.choices.rarely(8) {
            let place = self.choices.below(packet.len());
            packet[place] ^= 1 << self.choices.below(8);
        }
        packet
    }

    fn send(&mut self, packet: &[u8]) {
        let Some(mut frame) = framed(packet, &mut self.pool) else { return };
        if let Ok(Some(octets)) = self.headend.outgoing(self.now, &mut frame, &mut self.pool) {
            let sent = frame.to_vec(&self.pool);
            assert_eq!(sent.len(), ROOM + octets + packet.len());
            check_carried(packet, &sent[sent.len() - packet.len()..]);
            let outer: [u8; 16] = *sent[ROOM + 24..].first_chunk().expect("an outer header");
            assert!(self.allowed.contains(&outer.into()), "{} may not be taken", Ipv6Addr::from(outer));
        }
        frame.release(&mut self.pool);
    }

    fn receive(&mut self, packet: &[u8]) -> Option<Incoming> {
        let frame = framed(packet, &mut self.pool)?;
        let incoming = self.headend.incoming(self.now, &frame, &self.pool);
        assert!(frame.to_vec(&self.pool).ends_with(packet), "hosts get what was sent to them");
        frame.release(&mut self.pool);
        Some(incoming)
    }

    /// A probe comes back, behind its outer headers or without them, or does not.
    fn bring_back(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let probe = self.under_way.remove(self.choices.below(self.under_way.len()));
        let inner = probe.len() - srdma_wire::ProbePacket::LEN;
        match self.choices.below(4) {
            0 => {}
            1 => assert_eq!(self.receive(&probe), Some(Incoming::Probe)),
            2 => assert_eq!(self.receive(&probe[inner..]), Some(Incoming::Probe)),
            _ => {
                let mut damaged = probe[inner..].to_vec();
                let place = self.choices.below(damaged.len());
                damaged[place] ^= 1 << self.choices.below(8);
                self.receive(&damaged);
            }
        }
    }

    fn change(&mut self) {
        let (paths, allowed) = paths(&mut self.choices);
        match self.headend.set_paths(self.now, Some(self.set), &paths) {
            Ok(set) => {
                assert_eq!(set, self.set);
                let before = std::mem::replace(&mut self.allowed, allowed);
                if self.keeps_order {
                    self.allowed.extend(before);
                }
            }
            Err(_) => assert!(allowed.is_empty(), "paths that may be taken are taken"),
        }
    }
}

fn config(choices: &mut Choices<'_>) -> HeadendConfig {
    let steering = Config {
        mode: choices.of(&[Mode::Fast, Mode::Ordered]),
        dwell_ns: choices.of(&[0, 100_000, u64::MAX]),
        hold_ns: choices.of(&[1, 1_000_000, u64::MAX]),
        return_ns: choices.of(&[0, 10_000_000, u64::MAX]),
        limits: Limits { two_way_ns: choices.of(&[None, Some(50_000)]), ..Limits::default() },
        flows: 4,
        ..Config::default()
    };
    let interval_ns = choices.of(&[1, 1_000_000, u64::MAX]);
    let probes = ProbeConfig { interval_ns, gap_ns: 1, ..ProbeConfig::default() };
    HeadendConfig {
        steering,
        probes: choices.of(&[true, true, false]).then_some(probes),
        trimmed_dscp: Some(13),
        ..HeadendConfig::new(HOST)
    }
}

/// Up to three paths, and the first segments of those that may be taken.
fn paths(choices: &mut Choices<'_>) -> (Vec<HeadendPath>, Vec<Ipv6Addr>) {
    let paths: Vec<HeadendPath> = (0..choices.below(4))
        .map(|number| {
            let path = Path {
                segments: vec![program(number)],
                nodes: vec![spine(number)],
                rank: choices.octet().into(),
                is_denied: choices.rarely(4),
            };
            let probing = if choices.rarely(4) { Probing::Never } else { Probing::ThereAndBack };
            let entropy = choices.rarely(2).then(|| Entropy(choices.octet().into()));
            HeadendPath { path, probing, entropy }
        })
        .collect();
    let allowed = paths.iter().filter(|path| !path.path.is_denied).map(|path| path.path.segments[0]).collect();
    (paths, allowed)
}

/// A packet is carried as it was, but for the value of a path with one: in port, flow label, and what covers the port.
fn check_carried(packet: &[u8], carried: &[u8]) {
    if carried == packet {
        return;
    }
    let label = u32::from_be_bytes([0, carried[1] & 0xF, carried[2], carried[3]]);
    let port = u16::from_be_bytes([carried[40], carried[41]]);
    assert!(Entropy::of_fields(port, label).is_ok(), "the packet has a value");
    let end = packet.len() - 4;
    for (place, (before, after)) in packet.iter().zip(carried).enumerate() {
        let may_change = (1..4).contains(&place) || [40, 41, 46, 47].contains(&place) || place >= end;
        assert!(before == after || may_change, "octet {place} changed");
    }
    let is_sound = |packet: &[u8]| checksums::icrc(&packet[..end]) == packet[end..];
    assert_eq!(is_sound(packet), is_sound(carried), "the ICRC follows the port");
}

fn framed(packet: &[u8], pool: &mut Pool) -> Option<Frame> {
    Frame::from_octets(&[&[0; ROOM][..], packet].concat(), pool)
}
