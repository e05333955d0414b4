//! The queues of a switch: classes, marks, pauses, notifications, as scenario and arm want them.

use super::build::{ADDRESSES, PREFIX, PREFIX_LEN};
use super::scenario::{Arm, Control, Scenario, Signal};
use super::server::DATA_CLASS;
use super::watch::Watch;
use srdma_dataplane::{
    ClassConfig, ClassMap, Command, EgressConfig, FastCnpConfig, IoamConfig, IoamInterface, IoamNamespace, Marking,
    PfcConfig, PortId, Prefix, TimestampFormat, WideData,
};
use srdma_fabric::{NodeId, SwitchId, Topology};
use std::time::Duration;

/// How long a pause lasts, in quanta of 512 bit times: the longest. It is said again at half of it.
const PAUSE_QUANTA: u16 = 0xFFFF;

/// The IOAM namespace of all traces.
pub(super) const TRACE_NAMESPACE: u16 = 1;

/// What a switch is told about its queues.
pub(super) fn commands(scenario: &Scenario, arm: &Arm, switch: SwitchId) -> Vec<Command> {
    let topology = &scenario.topology;
    let mut commands = vec![Command::SetClasses(ClassMap::by_precedence())];
    for port in topology.ports(NodeId::Switch(switch)) {
        let rate_bits_per_s = topology.links()[port.link.index()].rate_bits_per_s;
        let egress = Box::new(egress(scenario, arm, rate_bits_per_s));
        commands.push(Command::SetEgress { port: PortId(port.port), egress });
    }
    if arm.signal == Signal::FastCnp {
        commands.push(Command::SetFastCnp(Box::new(fast_cnp(scenario, arm))));
    }
    if arm.control == Control::Hpcc {
        commands.push(Command::SetIoam(Box::new(traces(topology, switch))));
    }
    commands
}

/// Every host may be notified, and knows what it is told.
fn fast_cnp(scenario: &Scenario, arm: &Arm) -> FastCnpConfig {
    let notification = arm.notification.unwrap_or(scenario.switches.notification);
    let everybody: Vec<Prefix> = Prefix::new(PREFIX, PREFIX_LEN).into_iter().collect();
    FastCnpConfig {
        senders: everybody.clone(),
        capable: everybody.clone(),
        switches: everybody.clone(),
        hosts_inside: everybody,
        interval: Duration::from_nanos(notification.interval_ns.get()),
        ..FastCnpConfig::new()
    }
}

/// What HPCC++ needs of a switch: who it is, by which port a packet leaves, when, and how full the link is.
fn traces(topology: &Topology, switch: SwitchId) -> IoamConfig {
    let ports = topology.ports(NodeId::Switch(switch)).iter();
    let interface = |port: u16| IoamInterface { port: PortId(port), id: Some(port), id_wide: None, fills: true };
    let namespace =
        IoamNamespace { id: TRACE_NAMESPACE, data: None, data_wide: Some(WideData::LinkLoad), opaque: None };
    IoamConfig {
        node_id: Some(switch.0),
        namespaces: vec![namespace],
        interfaces: ports.map(|port| interface(port.port)).collect(),
        timestamps: TimestampFormat::Ptp,
        ..IoamConfig::default()
    }
}

/// The queue of a switch toward the receiver of the first incast, if that is attached to it: above the threshold from
/// which on the arm's signal is given.
pub(super) fn watch(scenario: &Scenario, arm: &Arm, switch: SwitchId) -> Option<Watch> {
    let topology = &scenario.topology;
    let receiver = scenario.workloads.incast.first()?.receiver(topology)?;
    let mut ports = topology.ports(NodeId::Switch(switch)).iter();
    let port = ports.find(|port| port.peer.node == NodeId::Host(receiver))?;
    let threshold_octets = match arm.signal {
        Signal::None => return None,
        Signal::ReceiverCnp => arm.ecn.unwrap_or(scenario.switches.ecn).k_min_octets.get(),
        Signal::FastCnp => arm.notification.unwrap_or(scenario.switches.notification).threshold_octets.get(),
    };
    Some(Watch::new(ADDRESSES.host(topology, receiver), PortId(port.port), threshold_octets as usize))
}

fn egress(scenario: &Scenario, arm: &Arm, rate_bits_per_s: u64) -> EgressConfig {
    let switches = &scenario.switches;
    let ecn = arm.ecn.unwrap_or(switches.ecn);
    let pfc = arm.pfc_thresholds.unwrap_or(switches.pfc);
    let notification = arm.notification.unwrap_or(switches.notification);
    let mut egress = EgressConfig::new(rate_bits_per_s, switches.queue_limit_octets.get() as usize);
    let marking = Marking {
        k_min_octets: ecn.k_min_octets.get() as usize,
        k_max_octets: ecn.k_max_octets.get() as usize,
        p_max: ecn.p_max.get(),
    };
    let data: &mut ClassConfig = &mut egress.classes[DATA_CLASS];
    match arm.signal {
        Signal::None => {}
        Signal::ReceiverCnp => data.marking = Some(marking),
        Signal::FastCnp => {
            data.marking = Some(marking);
            data.notify_octets = Some(notification.threshold_octets.get() as usize);
        }
    }
    data.pfc = arm.pfc.then(|| PfcConfig {
        xoff_octets: pfc.xoff_octets.get() as usize,
        xon_octets: pfc.xon_octets.get() as usize,
        headroom_octets: pfc.headroom_octets.get() as usize,
        quanta: PAUSE_QUANTA,
    });
    egress
}
