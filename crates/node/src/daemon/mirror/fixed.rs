//! Prefixes and next hops of the configuration, which wins over the kernel.

use srdma_dataplane::{NextHop, NodeConfig, RouteAction, SidBehavior, TableId};
use srdma_group::{Downstream, GroupEntry, Parent};
use srdma_node_spec::Entries;
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// Prefixes that the configuration claims, and its next hops.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixed {
    /// Prefixes that mean something already.
    pub(super) prefixes: BTreeSet<(TableId, Prefix)>,
    /// Neighbours whose MAC address is given: port and address.
    pub(super) neighbours: BTreeSet<(u16, Ipv6Addr)>,
    /// Next hops of routes and adjacencies: port and address.
    pub(super) next_hops: BTreeSet<(u16, Ipv6Addr)>,
    /// Addresses that the node sends to of its own accord.
    pub(super) destinations: BTreeSet<Ipv6Addr>,
    proxies: BTreeSet<Ipv6Addr>,
    /// Prefixes for Proxy Addresses of groups that are learnt, and of those to which shared hosts respond.
    not_hosts: Vec<Prefix>,
}

impl Fixed {
    /// Whether an address is no host's, for it is a Proxy Address or may become one (D2).
    pub(super) fn is_proxy(&self, address: Ipv6Addr) -> bool {
        self.proxies.contains(&address) || self.not_hosts.iter().any(|prefix| prefix.contains(address))
    }

    pub(super) fn new(node: &NodeConfig, entries: &Entries) -> Self {
        let mut fixed = Fixed::default();
        fixed.prefixes.insert((TableId(0), Prefix::host(node.loopback)));
        fixed.neighbours.extend(entries.neighbours.keys().map(|(port, address)| (port.0, *address)));
        for (key, action) in &entries.routes {
            fixed.prefixes.insert(*key);
            match action {
                RouteAction::Via(next_hops) => next_hops.iter().for_each(|next_hop| fixed.next_hop(next_hop)),
                RouteAction::Encaps { segments, .. } => fixed.destinations.extend(segments.first()),
                RouteAction::Placed(paths) => {
                    fixed.destinations.extend(paths.iter().filter_map(|path| path.path.segments.first()));
                }
                RouteAction::Policy { .. } | RouteAction::Blackhole | RouteAction::ToPeer => {}
            }
        }
        let lists = entries.policies.values().flat_map(|policy| &policy.lists);
        fixed.destinations.extend(lists.filter_map(|list| list.segments.first()));
        for (prefix, behavior) in &entries.sids {
            fixed.prefixes.insert((TableId(0), *prefix));
            if let SidBehavior::EndX(_, next_hop)
            | SidBehavior::EndDx4 { next_hop, .. }
            | SidBehavior::EndDx6 { next_hop, .. } = behavior
            {
                fixed.next_hop(next_hop);
            }
        }
        for peer in entries.bfd.keys() {
            match peer.port {
                Some(port) => fixed.next_hop(&NextHop { port, address: peer.address }),
                None => drop(fixed.destinations.insert(peer.address)),
            }
        }
        entries.groups.values().for_each(|group| fixed.group(group));
        if let Some(learning) = &entries.learning {
            fixed.not_hosts.extend(&learning.proxies);
            fixed.prefixes.extend(learning.proxies.iter().map(|proxies| (TableId(0), *proxies)));
            fixed.destinations.insert(learning.parent_sid.unwrap_or(learning.parent));
        }
        for shared in entries.shared_hosts.values() {
            fixed.not_hosts.push(shared.proxies);
            fixed.destinations.insert(shared.sid);
        }
        let sids = entries.backpressure_sids.values().flat_map(|known| [known.end_c, known.end_e]);
        fixed.destinations.extend(sids.flatten());
        fixed
    }

    fn next_hop(&mut self, next_hop: &NextHop) {
        self.next_hops.insert((next_hop.port.0, next_hop.address));
    }

    fn group(&mut self, entry: &GroupEntry) {
        self.prefixes.insert((TableId(0), Prefix::host(entry.proxy)));
        self.proxies.insert(entry.proxy);
        self.destinations.extend(entry.receivers.iter().map(|receiver| receiver.address));
        self.destinations.insert(match entry.parent {
            Parent::Source(source) => source.address,
            Parent::Node { loopback, sid } => sid.unwrap_or(loopback),
        });
        for downstream in &entry.downstream {
            match downstream {
                Downstream::Sid(sid) => {
                    self.destinations.insert(*sid);
                }
                Downstream::Multicast(_) => {}
            }
        }
        // Receivers of other edges are listed as well, but packets to them do not leave from here.
    }
}
