//! Moves receivers that are attached to two edges, when one of them fails, is drained, or loses the host (D280, D282),
//! and begins to replace headends for the same reasons (D289).

use super::Core;
use crate::refusal::Refusal;
use srdma_api::FIRST_PROTOCOL;
use srdma_group::{Move, Record};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

impl Core {
    /// Begins to replace a headend that cannot serve its source any more, or to move the receivers of a group whose
    /// edges cannot serve them any more, where other nodes can. A join that waits for a lost edge does not delay it.
    /// One attempt is made for each state of network and record. Returns whether it was wanted, so that orders follow.
    pub(super) fn start_moves(&mut self, id: u32) -> bool {
        if self.settings.shared_hosts.is_empty() {
            return false;
        }
        let Some(group) = self.groups.get(&id) else { return false };
        let (Some(lifecycle), Some(record)) = (&group.lifecycle, &group.record) else { return false };
        if !lifecycle.is_between_changes() || group.row.is_closing {
            return false;
        }
        let attempt = (self.network_version, record.epoch);
        if group.moves_tried == Some(attempt) {
            return false;
        }
        if let Some(headend) = self.next_headend(record, lifecycle) {
            match self.replacement(id, record, headend) {
                Ok(replacement) => return self.start_replacement(id, attempt, replacement),
                // Receivers can move all the same.
                Err(refusal) => self.record_failure(id, &refusal.detail),
            }
        }
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return false };
        let receivers = self.receivers_to_move(record, false);
        let moving = if receivers.is_empty() { None } else { Some(self.moving(id, record, receivers)) };
        let Some(group) = self.groups.get_mut(&id) else { return false };
        group.moves_tried = Some(attempt);
        let failure = match (moving, &mut group.lifecycle) {
            (Some(Ok(moving)), Some(lifecycle)) => match lifecycle.move_receivers(moving) {
                Ok(()) => return true,
                Err(error) => error.to_string(),
            },
            (Some(Err(refusal)), _) => refusal.detail,
            (None, _) | (_, None) => return false,
        };
        self.record_failure(id, &failure);
        false
    }

    /// The receivers whose edges do not serve them, and the other edge of each that does. `has_new_tree`: it may be
    /// below the former one now.
    pub(super) fn receivers_to_move(&self, record: &Record, has_new_tree: bool) -> BTreeMap<Ipv6Addr, Ipv6Addr> {
        let nodes = record.tree.nodes();
        let above: BTreeMap<Ipv6Addr, Ipv6Addr> =
            nodes.iter().filter_map(|node| Some((node.loopback, nodes.get(node.parent?.0)?.loopback))).collect();
        // What is below a node that fails is re-homed first, where that is possible.
        let is_below = |mut node: Ipv6Addr, other: Ipv6Addr| {
            while let Some(next) = above.get(&node).filter(|_| node != other) {
                node = *next;
            }
            node == other
        };
        let other_edge = |receiver: &srdma_group::Receiver| {
            let (host, edge) = (receiver.address, nodes.get(receiver.edge.0)?.loopback);
            let is_lost = self.network.is_lost(host, edge);
            let is_failed = self.is_out_of_service(edge);
            if !is_lost && !self.network.has_left(host, edge) && !is_failed {
                return None;
            }
            let may_serve = |other: &Ipv6Addr| has_new_tree || !is_failed || !is_below(*other, edge);
            let others = self.network.edges_of_host(host).filter(|other| *other != edge).filter(may_serve);
            let others = others.filter(|other| !self.network.is_lost(host, *other) && !self.is_out_of_service(*other));
            // The other link may be down as well, which its node has to say first.
            let others = others.filter(|other| !is_lost || self.has_reported(*other));
            let other = others.min_by_key(|other| (!above.contains_key(other), *other))?;
            Some((host, other))
        };
        record.receivers.iter().filter_map(other_edge).collect()
    }

    /// Whether an edge serves no receiver, and a headend no source: it is drained, or dead and fenced. One that the
    /// controller has lost may be forwarding, and its receivers respond to it, until its lease has expired (D122) or no
    /// neighbour reaches it (D135).
    pub(super) fn is_out_of_service(&self, edge: Ipv6Addr) -> bool {
        let Some(node) = self.nodes.get(&edge) else { return self.network.is_isolated(edge) };
        if node.session.is_none() && self.network.is_isolated(edge) {
            return true;
        }
        let has_lease = self.settings.node_lease.is_some() && node.protocol > FIRST_PROTOCOL;
        !self.network.is_usable(edge) && (node.session.is_some() || has_lease)
    }

    /// Whether a node has reported since it registered.
    pub(super) fn has_reported(&self, node: Ipv6Addr) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.status.is_some())
    }

    /// A node reports hosts whose links to it are down, or reports for the first time since it registered (D282).
    pub(super) fn hosts_reported(&mut self, node: Ipv6Addr, lost_hosts: &[Prefix], is_first: bool) {
        if self.settings.shared_hosts.is_empty() {
            return;
        }
        if self.network.set_lost_hosts(node, lost_hosts) || is_first {
            self.network_version += 1;
            self.follow_hosts(node);
        }
    }

    /// The move, with the nodes that the tree needs for it.
    fn moving(&self, id: u32, record: &Record, receivers: BTreeMap<Ipv6Addr, Ipv6Addr>) -> Result<Move, Refusal> {
        let (new_nodes, link_mtu) = self.nodes_for(id, record, receivers.values().copied())?;
        Ok(Move { receivers: receivers.into_iter().collect(), new_nodes, link_mtu })
    }

    /// Drives the groups that a node is in, and those with receivers that no edge serves, or a source that no headend
    /// serves.
    pub(super) fn follow_hosts(&mut self, node: Ipv6Addr) {
        if self.settings.shared_hosts.is_empty() {
            return;
        }
        let is_waiting = |group: &super::Group| {
            let nodes = group.record.as_ref().map(|record| record.tree.nodes()).unwrap_or_default();
            let is_lacking = |edge: Ipv6Addr| !self.network.is_usable(edge) || self.network.has_lost_hosts(edge);
            nodes.iter().any(|one| (one.role.has_receivers() || one.parent.is_none()) && is_lacking(one.loopback))
        };
        let waiting = self.groups.iter().filter(|(_, group)| is_waiting(group)).map(|(id, _)| *id);
        let concerned: BTreeSet<u32> = waiting.chain(self.groups_of_node.of(node)).collect();
        for id in concerned {
            self.drive(id);
        }
    }
}
