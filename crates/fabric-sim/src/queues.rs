//! Queues of a switch: classes, marks, pauses, notifications, by scenario and variant.

use super::build::{ADDRESSES, PREFIX, PREFIX_LEN};
use super::queue_monitor::{MonitoredQueue, QueueMonitor};
use super::scenario::{Control, FabricScenario, Signal, Variant, Whole};
use super::server::DATA_CLASS;
use srdma_dataplane::{
    ClassConfig, ClassMap, Command, EgressConfig, FastCnpConfig, IoamConfig, IoamInterface, IoamNamespace, Marking,
    PfcConfig, TimestampFormat, WideData,
};
use srdma_fabric::{NextHops, NodeId, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::time::Duration;

/// Duration of a pause in quanta of 512 bit times: the maximum. It is refreshed after half of it.
pub(super) const PAUSE_QUANTA: u16 = 0xFFFF;

/// The IOAM namespace of all traces.
pub(super) const TRACE_NAMESPACE: u16 = 1;

/// Commands that configure the queues of a switch.
pub(super) fn commands(scenario: &FabricScenario, variant: &Variant, switch: SwitchId) -> Vec<Command> {
    let topology = &scenario.topology;
    let mut commands = vec![Command::SetClasses(ClassMap::by_precedence())];
    for port in topology.ports(NodeId::Switch(switch)) {
        let rate_bits_per_s = topology.links()[port.link.index()].rate_bits_per_s;
        let thresholds = Thresholds::new(scenario, variant, port.peer.node);
        let mut egress = Box::new(egress(scenario, variant, rate_bits_per_s, &thresholds));
        if let Some(wan) = &scenario.wan {
            wan.egress(switch, &mut egress);
        }
        commands.push(Command::SetEgress { port: PortId(port.port), egress });
    }
    if variant.signal.has_fast_cnps() && scenario.wan.is_none() {
        commands.push(Command::SetFastCnp(Box::new(fast_cnp(scenario, variant))));
    }
    if variant.control == Control::Hpcc {
        let interval = Duration::from_nanos(variant.hpcc.feedback_interval_ns());
        commands.push(Command::SetIoam(Box::new(traces(topology, switch, interval))));
    }
    commands
}

/// Every host may be notified and supports Fast CNP.
fn fast_cnp(scenario: &FabricScenario, variant: &Variant) -> FastCnpConfig {
    let notification = variant.notification.unwrap_or(scenario.switches.notification);
    FastCnpConfig {
        interval: Duration::from_nanos(notification.interval_ns.get()),
        per_second: notification.per_second.get() as u32,
        mark_notified: notification.mark_notified,
        drain: notification.drain_ns.map(|drain| Duration::from_nanos(drain.get())),
        ..fast_cnp_config()
    }
}

/// Every host handles Fast CNP, and none is outside its domain.
pub(super) fn fast_cnp_config() -> FastCnpConfig {
    let everybody: Vec<Prefix> = Prefix::new(PREFIX, PREFIX_LEN).into_iter().collect();
    FastCnpConfig {
        senders: everybody.clone(),
        capable: everybody.clone(),
        switches: everybody.clone(),
        hosts_inside: everybody,
        ..FastCnpConfig::new()
    }
}

/// Telemetry for HPCC++: node, output port, time and utilisation of the link.
fn traces(topology: &Topology, switch: SwitchId, group_interval: Duration) -> IoamConfig {
    let ports = topology.ports(NodeId::Switch(switch)).iter();
    let interface = |port: u16| IoamInterface { port: PortId(port), id: Some(port), id_wide: None, fills: true };
    let namespace =
        IoamNamespace { id: TRACE_NAMESPACE, data: None, data_wide: Some(WideData::LinkLoad), opaque: None };
    IoamConfig {
        node_id: Some(switch.0),
        namespaces: vec![namespace],
        interfaces: ports.map(|port| interface(port.port)).collect(),
        timestamps: TimestampFormat::Ptp,
        group_interval: Some(group_interval),
        ..IoamConfig::default()
    }
}

/// The queue monitor of a switch on the path to the receiver of the first incast, with the threshold of the
/// variant's signal.
pub(super) fn queue_monitor(
    scenario: &FabricScenario,
    variant: &Variant,
    next_hops: &NextHops,
    switch: SwitchId,
) -> Option<QueueMonitor> {
    let topology = &scenario.topology;
    if let Some(wan) = &scenario.wan {
        return wan.queue_monitor(topology, switch);
    }
    let receiver = scenario.workloads.incast.first()?.receiver(topology)?;
    let ports = next_hops.toward(switch, receiver).iter();
    let queues = ports.filter_map(|port| {
        let peer = topology.port(NodeId::Switch(switch), *port)?.peer.node;
        let threshold_octets = Thresholds::new(scenario, variant, peer).threshold_of(variant.signal)?;
        Some(MonitoredQueue { port: PortId(*port), threshold_octets })
    });
    let queues: Vec<MonitoredQueue> = queues.collect();
    (!queues.is_empty()).then(|| QueueMonitor::new(ADDRESSES.host(topology, receiver), queues))
}

/// Queue lengths at which signals start.
struct Thresholds {
    marking: Marking,
    notify_octets: usize,
}

impl Thresholds {
    /// The thresholds of a port toward this neighbour.
    fn new(scenario: &FabricScenario, variant: &Variant, neighbour: NodeId) -> Self {
        let ecn = variant.ecn.unwrap_or(scenario.switches.ecn);
        let notification = variant.notification.unwrap_or(scenario.switches.notification);
        let or = |of_host_port: u64, of_fabric_port: Option<u64>| match neighbour {
            NodeId::Host(_) => of_host_port as usize,
            NodeId::Switch(_) => of_fabric_port.unwrap_or(of_host_port) as usize,
        };
        Thresholds {
            marking: Marking {
                k_min_octets: or(ecn.k_min_octets.get(), ecn.fabric_k_min_octets.map(Whole::get)),
                k_max_octets: or(ecn.k_max_octets.get(), ecn.fabric_k_max_octets.map(Whole::get)),
                p_max: ecn.p_max.get(),
            },
            notify_octets: or(
                notification.threshold_octets.get(),
                notification.fabric_threshold_octets.map(Whole::get),
            ),
        }
    }

    /// The threshold of a signal; `None` for no signal.
    fn threshold_of(&self, signal: Signal) -> Option<usize> {
        match signal {
            Signal::None => None,
            Signal::ReceiverCnp | Signal::ReceiverTrace | Signal::ReceiverEcho => Some(self.marking.k_min_octets),
            Signal::FastCnp => Some(self.notify_octets),
        }
    }
}

fn egress(scenario: &FabricScenario, variant: &Variant, rate_bits_per_s: u64, thresholds: &Thresholds) -> EgressConfig {
    let switches = &scenario.switches;
    let pfc = variant.pfc_thresholds.unwrap_or(switches.pfc);
    let mut egress = EgressConfig::new(rate_bits_per_s, switches.queue_limit_octets.get() as usize);
    let data: &mut ClassConfig = &mut egress.classes[DATA_CLASS];
    match variant.signal {
        Signal::None | Signal::ReceiverTrace => {}
        Signal::ReceiverCnp | Signal::ReceiverEcho => data.marking = Some(thresholds.marking),
        Signal::FastCnp => {
            data.marking = Some(thresholds.marking);
            data.notify_octets = Some(thresholds.notify_octets);
        }
    }
    data.pfc = variant.pfc.then(|| PfcConfig {
        xoff_octets: pfc.xoff_octets.get() as usize,
        xon_octets: pfc.xon_octets.get() as usize,
        headroom_octets: pfc.headroom_octets.get() as usize,
        quanta: PAUSE_QUANTA,
    });
    egress
}
