//! The groups of each node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Numbers of groups, by the loopbacks of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupsOfNode(BTreeMap<Ipv6Addr, BTreeSet<u32>>);

impl GroupsOfNode {
    pub(super) fn add(&mut self, node: Ipv6Addr, group: u32) {
        self.0.entry(node).or_default().insert(group);
    }

    pub(super) fn remove(&mut self, node: Ipv6Addr, group: u32) {
        if let Some(groups) = self.0.get_mut(&node) {
            groups.remove(&group);
        }
    }

    /// A node is there no more.
    pub(super) fn forget(&mut self, node: Ipv6Addr) {
        self.0.remove(&node);
    }

    /// The number of a node's groups.
    pub(super) fn count(&self, node: Ipv6Addr) -> usize {
        self.0.get(&node).map_or(0, BTreeSet::len)
    }

    /// The groups of a node, in order.
    pub(super) fn of(&self, node: Ipv6Addr) -> impl Iterator<Item = u32> {
        self.0.get(&node).into_iter().flatten().copied()
    }
}
