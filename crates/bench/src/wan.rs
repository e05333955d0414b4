//! Cost of END.C and END.E at a node (`docs/wan.md`), compared with packets of a tunnel that it only forwards.

use super::fixture::{MAC, node};
use super::machine::Machine;
use super::packets::{self, ETHERNET};
use super::row::Row;
use super::steering::{frames, notice};
use anyhow::{Context, ensure};
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BackpressureThresholds, ClassMap, Command, EgressConfig, NextHop, Node,
    PfcConfig, PriorityMapping, RouteAction, SidBehavior, TableId,
};
use srdma_frame::{Element, Pool, PortId};
use srdma_wire::notification::{Ask, Notification, NotificationPacket};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant as Clock};

/// Subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wan {
    /// Packets of a tunnel, forwarded by a port with traffic classes, and taken from its queue: the baseline of the
    /// next.
    Forwarded,
    /// The same where the class has backpressure, and less than XOFF waits.
    Calm,
    /// Notifications of one router, received at END.C: the first requests a pause, the others refresh it.
    Taken,
    /// Fast CNPs received at END.E and forwarded to their senders.
    HandedOn,
}

/// Packets of a repetition.
const PACKETS: u32 = 512;
const PACKET_OCTETS: usize = 192;
/// From repetition to repetition.
const INTERVAL_US: u32 = 1000;
const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x53, 0, 0, 0, 0, 9);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x53, 0, 0, 0, 0, 2);
const EGRESS: Ipv6Addr = Ipv6Addr::new(0x5f00, 0, 0xa, 0xd6, 0, 0, 0, 0);
const END_C: Ipv6Addr = Ipv6Addr::new(0x5f00, 0, 9, 0xc, 0, 0, 0, 0);
const END_E: Ipv6Addr = Ipv6Addr::new(0x5f00, 0, 9, 0xe, 0, 0, 0, 0);
/// Output port, the one toward the gateway.
const OUT: PortId = PortId(1);
const CLASS: u8 = 0;
/// More than all packets of a repetition.
const LIMIT_OCTETS: usize = 1 << 20;

impl Wan {
    /// All of them.
    pub(super) const ALL: [Wan; 4] = [Wan::Forwarded, Wan::Calm, Wan::Taken, Wan::HandedOn];

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        match self {
            Wan::Forwarded => "WAN: forwarded and dequeued",
            Wan::Calm => "WAN: the same, with backpressure",
            Wan::Taken => "WAN: notification at END.C",
            Wan::HandedOn => "WAN: Fast CNP through END.E",
        }
        .to_owned()
    }

    pub(super) fn measure(self, repetitions: u32, machine: &Machine) -> anyhow::Result<Row> {
        let mut node = self.node()?;
        let mut pool = Pool::new(usize::MAX);
        let octets = self.packets(0)?.first().map(Vec::len);
        let mut samples = Vec::new();
        for round in 0..=repetitions {
            let mut frames = frames(&self.packets(round)?, &mut pool)?;
            let now = Instant::from_ns(u64::from(round + 1) * u64::from(INTERVAL_US) * 1000);
            let begin = Clock::now();
            node.receive(now, PortId(0), black_box(&mut frames), &mut pool);
            let mut sent = 0;
            while let Some(frame) = node.dequeue(now, OUT, &mut pool) {
                frame.release(&mut pool);
                sent += 1;
            }
            samples.push(begin.elapsed().as_nanos() as f64 / f64::from(PACKETS));
            self.check(&node, round, sent)?;
        }
        // The first one met cold caches.
        samples.remove(0);
        Ok(Row::new(self.name(), octets, None, "inside L2", 1, samples, machine))
    }

    /// Whether a repetition had all its results.
    fn check(self, node: &Node, round: u32, sent: u32) -> anyhow::Result<()> {
        let counters = node.backpressure_counters();
        let (expected, taken) = match self {
            Wan::Taken => (sent.min(1), u64::from(round + 1) * u64::from(PACKETS)),
            Wan::Forwarded | Wan::Calm | Wan::HandedOn => (PACKETS, 0),
        };
        ensure!(sent == expected, "{sent} of {expected} packets left");
        ensure!(
            counters.pauses_received == taken,
            "{} of {taken} notifications were accepted",
            counters.pauses_received
        );
        ensure!(counters.pauses_sent == 0, "{} pauses were asked for", counters.pauses_sent);
        Ok(())
    }

    fn node(self) -> anyhow::Result<Node> {
        let mut node = node(&[])?;
        let next_hop = NextHop { port: OUT, address: PE };
        node.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, 1]) })?;
        let prefix = Prefix::new(Ipv6Addr::UNSPECIFIED, 0).context("a prefix")?;
        node.apply(Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Via(vec![next_hop]) })?;
        node.apply(Command::SetClasses(ClassMap::by_precedence()))?;
        let mut egress = EgressConfig::new(100_000_000_000, LIMIT_OCTETS);
        let class = &mut egress.classes[usize::from(CLASS)];
        let mut notifications = BackpressureConfig::new();
        match self {
            Wan::Forwarded => {}
            Wan::Calm => {
                class.backpressure =
                    Some(BackpressureThresholds { xoff_octets: LIMIT_OCTETS, xon_octets: LIMIT_OCTETS / 2 });
                let outer_source = Prefix::host(PE);
                let sids = BackpressureSids { outer_source, end_c: Some(END_C), end_e: Some(END_E) };
                node.apply(Command::SetBackpressureSids(vec![sids]))?;
            }
            Wan::Taken => {
                let (xoff_octets, xon_octets) = (LIMIT_OCTETS / 2, LIMIT_OCTETS / 4);
                let headroom_octets = LIMIT_OCTETS / 4;
                class.pfc = Some(PfcConfig { xoff_octets, xon_octets, headroom_octets, quanta: 0xFFFF });
                node.apply(Command::AddSid { prefix: Prefix::host(END_C), behavior: SidBehavior::EndC })?;
                notifications = BackpressureConfig {
                    priorities: vec![PriorityMapping { traffic_class: CLASS, ports: vec![OUT], priority: CLASS }],
                    watchdog: Duration::from_secs(3600),
                    per_second: u32::MAX,
                    at_once: PACKETS,
                    ..notifications
                };
            }
            Wan::HandedOn => {
                let behavior = SidBehavior::EndE(TableId(0));
                node.apply(Command::AddSid { prefix: Prefix::host(END_E), behavior })?;
                (notifications.end_e_per_second, notifications.end_e_at_once) = (u32::MAX, PACKETS);
            }
        }
        node.apply(Command::SetEgress { port: OUT, egress: Box::new(egress) })?;
        if self != Wan::Forwarded {
            node.apply(Command::SetBackpressure(Box::new(notifications)))?;
        }
        Ok(node)
    }

    /// The packets of a repetition; notifications are younger than those of the one before.
    fn packets(self, round: u32) -> anyhow::Result<Vec<Vec<u8>>> {
        let packet = |number| match self {
            Wan::Forwarded | Wan::Calm => Ok(packets::without_srh(MAC, EGRESS, PE, PACKET_OCTETS)),
            Wan::Taken => {
                let notification = Notification {
                    ask: Ask::Pause,
                    traffic_class: CLASS,
                    level: 128,
                    sequence: (round + 1) * INTERVAL_US + number,
                    hold_us: 10_000,
                    congested: ROUTER,
                };
                Ok(packets::in_tunnel(
                    MAC,
                    (ROUTER, END_C),
                    &NotificationPacket { destination: END_C, notification }.emit(),
                ))
            }
            Wan::HandedOn => Ok(packets::in_tunnel(MAC, (ROUTER, END_E), &notice(ROUTER, number)?[ETHERNET..])),
        };
        (0..PACKETS).map(packet).collect()
    }
}
