//! The lab's multicast group, built from its plan and the properties that its members report.

use crate::error::{LabError, Result};
use crate::topology::{GroupPlan, Lists, Operation, Topology, Transfer};
use srdma_group::{
    Group, GroupId, ListMode, NodeIndex, NodeRole, Policy, Receiver, ReceiverRegion, Record, Source, SourceRegion,
    Tree, TreeNode,
};
use srdma_wire::Qpn;
use std::net::Ipv6Addr;

/// The number of the one group that a lab has.
pub const GROUP: GroupId = GroupId(1);

/// The address of the memory region that the source writes to (D27).
pub const REGION_BASE: u64 = 0x1000_0000_0000;

/// The key of that memory.
pub const REGION_RKEY: u32 = 0x00C0_FFEE;

/// Properties that a member reports before a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its queue pair.
    pub qpn: Qpn,
    /// Its memory, at a receiver.
    pub region: Option<ReceiverRegion>,
}

/// The group of a plan, given its members: the source's queue pair, and the receivers in the order of the plan.
///
/// # Errors
///
/// If that is no group: an edge without receivers, lists that do not fit the links, and the like.
pub fn group(
    topology: &Topology,
    plan: &GroupPlan,
    transfer: &Transfer,
    source: Qpn,
    receivers: &[Member],
) -> Result<Group> {
    let writes = transfer.operation == Operation::Write;
    let members = plan.receivers.iter().zip(receivers).map(|(receiver, member)| {
        let region = member.region.filter(|_| writes);
        Ok(Receiver {
            region,
            ..Receiver::new(address(topology, receiver.node)?, member.qpn, NodeIndex(receiver.edge))
        })
    });
    let length = transfer.size_octets;
    Group::new(Record {
        id: GROUP,
        epoch: 1,
        proxy: plan.proxy,
        designated_qpn: plan.designated_qpn,
        initial_psn: plan.initial_psn,
        path_mtu: transfer.path_mtu,
        link_mtu: plan.link_mtu,
        source: Source { address: address(topology, plan.source)?, qpn: source },
        region: writes.then_some(SourceRegion { base: REGION_BASE, length, rkey: REGION_RKEY }),
        receivers: members.collect::<Result<_>>()?,
        tree: tree(topology, plan)?,
        policy: Policy { lists: list_mode(transfer.lists), repair: plan.policy.repair_policy(), ..Policy::default() },
        more_regions: Vec::new(),
    })
    .map_err(|error| LabError::Group(error.to_string()))
}

/// The address of a host: of the version that the group's Proxy Address has.
pub(crate) fn address(topology: &Topology, node: usize) -> Result<Ipv6Addr> {
    let (name, addresses) = (&topology.nodes[node].name, &topology.nodes[node].addresses);
    let proxy = topology.group.as_ref().map(|group| group.proxy);
    let proxy = proxy.or_else(|| topology.controlled_group().map(|group| group.proxy));
    if proxy.is_some_and(|proxy| proxy.to_ipv4_mapped().is_some()) {
        let address = topology.ipv4_address(node).map(|address| address.to_ipv6_mapped());
        return address.ok_or_else(|| LabError::Group(format!("{name} has no IPv4 address on its links")));
    }
    addresses.first().copied().ok_or_else(|| LabError::Group(format!("{name} has no address")))
}

/// Source of the edges' receiver lists, by the group's policy.
pub(crate) fn list_mode(lists: Lists) -> ListMode {
    match lists {
        Lists::Tlv => ListMode::Tlv,
        Lists::Provisioned => ListMode::Provisioned,
    }
}

fn tree(topology: &Topology, plan: &GroupPlan) -> Result<Tree> {
    let nodes = plan.tree.iter().enumerate().map(|(position, node)| {
        let is_edge = plan.receivers.iter().any(|receiver| receiver.edge == position);
        let replicates = node.parent.is_none() || plan.tree.iter().any(|other| other.parent == Some(position));
        TreeNode {
            name: topology.nodes[node.node].name.clone(),
            loopback: node.loopback,
            sid: node.sid,
            parent: node.parent.map(NodeIndex),
            parent_sid: node.parent_sid,
            role: NodeRole::of(is_edge, replicates),
            multicast: node.multicast,
            joined: None,
            renewed: 0,
            can_repair: true,
        }
    });
    Tree::new(nodes.collect()).map_err(|error| LabError::Group(error.to_string()))
}
