//! The group entry: what one node holds of a group's record.

use crate::document;
use crate::group::{Group, GroupId, Join, Receiver, Source, SourceRegion, edge_lists};
use crate::lists::EdgeList;
use crate::policy::{Policy, RepairPolicy, Rules};
use crate::tree::{NodeIndex, NodeRole};
use serde::{Deserialize, Serialize};
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;

/// Destination of a node's responses (D12, D13).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Parent {
    /// The node is the root: it delivers to the source.
    Source(Source),
    /// The parent node.
    Node {
        loopback: Ipv6Addr,
        /// The SID to encapsulate to, if it is not a neighbour.
        sid: Option<Ipv6Addr>,
    },
}

/// A branch of a node, whose responses the node aggregates (D14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The source address of the branch's responses: a receiver's address, or a child's loopback.
    pub responder: Ipv6Addr,
    /// Join point of a branch that joined after the group had begun (D30).
    pub joined: Option<Join>,
    /// The epoch from which a child's responses include all its present descendants; those of earlier epochs are
    /// rejected. For a receiver the epoch at which it moved to this node (D280), before which it responded elsewhere:
    /// its responses have no epoch, and each holds.
    pub renewed: u32,
}

impl Branch {
    /// A branch from the group's first PSN on.
    pub fn new(responder: Ipv6Addr) -> Self {
        Branch { responder, joined: None, renewed: 0 }
    }
}

/// Destination of a transit node's copies (D3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Downstream {
    /// To a child: its Replication SID or its End.MT SID becomes the outer destination.
    Sid(Ipv6Addr),
    /// To an IPv6 multicast group, by the multicast forwarding table.
    Multicast(Ipv6Addr),
}

/// Additional state of the headend (D1, D4, D26, D27).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadendEntry {
    /// The source whose packets it encapsulates.
    pub source: Source,
    /// The receiver lists of each packet; empty if they are provisioned.
    pub lists: Vec<EdgeList>,
    /// Whether MR TLVs are added: with the regions of the receivers, or with none where the receivers have none here,
    /// since the edges have several in their entries (D231).
    pub with_regions: bool,
    /// Largest IPv6 packet of the tree's links, in octets.
    pub link_mtu: u16,
}

/// How a node repairs (D150).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairEntry {
    /// Packets that the buffer has room for: the source's window.
    pub window_packets: u32,
    pub parent_repairs: bool,
    /// Which nodes below repair, in the order of the branches; empty at an edge.
    pub children: Vec<bool>,
    /// Levels of nodes from this one to the lowest edge below, both counted.
    pub levels: u32,
}

/// A node's entry of a group. Unknown keys are refused in it and its parts: a node that ignores one would acknowledge
/// for something else than the record says (D112).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    pub id: GroupId,
    pub epoch: u32,
    /// The last epoch at which a member that had been in the group before was moved below this node (re-homing):
    /// earlier responses of the node do not include it.
    pub renewed: u32,
    pub proxy: Ipv6Addr,
    /// The queue pair number that participants send to.
    #[serde(with = "document::qpn")]
    pub designated_qpn: Qpn,
    /// The group's first PSN.
    #[serde(with = "document::psn")]
    pub initial_psn: Psn,
    /// Edge, transit or bud; the headend is transit or bud.
    pub role: NodeRole,
    /// The node's SID for the group's data, or the multicast group that an edge instantiates as its End.MT SID.
    pub sid: Ipv6Addr,
    /// Destination of responses.
    pub parent: Parent,
    /// The branches, whose responses the node receives: the nodes below it, then its receivers.
    pub branches: Vec<Branch>,
    /// Destinations of the copies for the nodes below; empty at an edge.
    pub downstream: Vec<Downstream>,
    /// The receivers of an edge or bud node, in the order of its branches; empty at a transit node.
    pub receivers: Vec<Receiver>,
    /// The region that requests of the group address.
    pub region: Option<SourceRegion>,
    /// Set at the headend only.
    pub headend: Option<HeadendEntry>,
    /// Set at nodes that repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairEntry>,
    pub policy: Policy,
    /// Further regions of an edge or bud node, in the order of those of its receivers. Transit nodes of such a group
    /// have no region at all, so that they may be of versions that know one alone (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<SourceRegion>,
}

impl GroupEntry {
    /// Number of branches that are nodes: the first ones.
    pub fn nodes_below(&self) -> usize {
        self.branches.len().saturating_sub(self.receivers.len())
    }

    /// The receiver of the branch at a position; `None` for a node.
    pub fn receiver_at(&self, branch: usize) -> Option<&Receiver> {
        self.receivers.get(branch.checked_sub(self.nodes_below())?)
    }
}

impl Group {
    /// The group entry of a node; `None` if the tree has no such node.
    pub fn at(&self, index: NodeIndex) -> Option<GroupEntry> {
        let record = self.record();
        let node = record.tree.node(index)?;
        let receivers: Vec<Receiver> = self.receivers_of(index).cloned().collect();
        let children = record.tree.children(index).iter().filter_map(|child| record.tree.node(*child));
        let of_children = children.clone().map(|child| Branch {
            responder: child.loopback,
            joined: child.joined,
            renewed: child.renewed,
        });
        let of_receivers = receivers.iter().map(|receiver| Branch {
            responder: receiver.address,
            joined: receiver.joined,
            renewed: receiver.moved,
        });
        let branches = of_children.chain(of_receivers).collect();
        let downstream = match node.multicast {
            Some(group) => vec![Downstream::Multicast(group)],
            None => children.map(|child| Downstream::Sid(child.sid)).collect(),
        };
        let parent = match node.parent.and_then(|parent| record.tree.node(parent)) {
            Some(parent) => Parent::Node { loopback: parent.loopback, sid: node.parent_sid },
            None => Parent::Source(record.source),
        };
        let headend = node.parent.is_none().then(|| HeadendEntry {
            source: record.source,
            lists: if self.lists_in_packets() { edge_lists(record) } else { Vec::new() },
            with_regions: record.region.is_some(),
            link_mtu: record.link_mtu,
        });
        let repair = self.repair_of(index);
        let has_receivers = node.role.has_receivers();
        Some(GroupEntry {
            id: record.id,
            epoch: record.epoch,
            renewed: node.renewed,
            proxy: record.proxy,
            designated_qpn: record.designated_qpn,
            initial_psn: record.initial_psn,
            role: node.role,
            sid: node.sid,
            parent,
            branches,
            downstream,
            receivers,
            region: record.region.filter(|_| has_receivers || record.more_regions.is_empty()),
            headend,
            // A node that does not repair may be of a version that does not know the keys (D163).
            policy: match repair {
                Some(_) => record.policy,
                None => Policy { repair: RepairPolicy::default(), ..record.policy },
            },
            repair,
            more_regions: if has_receivers { record.more_regions.clone() } else { Vec::new() },
        })
    }

    /// How a node repairs, if it does.
    fn repair_of(&self, index: NodeIndex) -> Option<RepairEntry> {
        let record = self.record();
        let (tree, policy) = (&record.tree, record.policy.repair);
        let repairs = |index: &NodeIndex| tree.node(*index).is_some_and(|node| node.repairs(policy.mode));
        let node = tree.node(index).filter(|node| node.repairs(policy.mode))?;
        // The literal rules take a NAK for what it is.
        if record.policy.rules == Rules::Literal {
            return None;
        }
        let children = tree.children(index).iter().map(repairs).collect();
        Some(RepairEntry {
            window_packets: policy.window_packets(record.path_mtu),
            parent_repairs: node.parent.as_ref().is_some_and(repairs),
            children,
            levels: tree.levels_below(index),
        })
    }
}
