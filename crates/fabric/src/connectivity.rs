//! Check that every host reaches every other.

use crate::error::{Place, TopologyError};
use crate::topology::{HostId, NodeId, SwitchId, Topology};
use std::collections::BTreeMap;

/// Every two hosts have a path through switches. A host may be attached to several fabrics that are not joined with
/// each other, as long as every two hosts have one in common.
pub(crate) fn check(topology: &Topology) -> Result<(), TopologyError> {
    let component = components(topology);
    let mut first_with: BTreeMap<Vec<u32>, HostId> = BTreeMap::new();
    for host in topology.host_ids() {
        let switches = topology.open_ports(NodeId::Host(host)).filter_map(|port| match port.peer.node {
            NodeId::Switch(switch) => Some(component[switch.index()]),
            NodeId::Host(_) => None,
        });
        let mut of_host: Vec<u32> = switches.collect();
        of_host.sort_unstable();
        of_host.dedup();
        if of_host.is_empty() {
            let name = &topology.hosts()[host.index()].name;
            let text = format!("host {name} would be cut off: all its links have failed");
            return Err(TopologyError::new(Place::Host(host.index()), text));
        }
        first_with.entry(of_host).or_insert(host);
    }
    for (own, host) in &first_with {
        let apart = |(other, _): &(&Vec<u32>, &HostId)| !other.iter().any(|component| own.contains(component));
        if let Some((_, other)) = first_with.iter().find(apart) {
            let (later, earlier) = (host.max(other), host.min(other));
            let [a, b] = [earlier, later].map(|host| &topology.hosts()[host.index()].name);
            let failed = if topology.link_ids().any(|link| topology.is_failed(link)) {
                " on links that have not failed"
            } else {
                ""
            };
            let text = format!("no path leads from host {a} to host {b}{failed}: join their switches");
            return Err(TopologyError::new(Place::Host(later.index()), text));
        }
    }
    Ok(())
}

/// For each switch the number of the part that it lies in; two switches have the same if a path without hosts joins
/// them.
fn components(topology: &Topology) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut component = vec![NONE; topology.switches().len()];
    let mut parts = 0;
    for start in topology.switch_ids() {
        if component[start.index()] != NONE {
            continue;
        }
        let mut waiting: Vec<SwitchId> = vec![start];
        component[start.index()] = parts;
        while let Some(at) = waiting.pop() {
            for port in topology.open_ports(NodeId::Switch(at)) {
                if let NodeId::Switch(next) = port.peer.node
                    && component[next.index()] == NONE
                {
                    component[next.index()] = parts;
                    waiting.push(next);
                }
            }
        }
        parts += 1;
    }
    component
}
