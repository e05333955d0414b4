//! Carrying out configuration commands, and resolving ahead what they determine.

use super::Node;
use super::groups::transit_group;
use super::state::{Adjacency, EcmpSet, MulticastEntry, Sid, Target};
use crate::behavior::Flavors;
use crate::config::{Command, ConfigError, MulticastRoute, NextHop, PortConfig, RouteAction, SidBehavior, TableId};
use crate::counters::{PortCounters, Traffic};
use crate::encaps::Encaps;
use crate::notification::NotificationConfig;
use srdma_frame::PortId;
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

/// Outer hop limit of H.Encaps.
const ENCAPS_HOP_LIMIT: u8 = 64;

impl Node {
    /// Carries out one command. A refused command changes nothing.
    pub fn control(&mut self, command: Command) -> Result<(), ConfigError> {
        match command {
            Command::AddPort(port) => self.add_port(port),
            Command::SetPort { port, mac, addresses, link_mtu } => self.set_port(port, mac, addresses, link_mtu),
            Command::AddNeighbour { next_hop, mac } => self.add_neighbour(next_hop, mac),
            Command::RemoveNeighbour(next_hop) => self.remove_neighbour(next_hop),
            Command::AddRoute { table, prefix, action } => self.add_route(table, prefix, action),
            Command::RemoveRoute { table, prefix } => self.remove_route(table, prefix),
            Command::AddSid { prefix, behavior } => self.add_sid(prefix, behavior),
            Command::RemoveSid(prefix) => self.remove_sid(prefix),
            Command::AddMulticastRoute(route) => self.add_multicast_route(&route),
            Command::RemoveMulticastRoute { source, group } => self.remove_multicast_route(source, group),
            Command::AddHmacKey { key_id, key } => {
                self.encaps.values_mut().for_each(|policy| policy.sign(key_id, &key));
                self.hmac_keys.insert(key_id, key);
                self.rebuild_headers()
            }
            Command::RemoveHmacKey(key_id) => self.remove_hmac_key(key_id),
            Command::SetDomain(domain) => self.set_domain(domain),
            Command::RemoveDomain => self.remove_domain(),
            Command::SetBorder { port, sources } => self.set_border(port, &sources),
            Command::RemoveBorder(port) => self.remove_border(port),
            Command::SetEgress { port, egress } => self.set_egress(port, *egress),
            Command::RemoveEgress(port) => self.remove_egress(port),
            Command::SetClasses(classes) => {
                self.classes = classes;
                Ok(())
            }
            Command::SetIoam(config) => self.set_ioam(*config),
            Command::RemoveIoam => {
                self.ioam = None;
                Ok(())
            }
            Command::SetFastCnp(config) => self.set_fast_cnp(*config),
            Command::RemoveFastCnp => self.remove_fast_cnp(),
            Command::SetNotifications(config) => self.set_notifications(*config),
            Command::RemoveNotifications => {
                self.remove_notifications();
                Ok(())
            }
            Command::SetNotificationSids(sids) => self.set_notification_sids(&sids),
            Command::SetSteering(config) => self.set_steering(*config),
            Command::RemoveSteering => self.remove_steering(),
            Command::AddConnection(connection) => self.add_connection(connection),
            Command::RemoveConnection { host, peer, peer_qpn } => self.remove_connection(host, peer, peer_qpn),
            Command::AddGroup(entry) => self.add_group(*entry, self.config.restarted),
            Command::RestoreGroup(entry) => self.add_group(*entry, true),
            Command::PrepareGroup(entry) => self.prepare_group(*entry),
            Command::CommitGroup { id, epoch } => self.commit_group(id, epoch),
            Command::AbortGroup(id) => {
                self.prepared.remove(&id);
                Ok(())
            }
            Command::RemoveGroup(id) => self.remove_group(id),
            Command::SetLearning(learning) => self.set_learning(learning),
            Command::RemoveLearning => {
                self.remove_learning();
                Ok(())
            }
        }?;
        self.generation += 1;
        Ok(())
    }

    fn add_port(&mut self, port: PortConfig) -> Result<(), ConfigError> {
        self.check_not_proxies(&port.addresses)?;
        self.egress.add_port(port.queue_limit_octets);
        self.port_counters.push(PortCounters::default());
        let addresses = port.addresses.clone();
        self.macs.push(port.mac);
        self.config.ports.push(port);
        addresses.into_iter().for_each(|address| self.fall_back(Prefix::host(address)));
        Ok(())
    }

    fn set_port(
        &mut self,
        port: PortId,
        mac: MacAddress,
        addresses: Vec<Ipv6Addr>,
        link_mtu: u16,
    ) -> Result<(), ConfigError> {
        self.check_port(port)?;
        self.check_not_proxies(&addresses)?;
        let config = &mut self.config.ports[port.index()];
        config.mac = mac;
        self.macs[port.index()] = mac;
        config.link_mtu = link_mtu;
        let before = std::mem::replace(&mut config.addresses, addresses.clone());
        for adjacency in self.adjacencies.values_mut().filter(|adjacency| adjacency.port == port) {
            adjacency.ethernet[6..12].copy_from_slice(&mac.0);
            adjacency.link_mtu = link_mtu;
        }
        for address in before {
            if !self.is_own(address) {
                self.withdraw(Prefix::host(address), Target::Local);
            }
        }
        addresses.into_iter().for_each(|address| self.fall_back(Prefix::host(address)));
        Ok(())
    }

    /// A Proxy Address is nobody's own address (D2).
    fn check_not_proxies(&self, addresses: &[Ipv6Addr]) -> Result<(), ConfigError> {
        self.check_not_learnt(addresses)?;
        match self.groups.iter().flatten().find(|group| addresses.contains(&group.entry.proxy)) {
            Some(group) => Err(ConfigError::ProxyIsOwn { proxy: group.entry.proxy, group: group.entry.id.0 }),
            None => Ok(()),
        }
    }

    fn add_neighbour(&mut self, next_hop: NextHop, mac: MacAddress) -> Result<(), ConfigError> {
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

    fn remove_neighbour(&mut self, next_hop: NextHop) -> Result<(), ConfigError> {
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

    fn add_route(&mut self, table: TableId, prefix: Prefix, action: RouteAction) -> Result<(), ConfigError> {
        let target = match action {
            RouteAction::Blackhole => Target::Blackhole,
            RouteAction::Encaps { segments, mode, hmac_key_id } => {
                let hmac = match hmac_key_id {
                    None => None,
                    Some(key_id) => {
                        let key = self.hmac_keys.get(key_id).ok_or(ConfigError::UnknownEncapsKey { prefix, key_id })?;
                        Some((key_id, key))
                    }
                };
                let policy = Encaps::signed(self.config.loopback, &segments, mode, ENCAPS_HOP_LIMIT, hmac)
                    .map_err(|error| ConfigError::Encaps { prefix, error })?;
                Target::Encaps(self.encaps.hold(|known| *known == policy, || policy.clone()))
            }
            RouteAction::Placed(paths) => self.hold_placed(table, prefix, paths)?,
            RouteAction::Via(next_hops) => {
                next_hops.iter().try_for_each(|next_hop| self.check_port(next_hop.port))?;
                match next_hops.as_slice() {
                    [] => return Err(ConfigError::NoNextHop(prefix)),
                    [next_hop] => Target::Adjacency(self.hold_adjacency(*next_hop)),
                    several => Target::Ecmp(self.hold_ecmp(several)),
                }
            }
        };
        self.insert_route(table, prefix, target);
        Ok(())
    }

    /// The set of equal-cost next hops, made on first use, and used once more.
    fn hold_ecmp(&mut self, next_hops: &[NextHop]) -> u32 {
        let adjacencies: Vec<u32> = next_hops.iter().map(|next_hop| self.hold_adjacency(*next_hop)).collect();
        let set = EcmpSet { adjacencies };
        let Some(known) = self.ecmp.find(|known| *known == set) else {
            return self.ecmp.hold(|_| false, || set);
        };
        self.release_all(&set.adjacencies);
        self.ecmp.hold_again(known);
        known
    }

    fn remove_route(&mut self, table: TableId, prefix: Prefix) -> Result<(), ConfigError> {
        if self.take_route(table, prefix) { Ok(()) } else { Err(ConfigError::UnknownRoute(prefix)) }
    }

    fn add_sid(&mut self, prefix: Prefix, behavior: SidBehavior) -> Result<(), ConfigError> {
        self.check_sid_in_domain(prefix)?;
        if let SidBehavior::End(flavors) | SidBehavior::EndX(flavors, _) = behavior {
            check_flavors(flavors)?;
        }
        if let SidBehavior::EndX(_, next_hop) = behavior {
            self.check_port(next_hop.port)?;
        }
        let adjacency = match behavior {
            SidBehavior::EndX(_, next_hop) => Some(self.hold_adjacency(next_hop)),
            _ => None,
        };
        let group = match behavior {
            SidBehavior::EndReplicate(id) => transit_group(&self.groups, id),
            _ => None,
        };
        let sid = Sid { prefix, behavior, adjacency, group, traffic: Traffic::default() };
        let index = match self.sids.iter().position(|known| known.prefix == prefix) {
            Some(index) => {
                let before = std::mem::replace(&mut self.sids[index], sid);
                self.release_all(before.adjacency.as_slice());
                index
            }
            None => {
                self.sids.push(sid);
                self.sids.len() - 1
            }
        };
        if matches!(behavior, SidBehavior::EndE(_)) && self.end_e_origins.is_none() {
            self.limit_end_e(&NotificationConfig::default());
        }
        self.claim(prefix, Target::Sid(index as u32));
        Ok(())
    }

    fn remove_sid(&mut self, prefix: Prefix) -> Result<(), ConfigError> {
        let index = self.sids.iter().position(|known| known.prefix == prefix).ok_or(ConfigError::UnknownSid(prefix))?;
        let sid = self.sids.remove(index);
        self.release_all(sid.adjacency.as_slice());
        self.withdraw(prefix, Target::Sid(index as u32));
        // Those behind it have moved up. Each is still where its prefix leads, unless a route has taken it.
        for (index, sid) in self.sids.iter().enumerate().skip(index) {
            if self.main.get(sid.prefix) == Some(Target::Sid(index as u32 + 1)) {
                self.main.insert(sid.prefix, Target::Sid(index as u32));
            }
        }
        Ok(())
    }

    fn add_multicast_route(&mut self, route: &MulticastRoute) -> Result<(), ConfigError> {
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

    fn remove_multicast_route(&mut self, source: Ipv6Addr, group: Ipv6Addr) -> Result<(), ConfigError> {
        let removed = self.multicast_routes.remove(&(source.octets(), group.octets()));
        let removed = removed.ok_or(ConfigError::UnknownMulticastRoute { source_address: source, group })?;
        self.release_all(&removed.adjacencies);
        Ok(())
    }

    fn remove_hmac_key(&mut self, key_id: u32) -> Result<(), ConfigError> {
        let signs =
            |entry: &srdma_group::GroupEntry| entry.headend.is_some() && entry.policy.hmac_key_id == Some(key_id);
        if let Some(group) = self.groups.iter().flatten().find(|group| signs(&group.entry)) {
            return Err(ConfigError::KeyInUse { key_id, group: group.entry.id.0 });
        }
        if self.encaps.find(|policy| policy.key_id() == Some(key_id)).is_some() {
            return Err(ConfigError::KeySignsRoutes(key_id));
        }
        if self.hmac_keys.remove(key_id) { Ok(()) } else { Err(ConfigError::UnknownHmacKey(key_id)) }
    }
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
