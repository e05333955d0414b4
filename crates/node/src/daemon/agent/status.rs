//! Status of the node, as sent to the controller.

use crate::configuration::{ControllerLink, ControllerSettings};
use crate::daemon::snapshot::{GroupSnapshot, PortSnapshot, Snapshot};
use srdma_api::{BranchStatus, GroupStatus, NodeStatus, PortStatus};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The status in a snapshot; of groups, only those of the controller.
pub(in crate::daemon) fn status_of(
    snapshot: &Snapshot,
    settings: &ControllerSettings,
    is_of_controller: impl Fn(u32) -> bool,
) -> NodeStatus {
    let port = |(index, port): (usize, &PortSnapshot)| PortStatus {
        name: port.name.clone(),
        to: settings.links.iter().find(|link| link.port.is_some_and(|id| id.index() == index)).map(|link| link.to),
        is_up: port.is_up && port.driver.is_some(),
        received_octets: port.received.octets,
        sent_octets: port.sent.octets,
    };
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in snapshot.ports.iter().flat_map(|port| &port.drops).chain(&snapshot.own_drops) {
        *drops.entry(reason.clone()).or_default() += count;
    }
    let steered = snapshot.steering.iter().flat_map(|steering| &steering.flows);
    NodeStatus {
        ports: snapshot.ports.iter().enumerate().map(port).collect(),
        groups: snapshot.groups.iter().filter(|group| is_of_controller(group.id)).map(group).collect(),
        drops,
        programs: steered.map(|flow| format!("{} {}", flow.destination, flow.path)).collect(),
        unreachable: unreachable(snapshot, settings),
    }
}

/// The neighbours by links of the controller whose session was up and is down. One that was never up, or is disabled,
/// is no hint.
fn unreachable(snapshot: &Snapshot, settings: &ControllerSettings) -> Vec<Ipv6Addr> {
    let lost = snapshot.bfd.iter().filter(|session| session.is_lost).filter_map(|session| {
        let is_port = |port: &PortSnapshot| session.port.as_ref() == Some(&port.name);
        match &session.port {
            Some(_) => neighbour_of(Some(snapshot.ports.iter().position(is_port)?), session.peer, settings),
            None => neighbour_of(None, session.peer, settings),
        }
    });
    lost.collect()
}

/// The neighbour at a link of the controller that a BFD session shows: by the session's port, or by its peer's loopback
/// over several hops.
pub(in crate::daemon) fn neighbour_of(
    port: Option<usize>,
    peer: Ipv6Addr,
    settings: &ControllerSettings,
) -> Option<Ipv6Addr> {
    let is_it = |link: &&ControllerLink| match port {
        Some(port) => link.port.is_some_and(|id| id.index() == port),
        None => link.to == peer,
    };
    settings.links.iter().find(is_it).map(|link| link.to)
}

fn group(group: &GroupSnapshot) -> GroupStatus {
    let branches = group.branches.iter().map(|branch| BranchStatus {
        address: branch.address,
        expected_psn: branch.expected_psn,
        lag: branch.lag,
        cnps: branch.cnps,
    });
    GroupStatus { group: group.id, highest_psn: group.highest_psn, branches: branches.collect() }
}
