//! The `node.toml` of the lab's nodes.

use crate::controller::ControllerAccess;
use crate::error::{LabError, Result};
use crate::routes;
use crate::topology::{End, GroupPlan, Kind, Topology};
use srdma_group::{Group, GroupEntry, NodeIndex, NodeRole};
use srdma_node_spec::file::{
    BehaviorName, ControllerSection, DaemonSection, DriverName, GroupSection, HostAddress, Integer, MulticastAddress,
    MulticastRouteSection, NodeFile, NodeSection, PolicySection, PortName, PortSection, SidSection, U32, spanned,
};
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::path::Path;
use toml::{Table, Value};

/// Octets of retransmission buffers at each node (D162): a lab has many nodes on one machine, and few groups.
const REPAIR_MEMORY_OCTETS: u64 = 16 << 20;

/// Choices for all nodes of a lab alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeChoices {
    /// The driver of each port.
    pub driver: DriverName,
    /// The driver of ports whose link has a rate or loses, where the node's own queueing disciplines make that.
    pub shaped_driver: Option<DriverName>,
    /// Data threads of the node; its own number if not given.
    pub workers: Option<u16>,
    /// The node has lost its state (D17).
    pub restarted: bool,
    /// The lab's controller, for nodes that get groups from one.
    pub controller: Option<ControllerAccess>,
}

/// The `node.toml` of the node at this position: its ports, its group entry, and the additions of the topology file. It
/// reports its state by the socket `status`.
///
/// # Errors
///
/// If the topology file's part cannot be put together with the lab's.
pub fn text(
    topology: &Topology,
    group: Option<&Group>,
    node: usize,
    status: &Path,
    choices: &NodeChoices,
) -> Result<String> {
    let own = &topology.nodes[node];
    let member = topology.group.as_ref().zip(group).and_then(|(plan, group)| {
        let position = plan.tree.iter().position(|entry| entry.node == node)?;
        Some((plan, position, group.at(NodeIndex(position))?))
    });
    let loopback = match (&member, own.addresses.first()) {
        (Some((plan, position, _)), _) => plan.tree[*position].loopback,
        (None, Some(address)) => *address,
        (None, None) => return Err(LabError::Group(format!("{} has no address that could be its loopback", own.name))),
    };
    let shaped = |link: usize| choices.shaped_driver.filter(|_| topology.links[link].is_shaped());
    let port = |(link, end, _): (usize, &End, _)| {
        let driver = shaped(link).unwrap_or(choices.driver);
        PortSection { driver, ..PortSection::new(&end.interface) }
    };
    let mut file = NodeFile {
        daemon: DaemonSection {
            name: Some(PortName(own.name.clone()).into()),
            status: Some(spanned(status.to_owned())),
            workers: choices.workers.map(|workers| Integer::clamped(workers.into()).into()),
            ..DaemonSection::default()
        },
        port: topology.ends_of(node).map(port).collect(),
        sid: member.iter().filter_map(|(_, _, entry)| sid(entry)).collect(),
        multicast_route: member
            .iter()
            .filter_map(|(plan, position, _)| multicast_route(topology, plan, *position))
            .map(spanned)
            .collect(),
        group: member
            .iter()
            .map(|(plan, _, entry)| {
                let policy = PolicySection { repair: entry.policy.repair.mode, ..plan.policy.clone() };
                spanned(GroupSection { policy, ..GroupSection::of(entry) })
            })
            .collect(),
        ..NodeFile::new(NodeSection {
            restarted: choices.restarted,
            repair_memory_octets: Some(Integer::clamped(REPAIR_MEMORY_OCTETS).into()),
            ..NodeSection::new(loopback)
        })
    };
    let config = match &own.kind {
        Kind::Srdma { config } => config,
        _ => &Table::new(),
    };
    let takes_controller =
        config.get("controller").and_then(Value::as_table).is_some_and(|section| !section.contains_key("url"));
    if let Some(access) = choices.controller.as_ref().filter(|_| takes_controller) {
        file.controller = Some(spanned(ControllerSection {
            token_file: Some(access.token_file.clone()),
            ca_file: Some(access.ca_file.clone()),
            ..ControllerSection::new(access.url.clone())
        }));
    }
    let serialised =
        |error: toml::ser::Error| LabError::Unexpected { who: own.name.clone(), problem: error.to_string() };
    // A lab is a network of its own: its nodes have a domain where the topology file gives them one.
    file.node.open = !config.contains_key("domain");
    let mut table = Table::try_from(&file).map_err(serialised)?;
    merge(&mut table, config);
    toml::to_string(&table).map_err(serialised)
}

/// Adds the topology file's values: lists grow, tables are merged, and other values are replaced.
fn merge(into: &mut Table, from: &Table) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Table(known)), Value::Table(more)) => merge(known, more),
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.iter().cloned()),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

/// The node's SID for the group's data, unless that is a multicast group.
fn sid(entry: &GroupEntry) -> Option<SidSection> {
    let sid = |behavior| SidSection::new(Prefix::host(entry.sid), behavior);
    let section = match entry.role {
        NodeRole::Edge => sid(BehaviorName::EndMt),
        NodeRole::Transit | NodeRole::Bud => {
            SidSection { group: Some(U32::clamped(entry.id.0.into()).into()), ..sid(BehaviorName::EndReplicate) }
        }
    };
    (!entry.sid.is_multicast()).then_some(section)
}

/// The multicast route by which a node of the tree sends or receives data of an IPv6 multicast group (D3).
fn multicast_route(topology: &Topology, plan: &GroupPlan, position: usize) -> Option<MulticastRouteSection> {
    let node = &plan.tree[position];
    let group = node.multicast.or(Some(node.sid).filter(|sid| sid.is_multicast()))?;
    let root = &plan.tree[0];
    let hands_over = !node.sid.is_multicast();
    let toward = |other: usize| routes::interface_toward(topology, node.node, plan.tree[other].node);
    let below = plan.tree.iter().enumerate().filter(|(_, other)| other.parent == Some(position));
    let outgoing: BTreeSet<String> = below.filter_map(|(other, _)| toward(other)).collect();
    let port = |name: String| PortName(name).into();
    Some(MulticastRouteSection {
        // A node that hands over finds its branches by its own address; on the way, packets keep the headend's.
        source: HostAddress(if hands_over { node.loopback } else { root.loopback }).into(),
        group: MulticastAddress(group).into(),
        incoming: if hands_over { None } else { toward(0).map(port) },
        outgoing: outgoing.into_iter().map(port).collect(),
        end_mt: plan.receivers.iter().any(|receiver| receiver.edge == position),
        require_hmac: false,
    })
}
