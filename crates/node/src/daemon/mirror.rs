//! State of the kernel as commands for a node.
//!
//! Input: changes of the kernel. Output: the kernel's layer of the configuration, the commands that follow from the
//! changes, and the neighbours that the kernel is to keep resolved. No I/O, so that every sequence of changes can be
//! tested.
//!
//! * Links, addresses and MTUs set ports; keys of the configuration win.
//! * Routes of the kernel's main table go to table 0, those of other tables to the table of the same number. The
//!   configuration of a prefix wins, and is never removed.
//! * The prefix of a link has no next hop: a packet is dropped as `no_neighbour` unless its destination is a known
//!   neighbour, which has a route of its own then. A neighbour is accepted only where a route leads to its address,
//!   whatever addresses it claims.
//! * Where a route leads out of an interface that is no port, or into a tunnel of the kernel, packets are dropped as
//!   `blackhole` rather than sent by a shorter prefix; the default route is left out.
//! * A port whose link is down has no routes and no neighbours, but for routes that have backups: these stay until the
//!   kernel has another one, so that packets find the backups (D285).
//! * All of this holds for IPv4 as well, whose addresses are IPv4-mapped ones (D262).

mod fixed;
mod index;
mod links;
mod view;

use crate::configuration::InterfaceFacts;
use fixed::Fixed;
use index::Index;
pub(super) use links::PortLinks;
use srdma_dataplane::{Command, NextHop, NodeConfig, RouteAction, TableId};
use srdma_frame::PortId;
use srdma_io::netlink::{Change, RouteKind};
use srdma_node_spec::{Entries, LinkFacts};
use srdma_wire::{MacAddress, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use view::{Dirty, View};

/// Address of a next hop on the link: destinations are their own next hops.
const ON_LINK: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// A port and its configuration; the rest is the kernel's.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredPort {
    pub interface: String,
    /// Its MAC address, when the configuration gives one.
    pub mac: Option<MacAddress>,
    /// Its addresses, when the configuration gives some.
    pub addresses: Option<Vec<Ipv6Addr>>,
    /// Longest IPv6 packet of its link, if configured.
    pub link_mtu: Option<u16>,
}

/// Results of changes.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Commands for the node, in this order.
    pub commands: Vec<Command>,
    /// Neighbours that the kernel shall keep resolved from now on: interface index and address.
    pub keep: Vec<(u32, Ipv6Addr)>,
    /// Those that it need no longer.
    pub release: Vec<(u32, Ipv6Addr)>,
}

/// The kernel's view, and what follows from the layer that was made of it.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    view: View,
    ports: Vec<MirroredPort>,
    fixed: Fixed,
    index: Index,
    /// The prefixes that have backups, each with the neighbours that the backups lead around.
    backed_up: BTreeSet<(Prefix, NextHop)>,
    /// Neighbours that the kernel keeps resolved on request: interface index and address.
    kept: BTreeSet<(u32, Ipv6Addr)>,
    dirty: Dirty,
}

impl Mirror {
    /// A mirror that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a configuration: the ports in the order of their [`PortId`]s, and the entries of the layers above the
    /// kernel's. `layer` loses what these take over.
    pub fn configure(&mut self, ports: Vec<MirroredPort>, node: &NodeConfig, entries: &Entries, layer: &mut Entries) {
        self.ports = ports;
        self.fixed = Fixed::new(node, entries);
        for key in &self.fixed.prefixes {
            self.index.set_route(&mut layer.routes, *key, None);
        }
        layer.neighbours.retain(|(port, address), _| !self.fixed.neighbours.contains(&(port.0, *address)));
        self.dirty = Dirty::everything();
    }

    /// Takes the prefixes that have backups, each with the neighbours that these lead around (D266).
    pub fn set_backed_up(&mut self, backed_up: BTreeSet<(Prefix, NextHop)>) {
        let before = std::mem::replace(&mut self.backed_up, backed_up);
        let released: Vec<_> = before.difference(&self.backed_up).map(|(prefix, _)| (TableId(0), *prefix)).collect();
        self.dirty.anything |= !released.is_empty();
        self.dirty.routes.extend(released);
    }

    /// Takes a change of the kernel's.
    pub fn apply(&mut self, change: Change) {
        if let Change::Neighbour { index, address, gone: true, .. } = change {
            self.kept.remove(&(index, address));
        }
        self.view.apply(change, &mut self.dirty);
    }

    /// The interface of a port, while it is there: its index, and whether it is up.
    pub fn interface(&self, port: PortId) -> Option<(u32, bool)> {
        let port = self.ports.get(port.index())?;
        self.view.link_named(&port.interface).map(|(index, link)| (index, link.is_up))
    }

    /// Facts of the interfaces that have a MAC address.
    pub(super) fn interfaces(&self) -> BTreeMap<String, InterfaceFacts> {
        let facts = |(index, link): (&u32, &view::Link)| {
            let link_mtu = u16::try_from(link.mtu).unwrap_or(u16::MAX);
            let facts = InterfaceFacts { mac: link.mac?, addresses: self.view.addresses_of(*index), link_mtu };
            Some((link.name.clone(), facts))
        };
        self.view.links.iter().filter_map(facts).collect()
    }

    /// Brings the kernel's layer up to date; returns what has to be done since the last call.
    pub fn flush(&mut self, layer: &mut Entries) -> Effects {
        let mut effects = Effects::default();
        let dirty = std::mem::take(&mut self.dirty);
        if !dirty.anything {
            return effects;
        }
        self.set_ports(layer, &mut effects);
        let mut routes = Vec::new();
        if dirty.all_routes {
            let keys: BTreeSet<(TableId, Prefix)> =
                self.view.routes.keys().chain(layer.routes.keys()).copied().collect();
            keys.into_iter().for_each(|key| self.set_route(key, layer, &mut routes));
        } else {
            dirty.routes.into_iter().for_each(|key| self.set_route(key, layer, &mut routes));
        }
        let removed = self.set_neighbours(layer, &mut effects);
        effects.commands.extend(routes);
        effects.commands.extend(removed);
        self.keep_resolved(layer, &mut effects);
        effects
    }

    fn set_ports(&self, layer: &mut Entries, effects: &mut Effects) {
        for (number, port) in (0..).zip(&self.ports) {
            let Some((index, link)) = self.view.link_named(&port.interface) else {
                continue;
            };
            let Some(mac) = port.mac.or(link.mac) else {
                continue;
            };
            let mut addresses = port.addresses.clone().unwrap_or_else(|| self.view.addresses_of(index));
            addresses.retain(|address| !self.fixed.is_proxy(*address));
            let link_mtu = port.link_mtu.unwrap_or(u16::try_from(link.mtu).unwrap_or(u16::MAX));
            let facts = LinkFacts { mac, addresses, link_mtu };
            if layer.links.get(&PortId(number)) != Some(&facts) {
                let LinkFacts { mac, addresses, link_mtu } = facts.clone();
                effects.commands.push(Command::SetPort { port: PortId(number), mac, addresses, link_mtu });
                layer.links.insert(PortId(number), facts);
            }
        }
    }

    fn set_route(&mut self, key: (TableId, Prefix), layer: &mut Entries, commands: &mut Vec<Command>) {
        let (table, prefix) = key;
        let is_fixed = self.fixed.prefixes.contains(&key) || (table == TableId(0) && self.view.is_own(prefix));
        let action = if is_fixed { None } else { self.action(key).or_else(|| self.held(key, layer)) };
        if layer.routes.get(&key) == action.as_ref() {
            return;
        }
        commands.push(match &action {
            Some(action) => Command::AddRoute { table, prefix, action: action.clone() },
            None => Command::RemoveRoute { table, prefix },
        });
        self.index.set_route(&mut layer.routes, key, action);
    }

    /// The present route to a prefix, if it leads by a link that is down and has a backup.
    fn held(&self, key: (TableId, Prefix), layer: &Entries) -> Option<RouteAction> {
        let Some(RouteAction::Via(hops)) = layer.routes.get(&key).filter(|_| key.0 == TableId(0)) else { return None };
        let [hop] = hops.as_slice() else { return None };
        let is_down = self.interface(hop.port).is_none_or(|(_, is_up)| !is_up);
        (is_down && self.backed_up.contains(&(key.1, *hop))).then(|| RouteAction::Via(vec![*hop]))
    }

    /// Next hops of the kernel's routes to a prefix.
    fn action(&self, key: (TableId, Prefix)) -> Option<RouteAction> {
        let elsewhere = || (key.1.prefix_len() > 0).then_some(RouteAction::Blackhole);
        for route in self.view.routes.get(&key)? {
            match route.kind {
                RouteKind::Throw => return None,
                RouteKind::Blackhole | RouteKind::Unreachable | RouteKind::Prohibit => {
                    return Some(RouteAction::Blackhole);
                }
                RouteKind::Unicast if route.is_tunnelled => return elsewhere(),
                RouteKind::Unicast => {}
            }
            let ports = route.next_hops.iter().map(|hop| (hop, self.port_of(hop.index)));
            let next_hops: Vec<NextHop> = ports
                .clone()
                .filter_map(|(hop, port)| match port {
                    Some((port, true)) => Some(NextHop { port, address: hop.gateway.unwrap_or(ON_LINK) }),
                    Some((_, false)) | None => None,
                })
                .collect();
            if !next_hops.is_empty() {
                return Some(RouteAction::Via(next_hops));
            }
            if ports.clone().all(|(_, port)| port.is_none()) {
                return elsewhere();
            }
        }
        None
    }

    /// Adds and changes neighbours; returns the removals, which come behind those of the routes by way of them.
    fn set_neighbours(&self, layer: &mut Entries, effects: &mut Effects) -> Vec<Command> {
        let mut known = BTreeMap::new();
        for (&(index, address), neighbour) in &self.view.neighbours {
            let (Some(mac), Some((port, true))) = (neighbour.mac, self.port_of(index)) else {
                continue;
            };
            let is_needed = self.index.gateways.contains_key(&(port.0, address))
                || self.fixed.next_hops.contains(&(port.0, address))
                || self.on_link(layer, address) == Some(port);
            if is_needed && !self.fixed.neighbours.contains(&(port.0, address)) {
                known.insert((port, address), mac);
            }
        }
        for (key, mac) in &known {
            if layer.neighbours.get(key) != Some(mac) {
                let next_hop = NextHop { port: key.0, address: key.1 };
                effects.commands.push(Command::AddNeighbour { next_hop, mac: *mac });
            }
        }
        let gone = layer.neighbours.keys().filter(|key| !known.contains_key(key));
        let removed = gone.map(|&(port, address)| Command::RemoveNeighbour(NextHop { port, address })).collect();
        layer.neighbours = known;
        removed
    }

    /// Next hops, and the destinations of the configuration that are on a link.
    fn keep_resolved(&mut self, layer: &Entries, effects: &mut Effects) {
        let hops = self.index.gateways.keys().chain(&self.fixed.next_hops).copied();
        let on_link =
            self.fixed.destinations.iter().filter_map(|address| Some((self.on_link(layer, *address)?.0, *address)));
        let mut wanted = BTreeSet::new();
        for (port, address) in hops.chain(on_link) {
            let Some((index, true)) = self.interface(PortId(port)) else {
                continue;
            };
            let is_permanent = self.view.neighbours.get(&(index, address)).is_some_and(|known| known.is_permanent);
            if !is_permanent && !self.fixed.neighbours.contains(&(port, address)) {
                wanted.insert((index, address));
            }
        }
        effects.keep = wanted.difference(&self.kept).copied().collect();
        effects.release = self.kept.difference(&wanted).copied().collect();
        self.kept = wanted;
    }

    /// Port on whose link an address is, by the longest prefix.
    fn on_link(&self, layer: &Entries, address: Ipv6Addr) -> Option<PortId> {
        let is_ipv4 = address.to_ipv4_mapped().is_some();
        let covering = |len: &u8| Prefix::new(address, *len).filter(|prefix| prefix.is_ipv4() == is_ipv4);
        let mut prefixes = self.index.lengths(&self.fixed).filter_map(|len| covering(&len));
        let longest = prefixes.find(|prefix| {
            let key = (TableId(0), *prefix);
            layer.routes.contains_key(&key) || self.fixed.prefixes.contains(&key)
        })?;
        match layer.routes.get(&(TableId(0), longest))? {
            RouteAction::Via(next_hops) => match next_hops.as_slice() {
                [NextHop { port, address: ON_LINK }] => Some(*port),
                _ => None,
            },
            RouteAction::Encaps { .. }
            | RouteAction::Policy { .. }
            | RouteAction::Placed(_)
            | RouteAction::Blackhole
            | RouteAction::ToPeer => None,
        }
    }

    /// The port of an interface, and whether that is up.
    fn port_of(&self, index: u32) -> Option<(PortId, bool)> {
        let link = self.view.links.get(&index)?;
        let number = self.ports.iter().position(|port| port.interface == link.name)?;
        Some((PortId(number as u16), link.is_up))
    }
}

#[cfg(test)]
mod tests;
