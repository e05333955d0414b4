//! What a node tells about itself, for those who watch it.

use super::Node;
use crate::config::SidBehavior;
use crate::counters::Traffic;
use srdma_group::{GroupId, NodePart};
use srdma_wire::Prefix;

impl Node {
    /// The SIDs, what each does, and the packets that it took.
    pub fn sids(&self) -> impl Iterator<Item = (Prefix, SidBehavior, Traffic)> {
        self.sids.iter().map(|sid| (sid.prefix, sid.behavior, sid.traffic))
    }

    /// The node's part of a group.
    pub fn group_part(&self, id: GroupId) -> Option<&NodePart> {
        self.group(id).map(|group| &group.part)
    }

    /// How many prefixes the tables hold: routes, and what is looked up like one: SIDs, Proxy Addresses, neighbours and
    /// the node's own addresses.
    pub fn prefix_count(&self) -> usize {
        self.main.len() + self.tables.values().map(|table| table.len()).sum::<usize>()
    }

    /// How many neighbours' MAC addresses are known.
    pub fn neighbour_count(&self) -> usize {
        self.adjacencies.values().filter(|adjacency| adjacency.resolved && adjacency.address[0] != 0xff).count()
    }
}
