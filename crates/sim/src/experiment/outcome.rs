//! What a run comes to, once it is over.

use super::flows::FlowSize;
use super::path::{ACK_OCTETS, Path};
use super::results::{ArmResult, FlowResult, NotificationResult, PortResult, Totals};
use super::run::Run;
use super::sample::port_name;
use super::server::DATA_CLASS;
use super::summary::Measured;
use srdma_dataplane::PortId;
use srdma_fabric::{NodeId, SwitchId};
use srdma_wire::Instant;

/// Octets of a Fast CNP's frame with option 1: an ACK's, a Destination Options header of 24, and what a CNP has in
/// place of an AETH.
const FAST_CNP_OCTETS: u64 = ACK_OCTETS - 4 + 24 + 16;

impl Run<'_> {
    pub(super) fn result(self) -> ArmResult {
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
        let notifications = self.notifications();
        let measured = Measured {
            scenario: self.scenario,
            planned: &self.flows,
            flows: &flows,
            delivered: &self.delivered,
            ports: &ports,
            notifications: &notifications,
            totals,
        };
        let summary = measured.summary();
        let full = u64::from(self.scenario.hosts.path_mtu().octets());
        ArmResult {
            arm: self.arm.name.clone(),
            title: self.arm.title().to_owned(),
            seed: self.seed,
            simulated_ns: self.last_end.as_ns(),
            packet_hops: self.fabric.network.hops(),
            verified_icrc: self.scenario.hosts.verify_icrc,
            flows,
            ports: ports.into_iter().filter(|port| port.peak_octets > 2 * full).collect(),
            series: self.sampler.finish(),
            notifications,
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
            lost_by_simulator: self.fabric.network.starved(),
            ..Totals::default()
        };
        for (number, flow) in self.flows[..self.begun].iter().enumerate() {
            let counters =
                self.fabric.server(flow.from).and_then(|server| server.endpoint().counters(self.qpn(number)));
            if let Some(counters) = counters {
                totals.data_packets += counters.packets_sent;
                totals.retransmitted += counters.packets_retransmitted;
                totals.octets_sent += counters.payload_octets_sent;
                totals.cnps += counters.cnps_received;
            }
        }
        for server in self.fabric.all_servers() {
            totals.lost_by_simulator += server.misdelivered() + server.starved();
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

    fn notifications(&self) -> Vec<NotificationResult> {
        let topology = &self.scenario.topology;
        let mut notifications = Vec::new();
        for switch in topology.switch_ids() {
            let Some(watch) = self.fabric.watch(switch) else { continue };
            for number in 0..self.begun {
                let qpn = self.qpn(number);
                let Some(met) = watch.met().get(&qpn) else { continue };
                let flow = &self.flows[number];
                let told = self.told.get(&qpn).and_then(|times| times.iter().find(|at| *at >= met));
                let path = Path::between(topology, &self.next_hops, flow.from, flow.to).without_last();
                notifications.push(NotificationResult {
                    flow: number,
                    port: port_name(topology, switch, watch.port()),
                    met_ns: met.as_ns(),
                    changed_ns: told.map(|at| at.as_ns()),
                    way_back_ns: path.frame_ns(FAST_CNP_OCTETS),
                });
            }
        }
        notifications
    }

    fn flow_result(&self, number: usize) -> FlowResult {
        let flow = &self.flows[number];
        let topology = &self.scenario.topology;
        let [source, destination] = [flow.from, flow.to].map(|host| topology.hosts()[host.index()].name.clone());
        let counters = self.fabric.server(flow.from).and_then(|server| server.endpoint().counters(self.qpn(number)));
        let mtu_octets = u64::from(self.scenario.hosts.path_mtu().octets());
        let size_octets = match flow.size {
            FlowSize::Octets(octets) => u64::from(octets),
            FlowSize::Endless(_) => counters.map_or(0, |counters| counters.packets_acknowledged * mtu_octets),
        };
        let path = Path::between(topology, &self.next_hops, flow.from, flow.to);
        let ideal_ns = path.flow_ns(size_octets, mtu_octets);
        let finished_ns = self.finished[number].map(Instant::as_ns);
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
            retransmitted: counters.map_or(0, |counters| counters.packets_retransmitted),
        }
    }
}
