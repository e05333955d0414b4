//! Replaces the headend of a source that is attached to two nodes, when the present one fails, is drained, or loses the
//! source (D289).

use super::commit::{no_tree, tree_of};
use super::{Core, Group};
use crate::refusal::Refusal;
use crate::tree::{TreeBuilder, Unreachable};
use srdma_group::{Lifecycle, NodeIndex, Record, Replacement};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

impl Core {
    /// The node that takes the place of the headend of a record, if that does not serve the source any more and another
    /// one can. A headend that has not registered since the controller's start may have a newer record (D98).
    pub(super) fn next_headend(&self, record: &Record, lifecycle: &Lifecycle) -> Option<Ipv6Addr> {
        let (source, headend) = (record.source.address, record.tree.nodes().first()?.loopback);
        let is_lost = self.network.is_lost(source, headend);
        let is_served = !is_lost && !self.network.has_left(source, headend) && !self.is_out_of_service(headend);
        if is_served || lifecycle.unverified().any(|node| node == headend) {
            return None;
        }
        let others = self.network.headends_of_host(source).filter(|other| *other != headend);
        let others = others.filter(|other| !self.network.is_lost(source, *other) && !self.is_out_of_service(*other));
        let mut others = others.filter(|other| !is_lost || self.has_reported(*other));
        others.next()
    }

    /// Whether a node is the headend of a group, and another one is to take its place.
    pub(super) fn is_to_be_replaced(&self, id: u32, node: Ipv6Addr) -> bool {
        let Some(group) = self.groups.get(&id) else { return false };
        let (Some(record), Some(lifecycle)) = (&group.record, &group.lifecycle) else { return false };
        let is_headend = record.tree.nodes().first().is_some_and(|headend| headend.loopback == node);
        is_headend && !self.settings.shared_hosts.is_empty() && self.next_headend(record, lifecycle).is_some()
    }

    /// Why a node may be the headend of a group which has no record, and answer the source by one that the store has
    /// lost: the store does not know it (D301), or it has not registered since the controller's start (D115, D137).
    pub(super) fn other_headend(&self, group: &Group) -> Option<String> {
        let (id, source) = (group.row.id, group.row.request.source.address);
        if self.may_have_unknown_headend(source) {
            return Some(format!(
                "group {id}: source {source} is in `shared_hosts`, and fewer than two nodes have registered it with \
                 this store: another one may have the group of a former store"
            ));
        }
        let node = self.unheard_headend(source).filter(|_| group.is_restored)?;
        let name = self.network.name(node);
        Some(format!(
            "group {id}: the source is attached to node {name} as well, which has not registered since the \
             controller's start: it may have the group"
        ))
    }

    /// Whether a source that may be attached to two nodes has one that the store does not know: the store is new, or
    /// older than the node's first registration. Only a lease bounds the time for which it acts by a lost record.
    fn may_have_unknown_headend(&self, source: Ipv6Addr) -> bool {
        let is_shared = self.settings.shared_hosts.iter().any(|prefix| prefix.contains(source));
        let is_over = self.settings.node_lease.is_some() && self.now.monotonic >= self.expects_until;
        is_shared && !is_over && self.network.attached_to(source).count() < 2
    }

    /// A node of a source that has not registered since the controller's start, and is not fenced.
    fn unheard_headend(&self, source: Ipv6Addr) -> Option<Ipv6Addr> {
        // An older store may have a node as lost that has returned since.
        let may_be_fenced = self.now.monotonic >= self.expects_until;
        self.network.attached_to(source).find(|node| {
            let is_heard = self.nodes.get(node).is_some_and(|node| node.session.is_some());
            let is_fenced = may_be_fenced && self.is_out_of_service(*node);
            !is_heard && !is_fenced
        })
    }

    /// The tree from another headend over the edges of all receivers, of which some move with it. No node is below the
    /// former headend: what that has not forgotten yet holds without them.
    pub(super) fn replacement(&self, id: u32, record: &Record, headend: Ipv6Addr) -> Result<Replacement, Refusal> {
        let nodes = record.tree.nodes();
        let moving = self.receivers_to_move(record, true);
        let edge_of = |receiver: &srdma_group::Receiver| {
            let known = nodes.get(receiver.edge.0).map(|node| node.loopback);
            moving.get(&receiver.address).copied().or(known)
        };
        let edges: BTreeSet<Ipv6Addr> = record.receivers.iter().filter_map(edge_of).collect();
        // Those that no path leads to now keep their way, as far as it was not by the former headend.
        let mut unreached = BTreeSet::new();
        let mut builder = loop {
            let mut builder = TreeBuilder::new(headend);
            if let Some(former) = nodes.first() {
                builder = builder.without(former.loopback);
            }
            let wanted: Vec<Ipv6Addr> = edges.iter().copied().filter(|edge| !unreached.contains(edge)).collect();
            match builder.add_edges(&self.network, &wanted) {
                Ok(_) => break builder,
                Err(Unreachable(edge)) if unreached.insert(edge) => {}
                Err(error) => return Err(no_tree(&self.network, &error)),
            }
        };
        for edge in unreached {
            self.keep_way(record, &mut builder, edge)?;
        }
        let (tree, link_mtu) = tree_of(&self.network, id, &builder, |node| edges.contains(&node))?;
        let link_mtu = if link_mtu == u16::MAX { record.link_mtu } else { link_mtu };
        let link_mtu = Some(link_mtu).filter(|_| self.renews_link_mtu());
        Ok(Replacement { tree, receivers: moving.into_iter().collect(), link_mtu })
    }

    /// Adds an edge with the nodes above it in the former tree, up to one that is in the tree or has a link to it.
    fn keep_way(&self, record: &Record, builder: &mut TreeBuilder, edge: Ipv6Addr) -> Result<(), Refusal> {
        let nodes = record.tree.nodes();
        let parents: BTreeMap<Ipv6Addr, Ipv6Addr> =
            nodes.iter().filter_map(|node| Some((node.loopback, nodes.get(node.parent?.0)?.loopback))).collect();
        let mut node = edge;
        while !builder.contains(node) {
            let former = parents.get(&node).copied().filter(|parent| builder.carries(&self.network, *parent));
            let above = former.or_else(|| {
                let in_tree = builder.nodes().into_iter().map(|(one, _)| one);
                let mut linked = in_tree.filter(|one| self.network.hop(*one, node).is_some());
                linked.find(|one| builder.carries(&self.network, *one))
            });
            let above = above.ok_or_else(|| no_tree(&self.network, &Unreachable(node)))?;
            builder.put_below(node, above);
            node = above;
        }
        Ok(())
    }

    /// Requests the replacement of a group's headend.
    pub(super) fn start_replacement(&mut self, id: u32, attempt: (u64, u32), replacement: Replacement) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return false };
        group.moves_tried = Some(attempt);
        let Some(Err(error)) = group.lifecycle.as_mut().map(|lifecycle| lifecycle.replace_headend(replacement)) else {
            return true;
        };
        self.record_failure(id, &error.to_string());
        false
    }

    /// Passes on that a former headend is fenced, for which the change that replaces it waits.
    pub(super) fn note_fenced(&mut self, id: u32) {
        let ending = self.groups.get(&id).and_then(|group| group.lifecycle.as_ref()?.ending());
        if let Some(node) = ending.filter(|node| self.is_out_of_service(*node))
            && let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut())
        {
            lifecycle.fenced(node);
        }
    }

    /// How a headend came to be, if it is not the one that the record before had.
    pub(super) fn explain_replacement(&self, record: &Record, before: &Record) -> Option<Vec<String>> {
        let headend = |record: &Record| record.tree.node(NodeIndex(0)).map(|node| node.loopback);
        let (now, former) = (headend(record)?, headend(before)?);
        let (name, former_name) = (self.network.name(now), self.network.name(former));
        let (epoch, source) = (record.epoch, record.source.address);
        let text = format!(
            "{name} is the headend in place of {former_name} since epoch {epoch}: source {source} is in the hosts of \
             both"
        );
        (now != former).then(|| vec![text])
    }
}
