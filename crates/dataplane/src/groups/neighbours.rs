//! The nodes of trees that a node sends to: the parents of its groups, and the nodes below it (D244).

use super::Groups;
use srdma_group::{Downstream, GroupEntry, GroupId, Parent};
use std::net::Ipv6Addr;

/// The addresses by which packets to other nodes of a group's tree are forwarded.
pub(crate) fn tree_nodes(entry: &GroupEntry) -> impl Iterator<Item = Ipv6Addr> {
    let parent = match entry.parent {
        Parent::Source(_) => None,
        Parent::Node { loopback, sid } => Some(sid.unwrap_or(loopback)),
    };
    let below = entry.downstream.iter().filter_map(|copy| match copy {
        Downstream::Sid(sid) => Some(*sid),
        Downstream::Multicast(_) => None,
    });
    parent.into_iter().chain(below)
}

impl Groups {
    /// The same of all groups, those included that are prepared.
    pub(crate) fn tree_nodes(&self) -> impl Iterator<Item = (GroupId, Ipv6Addr)> {
        let entries = self.entries().chain(self.prepared.values());
        entries.flat_map(|entry| tree_nodes(entry).map(|address| (entry.id, address)))
    }

    /// The node upstream of groups that are learnt.
    pub(crate) fn learnt_parent(&self) -> Option<Ipv6Addr> {
        self.learner.as_ref().map(|learner| learner.settings.parent_sid.unwrap_or(learner.settings.parent))
    }
}
