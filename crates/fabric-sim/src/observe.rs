//! Observation of a run: switches, hosts, links, and the groups of multicast flows.

use super::build::{ADDRESSES, LINK_MTU, address_of};
use super::groups::PlannedGroup;
use super::run::{Run, RunError};
use super::server::Server;
use srdma_dataplane::ClassCounters;
use srdma_fabric::{End, NodeId, Topology};
use srdma_frame::PortId;
use srdma_sim::description::{GroupInfo, RunDescription};
use srdma_sim::observer::PeriodicObserver;
use srdma_sim::snapshot::{self, ElementSnapshot, Snapshot};
use std::collections::BTreeSet;

/// Traffic classes of a port.
const CLASSES: usize = 8;

/// The observer of a run, if there is one, and the groups of the run.
pub(super) struct Observation<'s, 'a>(Option<(&'s mut PeriodicObserver<'a>, Vec<PlannedGroup>)>);

impl<'s, 'a> Observation<'s, 'a> {
    /// Begins the observation of a run with steps of `step_ns`.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub(super) fn new(
        observer: Option<&'s mut PeriodicObserver<'a>>,
        run: &Run<'_>,
        step_ns: u64,
    ) -> Result<Self, RunError> {
        let Some(observer) = observer else { return Ok(Observation(None)) };
        let planned = run.planned_groups()?;
        let groups = planned.iter().map(|(name, group)| group_info(name, group)).collect();
        let groups_only: Vec<PlannedGroup> = planned.into_iter().map(|(_, group)| group).collect();
        observer.begin(&describe(&run.scenario.topology, groups, &groups_only), step_ns)?;
        Ok(Observation(Some((observer, groups_only))))
    }

    /// Takes a snapshot if one is due.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub(super) fn observe(&mut self, run: &Run<'_>, now_ns: u64) -> Result<(), RunError> {
        if let Some((observer, groups)) = &mut self.0 {
            observer.observe_if_due(now_ns, || run.snapshot(groups, now_ns))?;
        }
        Ok(())
    }

    /// Ends the observation.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub(super) fn end(self, run: &Run<'_>, now_ns: u64) -> Result<(), RunError> {
        if let Some((observer, groups)) = self.0 {
            observer.end(&run.snapshot(&groups, now_ns))?;
        }
        Ok(())
    }
}

/// A group for observers.
pub(super) fn group_info(name: &str, planned: &PlannedGroup) -> GroupInfo {
    GroupInfo {
        name: name.to_owned(),
        explanation: "shortest paths from the switch that owns the Proxy Address",
        group: planned.group().clone(),
    }
}

/// A topology with these groups for observers.
pub(super) fn describe(topology: &Topology, groups: Vec<GroupInfo>, planned: &[PlannedGroup]) -> RunDescription {
    let used: Vec<Vec<usize>> = planned.iter().map(|group| links_of(topology, group)).collect();
    RunDescription::of_topology(topology, LINK_MTU, |node| address_of(topology, node), groups, &used)
}

/// The positions of the links of a group's tree and of its hosts.
fn links_of(topology: &Topology, planned: &PlannedGroup) -> Vec<usize> {
    let record = planned.group().record();
    let members: BTreeSet<_> =
        record.receivers.iter().map(|receiver| receiver.address).chain([record.source.address]).collect();
    let hosts = topology.host_ids().filter(|host| members.contains(&ADDRESSES.host(topology, *host)));
    let of_hosts = hosts.filter_map(|host| topology.ports(NodeId::Host(host)).first());
    let of_tree = planned.ports().filter_map(|(switch, port)| topology.port(NodeId::Switch(switch), port.0));
    of_hosts.chain(of_tree).map(|port| port.link.index()).collect()
}

impl Run<'_> {
    /// The groups of all multicast flows, with their names, in the order of their setup.
    fn planned_groups(&self) -> Result<Vec<(String, PlannedGroup)>, RunError> {
        let flows = self.flows.iter().enumerate().filter(|(_, flow)| !flow.receivers.is_empty());
        let mut groups = Vec::new();
        for (group_number, (number, flow)) in flows.enumerate() {
            let Some(region) = self.fabric.server(flow.from).map(Server::region) else { continue };
            let group = PlannedGroup::new(self.scenario, group_number, flow, self.qpn(number), region)?;
            groups.push((flow.name.clone().unwrap_or_else(|| format!("group {}", group_number + 1)), group));
        }
        Ok(groups)
    }

    fn snapshot(&self, groups: &[PlannedGroup], now_ns: u64) -> Snapshot {
        let topology = &self.scenario.topology;
        let switches = topology.switch_ids().map(|switch| self.fabric.switch(switch));
        let of_switches = switches.map(|node| node.map_or_else(ElementSnapshot::default, ElementSnapshot::of));
        let of_hosts = topology.host_ids().map(|_| ElementSnapshot::default());
        let both = |[one, other]: [End; 2]| [self.carried([one, other]), self.carried([other, one])];
        let branches = |planned: &PlannedGroup| {
            let node = |position| self.fabric.switch(planned.switch(position)?);
            snapshot::branch_snapshots(planned.group(), node)
        };
        Snapshot {
            now_ns,
            links: topology.links().iter().map(|link| both(link.ends)).collect(),
            elements: of_switches.chain(of_hosts).collect(),
            groups: groups.iter().map(branches).collect(),
        }
    }

    /// Octets carried from one end of a link to the other, by the counters of its switch. PAUSE frames have no class
    /// and are not counted.
    fn carried(&self, [from, to]: [End; 2]) -> u64 {
        match (from.node, to.node) {
            (NodeId::Switch(switch), _) => {
                let node = self.fabric.switch(switch);
                let of_class = |class| node.and_then(|node| node.class_counters(PortId(from.port), class));
                (0..CLASSES).filter_map(of_class).map(|ClassCounters { sent, .. }| sent.octets).sum()
            }
            (NodeId::Host(_), NodeId::Switch(switch)) => {
                let node = self.fabric.switch(switch);
                let counters = node.and_then(|node| node.port_counters(PortId(to.port)));
                counters.map_or(0, |counters| counters.received.octets)
            }
            (NodeId::Host(_), NodeId::Host(_)) => 0,
        }
    }
}
