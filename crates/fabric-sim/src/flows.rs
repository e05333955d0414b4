//! The flows of a scenario's workloads for a seed.

use super::results::FlowKind;
use super::scenario::{Background, FabricScenario, Incast};
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_random::Stream;
use srdma_wire::units::NS_PER_US;

/// A planned flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedFlow {
    /// Its workload.
    pub(super) kind: FlowKind,
    /// Name of a stream.
    pub(super) name: Option<String>,
    /// The sending host.
    pub(super) from: HostId,
    /// The receiving host; for a group the first one.
    pub(super) to: HostId,
    /// The receiving hosts of a group; empty for other flows.
    pub(super) receivers: Vec<HostId>,
    /// The switch that the path of a stream includes, if it names one.
    pub(super) via: Option<NodeId>,
    /// Start time in nanoseconds.
    pub(super) start_ns: u64,
    pub(super) size: FlowSize,
    /// Flows of one burst of an incast have the same number.
    pub(super) burst: Option<usize>,
    /// Target for its completion: relative to its size by the rate of the source's link.
    pub(super) at_most: Option<f64>,
}

impl PlannedFlow {
    /// A flow to one host, on any path.
    pub(super) fn new(kind: FlowKind, from: HostId, to: HostId, start_ns: u64, size: FlowSize) -> Self {
        PlannedFlow {
            kind,
            name: None,
            from,
            to,
            receivers: Vec::new(),
            via: None,
            start_ns,
            size,
            burst: None,
            at_most: None,
        }
    }
}

/// Size of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowSize {
    Octets(u32),
    /// Endless, in messages of this size.
    Endless(u32),
    /// So many octets, in messages.
    Messages {
        octets: u64,
        message_octets: u32,
    },
}

impl FlowSize {
    /// Whether a flow of this size ends by itself.
    pub(super) fn ends(self) -> bool {
        match self {
            FlowSize::Octets(_) | FlowSize::Messages { .. } => true,
            FlowSize::Endless(_) => false,
        }
    }
}

/// Maximum length of a message. The distributions have no longer flows.
const MAX_OCTETS: u64 = 1 << 30;

/// All flows of a scenario, in order of their start. They do not depend on the variant.
pub(super) fn plan(scenario: &FabricScenario, seed: u64) -> Vec<PlannedFlow> {
    let mut flows = Vec::new();
    let end_ns = scenario.measures.duration_us.get() * NS_PER_US;
    for stream in &scenario.workloads.stream {
        if let Some((from, to)) = stream.ends(&scenario.topology) {
            let start_ns = stream.start_us.get() * NS_PER_US;
            let size = FlowSize::Endless(stream.message_octets.get() as u32);
            let (name, via) = (Some(stream.name.clone()), stream.via(&scenario.topology));
            flows.push(PlannedFlow { name, via, ..PlannedFlow::new(FlowKind::Stream, from, to, start_ns, size) });
        }
    }
    for group in &scenario.workloads.multicast {
        let receivers = group.receivers(&scenario.topology);
        if let (Some(from), Some(to)) = (group.source(&scenario.topology), receivers.first().copied()) {
            let start_ns = group.start_us.get() * NS_PER_US;
            let size = FlowSize::Endless(group.message_octets.get() as u32);
            let flow = PlannedFlow::new(FlowKind::Multicast, from, to, start_ns, size);
            flows.push(PlannedFlow { name: Some(group.name.clone()), receivers, ..flow });
        }
    }
    for broadcast in &scenario.workloads.broadcast {
        let receivers = broadcast.receivers(&scenario.topology);
        if let (Some(from), Some(to)) = (broadcast.source(&scenario.topology), receivers.first().copied()) {
            let start_ns = broadcast.start_us.get() * NS_PER_US;
            let (octets, message_octets) = (broadcast.size_octets.get(), broadcast.message_octets.get() as u32);
            let size = FlowSize::Messages { octets, message_octets };
            let flow = PlannedFlow::new(FlowKind::Broadcast, from, to, start_ns, size);
            let (name, at_most) = (Some(broadcast.name.clone()), broadcast.at_most());
            flows.push(PlannedFlow { name, receivers, at_most, ..flow });
        }
    }
    for (number, incast) in scenario.workloads.incast.iter().enumerate() {
        let mut rng = Stream::new(seed, &format!("incast {number}"));
        add_incast(scenario, incast, end_ns, &mut rng, &mut flows);
    }
    for (number, background) in scenario.workloads.background.iter().enumerate() {
        let mut rng = Stream::new(seed, &format!("background {number}"));
        add_background(&scenario.topology, background, end_ns, &mut rng, &mut flows);
    }
    for (number, permutation) in scenario.workloads.permutation.iter().enumerate() {
        let targets = permute(&scenario.topology, &mut Stream::new(seed, &format!("permutation {number}")));
        let start_ns = permutation.start_us.get() * NS_PER_US;
        let size = FlowSize::Octets(permutation.size_octets.get() as u32);
        let flow = |(from, to)| PlannedFlow::new(FlowKind::Permutation, from, to, start_ns, size);
        flows.extend(scenario.topology.host_ids().zip(targets).map(flow));
    }
    flows.sort_by_key(|flow| flow.start_ns);
    flows
}

fn add_incast(scenario: &FabricScenario, incast: &Incast, end_ns: u64, rng: &mut Stream, flows: &mut Vec<PlannedFlow>) {
    let topology = &scenario.topology;
    let Some(receiver) = incast.receiver(topology) else {
        return;
    };
    let in_streams: Vec<HostId> = scenario
        .workloads
        .stream
        .iter()
        .filter_map(|stream| stream.ends(topology))
        .flat_map(|(from, to)| [from, to])
        .chain(scenario.workloads.multicast.iter().filter_map(|group| group.source(topology)))
        .chain(scenario.workloads.broadcast.iter().filter_map(|broadcast| broadcast.source(topology)))
        .collect();
    let is_near = |host: HostId| topology.attached_to(host).any(|at| topology.attached_to(receiver).any(|to| to == at));
    let far: Vec<HostId> = topology.host_ids().filter(|host| !is_near(*host) && !in_streams.contains(host)).collect();
    let mut start_ns = incast.start_us.get() * NS_PER_US;
    let mut burst = flows.iter().filter_map(|flow| flow.burst).max().map_or(0, |last| last + 1);
    while start_ns < end_ns {
        for from in draw(&far, *incast.senders.as_ref(), rng) {
            let (least, most) = (incast.min_octets.get(), *incast.max_octets.as_ref());
            let size = FlowSize::Octets((least + rng.below(most - least + 1)) as u32);
            let flow = PlannedFlow::new(FlowKind::Incast, from, receiver, start_ns, size);
            flows.push(PlannedFlow { burst: Some(burst), ..flow });
        }
        burst += 1;
        match incast.period_us {
            Some(period_us) => start_ns += period_us.get() * NS_PER_US,
            None => return,
        }
    }
}

fn add_background(
    topology: &Topology,
    background: &Background,
    end_ns: u64,
    rng: &mut Stream,
    flows: &mut Vec<PlannedFlow>,
) {
    let hosts = background.hosts(topology);
    let rates = hosts.iter().flat_map(|host| topology.ports(NodeId::Host(*host)));
    let bits_per_s: f64 = rates.map(|port| topology.links()[port.link.index()].rate_bits_per_s as f64).sum();
    let flows_per_ns = background.load.get() * bits_per_s / (background.sizes.mean_octets() * 8.0) / 1e9;
    if flows_per_ns <= 0.0 {
        return;
    }
    let mut time_ns = 0.0;
    loop {
        time_ns += -(1.0 - rng.unit()).ln() / flows_per_ns;
        if time_ns >= end_ns as f64 {
            return;
        }
        let count = hosts.len() as u64;
        let from = rng.below(count);
        let to = (from + 1 + rng.below(count - 1)) % count;
        let size = FlowSize::Octets(background.sizes.draw(rng).min(MAX_OCTETS) as u32);
        let (from, to) = (hosts[from as usize], hosts[to as usize]);
        flows.push(PlannedFlow::new(FlowKind::Background, from, to, time_ns as u64, size));
    }
}

/// A random selection of hosts in random order.
fn draw(hosts: &[HostId], count: usize, rng: &mut Stream) -> Vec<HostId> {
    let mut left = hosts.to_vec();
    let count = count.min(left.len());
    (0..count).map(|_| left.swap_remove(rng.below(left.len() as u64) as usize)).collect()
}

/// A random permutation without fixed points: a cycle through all hosts.
fn permute(topology: &Topology, rng: &mut Stream) -> Vec<HostId> {
    let all: Vec<HostId> = topology.host_ids().collect();
    let cycle = draw(&all, all.len(), rng);
    let mut targets = all;
    for (position, host) in cycle.iter().enumerate() {
        targets[host.index()] = cycle[(position + 1) % cycle.len()];
    }
    targets
}
