//! State of the kernel, from its messages.

use srdma_dataplane::TableId;
use srdma_io::netlink::{Change, KernelNextHop, KernelRoute, MAIN_TABLE, PROTOCOL, RouteKind};
use srdma_wire::{MacAddress, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Parts to look at again.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    pub(super) anything: bool,
    pub(super) all_routes: bool,
    pub(super) routes: BTreeSet<(TableId, Prefix)>,
}

impl Dirty {
    pub(super) fn everything() -> Self {
        Dirty { anything: true, all_routes: true, routes: BTreeSet::new() }
    }
}

/// State of the kernel. A number shows which entries a dump has not repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    dump: u64,
    pub(super) links: BTreeMap<u32, Link>,
    addresses: BTreeMap<(u32, Ipv6Addr), u64>,
    pub(super) neighbours: BTreeMap<(u32, Ipv6Addr), Neighbour>,
    /// The routes to each prefix, the least metric first.
    pub(super) routes: BTreeMap<(TableId, Prefix), Vec<Route>>,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) mac: Option<MacAddress>,
    pub(super) mtu: u32,
    pub(super) is_up: bool,
    dump: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub(super) mac: Option<MacAddress>,
    pub(super) is_permanent: bool,
    dump: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Route {
    metric: u32,
    pub(super) kind: RouteKind,
    pub(super) is_tunnelled: bool,
    pub(super) next_hops: Vec<KernelNextHop>,
    dump: u64,
}

impl Route {
    /// The kernel joins routes through gateways to one with several next hops; routes to links stay apart.
    fn is_on_link(&self) -> bool {
        self.next_hops.iter().all(|hop| hop.gateway.is_none())
    }
}

impl View {
    pub(super) fn apply(&mut self, change: Change, dirty: &mut Dirty) {
        let dump = self.dump;
        match change {
            Change::DumpBegins => self.dump += 1,
            Change::DumpEnds => {
                self.links.retain(|_, link| link.dump == dump);
                self.addresses.retain(|_, of| *of == dump);
                self.neighbours.retain(|_, neighbour| neighbour.dump == dump);
                self.routes.values_mut().for_each(|routes| routes.retain(|route| route.dump == dump));
                self.routes.retain(|_, routes| !routes.is_empty());
                *dirty = Dirty::everything();
            }
            Change::Link { index, name, mac, mtu, is_up } => {
                self.links.insert(index, Link { name, mac, mtu, is_up, dump });
                *dirty = Dirty::everything();
            }
            Change::LinkGone { index } => {
                self.links.remove(&index);
                self.addresses.retain(|(of, _), _| *of != index);
                self.neighbours.retain(|(of, _), _| *of != index);
                *dirty = Dirty::everything();
            }
            Change::Address { index, address, gone } => {
                if gone {
                    self.addresses.remove(&(index, address));
                } else {
                    self.addresses.insert((index, address), dump);
                }
                dirty.anything = true;
                dirty.routes.insert((TableId(0), Prefix::host(address)));
            }
            Change::Neighbour { index, address, gone, mac, is_permanent } => {
                let before = if gone {
                    self.neighbours.remove(&(index, address))
                } else {
                    self.neighbours.insert((index, address), Neighbour { mac, is_permanent, dump })
                };
                let before = before.map(|neighbour| (neighbour.mac, neighbour.is_permanent));
                dirty.anything |= gone || before != Some((mac, is_permanent));
            }
            Change::Route(route) => self.route(route, dirty),
        }
    }

    /// The interface of this name.
    pub(super) fn link_named(&self, name: &str) -> Option<(u32, &Link)> {
        self.links.iter().find(|(_, link)| link.name == name).map(|(index, link)| (*index, link))
    }

    /// The addresses of an interface.
    pub(super) fn addresses_of(&self, index: u32) -> Vec<Ipv6Addr> {
        let range = (index, Ipv6Addr::UNSPECIFIED)..=(index, Ipv6Addr::from(u128::MAX));
        self.addresses.range(range).map(|((_, address), _)| *address).collect()
    }

    /// Whether a prefix is an address of the kernel's.
    pub(super) fn is_own(&self, prefix: Prefix) -> bool {
        prefix.prefix_len() == 128 && self.addresses.keys().any(|(_, address)| *address == prefix.address())
    }

    fn route(&mut self, route: KernelRoute, dirty: &mut Dirty) {
        // Link-local destinations are never forwarded (RFC 4291 section 2.5.6), nor are the multicast routes of an
        // interface routes for multicast packets.
        let first = route.prefix.address().segments()[0];
        let is_local = route.prefix.prefix_len() >= 8 && (first & 0xFFC0 == 0xFE80 || first >> 8 == 0xFF);
        let table = match route.table {
            MAIN_TABLE => Some(TableId(0)),
            table => u16::try_from(table).ok().map(TableId),
        };
        let Some(table) = table.filter(|_| !is_local && route.protocol != PROTOCOL) else {
            return;
        };
        let key = (table, route.prefix);
        let routes = self.routes.entry(key).or_default();
        if route.gone {
            remove(routes, &route);
        } else {
            insert(routes, route, self.dump);
        }
        if routes.is_empty() {
            self.routes.remove(&key);
        }
        dirty.anything = true;
        dirty.routes.insert(key);
    }
}

fn remove(routes: &mut Vec<Route>, gone: &KernelRoute) {
    let is_it = |route: &&mut Route| {
        route.metric == gone.metric
            && route.kind == gone.kind
            && (gone.next_hops.is_empty() || gone.next_hops.iter().any(|hop| route.next_hops.contains(hop)))
    };
    if let Some(route) = routes.iter_mut().find(is_it) {
        route.next_hops.retain(|hop| !gone.next_hops.is_empty() && !gone.next_hops.contains(hop));
    }
    routes.retain(|route| !route.next_hops.is_empty());
}

fn insert(routes: &mut Vec<Route>, new: KernelRoute, dump: u64) {
    let KernelRoute { metric, kind, is_tunnelled, next_hops, replaces, .. } = new;
    let new = Route { metric, kind, is_tunnelled, next_hops, dump };
    routes.retain(|route| {
        let is_same = match (route.is_on_link(), new.is_on_link()) {
            (false, false) => true,
            (true, true) => replaces || route.next_hops == new.next_hops,
            (true, false) | (false, true) => false,
        };
        route.metric != new.metric || !is_same
    });
    let place = routes.partition_point(|route| route.metric <= new.metric);
    routes.insert(place, new);
}
