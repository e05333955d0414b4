//! The header, the first line of a recording: the network and its groups.

use serde::Serialize;
use srdma_api::{
    BranchView, GroupState, GroupSummary, Receiver, ReceiverState, SourceAddress, SourceRegion, TopologyLink,
    TopologyNode, TreeNodeView,
};
use srdma_group::{Group, NodeIndex};
use srdma_sim::RunDescription;
use srdma_sim::description::{ElementInfo, ElementKind, GroupInfo, LinkInfo};

/// The format, raised when members are renamed or change their meaning.
const VERSION: u32 = 2;

#[derive(Serialize)]
pub(super) struct Head<'a> {
    recording: &'static str,
    version: u32,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<&'a str>,
    topology: Topology,
    groups: Vec<GroupHead>,
}

#[derive(Serialize)]
struct Topology {
    unix_ms: u64,
    version: u64,
    nodes: Vec<Node>,
    links: Vec<TopologyLink>,
}

/// A node or a host.
#[derive(Serialize)]
struct Node {
    #[serde(flatten)]
    node: TopologyNode,
    is_host: bool,
}

#[derive(Serialize)]
struct GroupHead {
    #[serde(flatten)]
    summary: GroupSummary,
    source: SourceAddress,
    designated_qpn: u32,
    initial_psn: u32,
    path_mtu: u16,
    region: Option<SourceRegion>,
    members: Vec<Receiver>,
    tree: TreeHead,
    awaited: [String; 0],
}

#[derive(Serialize)]
struct TreeHead {
    nodes: Vec<TreeNodeView>,
    links: usize,
    links_of_unicast: usize,
    explanation: [&'static str; 1],
}

impl<'a> Head<'a> {
    /// The head of a recording with this title.
    pub(super) fn new(title: &'a str, description: &'a RunDescription) -> Self {
        Head {
            recording: "srdma",
            version: VERSION,
            title,
            root: description.root.as_deref(),
            topology: Topology {
                unix_ms: 0,
                version: 1,
                nodes: description.elements.iter().map(Node::new).collect(),
                links: description.links.iter().map(link).collect(),
            },
            groups: description.groups.iter().map(GroupHead::new).collect(),
        }
    }
}

impl Node {
    fn new(element: &ElementInfo) -> Self {
        Node {
            node: TopologyNode {
                name: element.name.clone(),
                loopback: element.address,
                is_alive: true,
                is_drained: false,
                is_edge: element.kind == ElementKind::Edge,
                drops: 0,
            },
            is_host: element.kind == ElementKind::Host,
        }
    }
}

fn link(link: &LinkInfo) -> TopologyLink {
    TopologyLink { ends: link.ends.clone(), octets_per_second: [0.0; 2], mtu: link.mtu, groups: link.groups }
}

impl GroupHead {
    fn new(GroupInfo { name, explanation, group }: &GroupInfo) -> Self {
        let record = group.record();
        let member = |receiver: &srdma_group::Receiver| Receiver {
            address: receiver.address,
            qpn: receiver.qpn.get(),
            region: None,
            host: None,
            state: ReceiverState::Member,
            joined_psn: None,
            reserved_psn: None,
            awaits_ready: false,
            psn_offset: receiver.psn_offset.get(),
            more_regions: Vec::new(),
        };
        GroupHead {
            summary: GroupSummary {
                id: record.id.0,
                name: name.clone(),
                tenant: String::new(),
                state: GroupState::Ready,
                proxy: record.proxy,
                receivers: u32::try_from(record.receivers.len()).unwrap_or(u32::MAX),
                epoch: record.epoch,
                version: 1,
            },
            source: SourceAddress { address: record.source.address, qpn: record.source.qpn.get() },
            designated_qpn: record.designated_qpn.get(),
            initial_psn: record.initial_psn.get(),
            path_mtu: record.path_mtu.into(),
            region: record.region.map(Into::into),
            members: record.receivers.iter().map(member).collect(),
            tree: TreeHead::new(group, explanation),
            awaited: [],
        }
    }
}

impl TreeHead {
    fn new(group: &Group, explanation: &'static str) -> Self {
        let tree = &group.record().tree;
        let view = |(index, node): (usize, &srdma_group::TreeNode)| {
            let entry = group.at(NodeIndex(index));
            let branches = entry.iter().flat_map(|entry| &entry.branches);
            let role = if node.parent.is_none() { "headend" } else { node.role.name() };
            TreeNodeView {
                name: node.name.clone(),
                loopback: node.loopback,
                sid: node.sid,
                role: role.to_owned(),
                parent: node.parent.and_then(|parent| tree.node(parent)).map(|parent| parent.name.clone()),
                branches: branches
                    .map(|branch| BranchView {
                        address: branch.responder,
                        expected_psn: None,
                        lag: None,
                        cnps: 0,
                        packets_resent: None,
                        is_repairing: false,
                    })
                    .collect(),
            }
        };
        let depth = |mut index: NodeIndex| {
            let mut links = 0;
            while let Some(parent) = tree.node(index).and_then(|node| node.parent) {
                (index, links) = (parent, links + 1);
            }
            links
        };
        let edges = tree.nodes().iter().enumerate().filter(|(_, node)| node.role.has_receivers());
        TreeHead {
            nodes: tree.nodes().iter().enumerate().map(view).collect(),
            links: tree.nodes().len() - 1,
            links_of_unicast: edges.map(|(index, _)| depth(NodeIndex(index))).sum(),
            explanation: [explanation],
        }
    }
}
