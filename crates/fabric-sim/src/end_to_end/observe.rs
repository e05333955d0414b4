//! Observation of an end-to-end run: all switches and hosts, loads of links, the group's tree.

use super::setup::Site;
use crate::observe;
use srdma_fabric::SwitchId;
use srdma_sim::description::RunDescription;
use srdma_sim::snapshot::{self, ElementSnapshot, Snapshot};
use srdma_wire::Instant;
use std::collections::BTreeMap;

impl Site {
    /// The constant part of the run, for observers.
    pub(super) fn description(&self) -> RunDescription {
        let group = observe::group_info("the stream", self.group());
        observe::describe(&self.scenario.topology, vec![group], std::slice::from_ref(self.group()))
    }

    /// The state at a time; `forgotten` has the drops of switches before their restarts.
    pub(super) fn snapshot(&self, now: Instant, forgotten: &BTreeMap<SwitchId, ElementSnapshot>) -> Snapshot {
        let topology = &self.scenario.topology;
        let of_switch = |switch| {
            let down = ElementSnapshot { is_down: true, ..ElementSnapshot::default() };
            let mut element = self.node(switch).map_or(down, ElementSnapshot::of);
            forgotten.get(&switch).into_iter().for_each(|before| element.add(before));
            element
        };
        let links = self.links.iter().map(|link| {
            // The first end of a topology's link is the lower one.
            let [down, up] = self.network.counters(*link).map(|counters| counters.octets);
            [up, down]
        });
        let node = |position| self.node(self.group().switch(position)?);
        Snapshot {
            now_ns: now.as_ns(),
            links: links.collect(),
            elements: topology
                .switch_ids()
                .map(of_switch)
                .chain(topology.host_ids().map(|_| ElementSnapshot::default()))
                .collect(),
            groups: vec![snapshot::branch_snapshots(self.group().group(), node)],
        }
    }
}
