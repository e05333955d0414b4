//! The `node.toml` of the lab's nodes.

use crate::controller::ControllerAccess;
use crate::error::{LabError, Result};
use crate::group::GROUP;
use crate::routes;
use crate::topology::{GroupPlan, Topology};
use serde::Serialize;
use srdma_group::{Downstream, Group, GroupEntry, NodeIndex, NodeRole, Parent, Receiver};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Choices for all nodes of a lab alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeChoices {
    /// The driver of each port; the node's own choice when none is given.
    pub driver: Option<String>,
    /// The driver of ports whose link has a rate or loses, where the node's own queueing disciplines make that.
    pub shaped_driver: Option<String>,
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
    let tree = topology.group.as_ref().zip(group);
    let position = tree.and_then(|(plan, _)| plan.tree.iter().position(|entry| entry.node == node));
    let part = tree.zip(position).and_then(|((_, group), position)| group.at(NodeIndex(position)));
    let loopback = match (topology.group.as_ref().zip(position), own.addresses.first()) {
        (Some((plan, position)), _) => plan.tree[position].loopback,
        (None, Some(address)) => *address,
        (None, None) => return Err(LabError::Group(format!("{} has no address that could be its loopback", own.name))),
    };
    let file = NodeFile {
        node: NodeSection { loopback, restarted: choices.restarted },
        daemon: DaemonSection { name: own.name.clone(), status: status.to_owned() },
        port: topology
            .ends_of(node)
            .map(|(link, end, _)| {
                let shaped = choices.shaped_driver.as_ref().filter(|_| topology.links[link].is_shaped());
                PortSection { name: end.interface.clone(), driver: shaped.or(choices.driver.as_ref()).cloned() }
            })
            .collect(),
        sid: part.as_ref().and_then(sid).into_iter().collect(),
        multicast_route: match (tree, position) {
            (Some((plan, _)), Some(position)) => multicast_route(topology, plan, position).into_iter().collect(),
            _ => Vec::new(),
        },
        group: part.iter().map(|part| GroupSection::of(part, topology.group.as_ref())).collect(),
    };
    let serialised =
        |error: toml::ser::Error| LabError::Unexpected { who: own.name.clone(), problem: error.to_string() };
    let mut table = Table::try_from(&file).map_err(serialised)?;
    if let crate::topology::Kind::Srdma { config } = &own.kind {
        merge(&mut table, config);
    }
    if let (Some(Value::Table(section)), Some(access)) = (table.get_mut("controller"), &choices.controller) {
        fill_in(section, access);
    }
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

/// Adds the address of the lab's controller to a section that names no other one.
fn fill_in(section: &mut Table, access: &ControllerAccess) {
    let ControllerAccess { url, token_file, ca_file } = access;
    if section.contains_key("url") {
        return;
    }
    section.insert("url".to_owned(), Value::String(url.clone()));
    for (key, file) in [("token_file", token_file), ("ca_file", ca_file)] {
        section.entry(key).or_insert_with(|| Value::String(file.display().to_string()));
    }
}

fn sid(part: &GroupEntry) -> Option<SidSection> {
    let (behavior, group) = match part.role {
        NodeRole::Edge => ("End.MT", None),
        NodeRole::Transit => ("End.Replicate", Some(GROUP.0)),
    };
    (!part.sid.is_multicast()).then_some(SidSection { sid: part.sid, behavior, group })
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
    Some(MulticastRouteSection {
        // The node that hands over finds its branches by its own address; on the way packets keep the headend's.
        source: if hands_over { node.loopback } else { root.loopback },
        group,
        incoming: if hands_over { None } else { toward(0) },
        outgoing: outgoing.into_iter().collect(),
        end_mt: plan.receivers.iter().any(|receiver| receiver.edge == position),
    })
}

#[derive(Serialize)]
struct NodeFile {
    node: NodeSection,
    daemon: DaemonSection,
    port: Vec<PortSection>,
    sid: Vec<SidSection>,
    multicast_route: Vec<MulticastRouteSection>,
    group: Vec<GroupSection>,
}

#[derive(Serialize)]
struct NodeSection {
    loopback: Ipv6Addr,
    restarted: bool,
}

#[derive(Serialize)]
struct DaemonSection {
    name: String,
    status: PathBuf,
}

#[derive(Serialize)]
struct PortSection {
    name: String,
    driver: Option<String>,
}

#[derive(Serialize)]
struct SidSection {
    sid: Ipv6Addr,
    behavior: &'static str,
    group: Option<u32>,
}

#[derive(Serialize)]
struct MulticastRouteSection {
    source: Ipv6Addr,
    group: Ipv6Addr,
    incoming: Option<String>,
    outgoing: Vec<String>,
    end_mt: bool,
}

#[derive(Serialize)]
struct GroupSection {
    id: u32,
    epoch: u32,
    proxy: Ipv6Addr,
    designated_qpn: u32,
    initial_psn: u32,
    role: &'static str,
    sid: Ipv6Addr,
    source: Option<SourceSection>,
    parent: Option<ParentSection>,
    branches: Option<Vec<Ipv6Addr>>,
    downstream: Option<Vec<Ipv6Addr>>,
    receiver: Vec<ReceiverSection>,
    region: Option<RegionSection>,
    headend: Option<HeadendSection>,
    policy: Table,
}

#[derive(Serialize)]
struct SourceSection {
    address: Ipv6Addr,
    qpn: u32,
}

#[derive(Serialize)]
struct ParentSection {
    loopback: Ipv6Addr,
    sid: Option<Ipv6Addr>,
}

#[derive(Serialize)]
struct ReceiverSection {
    address: Ipv6Addr,
    qpn: u32,
    base: Option<u64>,
    rkey: Option<u32>,
}

#[derive(Serialize)]
struct RegionSection {
    base: u64,
    length: u64,
    rkey: u32,
}

#[derive(Serialize)]
struct HeadendSection {
    link_mtu: u16,
    list: Vec<ListSection>,
}

#[derive(Serialize)]
struct ListSection {
    edge: Ipv6Addr,
    receiver: Vec<ReceiverSection>,
}

impl GroupSection {
    fn of(part: &GroupEntry, plan: Option<&GroupPlan>) -> Self {
        let is_transit = part.role == NodeRole::Transit;
        let branches = part.branches.iter().map(|branch| branch.responder).collect();
        let downstream = part.downstream.iter().map(|downstream| match downstream {
            Downstream::Sid(address) | Downstream::Multicast(address) => *address,
        });
        let (source, parent) = match part.parent {
            Parent::Source(source) => (Some(SourceSection { address: source.address, qpn: source.qpn.get() }), None),
            Parent::Node { loopback, sid } => (None, Some(ParentSection { loopback, sid })),
        };
        GroupSection {
            id: part.id.0,
            epoch: part.epoch,
            proxy: part.proxy,
            designated_qpn: part.designated_qpn.get(),
            initial_psn: part.initial_psn.get(),
            role: if is_transit { "transit" } else { "edge" },
            sid: part.sid,
            source,
            parent,
            branches: is_transit.then_some(branches),
            downstream: is_transit.then(|| downstream.collect()),
            receiver: part.receivers.iter().map(ReceiverSection::of).collect(),
            region: part.region.map(|region| RegionSection {
                base: region.base,
                length: region.length,
                rkey: region.rkey,
            }),
            headend: part.headend.as_ref().map(|headend| HeadendSection {
                link_mtu: headend.link_mtu,
                list: headend
                    .lists
                    .iter()
                    .map(|list| ListSection {
                        edge: list.edge,
                        receiver: list.receivers.iter().map(ReceiverSection::of).collect(),
                    })
                    .collect(),
            }),
            policy: plan.map(|plan| plan.policy.clone()).unwrap_or_default(),
        }
    }
}

impl ReceiverSection {
    fn of(receiver: &Receiver) -> Self {
        ReceiverSection {
            address: receiver.address,
            qpn: receiver.qpn.get(),
            base: receiver.region.map(|region| region.base),
            rkey: receiver.region.map(|region| region.rkey),
        }
    }
}
