//! Configuration of congestion at a node: classes and pauses of its ports, Fast CNP, traces; drawn from a script.

use super::plan::*;
use super::world::{PORTS, Temper, World};
use crate::choices::Choices;
use srdma_dataplane::*;
use srdma_frame::PortId;
use srdma_wire::{Prefix, Qpn};
use std::net::Ipv6Addr;
use std::time::Duration;

/// The namespace whose traces the nodes fill.
pub(super) const NAMESPACE: u16 = 5;

/// A host behind the node that does not handle Fast CNP, its queue pair, and its peer.
pub(super) const TRANSLATED: Ipv6Addr = source(3);
pub(super) const TRANSLATED_PEER: (Ipv6Addr, Qpn) = (receiver(1), Qpn::from_octets([0, 1, 1]));

fn prefix(address: Ipv6Addr, len: u8) -> Prefix {
    Prefix::new(address, len).expect("a length of at most 128")
}

/// Classes in pairs: those of an even number, and those of an odd one, which may be paused.
fn egress(choices: &mut Choices<'_>) -> EgressConfig {
    let form = choices.octet();
    let limit_octets = choices.of(&[1 << 20, 9000, 100, 0]);
    let threshold = choices.of(&[0, 1, 100, 9000]);
    let marking = Marking { k_min_octets: threshold, k_max_octets: threshold + choices.below(200), p_max: 0.5 };
    let even = ClassConfig {
        scheduling: if form & 1 == 0 { Scheduling::Strict } else { Scheduling::Weighted { quantum_octets: 256 } },
        marking: (form & 2 == 0).then_some(marking),
        notify_octets: (form & 4 == 0).then_some(threshold),
        ..ClassConfig::new(limit_octets)
    };
    let xoff_octets = choices.of(&[0, 100, 2000]);
    let pfc = PfcConfig {
        xoff_octets,
        xon_octets: choices.of(&[0, xoff_octets / 2, xoff_octets]),
        headroom_octets: choices.of(&[1 << 20, 100, 0]),
        quanta: choices.of(&[0xFFFF, 1, 100]),
    };
    let odd = ClassConfig { pfc: (form & 8 == 0).then_some(pfc), ..even };
    let action = if form & 32 == 0 { StormAction::Forward } else { StormAction::Drop };
    EgressConfig {
        rate_bits_per_s: choices.of(&[100_000_000_000, 1_000_000_000, 1, u64::MAX]),
        classes: std::array::from_fn(|class| if class % 2 == 0 { even } else { odd }),
        trim_dscp: (form & 64 != 0).then_some(46),
        watchdog: (form & 16 != 0).then_some(Watchdog { bound_ns: 10_000, quiet_ns: 20_000, action }),
    }
}

/// Bits of a first octet select the settings, the rest their values.
fn fast_cnp(choices: &mut Choices<'_>) -> FastCnpConfig {
    let form = choices.octet();
    let given = |bit: u8, prefixes: &[Prefix]| if form & bit == 0 { prefixes.to_vec() } else { Vec::new() };
    let interval = Duration::from_nanos(choices.of(&[1_000, 50_000, 0]));
    let (per_second, at_once) = (choices.of(&[1_000_000, 1, 0]), choices.of(&[256, 1, 0]));
    // With rates where it is short: a choice of its own would change what the inputs of the corpus mean.
    let incapable_for_us = choices.of(&[1_000, 1, 0]);
    FastCnpConfig {
        senders: given(1, &[prefix(Ipv6Addr::UNSPECIFIED, 0)]),
        capable: given(2, &[prefix(source(1), 128), prefix(source(2), 128), prefix(receiver(1), 128)]),
        switches: given(4, &[prefix(BELOW[0], 47), prefix(ABOVE, 128)]),
        hosts_inside: given(8, &[prefix(source(0), 64)]),
        translated: given(16, &[prefix(TRANSLATED, 128), prefix(receiver(2), 128)]),
        learn_connections: form & 32 == 0,
        mark_unknown: form & 64 == 0,
        mark_notified: form & 128 == 0,
        interval,
        per_second,
        at_once,
        drain: (incapable_for_us < 1_000).then(|| Duration::from_micros(200 * incapable_for_us)),
        incapable_for: Duration::from_micros(incapable_for_us),
    }
}

fn ioam(choices: &mut Choices<'_>) -> IoamConfig {
    let form = choices.octet();
    let namespace = IoamNamespace {
        id: NAMESPACE,
        data: (form & 1 == 0).then_some(6),
        data_wide: Some(if form & 2 == 0 { WideData::LinkLoad } else { WideData::Fixed(7) }),
        opaque: (form & 4 != 0).then(|| (choices.u16().into(), choices.octets(32).to_vec())),
    };
    let interface = |port: u16| IoamInterface {
        port: PortId(port),
        id: Some(port),
        id_wide: (form & 8 == 0).then_some(port.into()),
        fills: form >> 4 & 1 << port == 0,
    };
    IoamConfig {
        node_id: Some(0x01_0203),
        node_id_wide: Some(0x02_0304_0506_0708),
        namespaces: vec![namespace],
        interfaces: (0..PORTS).map(interface).collect(),
        timestamps: if form & 1 == 0 { TimestampFormat::Ptp } else { TimestampFormat::Posix },
        tells_buffer_occupancy: form & 2 == 0,
        group_interval: (form & 4 == 0).then_some(Duration::from_micros(5)),
    }
}

impl World {
    /// Initial configuration of a node of this temper: the strict one and that at a boundary have congestion
    /// configured, the others get it by commands.
    pub(super) fn add_congestion(&mut self) {
        // Most frames have DSCP 0: theirs is a class that may be paused.
        let mut classes = ClassMap::by_precedence();
        classes.set(0, 1).expect("a DSCP and a class");
        self.apply(Command::SetClasses(classes));
        match self.temper {
            Temper::Plain | Temper::Recomputing | Temper::Tagged | Temper::Repairing => return,
            Temper::Strict | Temper::Bordering => {}
        }
        for port in 0..PORTS {
            self.set_egress(port, &mut Choices::new(&[]));
        }
        self.set_fast_cnp(&mut Choices::new(&[]));
        self.set_ioam(&mut Choices::new(&[]));
    }

    /// Gives a port classes, others, or none.
    pub(super) fn set_egress(&mut self, port: u16, choices: &mut Choices<'_>) {
        self.is_changed = true;
        let port = PortId(port);
        if choices.rarely(4) {
            return self.apply(Command::RemoveEgress(port));
        }
        self.apply(Command::SetEgress { port, egress: Box::new(egress(choices)) });
    }

    /// Turns Fast CNP on, with a connection that is known, or off.
    pub(super) fn set_fast_cnp(&mut self, choices: &mut Choices<'_>) {
        self.is_changed = true;
        if choices.rarely(8) {
            return self.apply(Command::RemoveFastCnp);
        }
        self.apply(Command::SetFastCnp(Box::new(fast_cnp(choices))));
        let (peer, peer_qpn) = TRANSLATED_PEER;
        let host_qpn = Qpn::from_octets([0, 0, 0x77]);
        self.apply(Command::AddConnection(Connection { host: TRANSLATED, host_qpn, peer, peer_qpn }));
    }

    /// Fills traces, or leaves them.
    pub(super) fn set_ioam(&mut self, choices: &mut Choices<'_>) {
        self.is_changed = true;
        if choices.rarely(8) {
            return self.apply(Command::RemoveIoam);
        }
        self.apply(Command::SetIoam(Box::new(ioam(choices))));
    }

    /// Counters of congestion so far, by name.
    pub(super) fn congestion_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let ioam = self.node.ioam_counters();
        let traces = [
            ("traces written", ioam.written),
            ("traces overflown", ioam.overflown),
            ("traces malformed", ioam.malformed),
        ];
        let classes = (0..PORTS).flat_map(|port| (0..CLASSES).map(move |class| (PortId(port), class)));
        let counters = classes.filter_map(|(port, class)| self.node.class_counters(port, class));
        let of_classes = counters.flat_map(|class| {
            [
                ("class marks", class.marks),
                ("class pauses sent", class.pauses_sent),
                ("class resumes sent", class.resumes_sent),
                ("class pauses received", class.received.pauses),
                ("class pauses ignored", class.received.ignored),
                ("class storms", class.received.storms),
            ]
        });
        let fast_cnp = self.node.fast_cnp_counters().iter().collect::<Vec<_>>();
        let tallied = self.tally.iter().map(|(name, count)| (*name, *count));
        traces.into_iter().chain(of_classes).chain(fast_cnp).chain(tallied)
    }

    /// Adds the counters to the tally, before their owner is removed.
    fn keep_counts(&mut self) {
        let keeps_fast_cnp = matches!(self.temper, Temper::Strict | Temper::Bordering);
        let goes = |name: &str| !keeps_fast_cnp || name.starts_with("class") || name.starts_with("traces");
        let mut tally = self.tally.clone();
        self.tally.clear();
        self.congestion_counts().filter(|(name, _)| goes(name)).for_each(|(name, count)| {
            *tally.entry(name).or_default() += count;
        });
        self.tally = tally;
    }

    /// Whether ports have classes.
    pub(super) fn has_classes(&self) -> bool {
        (0..PORTS).any(|port| self.node.egress_config(PortId(port)).is_some())
    }

    /// Whether frames wait behind a pause.
    pub(super) fn has_waiting(&self) -> bool {
        self.node.buffered_octets() > 0
    }

    /// Every port has one queue again, so that all that waits can leave.
    pub(super) fn release_waiting(&mut self) {
        self.keep_counts();
        (0..PORTS).for_each(|port| self.apply(Command::RemoveEgress(PortId(port))));
        self.is_changed = true;
    }

    /// Reverts the changes of a script.
    pub(super) fn restore_congestion(&mut self) {
        if !std::mem::take(&mut self.is_changed) || !self.has_congestion {
            return;
        }
        self.keep_counts();
        (0..PORTS).for_each(|port| self.apply(Command::RemoveEgress(PortId(port))));
        self.apply(Command::RemoveIoam);
        match self.temper {
            Temper::Plain | Temper::Recomputing | Temper::Repairing => self.apply(Command::RemoveFastCnp),
            Temper::Strict | Temper::Bordering | Temper::Tagged => {}
        }
        self.add_congestion();
        self.is_changed = false;
    }

    /// A class of a port has frames that could go, or the octets of its frames went astray.
    pub(super) fn check_queues(&self) {
        let mut sum = 0;
        for port in (0..PORTS).map(PortId) {
            let paused = self.node.paused_classes(port);
            for class in 0..CLASSES {
                let octets = self.node.class_octets(port, class).unwrap_or(0);
                assert!(octets == 0 || paused >> class & 1 == 1, "port {port:?} keeps class {class}, which may go");
                sum += octets;
            }
        }
        assert_eq!(sum, self.node.buffered_octets());
        let ingress = |port| (0..CLASSES).filter_map(move |class| self.node.ingress_octets(port, class));
        assert!((0..PORTS).map(PortId).flat_map(ingress).sum::<usize>() <= sum, "more came in than waits");
    }
}
