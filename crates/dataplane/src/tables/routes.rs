//! Commands that change the tables.

use super::{Adjacency, EcmpSet, MulticastEntry, Sid, Tables, Target};
use crate::behavior::Flavors;
use crate::config::{ConfigError, MulticastRoute, NextHop, SidBehavior, TableId};
use crate::counters::Traffic;
use crate::encaps::Encaps;
use crate::security::HmacKey;
use srdma_fib::Fib;
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

/// The place of placed paths of which one use has ended: the headend is to release them.
pub(crate) type Unused = Option<u32>;

impl Tables {
    pub(crate) fn add_neighbour(&mut self, next_hop: NextHop, mac: MacAddress) -> Result<(), ConfigError> {
        self.check_port(next_hop.port)?;
        let adjacency = self.hold_adjacency(next_hop);
        let entry = &mut self.adjacencies[adjacency as usize];
        entry.ethernet[..6].copy_from_slice(&mac.0);
        if std::mem::replace(&mut entry.resolved, true) {
            self.adjacencies.release(adjacency);
        }
        self.offer_host_route(adjacency);
        Ok(())
    }

    pub(crate) fn remove_neighbour(&mut self, next_hop: NextHop) -> Result<(), ConfigError> {
        let NextHop { port, address } = next_hop;
        let octets = address.octets();
        let is_it = |entry: &Adjacency| {
            entry.port == port && entry.address == octets && entry.resolved && !address.is_multicast()
        };
        let adjacency = self.adjacencies.find(is_it).ok_or(ConfigError::UnknownNeighbour { address, port: port.0 })?;
        let entry = &mut self.adjacencies[adjacency as usize];
        entry.resolved = false;
        if entry.has_host_route {
            self.withdraw(Prefix::host(address), Target::Adjacency(adjacency));
        }
        self.adjacencies.release(adjacency);
        Ok(())
    }

    /// The target of a route by way of next hops.
    pub(crate) fn hold_next_hops(&mut self, prefix: Prefix, next_hops: &[NextHop]) -> Result<Target, ConfigError> {
        next_hops.iter().try_for_each(|next_hop| {
            check_version(next_hop, prefix.is_ipv4())?;
            self.check_port(next_hop.port)
        })?;
        match next_hops {
            [] => Err(ConfigError::NoNextHop(prefix)),
            [next_hop] => Ok(Target::Adjacency(self.hold_adjacency(*next_hop))),
            several => Ok(Target::Ecmp(self.hold_ecmp(several))),
        }
    }

    /// The adjacency of a neighbour that the node itself sends to, used once more.
    pub(crate) fn hold_neighbour(&mut self, next_hop: NextHop) -> Result<u32, ConfigError> {
        self.check_port(next_hop.port)?;
        Ok(self.hold_adjacency(next_hop))
    }

    /// Ends a use by the node itself.
    pub(crate) fn release_neighbour(&mut self, adjacency: Option<u32>) {
        self.release_all(adjacency.as_slice());
    }

    /// Avoids a neighbour that BFD has lost, where there are equal paths by others or backups, or no longer. That of a
    /// link that is down is avoided in any case.
    pub(crate) fn avoid(&mut self, adjacency: u32, is_lost: bool) {
        let entry = &mut self.adjacencies[adjacency as usize];
        entry.is_lost = is_lost;
        entry.is_avoided = is_lost || self.links[entry.port.index()].is_down;
        self.divide_equal_paths();
    }

    /// Divides all equal paths into those by neighbours that are avoided and others.
    pub(super) fn divide_equal_paths(&mut self) {
        let Tables { adjacencies, ecmp, .. } = self;
        for set in ecmp.values_in_use_mut() {
            set.divide(|adjacency| adjacencies[adjacency as usize].is_avoided);
        }
        // Groups have resolved the paths of their copies.
        self.invalidate();
    }

    /// The target of a route that encapsulates.
    pub(crate) fn hold_encaps(&mut self, policy: Encaps) -> Target {
        Target::Encaps(self.encaps.hold(|known| *known == policy, || policy.clone()))
    }

    /// The set of equal-cost next hops, created on first use, and used once more.
    fn hold_ecmp(&mut self, next_hops: &[NextHop]) -> u32 {
        let adjacencies: Vec<u32> = next_hops.iter().map(|next_hop| self.hold_adjacency(*next_hop)).collect();
        let mut set = EcmpSet { adjacencies, usable: Vec::new() };
        set.divide(|adjacency| self.adjacencies[adjacency as usize].is_avoided);
        let Some(known) = self.ecmp.find(|known| known.adjacencies == set.adjacencies) else {
            return self.ecmp.hold(|_| false, || set);
        };
        self.release_all(&set.adjacencies);
        self.ecmp.hold_again(known);
        known
    }

    /// Adds or replaces a route, whose use of the target the caller has counted.
    pub(crate) fn insert_route(&mut self, table: TableId, prefix: Prefix, target: Target) -> Unused {
        if table == TableId(0) {
            return self.claim(prefix, target);
        }
        let before = self.others_of_mut(prefix).entry(table).or_default().insert(prefix, target)?;
        self.release(before)
    }

    pub(crate) fn remove_route(&mut self, table: TableId, prefix: Prefix) -> Result<Unused, ConfigError> {
        let unknown = Err(ConfigError::UnknownRoute(prefix));
        if table != TableId(0) {
            let others = self.others_of_mut(prefix);
            let removed = others.get_mut(&table).and_then(|routes| routes.remove(prefix));
            if others.get(&table).is_some_and(Fib::is_empty) {
                others.remove(&table);
            }
            return removed.map_or(unknown, |target| Ok(self.release(target)));
        }
        match self.main_of(prefix).get(prefix) {
            Some(Target::Adjacency(adjacency)) if self.is_host_route(prefix, adjacency) => unknown,
            Some(
                target @ (Target::Adjacency(_)
                | Target::Ecmp(_)
                | Target::Encaps(_)
                | Target::Policy(_)
                | Target::Placed(_)
                | Target::Blackhole
                | Target::ToPeer),
            ) => Ok(self.withdraw(prefix, target)),
            Some(Target::Sid(_) | Target::Group(_) | Target::Local) | None => unknown,
        }
    }

    /// Adds or replaces a SID. `group` is that of End.Replicate, `policy` that of End.B6.Encaps, whose use the caller
    /// has counted.
    pub(crate) fn add_sid(
        &mut self,
        prefix: Prefix,
        behavior: SidBehavior,
        group: Option<u32>,
        policy: Option<u32>,
    ) -> Result<Unused, ConfigError> {
        if let SidBehavior::End(flavors) | SidBehavior::EndX(flavors, _) = behavior {
            check_flavors(flavors)?;
        }
        if let SidBehavior::EndDx2(port) = behavior {
            self.check_port(port)?;
        }
        if prefix.is_ipv4() {
            return Err(ConfigError::Ipv4Sid(prefix));
        }
        let adjacency = match behavior {
            SidBehavior::EndX(_, next_hop) | SidBehavior::EndDx6 { next_hop, .. } => {
                check_version(&next_hop, false)?;
                Some(self.hold_neighbour(next_hop)?)
            }
            SidBehavior::EndDx4 { next_hop, .. } => {
                check_version(&next_hop, true)?;
                Some(self.hold_neighbour(next_hop)?)
            }
            _ => None,
        };
        let sid = Sid { prefix, behavior, adjacency, policy, group, traffic: Traffic::default() };
        let index = match self.sids.iter().position(|known| known.prefix == prefix) {
            Some(index) => {
                let before = std::mem::replace(&mut self.sids[index], sid);
                self.release_uses(&before);
                index
            }
            None => {
                self.sids.push(sid);
                self.sids.len() - 1
            }
        };
        Ok(self.claim(prefix, Target::Sid(index as u32)))
    }

    pub(crate) fn remove_sid(&mut self, prefix: Prefix) -> Result<(), ConfigError> {
        let index = self.sids.iter().position(|known| known.prefix == prefix).ok_or(ConfigError::UnknownSid(prefix))?;
        let sid = self.sids.remove(index);
        self.release_uses(&sid);
        self.withdraw(prefix, Target::Sid(index as u32));
        // Those behind it have moved up. Each is still where its prefix leads, unless a route has taken it.
        for (index, sid) in self.sids.iter().enumerate().skip(index) {
            if self.main.get(sid.prefix) == Some(Target::Sid(index as u32 + 1)) {
                self.main.insert(sid.prefix, Target::Sid(index as u32));
            }
        }
        Ok(())
    }

    /// Ends what a SID uses.
    fn release_uses(&mut self, sid: &Sid) {
        self.release_all(sid.adjacency.as_slice());
        if let Some(policy) = sid.policy {
            self.release_policy(policy);
        }
    }

    pub(crate) fn add_multicast_route(&mut self, route: &MulticastRoute) -> Result<(), ConfigError> {
        if !route.group.is_multicast() {
            return Err(ConfigError::NotMulticast(route.group));
        }
        for port in route.outgoing.iter().chain(&route.incoming) {
            self.check_port(*port)?;
        }
        let mut adjacencies = Vec::new();
        for port in &route.outgoing {
            let adjacency = self.hold_adjacency(NextHop { port: *port, address: route.group });
            let entry = &mut self.adjacencies[adjacency as usize];
            entry.ethernet[..6].copy_from_slice(&MacAddress::of_multicast_group(route.group).0);
            entry.resolved = true;
            adjacencies.push(adjacency);
        }
        let entry = MulticastEntry {
            incoming: route.incoming,
            adjacencies,
            end_mt: route.end_mt,
            require_hmac: route.require_hmac,
        };
        if let Some(before) = self.multicast_routes.insert((route.source.octets(), route.group.octets()), entry) {
            self.release_all(&before.adjacencies);
        }
        Ok(())
    }

    pub(crate) fn remove_multicast_route(&mut self, source: Ipv6Addr, group: Ipv6Addr) -> Result<(), ConfigError> {
        let removed = self.multicast_routes.remove(&(source.octets(), group.octets()));
        let removed = removed.ok_or(ConfigError::UnknownMulticastRoute { source_address: source, group })?;
        self.release_all(&removed.adjacencies);
        Ok(())
    }

    /// Signs the routes and SR policies of a key again.
    pub(crate) fn sign_routes(&mut self, key_id: u32, key: &HmacKey) {
        self.encaps.values_mut().for_each(|policy| policy.sign(key_id, key));
        self.sign_policies(key_id, key);
    }

    pub(crate) fn signs_routes(&self, key_id: u32) -> bool {
        self.encaps.find(|policy| policy.key_id() == Some(key_id)).is_some() || self.signs_policies(key_id)
    }
}

/// That a next hop is one of IPv4, or of IPv6. The address for all that is on a link is that of either.
fn check_version(next_hop: &NextHop, is_ipv4: bool) -> Result<(), ConfigError> {
    let NextHop { address, .. } = next_hop;
    let is_same = address.is_unspecified() || address.to_ipv4_mapped().is_some() == is_ipv4;
    if is_same { Ok(()) } else { Err(ConfigError::OtherVersion(*address)) }
}

fn check_flavors(flavors: Flavors) -> Result<(), ConfigError> {
    match flavors.next_csid {
        Some(csid)
            if csid.block_bits == 0
                || csid.csid_bits == 0
                || u16::from(csid.block_bits) + u16::from(csid.csid_bits) > 128 =>
        {
            Err(ConfigError::BadCsid { block_bits: csid.block_bits, csid_bits: csid.csid_bits })
        }
        _ => Ok(()),
    }
}
