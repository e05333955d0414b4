//! Precedence among the entries for one address, and use counts of what the tables lead to.
//!
//! An address may mean several things. A route, a SID or a group's Proxy Address comes first; the node's own addresses
//! are next; a neighbour of that address is last, and comes back when what preceded it is removed.

use super::routes::Unused;
use super::{Adjacency, Tables, Target};
use crate::config::NextHop;
use crate::headers::IPV6;
use srdma_wire::{EtherType, Prefix};
use std::net::Ipv6Addr;

impl Tables {
    /// Lets a prefix of the main table lead to a target, whose use the caller has counted.
    pub(crate) fn claim(&mut self, prefix: Prefix, target: Target) -> Unused {
        let before = self.main_of_mut(prefix).insert(prefix, target)?;
        self.replaced(prefix, before)
    }

    /// Lets a prefix of the main table no longer lead to a target, if it does.
    pub(crate) fn withdraw(&mut self, prefix: Prefix, target: Target) -> Unused {
        if self.main_of(prefix).get(prefix) != Some(target) {
            return None;
        }
        self.main_of_mut(prefix).remove(prefix);
        let unused = self.replaced(prefix, target);
        self.fall_back(prefix);
        unused
    }

    /// Lets a Proxy Address lead to its group: one of IPv4 in the tables of both versions, since nodes send its packets
    /// to each other in IPv6 (D272).
    pub(crate) fn claim_proxy(&mut self, proxy: Ipv6Addr, group: u32) -> Unused {
        let prefix = Prefix::host(proxy);
        if prefix.is_ipv4() {
            // Nothing else of IPv4 is in the table of IPv6.
            self.main.insert(prefix, Target::Group(group));
        }
        self.claim(prefix, Target::Group(group))
    }

    /// Lets a Proxy Address no longer lead to its group, if it does.
    pub(crate) fn withdraw_proxy(&mut self, proxy: Ipv6Addr, group: u32) {
        let prefix = Prefix::host(proxy);
        if prefix.is_ipv4() && self.main.get(prefix) == Some(Target::Group(group)) {
            self.main.remove(prefix);
        }
        self.withdraw(prefix, Target::Group(group));
    }

    /// Adds an address of the node itself.
    pub(crate) fn add_own(&mut self, address: Ipv6Addr) {
        *self.own.entry(address).or_default() += 1;
        self.fall_back(Prefix::host(address));
    }

    /// Removes an address that was [added](Self::add_own) as often as it is removed.
    pub(crate) fn remove_own(&mut self, address: Ipv6Addr) {
        if let Some(uses) = self.own.get_mut(&address) {
            *uses -= 1;
            if *uses == 0 {
                self.own.remove(&address);
                self.withdraw(Prefix::host(address), Target::Local);
            }
        }
    }

    pub(crate) fn is_own(&self, address: Ipv6Addr) -> bool {
        self.own.contains_key(&address)
    }

    /// Lets a prefix without route, SID or group lead to the node itself or a neighbour. Nothing else leads there, so
    /// that no use of placed paths ends.
    fn fall_back(&mut self, prefix: Prefix) {
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

    /// The adjacency of a next hop, created on first use, and used once more; it cannot carry packets before its MAC
    /// address is known. The caller has checked the port.
    pub(super) fn hold_adjacency(&mut self, next_hop: NextHop) -> u32 {
        let address = next_hop.address.octets();
        let link = self.links[next_hop.port.index()];
        self.adjacencies.hold(
            |entry| entry.port == next_hop.port && entry.address == address,
            || {
                let mut ethernet = [0; IPV6];
                ethernet[6..12].copy_from_slice(&link.mac.0);
                let is_ipv4 = next_hop.address.to_ipv4_mapped().is_some();
                let ethertype = if is_ipv4 { EtherType::IPV4 } else { EtherType::IPV6 };
                ethernet[12..].copy_from_slice(&ethertype.0.to_be_bytes());
                Adjacency {
                    ethernet,
                    port: next_hop.port,
                    link_mtu: link.link_mtu,
                    resolved: false,
                    is_border: link.is_border,
                    has_host_route: false,
                    is_lost: false,
                    is_avoided: link.is_down,
                    address,
                }
            },
        )
    }

    /// Ends one use of a target.
    pub(super) fn release(&mut self, target: Target) -> Unused {
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
            Target::Policy(policy) => self.release_policy(policy),
            Target::Placed(place) => return Some(place),
            Target::Sid(_) | Target::Group(_) | Target::Local | Target::Blackhole | Target::ToPeer => {}
        }
        None
    }

    /// Ends one use of each of these adjacencies.
    pub(super) fn release_all(&mut self, adjacencies: &[u32]) {
        for adjacency in adjacencies {
            self.adjacencies.release(*adjacency);
        }
    }

    fn lead_to_neighbour(&mut self, prefix: Prefix, adjacency: u32) {
        self.adjacencies.hold_again(adjacency);
        self.claim(prefix, Target::Adjacency(adjacency));
        self.adjacencies[adjacency as usize].has_host_route = true;
    }

    /// Whether neither route nor SID nor group nor the node itself has a prefix of the main table.
    fn is_vacant(&self, prefix: Prefix) -> bool {
        match self.main_of(prefix).get(prefix) {
            None => true,
            Some(Target::Adjacency(adjacency)) => self.is_host_route(prefix, adjacency),
            Some(
                Target::Ecmp(_)
                | Target::Sid(_)
                | Target::Group(_)
                | Target::Encaps(_)
                | Target::Policy(_)
                | Target::Placed(_)
                | Target::Local
                | Target::Blackhole
                | Target::ToPeer,
            ) => false,
        }
    }

    /// Whether an address may become a Proxy Address without taking it from anything that was configured.
    pub(crate) fn may_be_claimed(&self, address: Ipv6Addr) -> bool {
        self.is_vacant(Prefix::host(address)) && !self.is_own(address)
    }

    /// A prefix of the main table no longer leads to a target.
    fn replaced(&mut self, prefix: Prefix, target: Target) -> Unused {
        if let Target::Adjacency(adjacency) = target
            && self.is_host_route(prefix, adjacency)
        {
            self.adjacencies[adjacency as usize].has_host_route = false;
        }
        self.release(target)
    }

    /// Whether a prefix leads to an adjacency because that is the neighbour of this address.
    pub(super) fn is_host_route(&self, prefix: Prefix, adjacency: u32) -> bool {
        let entry = &self.adjacencies[adjacency as usize];
        entry.has_host_route && prefix == Prefix::host(entry.address.into())
    }
}
