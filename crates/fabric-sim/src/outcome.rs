//! Results of a run.

use super::build::{ADDRESSES, attachment};
use super::flows::{FlowSize, PlannedFlow};
use super::groups::PlannedGroup;
use super::path::{ACK_OCTETS, Path};
use super::results::{FlowResult, NotificationResult, PortResult, Totals, VariantResult};
use super::route::{Heading, Leg};
use super::run::Run;
use super::sample::port_name;
use super::scenario::Signal;
use super::server::DATA_CLASS;
use super::summary::Measured;
use srdma_fabric::{NodeId, SwitchId};
use srdma_frame::PortId;
use srdma_wire::Instant;

/// Octets of a Fast CNP's frame with option 1: an ACK's, a Destination Options header of 24, and what a CNP has in
/// place of an AETH.
const FAST_CNP_OCTETS: u64 = ACK_OCTETS - 4 + 24 + 16;

impl Run<'_> {
    pub(super) fn result(self) -> VariantResult {
        let flows: Vec<FlowResult> = (0..self.begun).map(|number| self.flow_result(number)).collect();
        let topology = &self.scenario.topology;
        let ports: Vec<PortResult> = topology
            .switch_ids()
            .flat_map(|switch| {
                topology.ports(NodeId::Switch(switch)).iter().map(move |port| (switch, PortId(port.port)))
            })
            .filter_map(|(switch, port)| self.port_result(switch, port))
            .collect();
        let totals = self.totals(&ports);
        let notifications: Vec<NotificationResult> =
            (0..self.begun).filter_map(|number| self.notification(number)).collect();
        let routes = self.routes();
        let measured = Measured {
            scenario: self.scenario,
            planned: &self.flows,
            flows: &flows,
            routes: &routes,
            delivered: &self.delivered,
            control_delivered: self.control_delivered.as_deref(),
            ports: &ports,
            notifications: &notifications,
            totals,
        };
        let (jobs, links) = (self.job_results(), self.link_results());
        let summary = self.with_jobs(measured.summary(), &jobs, &links);
        let full = u64::from(self.scenario.hosts.path_mtu().octets());
        VariantResult {
            variant: self.variant.name.clone(),
            title: self.variant.title().to_owned(),
            seed: self.seed,
            simulated_ns: self.last_end.as_ns(),
            packet_hops: self.fabric.network.hops() + self.control_hops,
            skipped_ns: self.skipped.ns,
            verified_icrc: self.scenario.hosts.verify_icrc,
            flows,
            ports: ports.into_iter().filter(|port| port.peak_octets > 2 * full).collect(),
            series: self.sampler.finish(),
            notifications,
            jobs,
            links,
            totals,
            summary,
        }
    }

    fn totals(&self, ports: &[PortResult]) -> Totals {
        let switches = self.scenario.topology.switch_ids().filter_map(|switch| self.fabric.switch(switch));
        let mut totals = Totals {
            dropped: ports.iter().map(|port| port.dropped).sum(),
            pauses: ports.iter().map(|port| port.pauses_sent).sum(),
            marked: ports.iter().map(|port| port.marked).sum(),
            fast_cnps: switches.map(|node| node.fast_cnp_counters().sent).sum(),
            lost_by_simulator: self.fabric.network.dropped_for_memory(),
            ..Totals::default()
        };
        for totals_of in (0..self.begun).map(|number| self.totals_of(number)) {
            totals.data_packets += totals_of.sent;
            totals.retransmitted += totals_of.retransmitted;
            totals.octets_sent += totals_of.octets_sent;
            totals.cnps += totals_of.cnps;
        }
        for totals_of in self.channel_totals() {
            totals.data_packets += totals_of.sent;
            totals.retransmitted += totals_of.retransmitted;
            totals.octets_sent += totals_of.octets_sent;
            totals.cnps += totals_of.cnps;
        }
        totals.data_packets += self.skipped.packets;
        totals.octets_sent += self.skipped.octets;
        totals.octets_delivered += self.skipped.octets;
        for server in self.fabric.all_servers() {
            totals.lost_by_simulator += server.misdelivered() + server.dropped_for_memory();
            if let Some(memory) = server.memory() {
                totals.octets_delivered += memory.written_octets();
                totals.octets_differing += memory.differing_octets();
            }
        }
        totals
    }

    fn port_result(&self, switch: SwitchId, port: PortId) -> Option<PortResult> {
        let node = self.fabric.switch(switch)?;
        let counters = node.class_counters(port, DATA_CLASS)?;
        Some(PortResult {
            name: port_name(&self.scenario.topology, switch, port),
            peak_octets: counters.peak_octets as u64,
            pauses_sent: counters.pauses_sent,
            paused_ns: counters.received.paused_ns,
            marked: counters.marks,
            dropped: counters.full_drops + counters.headroom_drops + counters.storm_drops,
        })
    }

    /// The port at which a flow first entered a queue above the threshold, and the notification of its sender: by that
    /// switch, or from the receiver.
    fn notification(&self, number: usize) -> Option<NotificationResult> {
        let (topology, flow, qpn) = (&self.scenario.topology, &self.flows[number], self.qpn(number));
        let point_at = |switch| Some((switch, *self.fabric.queue_monitor(switch)?.congestion_points().get(&qpn)?));
        let (switch, point) = topology.switch_ids().filter_map(point_at).min_by_key(|(_, point)| point.at)?;
        let by = match self.variant.signal {
            Signal::None => return None,
            Signal::ReceiverCnp | Signal::ReceiverTrace | Signal::ReceiverEcho => ADDRESSES.host(topology, flow.to),
            Signal::FastCnp => ADDRESSES.loopback(topology, switch),
        };
        let notice = self.notices.get(&(qpn, by));
        let data = self.queue_pair(qpn, flow.from, flow.to);
        let heading = Heading::of_fast_cnp(topology, switch, flow.from, &data);
        let legs = heading.legs(topology, &self.fabric, NodeId::Switch(switch), flow.from);
        let octets = notice.map_or(FAST_CNP_OCTETS, |notice| notice.octets as u64);
        Some(NotificationResult {
            flow: number,
            port: port_name(topology, switch, point.port),
            congested_ns: point.at.as_ns(),
            reacted_ns: notice.filter(|notice| notice.slows).map(|notice| notice.at.as_ns()),
            return_path_ns: Path::along(topology, &legs).frame_ns(octets),
        })
    }

    /// The links of each flow, if there are endless flows, whose fair rate depends on them.
    fn routes(&self) -> Vec<Vec<usize>> {
        if !self.scenario.workloads.has_endless() {
            return Vec::new();
        }
        let topology = &self.scenario.topology;
        let route = |number: usize| {
            let flow = &self.flows[number];
            if let Some(group) = self.groups.get(&number) {
                return self.branches(flow, group);
            }
            let data = self.queue_pair(self.qpn(number), flow.from, flow.to);
            let heading = Heading::of_data(topology, flow.from, &data);
            let legs = heading.legs(topology, &self.fabric, NodeId::Host(flow.from), flow.to);
            legs.into_iter().map(|leg| leg.index()).collect()
        };
        (0..self.begun).map(route).collect()
    }

    /// The links of a group's tree, those of its hosts included.
    fn branches(&self, flow: &PlannedFlow, group: &PlannedGroup) -> Vec<usize> {
        let topology = &self.scenario.topology;
        let first = topology.ports(NodeId::Host(flow.from)).first();
        let to_headend = first.map(|port| (NodeId::Host(flow.from), PortId(port.port)));
        let between = group.ports().map(|(switch, port)| (NodeId::Switch(switch), port));
        let to_receivers = flow.receivers.iter().filter_map(|host| {
            let port = topology.ports(NodeId::Host(*host)).first()?;
            Some((port.peer.node, PortId(port.peer.port)))
        });
        let ports = to_headend.into_iter().chain(between).chain(to_receivers);
        ports.filter_map(|(node, port)| Leg::out_of(topology, node, port)).map(Leg::index).collect()
    }

    pub(super) fn flow_result(&self, number: usize) -> FlowResult {
        let flow = &self.flows[number];
        let topology = &self.scenario.topology;
        let name_of = |host| topology.name(NodeId::Host(host)).to_owned();
        let source = name_of(flow.from);
        let destination = match &flow.name {
            Some(name) if !flow.receivers.is_empty() => name.clone(),
            Some(_) | None => name_of(flow.to),
        };
        let totals_of = self.totals_of(number);
        let mtu_octets = u64::from(self.scenario.hosts.path_mtu().octets());
        let size_octets = match flow.size {
            FlowSize::Octets(octets) => u64::from(octets),
            FlowSize::Messages { octets, .. } => octets,
            FlowSize::Endless(_) => totals_of.acknowledged * mtu_octets,
        };
        let path = Path::between(topology, &self.next_hops, flow.from, flow.to);
        let ideal_ns = path.flow_ns(size_octets, mtu_octets);
        let finished_ns = self.finished[number].map(Instant::as_ns);
        let transmission_ns = match flow.size {
            FlowSize::Messages { octets, .. } => Some(transmission_ns(octets, attachment(topology, flow.from).1)),
            FlowSize::Octets(_) | FlowSize::Endless(_) => None,
        };
        let limit = flow.at_most.zip(transmission_ns);
        FlowResult {
            kind: flow.kind,
            name: flow.name.clone(),
            source,
            destination,
            size_octets,
            started_ns: flow.start_ns,
            finished_ns,
            ideal_ns,
            slowdown: finished_ns.map(|finished| ((finished - flow.start_ns) as f64 / ideal_ns as f64).max(1.0)),
            receivers: Some(flow.receivers.len()).filter(|receivers| *receivers > 0),
            transmission_ns,
            limit_ns: limit.map(|(factor, transmission_ns)| (factor * transmission_ns as f64) as u64),
            retransmitted: totals_of.retransmitted,
        }
    }
}

/// Octets by a rate.
fn transmission_ns(octets: u64, rate_bits_per_s: u64) -> u64 {
    (u128::from(octets) * 8_000_000_000 / u128::from(rate_bits_per_s.max(1))) as u64
}
