//! What prefixes lead to, and what goes when nothing leads to it any more.
//!
//! An address may mean several things. A route, a SID or a group's Proxy Address comes first; the node's own addresses
//! are next; a neighbour of that address is last, and comes back when what stood before it has gone.

use super::Node;
use super::state::{Adjacency, Target};
use crate::config::{NextHop, TableId};
use crate::headers::IPV6;
use srdma_fib::Fib;
use srdma_wire::{EtherType, Prefix};
use std::net::Ipv6Addr;

impl Node {
    /// Lets a prefix of the main table lead to a target, whose use the caller has counted.
    pub(super) fn claim(&mut self, prefix: Prefix, target: Target) {
        if let Some(before) = self.main.insert(prefix, target) {
            self.give_up(prefix, before);
        }
    }

    /// Lets a prefix of the main table no longer lead to a target, if it does.
    pub(super) fn withdraw(&mut self, prefix: Prefix, target: Target) {
        if self.main.get(prefix) == Some(target) {
            self.main.remove(prefix);
            self.give_up(prefix, target);
            self.fall_back(prefix);
        }
    }

    /// Lets a prefix that neither route nor SID nor group has lead to the node itself or a neighbour.
    pub(super) fn fall_back(&mut self, prefix: Prefix) {
        if prefix.prefix_len() != 128 || !self.is_vacant(prefix) {
            return;
        }
        let octets = prefix.address().octets();
        if self.is_own(prefix.address()) {
            self.claim(prefix, Target::Local);
        } else if !prefix.address().is_multicast()
            && let Some(adjacency) = self.adjacencies.find(|entry| entry.resolved && entry.address == octets)
        {
            self.lead_to_neighbour(prefix, adjacency);
        }
    }

    /// Lets the address of a neighbour lead to it, unless the address means something else.
    pub(super) fn offer_host_route(&mut self, adjacency: u32) {
        let prefix = Prefix::host(self.adjacencies[adjacency as usize].address.into());
        if self.is_vacant(prefix) && !self.is_own(prefix.address()) {
            self.lead_to_neighbour(prefix, adjacency);
        }
    }

    /// Adds or replaces a route, whose use of the target the caller has counted.
    pub(super) fn insert_route(&mut self, table: TableId, prefix: Prefix, target: Target) {
        if table == TableId(0) {
            self.claim(prefix, target);
        } else if let Some(before) = self.tables.entry(table).or_default().insert(prefix, target) {
            self.release(before);
        }
    }

    /// Removes a route; returns whether there was one.
    pub(super) fn take_route(&mut self, table: TableId, prefix: Prefix) -> bool {
        if table != TableId(0) {
            let routes = self.tables.get_mut(&table);
            let removed = routes.and_then(|routes| routes.remove(prefix));
            if self.tables.get(&table).is_some_and(Fib::is_empty) {
                self.tables.remove(&table);
            }
            return removed.map(|target| self.release(target)).is_some();
        }
        match self.main.get(prefix) {
            Some(Target::Adjacency(adjacency)) if self.is_host_route(prefix, adjacency) => false,
            Some(
                target @ (Target::Adjacency(_)
                | Target::Ecmp(_)
                | Target::Encaps(_)
                | Target::Placed(_)
                | Target::Blackhole),
            ) => {
                self.withdraw(prefix, target);
                true
            }
            Some(Target::Sid(_) | Target::Group(_) | Target::Local) | None => false,
        }
    }

    /// The adjacency of a next hop, made on first use, and used once more; it cannot carry packets before its MAC
    /// address is known. The caller has checked the port.
    pub(super) fn hold_adjacency(&mut self, next_hop: NextHop) -> u32 {
        let address = next_hop.address.octets();
        let port = &self.config.ports[next_hop.port.index()];
        self.adjacencies.hold(
            |entry| entry.port == next_hop.port && entry.address == address,
            || {
                let mut ethernet = [0; IPV6];
                ethernet[6..12].copy_from_slice(&port.mac.0);
                ethernet[12..].copy_from_slice(&EtherType::IPV6.0.to_be_bytes());
                let (port, link_mtu) = (next_hop.port, port.link_mtu);
                let is_border = self.boundary.is_border(port);
                Adjacency { ethernet, port, link_mtu, resolved: false, is_border, has_host_route: false, address }
            },
        )
    }

    /// Ends one use of a target.
    pub(super) fn release(&mut self, target: Target) {
        match target {
            Target::Adjacency(adjacency) => {
                self.adjacencies.release(adjacency);
            }
            Target::Ecmp(set) => {
                if self.ecmp.release(set) {
                    let members = std::mem::take(&mut self.ecmp[set as usize].adjacencies);
                    self.release_all(&members);
                }
            }
            Target::Encaps(policy) => {
                self.encaps.release(policy);
            }
            Target::Placed(place) => self.release_placed(place),
            Target::Sid(_) | Target::Group(_) | Target::Local | Target::Blackhole => {}
        }
    }

    /// Ends one use of each of these adjacencies.
    pub(super) fn release_all(&mut self, adjacencies: &[u32]) {
        for adjacency in adjacencies {
            self.adjacencies.release(*adjacency);
        }
    }

    /// Whether an address is the node's own.
    pub(super) fn is_own(&self, address: Ipv6Addr) -> bool {
        let is_for_probes = |headend: &crate::headend::Headend| headend.config().probe_address() == address;
        address == self.config.loopback
            || self.headend.as_deref().is_some_and(is_for_probes)
            || self.config.ports.iter().any(|port| port.addresses.contains(&address))
    }

    fn lead_to_neighbour(&mut self, prefix: Prefix, adjacency: u32) {
        self.adjacencies.hold_again(adjacency);
        self.claim(prefix, Target::Adjacency(adjacency));
        self.adjacencies[adjacency as usize].has_host_route = true;
    }

    /// Whether neither route nor SID nor group nor the node itself has a prefix of the main table.
    fn is_vacant(&self, prefix: Prefix) -> bool {
        match self.main.get(prefix) {
            None => true,
            Some(Target::Adjacency(adjacency)) => self.is_host_route(prefix, adjacency),
            Some(
                Target::Ecmp(_)
                | Target::Sid(_)
                | Target::Group(_)
                | Target::Encaps(_)
                | Target::Placed(_)
                | Target::Local
                | Target::Blackhole,
            ) => false,
        }
    }

    /// Whether the address of a group may become the node's to intercept, without taking anything from what was told.
    pub(super) fn may_be_claimed(&self, address: Ipv6Addr) -> bool {
        self.is_vacant(Prefix::host(address)) && !self.is_own(address)
    }

    /// A prefix of the main table no longer leads to a target.
    fn give_up(&mut self, prefix: Prefix, target: Target) {
        if let Target::Adjacency(adjacency) = target
            && self.is_host_route(prefix, adjacency)
        {
            self.adjacencies[adjacency as usize].has_host_route = false;
        }
        self.release(target);
    }

    /// Whether a prefix leads to an adjacency because that is the neighbour of this address.
    fn is_host_route(&self, prefix: Prefix, adjacency: u32) -> bool {
        let entry = &self.adjacencies[adjacency as usize];
        entry.has_host_route && prefix == Prefix::host(entry.address.into())
    }
}
