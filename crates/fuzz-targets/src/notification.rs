//! A PE with END.C and END.E under arbitrary notifications, and a congested router that makes some: times, floods,
//! damage, classes without a mapping, holds of any length.

use crate::choices::Choices;
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::notification::{Ask, Notification, NotificationPacket};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::net::Ipv6Addr;
use std::time::Duration;

const GREATEST_HOLD_NS: u64 = 1_000_000;
const WATCHDOG_NS: u64 = 5_000_000;
const ORIGINS: u16 = 3;
/// Fragments of a packet to a SID wait for the others for no longer (RFC 8200).
const REASSEMBLY_NS: u64 = 60_000_000_000;

/// The port toward the gateway, and that toward the WAN.
const GATEWAY: PortId = PortId(0);
const WAN: PortId = PortId(1);

const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0x53, 0, 0, 0, 0, 9);
const END_C: Ipv6Addr = Ipv6Addr::new(0x5F00, 0, 9, 0xC000, 0, 0, 0, 0);
const END_E: Ipv6Addr = Ipv6Addr::new(0x5F00, 0, 9, 0xD000, 0, 0, 0, 0);

fn router(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xDB8, 0x53, 0, 0, 0, 0, number as u16 + 1)
}

fn prefix(address: Ipv6Addr, len: u8) -> Prefix {
    Prefix::new(address, len).expect("a length of at most 128")
}

/// A node of two ports, everything but its own behind the second one.
fn node(loopback: Ipv6Addr) -> Node {
    let port = |number: u8| PortConfig {
        name: format!("p{number}"),
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        addresses: Vec::new(),
        link_mtu: 1500,
        queue_limit_octets: 1 << 16,
        ..PortConfig::default()
    };
    let mut node = Node::new(NodeConfig::new(loopback, vec![port(0), port(1)]));
    let next_hop = NextHop { port: WAN, address: Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1) };
    apply(&mut node, Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, 1]) });
    let action = RouteAction::Via(vec![next_hop]);
    apply(&mut node, Command::AddRoute { table: TableId(0), prefix: prefix(Ipv6Addr::UNSPECIFIED, 0), action });
    apply(&mut node, Command::SetClasses(ClassMap::by_precedence()));
    node
}

fn apply(node: &mut Node, command: Command) {
    node.apply(command).expect("a command that the node carries out");
}

fn pe(choices: &mut Choices<'_>) -> Node {
    let mut node = node(PE);
    let mut egress = EgressConfig::new(1_000_000_000, 1 << 16);
    egress.classes[3].pfc = Some(PfcConfig { xoff_octets: 9000, xon_octets: 0, headroom_octets: 0, quanta: 100 });
    apply(&mut node, Command::SetEgress { port: GATEWAY, egress: Box::new(egress) });
    apply(&mut node, Command::AddSid { prefix: prefix(END_C, 128), behavior: SidBehavior::EndC });
    apply(&mut node, Command::AddSid { prefix: prefix(END_E, 128), behavior: SidBehavior::EndE(TableId(0)) });
    if choices.rarely(2) {
        let (sids, infrastructure) = (vec![prefix(END_C, 16)], vec![prefix(PE, 48)]);
        apply(&mut node, Command::SetDomain(Domain { sids, infrastructure, proxies: Vec::new() }));
    }
    let mapping = |traffic_class| PriorityMapping { traffic_class, ports: vec![GATEWAY], priority: 3 };
    let config = BackpressureConfig {
        priorities: vec![mapping(3), mapping(4)],
        greatest_hold: Duration::from_nanos(GREATEST_HOLD_NS),
        watchdog: Duration::from_nanos(WATCHDOG_NS),
        per_second: choices.of(&[1_000_000, 10_000, 1]),
        at_once: choices.of(&[64, 1, 1000]),
        origins: ORIGINS,
        ..BackpressureConfig::new()
    };
    apply(&mut node, Command::SetBackpressure(Box::new(config)));
    node
}

/// A router whose WAN port requests pauses of class 3.
fn congested() -> Node {
    let mut node = node(router(0));
    let mut egress = EgressConfig::new(1_000_000_000, 1 << 14);
    egress.classes[3].backpressure = Some(BackpressureThresholds { xoff_octets: 500, xon_octets: 200 });
    apply(&mut node, Command::SetEgress { port: WAN, egress: Box::new(egress) });
    let sids = BackpressureSids { outer_source: prefix(PE, 128), end_c: Some(END_C), end_e: Some(END_E) };
    apply(&mut node, Command::SetBackpressureSids(vec![sids]));
    let (hold, refresh) = (Duration::from_micros(300), Duration::from_micros(100));
    let config = BackpressureConfig { hold, refresh, ..BackpressureConfig::new() };
    apply(&mut node, Command::SetBackpressure(Box::new(config)));
    node
}

struct World<'a> {
    choices: Choices<'a>,
    pe: Node,
    router: Node,
    pool: Pool,
    now: Instant,
    /// When something was taken last, and since when the gateway is paused.
    taken: Option<Instant>,
    paused_since: Option<Instant>,
    packets: u64,
}

/// Runs one script. Every packet to the PE is taken or dropped under a name, a pause ends in its time, no more
/// congested nodes are known than may be, and everything that was borrowed comes back.
pub fn notification(input: &[u8]) {
    let mut choices = Choices::new(input);
    let pe = pe(&mut choices);
    let mut world = World {
        choices,
        pe,
        router: congested(),
        pool: Pool::new(256),
        now: Instant::from_ns(1),
        taken: None,
        paused_since: None,
        packets: 0,
    };
    while !world.choices.is_empty() {
        world.step();
    }
    world.drain_router();
    world.pass(GREATEST_HOLD_NS + WATCHDOG_NS);
    assert_eq!((world.pe.pausing_classes(GATEWAY), world.pe.received_pauses().count()), (0, 0), "no pause is left");
    world.pass(REASSEMBLY_NS);
    assert_eq!(world.pool.in_use(), 0, "every chunk comes back");
}

impl World<'_> {
    fn step(&mut self) {
        match self.choices.below(8) {
            0 => {
                let shift = self.choices.below(20);
                let ns = u64::from(self.choices.octet()) << shift;
                self.pass(ns);
            }
            1 => self.arbitrary(),
            2 => self.data(),
            3 => self.drain_router(),
            _ => self.notify(),
        }
        let held = self.pe.received_pauses().count();
        assert!(held <= 2 * usize::from(ORIGINS), "{held} holds");
    }

    /// A notification, whole or damaged, from one of several nodes.
    fn notify(&mut self) {
        let congested = router(self.choices.below(6));
        let notification = Notification {
            ask: if self.choices.rarely(4) { Ask::Resume } else { Ask::Pause },
            traffic_class: self.choices.of(&[3, 3, 4, 5, 255]),
            level: self.choices.octet(),
            sequence: self.choices.of(&[0, 1, 2, u32::MAX, 1 << 31]).wrapping_add(self.choices.octet().into()),
            hold_us: self.choices.of(&[0, 1, 100, 900, 5000, u32::MAX]),
            congested,
        };
        let mut packet = around(congested, END_C, &NotificationPacket { destination: END_C, notification }.emit());
        if self.choices.rarely(8) {
            let place = self.choices.below(packet.len());
            packet[place] ^= self.choices.octet();
        }
        self.give_pe(&packet);
    }

    /// Anything, in an outer header to one of the SIDs.
    fn arbitrary(&mut self) {
        let (from, to) = (router(self.choices.below(6)), self.choices.of(&[END_C, END_E]));
        let mut packet = around(from, to, self.choices.octets(96));
        packet[6] = self.choices.of(&[41, 43, 58, 60, 0]);
        self.give_pe(&packet);
    }

    fn give_pe(&mut self, packet: &[u8]) {
        let counted = |node: &Node| {
            let drops =
                node.port_counters(WAN).map_or(0, |counters| counters.drops.iter().map(|(_, count)| count).sum());
            let sent: u64 =
                [GATEWAY, WAN].iter().filter_map(|port| Some(node.port_counters(*port)?.enqueued.frames)).sum();
            let taken = node.backpressure_counters();
            [taken.pauses_received + taken.resumes_received, drops, sent, node.waiting_fragments() as u64]
        };
        let before = counted(&self.pe);
        receive(&mut self.pe, self.now, WAN, packet, &mut self.pool);
        self.packets += 1;
        let after = counted(&self.pe);
        assert!(before.iter().zip(after).any(|(before, after)| after > *before), "a packet is gone without a trace");
        if after[0] > before[0] || self.pe.received_pauses().next().is_some() {
            self.taken = Some(self.now);
        }
        self.drain_pe();
        self.look();
    }

    /// A few frames of data that come to the router from the PE.
    fn data(&mut self) {
        for _ in 0..self.choices.below(8) {
            let mut packet = around(PE, Ipv6Addr::new(0x5F00, 0, 0xA, 0, 0, 0, 0, 0), &around(PE, PE, &[0; 100]));
            packet[0] |= 6;
            receive(&mut self.router, self.now, GATEWAY, &packet, &mut self.pool);
        }
    }

    /// Takes the frames that the router sends; its notifications are delivered to the PE.
    fn drain_router(&mut self) {
        let mut notifications = Vec::new();
        while let Some(frame) = self.router.dequeue(self.now, WAN, &mut self.pool) {
            let octets = frame.to_vec(&self.pool);
            frame.release(&mut self.pool);
            if octets[14 + 24..14 + 40] == END_C.octets() {
                notifications.push(octets[14..].to_vec());
            }
        }
        for packet in notifications {
            assert!(NotificationPacket::parse(&packet[40..]).is_ok(), "what a router writes can be read");
            self.give_pe(&packet);
        }
    }

    fn drain_pe(&mut self) {
        for port in [GATEWAY, WAN] {
            while let Some(frame) = self.pe.dequeue(self.now, port, &mut self.pool) {
                frame.release(&mut self.pool);
            }
        }
    }

    /// Time passes, and what is due on the way is done.
    fn pass(&mut self, ns: u64) {
        let end = self.now.after_ns(ns);
        while let Some(next) = self.pe.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.pe.tick(self.now, &mut self.pool);
            self.drain_pe();
            self.look();
        }
        self.now = end;
        self.pe.tick(end, &mut self.pool);
        self.router.tick(end, &mut self.pool);
        self.drain_pe();
        self.look();
    }

    /// A pause is not longer than the longest that may be requested, nor than the watchdog permits.
    fn look(&mut self) {
        if self.pe.pausing_classes(GATEWAY) == 0 {
            self.paused_since = None;
            return;
        }
        let since = *self.paused_since.get_or_insert(self.now);
        let taken = self.taken.expect("a pause follows a request");
        assert!(self.now.as_ns() - since.as_ns() < WATCHDOG_NS, "paused since {since:?}, now {:?}", self.now);
        assert!(self.now.as_ns() - taken.as_ns() < GREATEST_HOLD_NS, "asked for at {taken:?}, now {:?}", self.now);
    }
}

/// An IPv6 header without further ones around something.
fn around(source: Ipv6Addr, destination: Ipv6Addr, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, inner.len() as u8, 41, 64];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(inner);
    packet
}

fn receive(node: &mut Node, now: Instant, port: PortId, packet: &[u8], pool: &mut Pool) {
    let frame = [&[2, 0, 0, 0, 0, port.0 as u8, 2, 0, 0, 0, 1, 1, 0x86, 0xDD][..], packet].concat();
    let frame = Frame::from_octets(&frame, pool).expect("the pool has room");
    node.receive(now, port, &mut vec![frame], pool);
}
