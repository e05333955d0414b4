//! Shortest paths over the database of a level (ISO 10589 annex C.2), with equal ones kept side by side, and the routes
//! of both levels together.

use crate::database::Database;
use crate::graph;
use crate::id::NodeId;
use crate::pdu::{Level, Lsp};
use crate::tlv::{
    GREATEST_PATH_METRIC, Leak, Locator, Neighbour, Reachability, Topologies, TopologyId, UNUSABLE_METRIC,
};
use srdma_wire::{Instant, Prefix};
use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Path to a node.
pub type Reached = graph::Reached<NodeId>;

/// Path to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The level of the path.
    pub level: Level,
    /// Kind of the announcement.
    pub kind: RouteKind,
    /// Whether the prefix has come from another protocol.
    pub is_external: bool,
    /// The sum of metrics.
    pub distance: u64,
    /// The first systems of shortest paths.
    pub first_hops: BTreeSet<NodeId>,
}

/// Kinds of announcements, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteKind {
    /// Of the level itself, or from level 1 up.
    Up,
    /// From level 2 down into level 1.
    Down,
    /// None: the nearest systems that lead out of the area.
    OutOfArea,
}

/// The shortest paths of a database, from one node, or of the databases of both levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortestPaths {
    /// The nodes that can be reached.
    pub nodes: BTreeMap<NodeId, Reached>,
    /// The prefixes that can be reached: locators and others, each over the nodes that announce it nearest.
    pub prefixes: BTreeMap<Prefix, Route>,
}

/// The links that one node announces in a topology.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) neighbours: Vec<(NodeId, u32)>,
    pub(crate) is_overloaded: bool,
    /// It leads out of its area.
    is_attached: bool,
}

impl RouteKind {
    /// Its name, for status.
    pub const fn name(self) -> &'static str {
        match self {
            RouteKind::Up => "up",
            RouteKind::Down => "down",
            RouteKind::OutOfArea => "out of area",
        }
    }
}

impl graph::Vertex for NodeId {
    fn is_network(&self) -> bool {
        self.pseudonode != 0
    }
}

impl graph::Edges<NodeId> for Links {
    fn neighbours(&self) -> &[(NodeId, u32)] {
        &self.neighbours
    }

    fn is_transit(&self) -> bool {
        !self.is_overloaded
    }
}

impl Route {
    /// The order of RFC 5308 section 5, and last the way out of the area: a less value is preferred.
    fn rank(&self) -> u8 {
        match (self.kind, self.level) {
            (RouteKind::Up, Level::One) => 0,
            (RouteKind::Up, Level::Two) => 1,
            (RouteKind::Down, Level::Two) => 2,
            (RouteKind::Down, Level::One) => 3,
            (RouteKind::OutOfArea, Level::One | Level::Two) => 4,
        }
    }

    /// Takes another announcement of the same level: a preferred kind, or else a nearer one. Equal ones stand side by
    /// side.
    fn or(&mut self, other: Route) {
        match (other.kind, other.distance).cmp(&(self.kind, self.distance)) {
            Ordering::Less => *self = other,
            Ordering::Equal => {
                self.first_hops.extend(other.first_hops);
                self.is_external &= other.is_external;
            }
            Ordering::Greater => {}
        }
    }
}

impl ShortestPaths {
    /// The paths of level 1 and of level 2 as one system uses them. One that is `attached` leaves the area by level 2.
    pub(crate) fn of_both(one: Self, two: Self, is_attached: bool) -> Self {
        let mut both = two;
        for (node, reached) in one.nodes {
            both.nodes.insert(node, reached);
        }
        let of_one = one.prefixes.into_iter().filter(|(_, route)| route.kind != RouteKind::OutOfArea || !is_attached);
        for (prefix, route) in of_one {
            match both.prefixes.entry(prefix) {
                Entry::Vacant(entry) => drop(entry.insert(route)),
                Entry::Occupied(mut entry) if route.rank() < entry.get().rank() => drop(entry.insert(route)),
                Entry::Occupied(_) => {}
            }
        }
        both
    }

    /// Computes them from `root` at a level, in a topology. Expired LSPs, nodes without their first fragment, and
    /// systems that are not in the topology are ignored.
    pub fn compute(database: &Database, root: NodeId, level: Level, topology: TopologyId, now: Instant) -> Self {
        let links = links(database, topology, now);
        let nodes = graph::shortest_paths(&links, root);
        let mut prefixes = prefixes(database, &nodes, root, level, topology, now);
        // A default that is announced as a prefix takes precedence.
        let out =
            Prefix::new(Ipv6Addr::UNSPECIFIED, 0).filter(|out| level == Level::One && !prefixes.contains_key(out));
        let leads_out = |Reached { distance, first_hops }| {
            let kind = RouteKind::OutOfArea;
            Route { level, kind, is_external: false, distance, first_hops }
        };
        prefixes.extend(out.and_then(|out| Some((out, leads_out(out_of_area(&links, &nodes, root)?)))));
        ShortestPaths { nodes, prefixes }
    }
}

pub(crate) fn links(database: &Database, topology: TopologyId, now: Instant) -> BTreeMap<NodeId, Links> {
    let mut links: BTreeMap<NodeId, Links> = BTreeMap::new();
    // The first fragment, which comes first, says whether the others count.
    for (id, lsp) in database.valid(now) {
        if id.fragment == 0 {
            let Some(member) = member(lsp, topology) else { continue };
            links.insert(id.node, member);
        }
        let Some(node) = links.get_mut(&id.node) else { continue };
        // Pseudonodes are those of all topologies alike (RFC 5120 section 3.2).
        let topology = if id.node.pseudonode == 0 { topology } else { TopologyId::STANDARD };
        let found = Neighbour::of_topology(lsp.tlvs(), topology);
        let usable = found.filter(|neighbour| neighbour.metric < UNUSABLE_METRIC);
        node.neighbours.extend(usable.map(|neighbour| (neighbour.node, neighbour.metric)));
    }
    links
}

/// A node without its links, by its first fragment; `None` if it is not in the topology. The overload bit of the
/// standard topology is in the header, that of others in the TLV (RFC 5120 section 7.1). Of the two bits for the way
/// out of the area either counts: FRR sets that of the header alone (D249).
fn member(first: &Lsp, topology: TopologyId) -> Option<Links> {
    if first.entry.id.node.pseudonode != 0 {
        return Some(Links::default());
    }
    let member = Topologies::parse(first.tlvs()).unwrap_or_default().member(topology)?;
    let is_standard = topology == TopologyId::STANDARD;
    Some(Links {
        neighbours: Vec::new(),
        is_overloaded: if is_standard { first.flags.is_overloaded } else { member.is_overloaded },
        is_attached: first.flags.is_attached || member.is_attached,
    })
}

/// The nearest systems that lead out of the area, but for overloaded ones (ISO 10589 section 7.2.9).
fn out_of_area(links: &BTreeMap<NodeId, Links>, nodes: &BTreeMap<NodeId, Reached>, root: NodeId) -> Option<Reached> {
    let attached = links.iter().filter(|(node, links)| links.is_attached && !links.is_overloaded && **node != root);
    let mut nearest: Option<Reached> = None;
    for reached in attached.filter_map(|(node, _)| nodes.get(node)) {
        nearest.get_or_insert(Reached::NOT).is_nearer_by(reached.distance, &reached.first_hops);
    }
    nearest
}

fn prefixes(
    database: &Database,
    nodes: &BTreeMap<NodeId, Reached>,
    root: NodeId,
    level: Level,
    topology: TopologyId,
    now: Instant,
) -> BTreeMap<Prefix, Route> {
    let mut prefixes: BTreeMap<Prefix, Route> = BTreeMap::new();
    for (id, lsp) in database.valid(now) {
        // A pseudonode announces no prefixes.
        let is_counted = id.node != root && id.node.pseudonode == 0;
        let Some(at) = nodes.get(&id.node).filter(|_| is_counted) else { continue };
        for reachable in announced(lsp, topology) {
            let kind = if reachable.leak == Leak::Down { RouteKind::Down } else { RouteKind::Up };
            let distance = at.distance + u64::from(reachable.metric);
            let first_hops = at.first_hops.clone();
            let route = Route { level, kind, is_external: reachable.is_external, distance, first_hops };
            match prefixes.entry(reachable.prefix) {
                Entry::Vacant(entry) => drop(entry.insert(route)),
                Entry::Occupied(mut entry) => entry.get_mut().or(route),
            }
        }
    }
    prefixes
}

/// The prefixes of an LSP in a topology. A locator may be announced as a prefix too; the two are one.
pub(crate) fn announced(lsp: &Lsp, topology: TopologyId) -> Vec<Reachability> {
    let tlvs = lsp.tlvs();
    let reachable = Reachability::of_topology(tlvs, topology);
    let locators = Locator::of_topology(tlvs, topology).map(|Locator { metric, leak, prefix, .. }| Reachability {
        metric,
        leak,
        is_external: false,
        prefix,
    });
    let mut all: Vec<_> = reachable.chain(locators).collect();
    all.retain(|reachable| reachable.metric <= GREATEST_PATH_METRIC);
    all
}
