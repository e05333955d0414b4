//! What hangs below a node that is dead or drained hangs elsewhere, where there is another way.

use super::Core;
use super::commit::{growing, new_nodes_of};
use srdma_group::{NodeIndex, NodeRole, Rehoming};
use std::net::Ipv6Addr;

impl Core {
    /// Moves the children of a node, in all groups whose tree it carries. An edge's receivers have no other way.
    pub(super) fn route_around(&mut self, node: Ipv6Addr) {
        for id in self.groups_of_node.get(&node).cloned().unwrap_or_default() {
            for rehoming in self.rehomings(id, node) {
                let lifecycle = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut());
                if let Some(Err(error)) = lifecycle.map(|lifecycle| lifecycle.rehome_by(rehoming)) {
                    self.note_failure(id, &error.to_string());
                }
                self.drive(id);
            }
        }
    }

    /// For each child of the node, the other way to it.
    fn rehomings(&self, id: u32, node: Ipv6Addr) -> Vec<Rehoming> {
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return Vec::new() };
        let nodes = record.tree.nodes();
        let Some(position) = nodes.iter().position(|one| one.loopback == node) else { return Vec::new() };
        // Whose headend it is has no other.
        if position == 0 {
            return Vec::new();
        }
        let growing = growing(record);
        let children = record.tree.children(NodeIndex(position)).iter().filter_map(|child| record.tree.node(*child));
        let mut taken = Vec::new();
        let mut rehomings = Vec::new();
        for child in children {
            let Some(mut step) = growing.other_way(&self.network, child.loopback, node) else { continue };
            // A node that came in for an earlier child is in the tree by the time this one moves.
            if let Some(known) = step.way.iter().rposition(|node| taken.contains(node)) {
                step.way.drain(..known);
            }
            let Some(last) = step.way.len().checked_sub(2) else { continue };
            let parent = step.way[last];
            step.way.pop();
            let Ok(new_nodes) = new_nodes_of(&self.network, id, &step.way, NodeRole::Transit) else { continue };
            taken.extend(new_nodes.iter().map(|new| new.loopback));
            rehomings.push(Rehoming { node: child.loopback, parent, parent_sid: None, new_nodes });
        }
        rehomings
    }
}
