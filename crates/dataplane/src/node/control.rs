//! Carrying out configuration commands, and resolving ahead what they determine.

use super::Node;
use super::groups::transit_group;
use super::state::{Adjacency, EcmpSet, MulticastEntry, Sid, Target};
use crate::behavior::Flavors;
use crate::config::{Command, ConfigError, MulticastRoute, NextHop, RouteAction, SidBehavior, TableId};
use crate::counters::Traffic;
use crate::encaps::Encaps;
use crate::fib::Prefix;
use crate::headers::IPV6;
use srdma_wire::{EtherType, MacAddress};

/// Outer hop limit of H.Encaps.
const ENCAPS_HOP_LIMIT: u8 = 64;

impl Node {
    /// Carries out one command. A refused command changes nothing.
    pub fn control(&mut self, command: Command) -> Result<(), ConfigError> {
        match command {
            Command::AddNeighbour { next_hop, mac } => self.add_neighbour(next_hop, mac),
            Command::AddRoute { table, prefix, action } => self.add_route(table, prefix, action),
            Command::RemoveRoute { table, prefix } => self.remove_route(table, prefix),
            Command::AddSid { prefix, behavior } => self.add_sid(prefix, behavior),
            Command::AddMulticastRoute(route) => self.add_multicast_route(&route),
            Command::AddHmacKey { key_id, key } => {
                self.hmac_keys.insert(key_id, key);
                self.rebuild_headers()
            }
            Command::AddGroup(part) => self.add_group(*part),
            Command::RemoveGroup(id) => self.remove_group(id),
        }?;
        self.generation += 1;
        Ok(())
    }

    fn add_neighbour(&mut self, next_hop: NextHop, mac: MacAddress) -> Result<(), ConfigError> {
        let adjacency = self.adjacency(next_hop)?;
        let entry = &mut self.adjacencies[adjacency as usize];
        entry.ethernet[..6].copy_from_slice(&mac.0);
        entry.resolved = true;
        self.main.insert(Prefix::host(next_hop.address), Target::Adjacency(adjacency));
        Ok(())
    }

    fn add_route(&mut self, table: TableId, prefix: Prefix, action: RouteAction) -> Result<(), ConfigError> {
        let target = match action {
            RouteAction::Blackhole => Target::Blackhole,
            RouteAction::Encaps { segments, mode } => {
                let policy = Encaps::new(self.config.loopback, &segments, mode, ENCAPS_HOP_LIMIT)
                    .map_err(|error| ConfigError::Encaps { prefix, error })?;
                Target::Encaps(place_of(&mut self.encaps, policy))
            }
            RouteAction::Via(next_hops) => {
                for next_hop in &next_hops {
                    self.check_port(next_hop.port)?;
                }
                let adjacencies: Result<Vec<u32>, ConfigError> =
                    next_hops.into_iter().map(|next_hop| self.adjacency(next_hop)).collect();
                match adjacencies?.as_slice() {
                    [] => return Err(ConfigError::NoNextHop(prefix)),
                    [adjacency] => Target::Adjacency(*adjacency),
                    several => Target::Ecmp(place_of(&mut self.ecmp, EcmpSet { adjacencies: several.to_vec() })),
                }
            }
        };
        if table == TableId(0) {
            self.main.insert(prefix, target);
        } else {
            self.tables.entry(table).or_default().insert(prefix, target);
        }
        Ok(())
    }

    fn remove_route(&mut self, table: TableId, prefix: Prefix) -> Result<(), ConfigError> {
        let removed = if table == TableId(0) {
            self.main.remove(prefix)
        } else {
            self.tables.get_mut(&table).and_then(|table| table.remove(prefix))
        };
        removed.map(|_| ()).ok_or(ConfigError::UnknownRoute(prefix))
    }

    /// The adjacency of a next hop, made on first use; it cannot be used before its MAC address is known.
    fn adjacency(&mut self, next_hop: NextHop) -> Result<u32, ConfigError> {
        self.check_port(next_hop.port)?;
        let address = next_hop.address.octets();
        let known = self.adjacencies.iter().position(|entry| entry.port == next_hop.port && entry.address == address);
        if let Some(index) = known {
            return Ok(index as u32);
        }
        let port = &self.config.ports[next_hop.port.index()];
        let mut ethernet = [0; IPV6];
        ethernet[6..12].copy_from_slice(&port.mac.0);
        ethernet[12..].copy_from_slice(&EtherType::IPV6.0.to_be_bytes());
        let link_mtu = port.link_mtu;
        self.adjacencies.push(Adjacency { ethernet, port: next_hop.port, link_mtu, resolved: false, address });
        Ok(self.adjacencies.len() as u32 - 1)
    }

    fn add_sid(&mut self, prefix: Prefix, behavior: SidBehavior) -> Result<(), ConfigError> {
        if let SidBehavior::End(flavors) | SidBehavior::EndX(flavors, _) = behavior {
            check_flavors(flavors)?;
        }
        let adjacency = match behavior {
            SidBehavior::EndX(_, next_hop) => self.adjacency(next_hop)?,
            _ => 0,
        };
        let group = match behavior {
            SidBehavior::EndReplicate(id) => transit_group(&self.groups, id),
            _ => None,
        };
        let sid = Sid { prefix, behavior, adjacency, group, traffic: Traffic::default() };
        let index = match self.sids.iter().position(|known| known.prefix == prefix) {
            Some(index) => {
                self.sids[index] = sid;
                index
            }
            None => {
                self.sids.push(sid);
                self.sids.len() - 1
            }
        };
        self.main.insert(prefix, Target::Sid(index as u32));
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
            let adjacency = self.adjacency(NextHop { port: *port, address: route.group })?;
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
        self.multicast_routes.insert((route.source.octets(), route.group.octets()), entry);
        Ok(())
    }
}

/// Where a value is in a list of different ones; it is added when it is not there.
fn place_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    let known = list.iter().position(|other| *other == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    }) as u32
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
