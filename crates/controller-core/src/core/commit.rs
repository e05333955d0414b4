//! Commits a group: computes its tree and edges, and makes the record that nodes install.

use super::groups::{check_path_mtu, check_psn_offset, check_qpn};
use super::members::refused;
use super::{Core, Group, unknown};
use crate::network::Network;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::MemberRow;
use crate::tree::{Step, TreeBuilder, Unreachable};
use srdma_api::ProblemType;
use srdma_api::SourceState;
use srdma_group::{
    Admission, ChangeError, GroupId, Lifecycle, NewNode, Newcomer, NodeIndex, NodeRole, Receiver, Record, Safeguard,
    Source, Tree, TreeNode,
};
use srdma_wire::Psn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Additions to an installed tree.
struct Extension {
    newcomers: Vec<Newcomer>,
    new_nodes: Vec<NewNode>,
    /// Of all links of the tree then.
    link_mtu: Option<u16>,
}

impl Core {
    /// Computes the tree and begins to install the group on all nodes (D31).
    pub fn commit_group(&mut self, principal: &Principal, id: u32, version: Option<u64>) -> Result<(), Refusal> {
        let group = self.changeable(id, principal, version)?;
        if group.lifecycle.is_some() {
            return Err(Refusal::new(ProblemType::AlreadyCommitted, format!("group {id} is committed already")));
        }
        if self.awaits_predecessor(group) {
            // It would be refused when its time comes.
            record(&self.network, group)?;
            self.postpone_commit(id);
        } else {
            self.begin(id)?;
        }
        self.write_group(id);
        self.audit(&principal.name, "commit", format!("group {id}"));
        for warning in self.groups.get(&id).map(|group| self.repair_warnings(group)).unwrap_or_default() {
            self.audit("controller", "warn", format!("group {id}: {warning}"));
        }
        self.drive(id);
        Ok(())
    }

    /// Computes the tree and starts the group's lifecycle.
    fn begin(&mut self, id: u32) -> Result<(), Refusal> {
        if self.foreign.has((self.site.store, id)) {
            let text = format!(
                "nodes have another group {id} of this store, which was created after its backup: close this group and \
                 create it again, `srdma group foreign` lists the other one"
            );
            return Err(Refusal::new(ProblemType::InvalidGroup, text));
        }
        // Nodes have registered since with a group of another store, by which one may answer the source.
        if let Some(proxy) = self.groups.get(&id).and_then(|group| group.row.request.proxy) {
            self.check_free("proxy", proxy)?;
        }
        if let Some(text) = self.groups.get(&id).and_then(|group| self.other_headend(group)) {
            return Err(Refusal::new(ProblemType::NoPath, text));
        }
        let group = self.groups.get_mut(&id).ok_or_else(|| unknown(id))?;
        let (record, explanation, links_of_unicast) = record(&self.network, group)?;
        let epoch = record.epoch;
        let lifecycle = Lifecycle::create(record)
            .map(|lifecycle| lifecycle.without(self.settings.without))
            .map_err(|error| Refusal::new(ProblemType::InvalidGroup, format!("group {id}: {error}")))?;
        group.row.last_epoch = epoch;
        group.row.failure = None;
        group.row.is_committed = true;
        group.lifecycle = Some(lifecycle);
        group.explanation = explanation;
        group.links_of_unicast = Some(links_of_unicast);
        Ok(())
    }

    /// Retries a creation that the end of a controller has interrupted, as soon as its nodes have registered, or that
    /// waited for the end of the group that it resumes.
    pub(super) fn retry_creation(&mut self, id: u32, may_wait: bool) {
        let is_interrupted = |group: &Group| {
            let is_due = group.row.is_committed && !group.row.is_closing && group.lifecycle.is_none();
            is_due && !self.awaits_predecessor(group)
        };
        if !self.groups.get(&id).is_some_and(is_interrupted) {
            return;
        }
        let store = self.site.store;
        if self.foreign.has((store, id)) {
            // The nodes have committed it: it is adopted as soon as they have all reported.
            let agreed = self.agreed(id, &self.foreign.reports(store, id), None);
            if agreed.is_err_and(|obstacle| !obstacle.is_final()) {
                return;
            }
        }
        match self.begin(id) {
            Ok(()) => self.write_group(id),
            Err(_) if may_wait => {}
            Err(refusal) => {
                if let Some(group) = self.groups.get_mut(&id) {
                    group.row.is_committed = false;
                }
                self.record_failure(id, &refusal.detail);
            }
        }
    }

    /// Starts waiting joins if no change is in progress, with the nodes that the tree needs for them.
    pub(super) fn start_joins(&mut self, id: u32) {
        let Some(group) = self.groups.get(&id) else { return };
        let (Some(lifecycle), Some(record)) = (&group.lifecycle, &group.record) else { return };
        if !lifecycle.is_steady() || !group.joining.is_empty() || group.row.is_closing {
            return;
        }
        let known: BTreeSet<Ipv6Addr> = record.receivers.iter().map(|receiver| receiver.address).collect();
        let is_new = |address: &Ipv6Addr| !known.contains(address);
        // No pause begins for a receiver that may be dead (D188).
        let is_heard = |address: &Ipv6Addr, member: &MemberRow| !member.in_two_steps || group.is_heard(address);
        let waiting: Vec<(Ipv6Addr, MemberRow)> = group
            .members
            .iter()
            .filter(|(address, member)| !member.is_leaving && is_new(address) && is_heard(address, member))
            .filter(|(address, _)| self.is_reachable(**address))
            .map(|(address, member)| (*address, member.clone()))
            .collect();
        if waiting.is_empty() {
            return;
        }
        if group.row.source == SourceState::Ended {
            return self.reject_joins(id, &waiting, "the source has ended");
        }
        match self.extension(id, &waiting) {
            Ok(Extension { newcomers, new_nodes, link_mtu }) => {
                let Some(group) = self.groups.get_mut(&id) else { return };
                let Some(lifecycle) = &mut group.lifecycle else { return };
                match lifecycle.join(newcomers.clone(), new_nodes, link_mtu) {
                    Ok(()) => group.joining = newcomers,
                    Err(error) => self.reject_joins(id, &waiting, &error.to_string()),
                }
            }
            Err(refusal) => self.reject_joins(id, &waiting, &refusal.detail),
        }
    }

    /// Removes receivers that cannot join.
    fn reject_joins(&mut self, id: u32, waiting: &[(Ipv6Addr, MemberRow)], reason: &str) {
        self.record_failure(id, reason);
        for (address, _) in waiting {
            self.delete_member(id, *address);
        }
    }

    /// Additions to an installed tree for more receivers.
    fn extension(&self, id: u32, waiting: &[(Ipv6Addr, MemberRow)]) -> Result<Extension, Refusal> {
        let group = self.groups.get(&id).ok_or_else(|| unknown(id))?;
        let record = group.record.as_ref().ok_or_else(|| unknown(id))?;
        let edges = edges_of(&self.network, waiting.iter().map(|(address, _)| *address))?;
        let (new_nodes, link_mtu) = self.nodes_for(id, record, edges.values().copied())?;
        let newcomers = waiting.iter().map(|(address, MemberRow { receiver, in_two_steps, .. })| {
            Ok(Newcomer {
                address: *address,
                qpn: check_qpn("qpn", receiver.qpn)?,
                region: receiver.region.map(Into::into),
                more_regions: receiver.more_regions.iter().copied().map(Into::into).collect(),
                psn_offset: check_psn_offset(receiver.psn_offset)?,
                edge: edges[address],
                admission: if *in_two_steps { Admission::WhenReady } else { Admission::AtOnce },
            })
        });
        Ok(Extension { newcomers: newcomers.collect::<Result<_, Refusal>>()?, new_nodes, link_mtu })
    }

    /// The nodes that an installed tree needs to reach edges, and the link MTU with them, if it is renewed.
    pub(super) fn nodes_for(
        &self,
        id: u32,
        record: &Record,
        edges: impl Iterator<Item = Ipv6Addr>,
    ) -> Result<(Vec<NewNode>, Option<u16>), Refusal> {
        let wanted: BTreeSet<Ipv6Addr> = edges.collect();
        let wanted: Vec<Ipv6Addr> = wanted.into_iter().collect();
        let steps =
            builder(record).add_edges(&self.network, &wanted).map_err(|error| no_tree(&self.network, &error))?;
        let mut new_nodes = Vec::new();
        for step in &steps {
            attach(&self.network, id, record, &step.path, NodeRole::Edge, &mut new_nodes)?;
        }
        let link_mtu = link_mtu(&self.network, record, &new_nodes, None).filter(|_| self.renews_link_mtu());
        Ok((new_nodes, link_mtu))
    }

    pub(super) fn renews_link_mtu(&self) -> bool {
        self.settings.without != Some(Safeguard::LinkMtuRenewed)
    }

    /// Whether the node of a host is connected: a receiver at a lost one waits for it.
    fn is_reachable(&self, host: Ipv6Addr) -> bool {
        let node = self.network.node_of_host(host).and_then(|node| self.nodes.get(&node));
        self.settings.without == Some(Safeguard::LostNodesAwaited) || node.is_none_or(|node| node.session.is_some())
    }

    /// The nodes that receivers wait for who are not in the record yet.
    pub(super) fn awaited_edges(&self, group: &Group) -> impl Iterator<Item = Ipv6Addr> {
        let waiting = group.members.iter().filter(|(_, member)| group.record.is_some() && !member.is_leaving);
        let known = group.record.iter().flat_map(|record| &record.receivers).map(|receiver| receiver.address);
        let known: BTreeSet<Ipv6Addr> = known.collect();
        let waiting = waiting.map(|(address, _)| *address).filter(move |address| !known.contains(address));
        waiting.filter(|address| !self.is_reachable(*address)).filter_map(|address| self.network.node_of_host(address))
    }
}

/// The largest packet that every link carries of a tree with new nodes, and with one node below another parent. A link
/// that its ends do not register any more counts as the tree's links did before.
pub(super) fn link_mtu(
    network: &Network,
    record: &Record,
    new_nodes: &[NewNode],
    moved: Option<(Ipv6Addr, Ipv6Addr)>,
) -> Option<u16> {
    let nodes = record.tree.nodes();
    let links = nodes.iter().filter_map(|node| Some((nodes.get(node.parent?.0)?.loopback, node.loopback)));
    let links = links.filter(|(_, node)| moved.is_none_or(|(moved, _)| moved != *node));
    let links = links.chain(new_nodes.iter().map(|new| (new.parent, new.loopback)));
    let links = links.chain(moved.map(|(node, parent)| (parent, node)));
    links.map(|(above, node)| network.hop(above, node).map_or(record.link_mtu, |hop| hop.mtu)).min()
}

/// Attaches a path at its first node: the nodes behind it are new, the last with this role, the others as transit. If
/// the first is an edge it becomes a bud node.
pub(super) fn attach(
    network: &Network,
    id: u32,
    record: &Record,
    path: &[Ipv6Addr],
    last: NodeRole,
    new_nodes: &mut Vec<NewNode>,
) -> Result<(), Refusal> {
    let Some(root) = path.first() else { return Ok(()) };
    let recorded = record.tree.nodes();
    let parent_of_edge = |node: &TreeNode| {
        let is_edge = node.loopback == *root && node.role == NodeRole::Edge;
        if is_edge { recorded.get(node.parent?.0).map(|parent| parent.loopback) } else { None }
    };
    if let Some(known) = new_nodes.iter_mut().find(|new| new.loopback == *root) {
        if known.role == NodeRole::Edge {
            *known = new_node(network, id, *root, known.parent, NodeRole::Bud)?;
        }
    } else if let Some(parent) = recorded.iter().find_map(parent_of_edge) {
        new_nodes.push(new_node(network, id, *root, parent, NodeRole::Bud)?);
    }
    for (position, pair) in path.windows(2).enumerate() {
        let role = if position + 2 == path.len() { last } else { NodeRole::Transit };
        new_nodes.push(new_node(network, id, pair[1], pair[0], role)?);
    }
    Ok(())
}

fn new_node(network: &Network, id: u32, node: Ipv6Addr, parent: Ipv6Addr, role: NodeRole) -> Result<NewNode, Refusal> {
    let TreeNode { name, loopback, sid, can_repair, .. } = tree_node(network, id, node, None, role)?;
    Ok(NewNode { name, loopback, sid, parent, parent_sid: None, role, multicast: None, can_repair })
}

/// A builder that extends the tree of a record.
pub(super) fn builder(record: &Record) -> TreeBuilder {
    let nodes = record.tree.nodes();
    let above = nodes.iter().filter_map(|node| Some((node.loopback, nodes.get(node.parent?.0)?.loopback)));
    let edges = nodes.iter().filter(|node| node.role.has_receivers()).map(|node| node.loopback);
    TreeBuilder::of(nodes[0].loopback, above, edges)
}

/// The record of a group that is committed for the first time, the explanation of its tree, and the number of links
/// that unicast would use.
fn record(network: &Network, group: &Group) -> Result<(Record, Vec<String>, u32), Refusal> {
    let (id, request) = (group.row.id, &group.row.request);
    if group.members.is_empty() {
        return Err(Refusal::new(ProblemType::GroupEmpty, format!("group {id} has no receiver: join one first")));
    }
    let members: BTreeMap<Ipv6Addr, MemberRow> = first_members(group).collect();
    if members.is_empty() {
        let text = format!("group {id} has no receiver that is ready to receive from its first PSN on (D187)");
        return Err(Refusal::new(ProblemType::GroupEmpty, text));
    }
    let source = request.source;
    let Some(headend) = network.node_of_host(source.address) else {
        return Err(network.no_node_of("source", source.address, "it has no headend"));
    };
    let edges = edges_of(network, members.keys().copied())?;
    let mut wanted: Vec<Ipv6Addr> = edges.values().copied().collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut builder = TreeBuilder::new(headend);
    let steps = builder.add_edges(network, &wanted).map_err(|error| no_tree(network, &error))?;
    let (tree, link_mtu) = tree_of(network, id, &builder, |node| wanted.binary_search(&node).is_ok())?;
    let nodes = tree.nodes().iter().enumerate();
    let position: BTreeMap<Ipv6Addr, usize> = nodes.map(|(position, node)| (node.loopback, position)).collect();
    let receivers = members.iter().map(|(address, member)| {
        Ok(Receiver {
            address: *address,
            qpn: check_qpn("qpn", member.receiver.qpn)?,
            region: member.receiver.region.map(Into::into),
            more_regions: member.receiver.more_regions.iter().copied().map(Into::into).collect(),
            edge: NodeIndex(position[&edges[address]]),
            joined: None,
            psn_offset: check_psn_offset(member.receiver.psn_offset)?,
            moved: 0,
        })
    });
    let links_of_unicast = builder.links_of_unicast(network);
    let links = [builder.nodes().len() as u32 - 1, links_of_unicast];
    let explanation = explain(network, source.address, headend, &steps, links);
    let epoch = group.row.last_epoch.checked_add(1).ok_or_else(|| refused(id, &ChangeError::LastEpoch(u32::MAX)))?;
    let record = Record {
        id: GroupId(id),
        epoch,
        proxy: request.proxy.unwrap_or(Ipv6Addr::UNSPECIFIED),
        designated_qpn: check_qpn("designated_qpn", request.designated_qpn)?,
        initial_psn: Psn::new(request.initial_psn),
        path_mtu: check_path_mtu(request.path_mtu)?,
        link_mtu,
        source: Source { address: source.address, qpn: check_qpn("source.qpn", source.qpn)? },
        region: request.region.map(Into::into),
        more_regions: request.more_regions.iter().copied().map(Into::into).collect(),
        receivers: receivers.collect::<Result<_, Refusal>>()?,
        tree,
        policy: request.policy,
    };
    Ok((record, explanation, links_of_unicast))
}

/// The tree that a builder has built, with the largest packet that every link of it carries. A link that its ends do
/// not register carries any.
pub(super) fn tree_of(
    network: &Network,
    id: u32,
    builder: &TreeBuilder,
    has_receivers: impl Fn(Ipv6Addr) -> bool,
) -> Result<(Tree, u16), Refusal> {
    let nodes = builder.nodes();
    let position: BTreeMap<Ipv6Addr, usize> =
        nodes.iter().enumerate().map(|(position, (node, _))| (*node, position)).collect();
    let parents: BTreeSet<Ipv6Addr> = nodes.iter().filter_map(|(_, above)| *above).collect();
    let mut tree = Vec::with_capacity(nodes.len());
    let mut link_mtu = u16::MAX;
    for (node, above) in &nodes {
        if let Some(above) = above {
            link_mtu = link_mtu.min(network.hop(*above, *node).map_or(u16::MAX, |hop| hop.mtu));
        }
        let carries = above.is_none() || parents.contains(node);
        let role = NodeRole::of(has_receivers(*node), carries);
        let parent = above.and_then(|above| position.get(&above)).map(|position| NodeIndex(*position));
        tree.push(tree_node(network, id, *node, parent, role)?);
    }
    let tree =
        Tree::new(tree).map_err(|error| Refusal::new(ProblemType::InvalidGroup, format!("group {id}: {error}")))?;
    Ok((tree, link_mtu))
}

/// The receivers of the first commit: all but those that join in two steps and are not ready.
fn first_members(group: &Group) -> impl Iterator<Item = (Ipv6Addr, MemberRow)> {
    let first = Some(group.row.request.initial_psn);
    let members = group.members.iter().map(|(address, member)| (*address, member.clone()));
    members.filter(move |(_, member)| !member.in_two_steps || member.ready_at_psn == first)
}

/// The edge of each receiver.
fn edges_of(
    network: &Network,
    receivers: impl Iterator<Item = Ipv6Addr>,
) -> Result<BTreeMap<Ipv6Addr, Ipv6Addr>, Refusal> {
    let edges = receivers.map(|receiver| {
        let Some(edge) = network.node_of_host(receiver) else {
            return Err(network.no_node_of("receiver", receiver, "no edge can deliver to it"));
        };
        if network.node(edge).is_none_or(|node| node.end_mt.is_none()) {
            let name = network.name(edge);
            let text = format!("receiver {receiver} is attached to node {name}, which has no End.MT SID");
            return Err(Refusal::new(ProblemType::NoPath, text));
        }
        Ok((receiver, edge))
    });
    edges.collect()
}

fn tree_node(
    network: &Network,
    id: u32,
    loopback: Ipv6Addr,
    parent: Option<NodeIndex>,
    role: NodeRole,
) -> Result<TreeNode, Refusal> {
    let node = network.node(loopback);
    let sid = node.and_then(|node| match role {
        NodeRole::Edge => node.end_mt,
        NodeRole::Transit | NodeRole::Bud => node.replication_sid(id),
    });
    let Some(sid) = sid else {
        let name = network.name(loopback);
        let text = format!("node {name} has no `replication` prefix, so it cannot be headend or carry a tree");
        return Err(Refusal::new(ProblemType::NoPath, text));
    };
    Ok(TreeNode {
        name: network.name(loopback),
        loopback,
        sid,
        parent,
        parent_sid: None,
        role,
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: node.is_some_and(|node| node.repairs),
    })
}

pub(super) fn no_tree(network: &Network, Unreachable(node): &Unreachable) -> Refusal {
    let name = network.name(*node);
    let text = format!(
        "no path to node {name}: nodes between must be alive, not drained, and have a `replication` prefix; a link is \
         used only if both its ends have registered it"
    );
    Refusal::new(ProblemType::NoPath, text)
}

/// The number of links that unicast to the edges of a record would use; the number for an earlier record where the
/// edges are the same.
pub(super) fn links_of_unicast(network: &Network, record: &Record, earlier: Option<(&Record, u32)>) -> u32 {
    let edges = |record: &Record| -> BTreeSet<Ipv6Addr> {
        let edges = record.tree.nodes().iter().filter(|node| node.role.has_receivers());
        edges.map(|node| node.loopback).collect()
    };
    match earlier.filter(|(earlier, _)| edges(earlier) == edges(record)) {
        Some((_, links)) => links,
        None => builder(record).links_of_unicast(network),
    }
}

/// The explanation of a tree, with the links that it and unicast use.
fn explain(
    network: &Network,
    source: Ipv6Addr,
    headend: Ipv6Addr,
    steps: &[Step],
    [links, alone]: [u32; 2],
) -> Vec<String> {
    let mut lines = vec![format!("{} is the headend: source {source} is in its hosts", network.name(headend))];
    for step in steps {
        let names: Vec<String> = step.path.iter().map(|node| network.name(*node)).collect();
        let (first, last) = (&names[0], &names[names.len() - 1]);
        lines.push(format!(
            "{last} is nearest to the tree and attached at {first}: {}, cost {}",
            names.join("–"),
            step.cost
        ));
    }
    lines.push(format!("{links} links carry each packet; separate unicast paths would use {alone}"));
    lines
}
