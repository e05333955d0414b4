//! Shortest paths over the database (RFC 5340 section 4.8), with equal ones kept side by side.

use crate::database::Database;
use crate::id::RouterId;
use crate::lsa::{IntraAreaPrefix, LsType, LsaKey, NetworkMembers, PrefixOptions, RouterBody, RouterLinkKind};
use crate::packet::options;
use crate::srv6::{Locator, RouteType, UNREACHABLE};
use srdma_isis::graph::{Edges, Reached, Vertex as OfGraph, shortest_paths};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// A vertex of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vertex {
    /// A LAN, by its designated router and that router's number of the circuit.
    Network(RouterId, u32),
    /// A router.
    Router(RouterId),
}

impl OfGraph for Vertex {
    fn is_network(&self) -> bool {
        matches!(self, Vertex::Network(..))
    }
}

/// The shortest paths from one router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The routers and LANs that can be reached.
    pub nodes: BTreeMap<Vertex, Reached<Vertex>>,
    /// The prefixes and locators of other routers that can be reached, each over those that announce it nearest.
    pub prefixes: BTreeMap<Prefix, Reached<RouterId>>,
}

struct Links {
    neighbours: Vec<(Vertex, u32)>,
    is_transit: bool,
}

impl Edges<Vertex> for Links {
    fn neighbours(&self) -> &[(Vertex, u32)] {
        &self.neighbours
    }

    fn is_transit(&self) -> bool {
        self.is_transit
    }
}

impl Paths {
    /// Computes them from `root`. LSAs at MaxAge count for nothing, nor do those that cannot be read.
    pub fn compute(database: &Database, root: RouterId) -> Self {
        let nodes = shortest_paths(&links(database), Vertex::Router(root));
        let mut prefixes = BTreeMap::new();
        let announced = intra_area_prefixes(database);
        let known: BTreeSet<Prefix> = announced.iter().map(|(_, prefix, _)| *prefix).collect();
        // A locator that is announced as a prefix has the path of that (D277).
        let locators = locators(database).into_iter().filter(|(_, prefix, _)| !known.contains(prefix));
        for (at, prefix, metric) in announced.iter().copied().chain(locators) {
            let Some(reached) = nodes.get(&at).filter(|_| at != Vertex::Router(root)) else { continue };
            let routers = reached.first_hops.iter().filter_map(|hop| match hop {
                Vertex::Router(router) => Some(*router),
                Vertex::Network(..) => None,
            });
            let distance = reached.distance + u64::from(metric);
            prefixes.entry(prefix).or_insert(Reached::NOT).is_nearer_by(distance, &routers.collect());
        }
        Paths { nodes, prefixes }
    }

    /// The path to a router.
    pub fn router(&self, router: RouterId) -> Option<&Reached<Vertex>> {
        self.nodes.get(&Vertex::Router(router))
    }
}

fn links(database: &Database) -> BTreeMap<Vertex, Links> {
    let mut links: BTreeMap<Vertex, Links> = BTreeMap::new();
    for (place, lsa) in database.valid() {
        match place.key {
            LsaKey { kind: LsType::ROUTER, router, .. } => {
                let Ok(body) = RouterBody::parse(lsa.body()) else { continue };
                if body.options & options::V6 == 0 {
                    continue;
                }
                let is_transit = body.options & options::R != 0;
                let node =
                    links.entry(Vertex::Router(router)).or_insert(Links { neighbours: Vec::new(), is_transit: true });
                // Of a router with several Router-LSAs each has the options.
                node.is_transit &= is_transit;
                node.neighbours.extend(body.links.iter().filter_map(|link| {
                    let to = match link.kind {
                        RouterLinkKind::PointToPoint => Vertex::Router(link.neighbour),
                        RouterLinkKind::Transit => Vertex::Network(link.neighbour, link.neighbour_interface),
                        RouterLinkKind::Virtual => return None,
                    };
                    Some((to, link.metric.into()))
                }));
            }
            LsaKey { kind: LsType::NETWORK, id, router } => {
                let Ok(NetworkMembers(members)) = NetworkMembers::parse(lsa.body()) else { continue };
                let neighbours = members.into_iter().map(|member| (Vertex::Router(member), 0)).collect();
                links.insert(Vertex::Network(router, id), Links { neighbours, is_transit: true });
            }
            _ => {}
        }
    }
    links
}

/// The prefixes that routers and LANs have, with their metrics.
fn intra_area_prefixes(database: &Database) -> Vec<(Vertex, Prefix, u32)> {
    let mut all = Vec::new();
    for (place, lsa) in database.valid().filter(|(place, _)| place.key.kind == LsType::INTRA_AREA_PREFIX) {
        let Ok(body) = IntraAreaPrefix::parse(lsa.body()) else { continue };
        let at = match body.referenced {
            // None announces the prefixes of others.
            LsaKey { router, .. } if router != place.key.router => continue,
            LsaKey { kind: LsType::ROUTER, id: 0, router } => Vertex::Router(router),
            LsaKey { kind: LsType::NETWORK, id, router } => Vertex::Network(router, id),
            _ => continue,
        };
        let used = body.prefixes.into_iter().filter(|entry| !entry.options.contains(PrefixOptions::NO_UNICAST));
        all.extend(used.map(|entry| (at, entry.prefix, u32::from(entry.metric))));
    }
    all
}

/// The locators of shortest paths.
fn locators(database: &Database) -> Vec<(Vertex, Prefix, u32)> {
    let mut all = Vec::new();
    for (place, lsa) in database.valid().filter(|(place, _)| place.key.kind == LsType::LOCATOR) {
        let found = Locator::parse_all(lsa.body()).unwrap_or_default().into_iter();
        let used = found.filter(|locator| {
            locator.route_type == RouteType::IntraArea && locator.algorithm == 0 && locator.metric != UNREACHABLE
        });
        all.extend(used.map(|locator| (Vertex::Router(place.key.router), locator.prefix, locator.metric)));
    }
    all
}
