//! The tree of a group: data are replicated from the source, responses are aggregated on the way to it.
//!
//! ```text
//!             source
//!               │
//!             node 0          the headend: encapsulates, and delivers responses to the source
//!             ╱    ╲
//!         transit  transit    replicate
//!          ╱  ╲      │
//!       edge  edge  edge      End.MT: one copy per receiver
//! ```
//!
//! A node may do both, the headend too: a bud node replicates to the nodes below it, and rewrites the copies of its own
//! receivers (D246).

use crate::group::{Join, is_host_address};
use crate::policy::RepairMode;
use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;

/// A node of a tree, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(pub usize);

/// A node's processing of a group's data (MT-4-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeRole {
    /// Instantiates End.MT, rewrites, aggregates.
    Edge,
    /// Replicates and aggregates.
    Transit,
    /// Replicates to nodes and rewrites for receivers of its own, which it has from its group entry; aggregates both.
    Bud,
}

impl NodeRole {
    /// The role of a node with or without receivers, that replicates to nodes or does not.
    pub fn of(has_receivers: bool, replicates: bool) -> Self {
        match (has_receivers, replicates) {
            (true, true) => NodeRole::Bud,
            (true, false) => NodeRole::Edge,
            (false, _) => NodeRole::Transit,
        }
    }

    /// Whether the node has receivers: it rewrites a copy for each.
    pub fn has_receivers(self) -> bool {
        match self {
            NodeRole::Edge | NodeRole::Bud => true,
            NodeRole::Transit => false,
        }
    }

    /// Whether the node replicates encapsulated packets, to the nodes below it.
    pub fn replicates(self) -> bool {
        match self {
            NodeRole::Transit | NodeRole::Bud => true,
            NodeRole::Edge => false,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            NodeRole::Edge => "edge",
            NodeRole::Transit => "transit",
            NodeRole::Bud => "bud",
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    /// Its name, for display.
    pub name: String,
    /// Its loopback address: source of the responses that it sends to its parent, which identifies it by that (D12,
    /// D14).
    pub loopback: Ipv6Addr,
    /// Its SID for the group's data: End.MT at an edge, a Replication SID at a transit or bud node.
    pub sid: Ipv6Addr,
    /// The node above; `None` for the headend alone.
    pub parent: Option<NodeIndex>,
    /// The parent's SID that responses are encapsulated to if the parent is not a neighbour (D12).
    pub parent_sid: Option<Ipv6Addr>,
    /// Its role. The headend is a transit node, or a bud node if it has receivers.
    pub role: NodeRole,
    /// Data are sent to the children by this IPv6 multicast group, instead of to each child's SID (D3).
    pub multicast: Option<Ipv6Addr>,
    /// Join point of a node that was added to the tree of a running group, with receivers that joined then (D30).
    pub joined: Option<Join>,
    /// The last epoch at which something that had been in the group before came to hang below the node; 0: never.
    pub renewed: u32,
    /// The node has a retransmission buffer, if the group's policy is that it repairs (D150).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_repair: bool,
}

/// A tree, checked: the headend is node 0, every other node has a parent that comes before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<TreeNode>", into = "Vec<TreeNode>")]
pub struct Tree {
    nodes: Vec<TreeNode>,
    children: Vec<Vec<NodeIndex>>,
}

/// The reason why nodes form no tree.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// There must be a headend.
    #[error("a tree needs at least one node, the headend")]
    Empty,
    /// Node 0 must be the only one without a parent.
    #[error("node {0} must have a parent that comes before it, and only node 0 has none")]
    Parent(String),
    /// Two nodes share an address.
    #[error("node {node}: address {address} belongs to another node already")]
    Address {
        /// The later node.
        node: String,
        /// The address they share.
        address: Ipv6Addr,
    },
    /// Responses are sent from the loopback, which identifies the responder (D12, D14).
    #[error("node {node}: {address} cannot be its loopback address")]
    Loopback { node: String, address: Ipv6Addr },
    /// A headend with receivers is a bud node.
    #[error("the headend {0} cannot be an edge: with receivers of its own its role is `bud`")]
    HeadendIsEdge(String),
    /// An edge replicates to receivers, not to nodes.
    #[error("edge node {0} cannot have nodes below it: with both its role is `bud`")]
    EdgeWithChildren(String),
    /// A bud node takes data by its own SID.
    #[error("bud node {0} cannot be below a node whose copies go to an IPv6 multicast group")]
    BudBelowMulticast(String),
    /// A group address that is not a multicast address.
    #[error("node {node}: {address} is not an IPv6 multicast address")]
    NotMulticast { node: String, address: Ipv6Addr },
}

impl From<Tree> for Vec<TreeNode> {
    fn from(tree: Tree) -> Self {
        tree.nodes
    }
}

impl TryFrom<Vec<TreeNode>> for Tree {
    type Error = TreeError;

    fn try_from(nodes: Vec<TreeNode>) -> Result<Self, TreeError> {
        Self::new(nodes)
    }
}

impl TreeNode {
    /// Whether the node repairs under a policy. A node whose copies go to an IPv6 multicast group cannot address one
    /// branch.
    pub fn repairs(&self, mode: RepairMode) -> bool {
        let is_meant = match (mode, self.role) {
            (RepairMode::Off, _) | (RepairMode::Edge, NodeRole::Transit) => false,
            (RepairMode::Edge, NodeRole::Edge | NodeRole::Bud)
            | (RepairMode::Tree, NodeRole::Edge | NodeRole::Bud | NodeRole::Transit) => true,
        };
        is_meant && self.can_repair && (self.multicast.is_none() || self.role == NodeRole::Edge)
    }
}

impl Tree {
    /// Checks that the nodes form a tree.
    pub fn new(nodes: Vec<TreeNode>) -> Result<Self, TreeError> {
        if nodes.is_empty() {
            return Err(TreeError::Empty);
        }
        let mut children = vec![Vec::new(); nodes.len()];
        let mut addresses = std::collections::BTreeSet::new();
        for (position, node) in nodes.iter().enumerate() {
            match node.parent {
                None if position == 0 && node.role == NodeRole::Edge => {
                    return Err(TreeError::HeadendIsEdge(node.name.clone()));
                }
                None if position == 0 => {}
                Some(parent) if parent.0 < position => {
                    if nodes[parent.0].role == NodeRole::Edge {
                        return Err(TreeError::EdgeWithChildren(nodes[parent.0].name.clone()));
                    }
                    if node.role == NodeRole::Bud && nodes[parent.0].multicast.is_some() {
                        return Err(TreeError::BudBelowMulticast(node.name.clone()));
                    }
                    children[parent.0].push(NodeIndex(position));
                }
                _ => return Err(TreeError::Parent(node.name.clone())),
            }
            if !is_host_address(node.loopback) || node.loopback.to_ipv4_mapped().is_some() {
                return Err(TreeError::Loopback { node: node.name.clone(), address: node.loopback });
            }
            for address in [node.loopback, node.sid] {
                // Edges of one multicast group share it as their SID (D3).
                if !address.is_multicast() && !addresses.insert(address) {
                    return Err(TreeError::Address { node: node.name.clone(), address });
                }
            }
            if let Some(address) = node.multicast.filter(|address| !address.is_multicast()) {
                return Err(TreeError::NotMulticast { node: node.name.clone(), address });
            }
        }
        Ok(Tree { nodes, children })
    }

    /// All nodes, the headend first, parents before children.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// The node at a position.
    pub fn node(&self, index: NodeIndex) -> Option<&TreeNode> {
        self.nodes.get(index.0)
    }

    /// Whether a node is another one or below it.
    pub fn is_below(&self, node: NodeIndex, upper: NodeIndex) -> bool {
        // Its nodes form no loop (`TreeError`).
        let mut above = std::iter::successors(Some(node), |node| self.nodes.get(node.0)?.parent);
        above.any(|node| node == upper)
    }

    /// The nodes below a node.
    pub fn children(&self, index: NodeIndex) -> &[NodeIndex] {
        self.children.get(index.0).map_or(&[], Vec::as_slice)
    }

    /// Levels of nodes from this one down to the lowest below it, both counted.
    pub fn levels_below(&self, index: NodeIndex) -> u32 {
        // Every node comes after its parent.
        let mut levels = vec![1; self.nodes.len()];
        for (position, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                levels[parent.0] = levels[parent.0].max(levels[position] + 1);
            }
        }
        levels.get(index.0).copied().unwrap_or(1)
    }
}
