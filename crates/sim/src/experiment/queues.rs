//! The queues of a switch: classes, marks, pauses, notifications, as scenario and arm want them.

use super::build::ADDRESSES;
use super::scenario::{Arm, Scenario, Signal};
use super::server::DATA_CLASS;
use super::watch::Watch;
use srdma_dataplane::{ClassConfig, ClassMap, Command, EgressConfig, Marking, PfcConfig, PortId};
use srdma_fabric::{NodeId, SwitchId};

/// How long a pause lasts, in quanta of 512 bit times: the longest. It is said again at half of it.
const PAUSE_QUANTA: u16 = 0xFFFF;

/// What a switch is told about its queues.
pub(super) fn commands(scenario: &Scenario, arm: &Arm, switch: SwitchId) -> Vec<Command> {
    let topology = &scenario.topology;
    let mut commands = vec![Command::SetClasses(ClassMap::by_precedence())];
    for port in topology.ports(NodeId::Switch(switch)) {
        let rate_bits_per_s = topology.links()[port.link.index()].rate_bits_per_s;
        let egress = Box::new(egress(scenario, arm, rate_bits_per_s));
        commands.push(Command::SetEgress { port: PortId(port.port), egress });
    }
    commands
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
