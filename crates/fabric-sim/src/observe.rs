//! Observation of a run: the fabric's switches and hosts, the counters of its switches, the groups of its flows.

use super::build::{ADDRESSES, LINK_MTU, address_of};
use super::groups::PlannedGroup;
use super::results::FlowKind;
use super::run::{Run, RunError};
use super::server::Server;
use srdma_dataplane::ClassCounters;
use srdma_fabric::{End, NodeId, Topology};
use srdma_frame::PortId;
use srdma_sim::moment::{self, Moment, PlaceMoment};
use srdma_sim::scene::{Scene, SceneGroup};
use srdma_sim::shown::Shown;
use std::collections::BTreeSet;

/// Traffic classes of a port.
const CLASSES: usize = 8;

/// The observer of a run, if there is one, and the groups of the run.
pub(super) struct Observation<'s, 'a>(Option<(&'s mut Shown<'a>, Vec<PlannedGroup>)>);

impl<'s, 'a> Observation<'s, 'a> {
    /// A run begins, whose own steps are so long.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub(super) fn new(observer: Option<&'s mut Shown<'a>>, run: &Run<'_>, step_ns: u64) -> Result<Self, RunError> {
        let Some(observer) = observer else { return Ok(Observation(None)) };
        let planned = run.planned_groups()?;
        let groups = planned.iter().map(|(name, group)| scene_group(name, group)).collect();
        let groups_only: Vec<PlannedGroup> = planned.into_iter().map(|(_, group)| group).collect();
        observer.begin(&scene(&run.scenario.topology, groups, &groups_only), step_ns)?;
        Ok(Observation(Some((observer, groups_only))))
    }

    /// Shows how things are, if it is time for that.
    ///
    /// # Errors
    ///
    /// The same.
    pub(super) fn look(&mut self, run: &Run<'_>, now_ns: u64) -> Result<(), RunError> {
        if let Some((observer, groups)) = &mut self.0 {
            observer.look(now_ns, || run.moment(groups, now_ns))?;
        }
        Ok(())
    }

    /// The run is over.
    ///
    /// # Errors
    ///
    /// The same.
    pub(super) fn end(self, run: &Run<'_>, now_ns: u64) -> Result<(), RunError> {
        if let Some((observer, groups)) = self.0 {
            observer.end(&run.moment(&groups, now_ns))?;
        }
        Ok(())
    }
}

/// A group as it is shown.
pub(super) fn scene_group(name: &str, planned: &PlannedGroup) -> SceneGroup {
    SceneGroup {
        name: name.to_owned(),
        explanation: "shortest paths from the switch that owns the Proxy Address",
        group: planned.group().clone(),
    }
}

/// A topology with these groups as it is shown.
pub(super) fn scene(topology: &Topology, groups: Vec<SceneGroup>, planned: &[PlannedGroup]) -> Scene {
    let used: Vec<Vec<usize>> = planned.iter().map(|group| links_of(topology, group)).collect();
    Scene::of_topology(topology, LINK_MTU, |node| address_of(topology, node), groups, &used)
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
    /// The groups of all multicast flows, with their names, as they will be set up one after the other.
    fn planned_groups(&self) -> Result<Vec<(String, PlannedGroup)>, RunError> {
        let flows = self.flows.iter().enumerate().filter(|(_, flow)| flow.kind == FlowKind::Multicast);
        let mut groups = Vec::new();
        for (group_number, (number, flow)) in flows.enumerate() {
            let Some(region) = self.fabric.server(flow.from).map(Server::region) else { continue };
            let group = PlannedGroup::new(self.scenario, group_number, flow, self.qpn(number), region)?;
            groups.push((flow.name.clone().unwrap_or_else(|| format!("group {}", group_number + 1)), group));
        }
        Ok(groups)
    }

    fn moment(&self, groups: &[PlannedGroup], now_ns: u64) -> Moment {
        let topology = &self.scenario.topology;
        let switches = topology.switch_ids().map(|switch| self.fabric.switch(switch));
        let of_switches = switches.map(|node| node.map_or_else(PlaceMoment::default, PlaceMoment::of));
        let of_hosts = topology.host_ids().map(|_| PlaceMoment::default());
        let both = |[one, other]: [End; 2]| [self.carried([one, other]), self.carried([other, one])];
        let branches = |planned: &PlannedGroup| {
            let node = |position| self.fabric.switch(planned.switch(position)?);
            moment::branches_of(planned.group(), node)
        };
        Moment {
            now_ns,
            links: topology.links().iter().map(|link| both(link.ends)).collect(),
            places: of_switches.chain(of_hosts).collect(),
            groups: groups.iter().map(branches).collect(),
        }
    }

    /// Octets that have gone from one end of a link to the other, as its switch counted them: PAUSE frames are in no
    /// class, and in no count.
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
