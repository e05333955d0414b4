//! Time series, sampled at the end of each step.

use super::build::Fabric;
use super::results::{Series, SeriesKind};
use super::scenario::FabricScenario;
use super::server::DATA_CLASS;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_wire::Qpn;

/// A flow whose rate at the receiver is sampled.
pub(super) struct SampledFlow {
    /// Name of its series; flows of one name are added up.
    pub(super) name: String,
    /// The receiving host.
    pub(super) to: HostId,
    /// Its queue pair.
    pub(super) qpn: Qpn,
}

/// Samples all series once per step.
pub(super) struct Sampler {
    step_ns: u64,
    queues: Vec<(SwitchId, PortId)>,
    queue_series: Vec<Series>,
    rate_names: Vec<String>,
    rate_series: Vec<Series>,
    delivered_octets: Vec<u64>,
    /// The part of these of flows without queue pairs.
    kept_octets: Vec<u64>,
    pause_series: Series,
    paused_ns: u64,
}

impl Sampler {
    /// Series for the queues that a scenario names, and for flows with these names.
    pub(super) fn new(scenario: &FabricScenario, rate_names: Vec<String>) -> Self {
        let (topology, step_ns) = (&scenario.topology, scenario.measures.sample_ns.get());
        let receivers = scenario.workloads.incast.iter().filter_map(|incast| incast.receiver(topology));
        let named = scenario.measures.queues_of.iter().filter_map(|name| topology.node(name.as_ref()));
        let mut queues: Vec<(SwitchId, PortId)> =
            receivers.map(NodeId::Host).chain(named).flat_map(|node| ports_of(topology, node)).collect();
        queues.sort_unstable();
        queues.dedup();
        let series = |kind, name| Series { kind, name, step_ns, values: Vec::new() };
        Sampler {
            step_ns,
            queue_series: queues
                .iter()
                .map(|(switch, port)| series(SeriesKind::Queue, port_name(topology, *switch, *port)))
                .collect(),
            queues,
            rate_series: rate_names.iter().map(|name| series(SeriesKind::Rate, name.clone())).collect(),
            delivered_octets: vec![0; rate_names.len()],
            kept_octets: vec![0; rate_names.len()],
            rate_names,
            pause_series: series(SeriesKind::Pause, "hosts".to_owned()),
            paused_ns: 0,
        }
    }

    /// Adds a sample at the end of a step.
    pub(super) fn sample(&mut self, fabric: &Fabric, flows: &[SampledFlow]) {
        for ((switch, port), series) in self.queues.iter().zip(&mut self.queue_series) {
            let octets = fabric.switch(*switch).and_then(|node| node.class_octets(*port, DATA_CLASS));
            series.values.push(octets.unwrap_or(0) as f64);
        }
        let mut delivered = self.kept_octets.clone();
        for flow in flows {
            let counters = fabric.server(flow.to).and_then(|server| server.endpoint().counters(flow.qpn));
            if let Some(place) = self.rate_names.iter().position(|name| *name == flow.name) {
                delivered[place] += counters.map_or(0, |counters| counters.payload_octets_received);
            }
        }
        for ((before, now), series) in self.delivered_octets.iter_mut().zip(delivered).zip(&mut self.rate_series) {
            series.values.push((now - *before) as f64 * 8e9 / self.step_ns as f64);
            *before = now;
        }
        let servers = fabric.servers.len().max(1) as u64;
        let paused_ns: u64 = fabric.all_servers().map(|server| server.paused_ns()).sum();
        let share = (paused_ns - self.paused_ns) as f64 / (servers * self.step_ns) as f64;
        self.pause_series.values.push(share.min(1.0));
        self.paused_ns = paused_ns;
    }

    /// Ends the sampling of a flow that has delivered `delivered_octets`.
    pub(super) fn keep(&mut self, flow: &SampledFlow, delivered_octets: u64) {
        if let Some(place) = self.rate_names.iter().position(|name| *name == flow.name) {
            self.kept_octets[place] += delivered_octets;
        }
    }

    /// All series, ordered by kind and name.
    pub(super) fn finish(self) -> Vec<Series> {
        let mut series = self.rate_series;
        series.extend(self.queue_series);
        series.push(self.pause_series);
        series.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        series
    }
}

/// All ports of a switch; the port of a switch toward a host.
fn ports_of(topology: &Topology, node: NodeId) -> Vec<(SwitchId, PortId)> {
    let ports = topology.ports(node).iter();
    match node {
        NodeId::Switch(switch) => ports.map(|port| (switch, PortId(port.port))).collect(),
        NodeId::Host(_) => ports
            .filter_map(|port| match port.peer.node {
                NodeId::Switch(switch) => Some((switch, PortId(port.peer.port))),
                NodeId::Host(_) => None,
            })
            .collect(),
    }
}

/// `SWITCH-PEER`.
pub(super) fn port_name(topology: &Topology, switch: SwitchId, port: PortId) -> String {
    let node = NodeId::Switch(switch);
    let peer = topology.port(node, port.0).map_or("?", |port| topology.name(port.peer.node));
    format!("{}-{peer}", topology.name(node))
}
