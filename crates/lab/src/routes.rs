//! The routes of a node, along the shortest paths to all others.

use crate::network::Side;
use crate::topology::{End, Kind, Link, Topology};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// A route by a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The destinations.
    pub(crate) prefix: Prefix,
    /// The neighbour's link-local address.
    pub(crate) via: Ipv6Addr,
    pub(crate) interface: String,
    /// The link, and the neighbour's end of it.
    pub(crate) toward: (usize, Side),
}

/// The routes of a node: at a host a default route, elsewhere one for each address and prefix of all others.
pub(crate) fn of(topology: &Topology, node: usize) -> Vec<Route> {
    let first_hops = first_hops(topology, node);
    if topology.nodes[node].kind.is_host() {
        let default = Prefix::new(Ipv6Addr::UNSPECIFIED, 0);
        return default
            .zip(first_hops.values().next())
            .map(|(prefix, hop)| route(topology, prefix, *hop))
            .into_iter()
            .collect();
    }
    let mut routes = Vec::new();
    for (other, hop) in first_hops {
        let other = &topology.nodes[other];
        let addresses = other.addresses.iter().map(|address| Prefix::host(*address));
        let prefixes: Vec<Prefix> = other.prefixes.to_vec();
        let addresses = addresses.filter(|address| !prefixes.iter().any(|prefix| prefix.contains(address.address())));
        let all: Vec<Prefix> = addresses.chain(prefixes.iter().copied()).collect();
        routes.extend(all.into_iter().map(|prefix| route(topology, prefix, hop)));
    }
    routes
}

/// `ip` commands for a node's routes, in a lab whose nodes get any; of IPv4 a host has a default route.
pub(crate) fn lines(topology: &Topology, node: usize) -> Vec<String> {
    if !topology.shortest_path_routes {
        return Vec::new();
    }
    let line = |route: &Route| format!("-6 route add {} via {} dev {}", route.prefix, route.via, route.interface);
    let is_host = topology.nodes[node].kind == Kind::Endpoint;
    let gateway =
        topology.ipv4_gateway(node).filter(|_| is_host).map(|gateway| format!("route add default via {gateway}"));
    of(topology, node).iter().map(line).chain(gateway).collect()
}

/// The interface of a node that leads to another one.
pub(crate) fn interface_toward(topology: &Topology, node: usize, other: usize) -> Option<String> {
    let (link, far) = *first_hops(topology, node).get(&other)?;
    Some(far.other().of(&topology.links[link]).interface.clone())
}

fn route(topology: &Topology, prefix: Prefix, (link, side): (usize, Side)) -> Route {
    let near: &End = side.other().of(&topology.links[link]);
    Route { prefix, via: side.link_local(), interface: near.interface.clone(), toward: (link, side) }
}

/// For every reachable node, the link of the first hop toward it and the far end of that link. Hosts forward nothing;
/// of several shortest paths the one over the first link is used.
fn first_hops(topology: &Topology, from: usize) -> BTreeMap<usize, (usize, Side)> {
    let mut hops: BTreeMap<usize, (usize, Side)> = BTreeMap::new();
    let mut waiting = VecDeque::from([(from, None)]);
    while let Some((at, hop)) = waiting.pop_front() {
        if at != from && topology.nodes[at].kind.is_host() {
            continue;
        }
        for (position, link) in topology.links.iter().enumerate() {
            for far in Side::BOTH.into_iter().filter(|far| is_at(link, far.other(), at)) {
                let (next, hop) = (far.of(link).node, hop.unwrap_or((position, far)));
                if next != from && !hops.contains_key(&next) {
                    hops.insert(next, hop);
                    waiting.push_back((next, Some(hop)));
                }
            }
        }
    }
    hops
}

fn is_at(link: &Link, side: Side, node: usize) -> bool {
    side.of(link).node == node
}
