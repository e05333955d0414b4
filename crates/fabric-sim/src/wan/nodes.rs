//! Configuration of the WAN nodes: tunnels, SIDs, and the queues of the congested node.
//!
//! | SID, below a PE's locator | what |
//! |---|---|
//! | `::d6` | End.DT6 with the table of the data centre behind it |
//! | `::e` | END.E with the same table (CN-4.2-1) |
//! | `::c` | END.C (CN-4.1-1) |

use super::figure::{self, BOTTLENECK_RATE, Congested, HOSTS_PER_LEAF, LEAVES, TUNNEL};
use crate::build::ADDRESSES;
use crate::queue_monitor::{MonitoredQueue, QueueMonitor};
use crate::queues::{PAUSE_QUANTA, fast_cnp_config};
use crate::server::DATA_CLASS;
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BackpressureThresholds, Command, EgressConfig, EncapsMode, FastCnpConfig,
    Marking, NextHop, PfcConfig, PriorityMapping, RouteAction, SidBehavior, TableId,
};
use srdma_fabric::{NodeId, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;
use std::time::Duration;

/// The table of the data centre behind a PE.
const VRF: TableId = TableId(1);

const END_DT6: u16 = 0xd6;
const END_E: u16 = 0xe;
const END_C: u16 = 0xc;

/// Queue length from which on the PE pauses its gateway itself, in octets. Packets leave with an additional outer
/// header, so at equal rates the queue grows; without a bound it would reach the congested node after the pause.
pub(crate) const PE_XOFF_OCTETS: u64 = 32_768;

/// Notifications per second that the PE accepts from each node: more than any queue here causes (D66).
const PER_SECOND: u32 = 1_000_000;

/// Minimum interval between two notifications of a flow (D45).
const INTERVAL: Duration = Duration::from_micros(50);

/// The WAN of a run: the congested node, and the signals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wan {
    pub(crate) congested: Congested,
    /// Its queue limit in octets.
    pub(crate) buffer_octets: usize,
    /// Congestion signal to senders.
    pub(crate) signal: WanSignal,
    /// Queue length at which the signal starts, in octets.
    pub(crate) threshold_octets: usize,
    /// Thresholds for pausing the gateway by END.C, if enabled.
    pub(crate) backpressure: Option<BackpressureThresholds>,
    /// Hold time of END.C.
    pub(crate) hold: Duration,
    /// Whether senders are known to process Fast CNPs; packets of others are marked as well (FC-4-5).
    pub(crate) knows_senders: bool,
}

/// Congestion signal to senders in the WAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WanSignal {
    /// No signal.
    None,
    /// The congested node marks packets, receivers send CNPs.
    ReceiverCnp,
    /// The congested node sends Fast CNPs by END.E.
    EndE,
}

impl Wan {
    /// The egress port of the congested node.
    pub(crate) fn bottleneck(&self, topology: &Topology) -> Option<PortId> {
        port_toward(topology, self.congested.switch(), self.congested.next())
    }

    /// Egress settings of a switch in place of the scenario's: a node of the WAN sends no pauses by itself, and gives
    /// signals only at the congested node.
    pub(crate) fn egress(&self, switch: SwitchId, egress: &mut EgressConfig) {
        let data = &mut egress.classes[DATA_CLASS];
        (data.marking, data.notify_octets) = (None, None);
        if switch.index() >= figure::pe(0).index() {
            data.pfc = None;
        }
    }

    /// The egress settings of the congested port.
    fn congested_egress(&self) -> EgressConfig {
        let mut egress = EgressConfig::new(BOTTLENECK_RATE, usize::MAX);
        let (data, threshold_octets) = (&mut egress.classes[DATA_CLASS], self.threshold_octets);
        (data.limit_octets, data.backpressure) = (self.buffer_octets, self.backpressure);
        match self.signal {
            WanSignal::None => {}
            // A step, so that both signals are for the same packet.
            WanSignal::ReceiverCnp => {
                let (k_min_octets, k_max_octets) = (threshold_octets, threshold_octets);
                data.marking = Some(Marking { k_min_octets, k_max_octets, p_max: 1.0 });
            }
            WanSignal::EndE => data.notify_octets = Some(threshold_octets),
        }
        egress
    }

    /// Commands for a switch in addition to those of every switch.
    pub(crate) fn commands(&self, topology: &Topology, switch: SwitchId) -> Vec<Command> {
        let mut commands = Vec::new();
        for (site, other) in [(0, 1), (1, 0)] {
            let pe = figure::pe(site);
            let toward = TUNNEL.iter().position(|node| *node == switch).and_then(|place| match site {
                0 => place.checked_sub(1),
                _ => Some(place + 1).filter(|next| *next < TUNNEL.len()),
            });
            if let Some(next) = toward {
                let prefix = Prefix::new(ADDRESSES.locator(topology, pe), 64);
                commands.extend(prefix.and_then(|prefix| via(topology, switch, TUNNEL[next], TableId(0), prefix)));
            }
            if switch == pe {
                commands.extend(self.pe_commands(topology, site, other));
            }
        }
        if switch == self.congested.switch() {
            commands.extend(self.congested_commands(topology));
        }
        commands
    }

    fn pe_commands(&self, topology: &Topology, site: u16, other: u16) -> Vec<Command> {
        let mut commands = Vec::new();
        let far = sid(topology, figure::pe(other), END_DT6);
        for leaf in 0..LEAVES {
            let reached = |site| leaf_prefix(topology, site, leaf);
            commands.extend(reached(other).map(|prefix| Command::AddRoute {
                table: TableId(0),
                prefix,
                action: RouteAction::Encaps { segments: vec![far], mode: EncapsMode::Reduced, hmac_key_id: None },
            }));
            let inward = |prefix| via(topology, figure::pe(site), figure::gateway(site), VRF, prefix);
            commands.extend(reached(site).and_then(inward));
        }
        let behaviors =
            [(END_DT6, SidBehavior::EndDt6(VRF)), (END_E, SidBehavior::EndE(VRF)), (END_C, SidBehavior::EndC)];
        commands.extend(behaviors.map(|(function, behavior)| {
            let prefix = Prefix::host(sid(topology, figure::pe(site), function));
            Command::AddSid { prefix, behavior }
        }));
        if self.backpressure.is_some() {
            commands.extend(self.gateway_commands(topology, site));
        }
        commands
    }

    /// Makes the gateway accept PFC for the data class.
    fn gateway_commands(&self, topology: &Topology, site: u16) -> Vec<Command> {
        let Some(port) = port_toward(topology, figure::pe(site), figure::gateway(site)) else { return Vec::new() };
        let mut egress = EgressConfig::new(figure::GATEWAY_RATE, usize::MAX);
        let pfc = PfcConfig {
            xoff_octets: PE_XOFF_OCTETS as usize,
            xon_octets: PE_XOFF_OCTETS as usize / 2,
            headroom_octets: usize::MAX / 2,
            quanta: PAUSE_QUANTA,
        };
        egress.classes[DATA_CLASS].pfc = Some(pfc);
        let class = DATA_CLASS as u8;
        let notifications = BackpressureConfig {
            priorities: vec![PriorityMapping { traffic_class: class, ports: vec![port], priority: class }],
            ..self.notifications()
        };
        vec![Command::SetEgress { port, egress: Box::new(egress) }, Command::SetBackpressure(Box::new(notifications))]
    }

    fn notifications(&self) -> BackpressureConfig {
        BackpressureConfig {
            hold: self.hold,
            refresh: self.hold / 2,
            per_second: PER_SECOND,
            at_once: 256,
            ..BackpressureConfig::new()
        }
    }

    fn congested_commands(&self, topology: &Topology) -> Vec<Command> {
        let mut commands = Vec::new();
        if let Some(port) = self.bottleneck(topology) {
            commands.push(Command::SetEgress { port, egress: Box::new(self.congested_egress()) });
        }
        let ingress = figure::pe(0);
        let sids = BackpressureSids {
            outer_source: Prefix::host(ADDRESSES.loopback(topology, ingress)),
            end_c: Some(sid(topology, ingress, END_C)),
            end_e: Some(sid(topology, ingress, END_E)),
        };
        commands.push(Command::SetBackpressureSids(vec![sids]));
        if self.backpressure.is_some() {
            commands.push(Command::SetBackpressure(Box::new(self.notifications())));
        }
        if self.signal == WanSignal::EndE {
            commands.push(Command::SetFastCnp(Box::new(self.fast_cnp())));
        }
        commands
    }

    /// Every host may be notified. A flow whose sender is known to handle Fast CNPs is not marked besides, or its
    /// receiver would notify it once more.
    fn fast_cnp(&self) -> FastCnpConfig {
        let everybody = fast_cnp_config();
        let capable = if self.knows_senders { everybody.capable.clone() } else { Vec::new() };
        FastCnpConfig { mark_notified: false, interval: INTERVAL, capable, ..everybody }
    }

    /// Queue monitor of the congested queue, for packets in a tunnel.
    pub(crate) fn queue_monitor(&self, topology: &Topology, switch: SwitchId) -> Option<QueueMonitor> {
        let port = self.bottleneck(topology).filter(|_| switch == self.congested.switch())?;
        Some(QueueMonitor::for_tunnels(vec![MonitoredQueue { port, threshold_octets: self.threshold_octets }]))
    }
}

/// Commands for a switch, by which packets to the Proxy Address of a group of the second data centre get from the first
/// one's gateway to the second one's.
pub(crate) fn proxy_commands(topology: &Topology, switch: SwitchId, proxy: Ipv6Addr) -> Vec<Command> {
    let prefix = Prefix::host(proxy);
    let [near, far] = [figure::pe(0), figure::pe(1)];
    let found = if switch == figure::gateway(0) {
        via(topology, switch, near, TableId(0), prefix)
    } else if switch == near {
        let segments = vec![sid(topology, far, END_DT6)];
        let action = RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None };
        Some(Command::AddRoute { table: TableId(0), prefix, action })
    } else if switch == far {
        via(topology, switch, figure::gateway(1), VRF, prefix)
    } else {
        None
    };
    found.into_iter().collect()
}

/// A SID of a PE.
fn sid(topology: &Topology, pe: SwitchId, function: u16) -> Ipv6Addr {
    let mut segments = ADDRESSES.locator(topology, pe).segments();
    segments[7] = function;
    Ipv6Addr::from(segments)
}

/// All hosts of a leaf.
fn leaf_prefix(topology: &Topology, site: u16, leaf: u16) -> Option<Prefix> {
    const { assert!(HOSTS_PER_LEAF > 0) };
    let mut segments = ADDRESSES.host(topology, figure::host(site, leaf, 0)).segments();
    segments[3..].fill(0);
    Prefix::new(Ipv6Addr::from(segments), 48)
}

/// The port of a switch toward another one.
pub(crate) fn port_toward(topology: &Topology, switch: SwitchId, peer: SwitchId) -> Option<PortId> {
    let mut ports = topology.ports(NodeId::Switch(switch)).iter();
    ports.find(|port| port.peer.node == NodeId::Switch(peer)).map(|port| PortId(port.port))
}

/// A route via a neighbour.
fn via(topology: &Topology, switch: SwitchId, next: SwitchId, table: TableId, prefix: Prefix) -> Option<Command> {
    let port = port_toward(topology, switch, next)?;
    let next_hop = NextHop { port, address: ADDRESSES.loopback(topology, next) };
    Some(Command::AddRoute { table, prefix, action: RouteAction::Via(vec![next_hop]) })
}
