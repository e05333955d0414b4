//! Draft of the next epoch's record, from that of the last.

use super::change::{
    ChangeError, Move, NewNode, Newcomer, Rehoming, Replacement, Wanted, check_eviction, is_over, is_receiver,
};
use crate::group::{Group, Join, Receiver, Record};
use crate::tree::{NodeIndex, NodeRole, Tree, TreeNode};
use srdma_wire::Psn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Responses name their epoch by 14 bits, compared serially. A mark of a renewal that is older than this is
/// set again, long before the comparison wraps (at 2^13); the branch is unknown until its next response, as after a
/// restart.
const RENEWAL_LASTS_EPOCHS: u32 = 1 << 12;

/// The next record, with nodes by loopback, since their positions change with the tree.
pub(super) struct Draft {
    record: Record,
    nodes: Vec<Placed>,
    receivers: Vec<(Receiver, Ipv6Addr)>,
}

struct Placed {
    node: TreeNode,
    parent: Option<Ipv6Addr>,
}

/// The group after a change. `join` is J, which only a join needs. `renewed`: the nodes that are renewed with it.
pub(super) fn after(
    group: &Group,
    epoch: u32,
    wanted: &Wanted,
    join: Option<Join>,
    renewed: &BTreeSet<Ipv6Addr>,
) -> Result<Group, ChangeError> {
    let mut draft = Draft::new(group, epoch);
    match wanted {
        Wanted::Evict(receivers) => {
            if let Some(unknown) = receivers.iter().find(|address| !is_receiver(group, **address)) {
                return Err(ChangeError::NotAReceiver(*unknown));
            }
            check_eviction(group, receivers)?;
            draft.evict(receivers);
        }
        Wanted::Rehome { rehoming, of_epoch } => {
            draft.set_link_mtu(rehoming.link_mtu, *of_epoch == group.record().epoch);
            draft.rehome(rehoming)?;
        }
        Wanted::Move { moving, of_epoch } => {
            draft.set_link_mtu(moving.link_mtu, *of_epoch == group.record().epoch);
            draft.move_receivers(moving)?;
        }
        Wanted::Replace { replacement, of_epoch } if *of_epoch == group.record().epoch => {
            draft.set_link_mtu(replacement.link_mtu, true);
            draft.replace_headend(replacement)?;
        }
        Wanted::Replace { .. } => return Err(ChangeError::Outdated),
        Wanted::Join { newcomers, new_nodes, link_mtu, of_epoch } => {
            draft.set_link_mtu(*link_mtu, *of_epoch == group.record().epoch);
            draft.join(newcomers, new_nodes, join)?;
        }
        Wanted::Settle(psn) => draft.settle(*psn),
        Wanted::Renew => {}
    }
    draft.renew(renewed)?;
    draft.finish()
}

impl Draft {
    /// Join marks of nodes are for the epoch that adds the node: a node that kept one would begin at an old PSN when it
    /// is re-homed.
    fn new(group: &Group, epoch: u32) -> Self {
        let record = group.record();
        let loopbacks: Vec<Ipv6Addr> = record.tree.nodes().iter().map(|node| node.loopback).collect();
        let loopback = |index: NodeIndex| loopbacks.get(index.0).copied();
        let nodes = record.tree.nodes().iter().map(|node| {
            let is_old = node.renewed != 0 && epoch.saturating_sub(node.renewed) >= RENEWAL_LASTS_EPOCHS;
            let renewed = if is_old { epoch } else { node.renewed };
            Placed { parent: node.parent.and_then(loopback), node: TreeNode { joined: None, renewed, ..node.clone() } }
        });
        let receivers =
            record.receivers.iter().filter_map(|receiver| Some((receiver.clone(), loopback(receiver.edge)?)));
        let (nodes, receivers) = (nodes.collect(), receivers.collect());
        Draft { record: Record { epoch, ..record.clone() }, nodes, receivers }
    }

    /// `is_current`: it was computed for this record. Else another change has come before, whose links it does not
    /// know, and the lesser of both is that of all links at most.
    fn set_link_mtu(&mut self, link_mtu: Option<u16>, is_current: bool) {
        let known = self.record.link_mtu;
        self.record.link_mtu = link_mtu.map_or(known, |new| if is_current { new } else { new.min(known) });
    }

    fn evict(&mut self, receivers: &BTreeSet<Ipv6Addr>) {
        let (gone, stay) = self.receivers.drain(..).partition(|(receiver, _)| receivers.contains(&receiver.address));
        self.receivers = stay;
        let gone: Vec<(Receiver, Ipv6Addr)> = gone;
        for (_, edge) in gone {
            self.prune(edge);
        }
    }

    /// Renews every node from the new parent up to, excluding, the common ancestor with the old parent: its earlier
    /// responses do not include the moved node.
    fn rehome(&mut self, rehoming: &Rehoming) -> Result<(), ChangeError> {
        let &Rehoming { node, parent, parent_sid, ref new_nodes, link_mtu: _ } = rehoming;
        let before = self.placed(node).ok_or(ChangeError::NotANode(node))?.parent;
        let before = before.ok_or(ChangeError::Headend(node))?;
        if before == parent {
            return Err(ChangeError::InPlace { node, parent });
        }
        self.add_nodes(new_nodes, None)?;
        if self.way_up(parent)?.contains(&node) {
            return Err(ChangeError::Loop { node, parent });
        }
        self.renew_between(before, parent)?;
        for placed in self.nodes.iter_mut().filter(|placed| placed.node.loopback == node) {
            placed.parent = Some(parent);
            placed.node.parent_sid = parent_sid;
        }
        self.prune(before);
        Ok(())
    }

    /// Renews every node from `to` up to, excluding, the common ancestor with `from`.
    fn renew_between(&mut self, from: Ipv6Addr, to: Ipv6Addr) -> Result<(), ChangeError> {
        let (old_place, new_place) = (self.way_up(from)?, self.way_up(to)?);
        let is_between = |node: &Ipv6Addr| new_place.contains(node) && !old_place.contains(node);
        let epoch = self.record.epoch;
        let between = self.nodes.iter_mut().filter(|placed| is_between(&placed.node.loopback));
        between.for_each(|placed| placed.node.renewed = epoch);
        Ok(())
    }

    /// A receiver moves as a node does: to the node that gains it, it is unknown until its next response. Those that
    /// have left meanwhile are not moved.
    fn move_receivers(&mut self, moving: &Move) -> Result<(), ChangeError> {
        self.add_nodes(&moving.new_nodes, None)?;
        let mut error = ChangeError::Nothing;
        let mut has_moved = false;
        for &(address, edge) in &moving.receivers {
            let position = self.receivers.iter().position(|(receiver, _)| receiver.address == address);
            let Some((position, before)) = position.map(|position| (position, self.receivers[position].1)) else {
                error = ChangeError::NotAReceiver(address);
                continue;
            };
            if before == edge {
                error = ChangeError::AtEdge { receiver: address, edge };
                continue;
            }
            self.renew_between(before, edge)?;
            let (receiver, at) = &mut self.receivers[position];
            (receiver.moved, *at) = (self.record.epoch, edge);
            has_moved = true;
            self.prune(before);
        }
        for node in &moving.new_nodes {
            self.prune(node.loopback);
        }
        if has_moved { Ok(()) } else { Err(error) }
    }

    /// All nodes are renewed: nothing that was sent upstream in the former tree holds in this one.
    fn replace_headend(&mut self, replacement: &Replacement) -> Result<(), ChangeError> {
        let epoch = self.record.epoch;
        let (tree, former) = (replacement.tree.nodes(), self.nodes.first().map(|placed| placed.node.loopback));
        if let Some(headend) = tree.first().filter(|headend| Some(headend.loopback) == former) {
            return Err(ChangeError::IsHeadend(headend.loopback));
        }
        for &(address, edge) in &replacement.receivers {
            let found = self.receivers.iter_mut().find(|(receiver, _)| receiver.address == address);
            let (receiver, at) = found.ok_or(ChangeError::NotAReceiver(address))?;
            if *at == edge {
                return Err(ChangeError::AtEdge { receiver: address, edge });
            }
            (receiver.moved, *at) = (epoch, edge);
        }
        let placed = tree.iter().map(|node| Placed {
            parent: node.parent.and_then(|parent| Some(tree.get(parent.0)?.loopback)),
            node: TreeNode { parent: None, joined: None, renewed: epoch, ..node.clone() },
        });
        self.nodes = placed.collect();
        Ok(())
    }

    fn join(&mut self, newcomers: &[Newcomer], nodes: &[NewNode], join: Option<Join>) -> Result<(), ChangeError> {
        self.add_nodes(nodes, join)?;
        for newcomer in newcomers {
            let Newcomer { address, qpn, region, more_regions, psn_offset, edge, admission: _ } = newcomer.clone();
            let _ = self.placed(edge).ok_or(ChangeError::NotANode(edge))?;
            let (at, joined) = (NodeIndex(0), join);
            let receiver = Receiver { address, qpn, region, more_regions, edge: at, joined, psn_offset, moved: 0 };
            self.receivers.push((receiver, edge));
        }
        // A newcomer that was not ready in time is not there any more, and its edge was new for it.
        for node in nodes {
            self.prune(node.loopback);
        }
        Ok(())
    }

    fn settle(&mut self, psn: Psn) {
        for (receiver, _) in &mut self.receivers {
            if is_over(receiver, psn) {
                receiver.joined = None;
            }
        }
    }

    /// Renews nodes and all between them and the headend: the parent of each may have counted responses that did not
    /// include all of its members.
    fn renew(&mut self, nodes: &BTreeSet<Ipv6Addr>) -> Result<(), ChangeError> {
        let mut ways = BTreeSet::new();
        for node in nodes.iter().filter(|node| self.placed(**node).is_some()) {
            ways.extend(self.way_up(*node)?);
        }
        let epoch = self.record.epoch;
        let is_renewed = |placed: &&mut Placed| placed.parent.is_some() && ways.contains(&placed.node.loopback);
        self.nodes.iter_mut().filter(is_renewed).for_each(|placed| placed.node.renewed = epoch);
        Ok(())
    }

    /// Adds nodes. Those that the tree has stay where they are: an earlier change may have added them. An edge that is
    /// to have nodes below it becomes a bud node (D246).
    fn add_nodes(&mut self, nodes: &[NewNode], joined: Option<Join>) -> Result<(), ChangeError> {
        for new in nodes {
            let is_known = |placed: &&mut Placed| placed.node.loopback == new.loopback;
            if let Some(Placed { node, .. }) = self.nodes.iter_mut().find(is_known) {
                if node.role == NodeRole::Edge && new.role.replicates() {
                    (node.role, node.sid) = (NodeRole::Bud, new.sid);
                }
                continue;
            }
            let NewNode { name, loopback, sid, parent: above, parent_sid, role, multicast, can_repair } = new.clone();
            let (parent, renewed) = (None, 0);
            let node =
                TreeNode { name, loopback, sid, parent, parent_sid, role, multicast, joined, renewed, can_repair };
            self.nodes.push(Placed { node, parent: Some(above) });
        }
        for new in nodes {
            self.way_up(new.parent)?;
        }
        Ok(())
    }

    fn placed(&self, loopback: Ipv6Addr) -> Option<&Placed> {
        self.nodes.iter().find(|placed| placed.node.loopback == loopback)
    }

    /// A node and its ancestors.
    fn way_up(&self, from: Ipv6Addr) -> Result<Vec<Ipv6Addr>, ChangeError> {
        let mut way = Vec::new();
        let mut next = Some(from);
        while let Some(loopback) = next {
            if way.contains(&loopback) {
                return Err(ChangeError::Loop { node: loopback, parent: from });
            }
            way.push(loopback);
            next = self.placed(loopback).ok_or(ChangeError::NotANode(loopback))?.parent;
        }
        Ok(way)
    }

    /// Removes a node without branches, then its parent likewise (D25). The headend stays.
    fn prune(&mut self, from: Ipv6Addr) {
        let mut next = Some(from);
        while let Some(loopback) = next {
            let Some(parent) = self.placed(loopback).and_then(|placed| placed.parent) else { return };
            let has_receivers = self.receivers.iter().any(|(_, edge)| *edge == loopback);
            if has_receivers || self.nodes.iter().any(|placed| placed.parent == Some(loopback)) {
                return;
            }
            self.nodes.retain(|placed| placed.node.loopback != loopback);
            next = Some(parent);
        }
    }

    /// A transit node with receivers is a bud node, and a bud node without is a transit node (D246). Their SID is the
    /// same.
    fn assign_roles(&mut self) {
        let with_receivers: BTreeSet<Ipv6Addr> = self.receivers.iter().map(|(_, edge)| *edge).collect();
        for Placed { node, .. } in self.nodes.iter_mut().filter(|placed| placed.node.role.replicates()) {
            node.role = NodeRole::of(with_receivers.contains(&node.loopback), true);
        }
    }

    /// Sorts parents before children, stably, and checks the record.
    fn finish(mut self) -> Result<Group, ChangeError> {
        self.assign_roles();
        let mut positions: BTreeMap<Ipv6Addr, NodeIndex> = BTreeMap::new();
        let mut nodes = Vec::new();
        while !self.nodes.is_empty() {
            let before = self.nodes.len();
            let mut later = Vec::new();
            for placed in self.nodes {
                match placed.parent.map(|parent| positions.get(&parent).copied()) {
                    Some(None) => later.push(placed),
                    Some(Some(parent)) => place(&mut nodes, &mut positions, placed.node, Some(parent)),
                    None => place(&mut nodes, &mut positions, placed.node, None),
                }
            }
            if let Some(stuck) = later.first().filter(|_| later.len() == before) {
                return Err(ChangeError::NotANode(stuck.parent.unwrap_or(stuck.node.loopback)));
            }
            self.nodes = later;
        }
        let receivers = self.receivers.into_iter().map(|(receiver, edge)| match positions.get(&edge) {
            Some(position) => Ok(Receiver { edge: *position, ..receiver }),
            None => Err(ChangeError::NotANode(edge)),
        });
        let receivers = receivers.collect::<Result<_, _>>()?;
        Ok(Group::new(Record { receivers, tree: Tree::new(nodes)?, ..self.record })?)
    }
}

fn place(
    nodes: &mut Vec<TreeNode>,
    positions: &mut BTreeMap<Ipv6Addr, NodeIndex>,
    node: TreeNode,
    parent: Option<NodeIndex>,
) {
    positions.insert(node.loopback, NodeIndex(nodes.len()));
    nodes.push(TreeNode { parent, ..node });
}
