//! Reroutes trees around nodes that are dead or drained, and links that are down, where there is another path.

use super::Core;
use super::commit::{attach, builder, link_mtu};
use crate::principal::Principal;
use crate::refusal::Refusal;
use srdma_api::UnreachableReport;
use srdma_group::{NodeIndex, NodeRole, Rehoming};
use std::net::Ipv6Addr;

impl Core {
    /// Moves the children of a node in all trees that it is part of, and its receivers that another edge can serve; or
    /// replaces it, where it is the headend.
    pub(super) fn reroute(&mut self, node: Ipv6Addr) {
        for id in self.groups_of_node.of(node).collect::<Vec<_>>() {
            if !self.is_to_be_replaced(id, node) {
                self.rehome(id, self.reroutes(id, node, |_| true));
            }
            self.drive(id);
        }
    }

    /// Notes neighbours that a node cannot reach any more, beside those of its status (D135), and hosts whose links to
    /// it are down (D291).
    ///
    /// # Errors
    ///
    /// The principal may not report for this node, or the node has not registered.
    pub fn note_unreachable(
        &mut self,
        principal: &Principal,
        name: &str,
        report: &UnreachableReport,
    ) -> Result<(), Refusal> {
        principal.may_register(name)?;
        let loopback = self.loopback_of(name)?;
        let down = self.network.add_unreachable(loopback, &report.unreachable);
        self.avoid_links(loopback, &down);
        if self.network.add_lost_hosts(loopback, &report.lost_hosts) {
            self.network_version += 1;
            self.follow_hosts(loopback);
        }
        Ok(())
    }

    /// Trees avoid the links from a node to neighbours that it cannot reach any more. A neighbour that none of its own
    /// neighbours reaches is taken for lost: no change waits for its answers, except where it may be forwarding.
    pub(super) fn avoid_links(&mut self, node: Ipv6Addr, neighbours: &[Ipv6Addr]) {
        for neighbour in neighbours {
            self.network_version += 1;
            let is_connected = self.nodes.get(neighbour).is_some_and(|known| known.session.is_some());
            if is_connected && self.network.is_isolated(*neighbour) {
                self.lose(*neighbour);
                self.reroute(*neighbour);
            } else {
                self.reroute_link(node, *neighbour);
                self.follow_hosts(*neighbour);
            }
        }
    }

    /// Moves the children that trees have across a link that is down, in either direction.
    pub(super) fn reroute_link(&mut self, one: Ipv6Addr, other: Ipv6Addr) {
        for id in self.groups_of_node.of(one).collect::<Vec<_>>() {
            for (parent, child) in [(one, other), (other, one)] {
                if !self.is_parent(id, parent, child) {
                    continue;
                }
                let reroutes = self.reroutes(id, parent, |node| node == child);
                // Where no other path leads to the child, others may lead to its own children.
                let around = |core: &Core| core.reroutes(id, child, |_| true);
                self.rehome(id, if reroutes.is_empty() { around(self) } else { reroutes });
            }
        }
    }

    fn is_parent(&self, id: u32, parent: Ipv6Addr, child: Ipv6Addr) -> bool {
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return false };
        let position = record.tree.nodes().iter().position(|node| node.loopback == parent);
        let children = position.map(|position| record.tree.children(NodeIndex(position)));
        let mut nodes = children.into_iter().flatten().filter_map(|child| record.tree.node(*child));
        nodes.any(|node| node.loopback == child)
    }

    fn rehome(&mut self, id: u32, reroutes: Vec<Rehoming>) {
        for rehoming in reroutes {
            let lifecycle = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut());
            if let Some(Err(error)) = lifecycle.map(|lifecycle| lifecycle.rehome_by(rehoming)) {
                self.record_failure(id, &error.to_string());
            }
            self.drive(id);
        }
    }

    /// For each of these children of the node, the other path to it.
    fn reroutes(&self, id: u32, node: Ipv6Addr, is_moved: impl Fn(Ipv6Addr) -> bool) -> Vec<Rehoming> {
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return Vec::new() };
        let nodes = record.tree.nodes();
        let Some(position) = nodes.iter().position(|one| one.loopback == node) else { return Vec::new() };
        // A headend is not left out, but its links may be.
        let avoided = (position > 0).then_some(node);
        let builder = builder(record);
        let children = record.tree.children(NodeIndex(position)).iter().filter_map(|child| record.tree.node(*child));
        let children = children.filter(|child| is_moved(child.loopback));
        let mut taken = Vec::new();
        let mut reroutes = Vec::new();
        for child in children {
            let Some(mut step) = builder.alternative_path(&self.network, child.loopback, avoided) else { continue };
            // A node that was added for an earlier child is in the tree when this one moves.
            if let Some(known) = step.path.iter().rposition(|node| taken.contains(node)) {
                step.path.drain(..known);
            }
            let Some(last) = step.path.len().checked_sub(2) else { continue };
            let parent = step.path[last];
            step.path.pop();
            let mut new_nodes = Vec::new();
            if attach(&self.network, id, record, &step.path, NodeRole::Transit, &mut new_nodes).is_err() {
                continue;
            }
            taken.extend(new_nodes.iter().map(|new| new.loopback));
            let link_mtu = link_mtu(&self.network, record, &new_nodes, Some((child.loopback, parent)))
                .filter(|_| self.renews_link_mtu());
            reroutes.push(Rehoming { node: child.loopback, parent, parent_sid: None, new_nodes, link_mtu });
        }
        reroutes
    }
}
