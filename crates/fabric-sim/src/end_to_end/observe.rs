//! Observation of an end-to-end run: all switches and hosts, loads of links, the group's tree.

use super::set_up::Site;
use crate::observe;
use srdma_fabric::SwitchId;
use srdma_sim::moment::{self, Moment, PlaceMoment};
use srdma_sim::scene::Scene;
use srdma_wire::Instant;
use std::collections::BTreeMap;

impl Site {
    /// Where it takes place.
    pub(super) fn scene(&self) -> Scene {
        let group = observe::scene_group("the stream", self.group());
        observe::scene(&self.scenario.topology, vec![group], std::slice::from_ref(self.group()))
    }

    /// The state at a time; `forgotten` has the drops of switches before their restarts.
    pub(super) fn moment(&self, now: Instant, forgotten: &BTreeMap<SwitchId, PlaceMoment>) -> Moment {
        let topology = &self.scenario.topology;
        let of_switch = |switch| {
            let down = PlaceMoment { is_down: true, ..PlaceMoment::default() };
            let mut place = self.node(switch).map_or(down, PlaceMoment::of);
            forgotten.get(&switch).into_iter().for_each(|before| place.add(before));
            place
        };
        let links = self.links.iter().map(|link| {
            // A link of a topology is that of its lower end first; what goes up comes from there.
            let [down, up] = self.network.counters(*link).map(|way| way.octets);
            [up, down]
        });
        let node = |position| self.node(self.group().switch(position)?);
        Moment {
            now_ns: now.as_ns(),
            links: links.collect(),
            places: topology
                .switch_ids()
                .map(of_switch)
                .chain(topology.host_ids().map(|_| PlaceMoment::default()))
                .collect(),
            groups: vec![moment::branches_of(self.group().group(), node)],
        }
    }
}
