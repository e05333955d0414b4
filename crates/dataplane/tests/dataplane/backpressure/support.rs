//! Packets octet by octet, their checksums by the book, and the nodes of a WAN.

use crate::common::{Bench, port_mac};
pub(crate) use crate::common::{address, ipv6, prefix};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::Instant;
use std::time::Duration;

/// The congested router, the PE and its END.C, and where data goes.
pub(crate) const ROUTER: &str = "2001:db8:53::2";
pub(crate) const PE: &str = "2001:db8:53::9";
pub(crate) const END_C: &str = "5f00:0:9:c000::";
pub(crate) const EGRESS: &str = "5f00:0:a:d6::";

/// The port of a PE toward its gateway: its MAC address is the one that scapy's pauses come from.
pub(crate) const GATEWAY: PortId = PortId(1);

pub(crate) const PAUSE: u8 = 0;
pub(crate) const RESUME: u8 = 1;

/// A packet of so many octets in a tunnel, in a class, its DSCP being that of CS1 to CS7.
pub(crate) fn tunnelled(pe: &str, class: u8, octets: usize) -> Vec<u8> {
    let inner = ipv6("2001:db8:1::1", "2001:db8:2::1", class, 59, &vec![0; octets - 80]);
    ipv6(pe, EGRESS, class, 41, &inner)
}

/// Fields of a notification.
#[derive(Clone, Copy)]
pub(crate) struct Content {
    pub(crate) code: u8,
    pub(crate) class: u8,
    pub(crate) level: u8,
    pub(crate) sequence: u32,
    pub(crate) hold_us: u32,
}

pub(crate) fn pause(class: u8, sequence: u32, hold_us: u32) -> Content {
    Content { code: PAUSE, class, level: 128, sequence, hold_us }
}

pub(crate) fn resume(class: u8, sequence: u32) -> Content {
    Content { code: RESUME, class, level: 0, sequence, hold_us: 0 }
}

/// The message of D60, its checksum zero.
pub(crate) fn message(congested: &str, content: Content) -> Vec<u8> {
    let mut message = vec![200, content.code, 0, 0, 1, content.class, content.level, 0];
    message.extend(content.sequence.to_be_bytes());
    message.extend(content.hold_us.to_be_bytes());
    message.extend(address(congested).octets());
    message
}

/// The message in its packet, checksum added up in 16-bit words (RFC 4443 section 2.3).
pub(crate) fn inner(source: &str, destination: &str, mut message: Vec<u8>) -> Vec<u8> {
    let pseudo = [&address(source).octets()[..], &address(destination).octets(), &[0, 0, 0, 32, 0, 0, 0, 58]].concat();
    let words = [&pseudo, &message[..]].concat();
    let sum = words.chunks(2).fold(0_u32, |sum, word| sum + u32::from(word[0]) * 256 + u32::from(word[1]));
    let folded = (sum & 0xFFFF) + (sum >> 16);
    message[2..4].copy_from_slice(&(!((folded & 0xFFFF) + (folded >> 16)) as u16).to_be_bytes());
    ipv6(source, destination, 6, 58, &message)
}

/// A whole notification as it travels.
pub(crate) fn notification(origin: &str, content: Content) -> Vec<u8> {
    ipv6(origin, END_C, 6, 41, &inner(origin, END_C, message(origin, content)))
}

/// The same with an SRH in the outer header, whose one segment is reached.
pub(crate) fn with_srh(mut packet: Vec<u8>) -> Vec<u8> {
    let srh = [&[41, 2, 4, 0, 0, 0, 0, 0][..], &packet[24..40]].concat();
    packet[5] += srh.len() as u8;
    packet[6] = 43;
    packet.splice(40..40, srh);
    packet
}

pub(crate) fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet
}

/// A PE: class 3 of the WAN is priority 3 toward the gateway. No pause longer than 1 ms is accepted.
pub(crate) fn pe() -> Bench {
    let mut bench = Bench::new(PE, 2);
    bench.route("::/0", 0);
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[3].pfc =
        Some(PfcConfig { xoff_octets: 3000, xon_octets: 1500, headroom_octets: 2000, quanta: 0xFFFF });
    bench.apply(Command::SetEgress { port: GATEWAY, egress: Box::new(egress) });
    bench.apply(Command::AddSid { prefix: prefix(END_C), behavior: SidBehavior::EndC });
    bench.apply(Command::SetBackpressure(Box::new(at_pe())));
    bench
}

pub(crate) fn at_pe() -> BackpressureConfig {
    BackpressureConfig {
        priorities: vec![PriorityMapping { traffic_class: 3, ports: vec![GATEWAY], priority: 3 }],
        greatest_hold: Duration::from_millis(1),
        watchdog: Duration::from_millis(20),
        ..BackpressureConfig::new()
    }
}

/// A router with the PEs behind port 0, and its bottleneck at port 1: XOFF of class 3 is 3000 octets, XON 1000.
pub(crate) fn router() -> Bench {
    let mut bench = Bench::new(ROUTER, 3);
    bench.route("5f00::/16", 0);
    bench.route("5f00:0:a::/48", 1);
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    for port in [1, 2] {
        let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
        egress.classes[3].backpressure = Some(BackpressureThresholds { xoff_octets: 3000, xon_octets: 1000 });
        bench.apply(Command::SetEgress { port: PortId(port), egress: Box::new(egress) });
    }
    let sids = |outer_source, end_c| BackpressureSids {
        outer_source: prefix(outer_source),
        end_c: Some(address(end_c)),
        end_e: None,
    };
    bench.apply(Command::SetBackpressureSids(vec![sids(PE, END_C), sids("2001:db8:53::8", "5f00:0:8:c000::")]));
    bench.apply(Command::SetBackpressure(Box::default()));
    bench
}

impl Bench {
    /// Passes an IPv6 packet to a port, and leaves the results in the queues.
    pub(crate) fn take_in(&mut self, port: u16, packet: &[u8]) {
        let frame = [&port_mac(port).0[..], &[2, 0, 0, 0, 1, port as u8, 0x86, 0xDD], packet].concat();
        let frame = Frame::from_octets(&frame, &mut self.pool).unwrap();
        self.node.receive(self.now, PortId(port), &mut vec![frame], &mut self.pool);
    }

    /// The notifications that wait at port 0, without flow labels.
    pub(crate) fn notifications(&mut self) -> Vec<Vec<u8>> {
        let frames = std::iter::from_fn(|| self.give_out(PortId(0)));
        frames.map(|frame| without_flow_label(frame[14..].to_vec())).collect()
    }

    /// Time passes, and whatever is due on the way is done.
    pub(crate) fn wait_until(&mut self, us: u64) {
        let end = Instant::from_ns(us * 1000);
        while let Some(next) = self.node.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.node.tick(self.now, &mut self.pool);
        }
        self.now = end;
        self.node.tick(self.now, &mut self.pool);
    }
}
