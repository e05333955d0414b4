//! Repair paths around neighbours and the links to them: TI-LFA by SRv6 (RFC 9855; D265, D286, D287).
//!
//! ```text
//!   S ──╳── N         the path to D over all links but S-N, as it is after convergence:
//!   │       │
//!   1 ─ P ═ Q ─ D     S ▶ 1, then while others have their old tables: End of P, End.X of P toward Q, decapsulated at Q
//! ```
//!
//! From 1 the path is divided where the old tables of a system do not lead on along it: up to P all old paths avoid
//! what fails (P-space), from Q on those to the destination do (Q-space). All that is asked of other systems are their
//! SIDs.

use crate::database::Database;
use crate::id::NodeId;
use crate::shortest_paths::{Links, Route, RouteKind, ShortestPaths, announced, links};
use crate::tlv::{Leak, Locator, Neighbour, TopologyId};
use srdma_wire::{Instant, Prefix};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::Ipv6Addr;

/// A way around the failed link for packets to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The neighbour to which the packets are sent.
    pub first: NodeId,
    /// The SIDs by which they are encapsulated, of which the last one decapsulates; none: they are sent as they are.
    pub segments: Vec<Ipv6Addr>,
    /// The path, from the first neighbour, or the pseudonode before it, to the system that announces the prefix.
    pub path: Vec<NodeId>,
    /// What it avoids.
    pub protection: Protection,
}

/// What a repair path avoids of the way to a neighbour; the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// The links to the neighbour, LANs among them, and the neighbour.
    LinkAndNode,
    /// The links, LANs among them.
    Link,
    /// The neighbour, but not the LAN to it.
    Node,
    /// The neighbour's place on the LAN, but neither the LAN nor the neighbour by other ways.
    Adjacency,
}

impl Protection {
    /// Its name, for status.
    pub const fn name(self) -> &'static str {
        match self {
            Protection::LinkAndNode => "link and node",
            Protection::Link => "link",
            Protection::Node => "node",
            Protection::Adjacency => "adjacency",
        }
    }
}

/// The repair paths of a system: by the neighbour whose link fails, and by prefix.
pub type Repairs = BTreeMap<NodeId, BTreeMap<Prefix, Repair>>;

/// What fails: links, in both directions, and systems and pseudonodes with all of their links.
#[derive(Default)]
struct Failure {
    links: Vec<(NodeId, NodeId)>,
    nodes: Vec<NodeId>,
}

impl Failure {
    fn includes(&self, one: NodeId, other: NodeId) -> bool {
        let is_it = |link: &(NodeId, NodeId)| *link == (one, other) || *link == (other, one);
        self.links.iter().any(is_it) || self.nodes.iter().any(|node| *node == one || *node == other)
    }
}

/// How a tree reaches a node.
#[derive(Clone, Copy)]
struct Reach {
    distance: u64,
    /// Some shortest path has in it what fails.
    crosses: bool,
    before: NodeId,
}

type Tree = BTreeMap<NodeId, Reach>;

/// A point at which the packet leaves the path that the old tables give it.
#[derive(Clone, Copy)]
enum Waypoint {
    Node(NodeId),
    /// From a system to another, which is behind the vertex in between: by a link to itself, or a LAN.
    Adjacency(NodeId, NodeId, NodeId),
}

/// The SIDs of a system, those that decapsulate (USD) first.
#[derive(Default)]
struct Sids {
    /// Each with whether it decapsulates.
    node: Vec<(bool, Ipv6Addr)>,
    /// By the other end of the link, a pseudonode if it is a LAN, and the system there.
    adjacencies: BTreeMap<(NodeId, NodeId), Vec<(bool, Ipv6Addr)>>,
}

struct Network {
    links: BTreeMap<NodeId, Links>,
    both_ways: BTreeSet<(NodeId, NodeId)>,
    /// The systems that announce each prefix.
    announcers: BTreeMap<Prefix, Vec<(NodeId, RouteKind, u32)>>,
    sids: BTreeMap<NodeId, Sids>,
}

/// The repair paths for all routes of a level that have one first hop, which avoid the neighbour too, if they can and
/// `has_node_protection`. `paths` are those of the level. A prefix without a path, or without the SIDs that it takes,
/// has none; nor have what came from level 2 down, and the way out of the area.
pub(crate) fn repairs(
    database: &Database,
    root: NodeId,
    topology: TopologyId,
    paths: &ShortestPaths,
    has_node_protection: bool,
    now: Instant,
) -> Repairs {
    let mut protected: BTreeMap<NodeId, Vec<Prefix>> = BTreeMap::new();
    for (prefix, route) in &paths.prefixes {
        let Route { kind: RouteKind::Up, first_hops, .. } = route else { continue };
        if let (Some(hop), 1) = (first_hops.first(), first_hops.len()) {
            protected.entry(*hop).or_default().push(*prefix);
        }
    }
    let network = Network::of(database, topology, now);
    let around = |(hop, prefixes): (NodeId, Vec<Prefix>)| {
        let mut repairs = BTreeMap::new();
        let is_wanted = |protection: Protection| match protection {
            Protection::LinkAndNode | Protection::Node => has_node_protection,
            Protection::Link | Protection::Adjacency => true,
        };
        let failures = network.failures(root, hop).into_iter().filter(|(protection, _)| is_wanted(*protection));
        for (protection, failure) in failures {
            let left: Vec<Prefix> = prefixes.iter().filter(|prefix| !repairs.contains_key(*prefix)).copied().collect();
            repairs.extend(network.around(root, &failure, protection, &left));
        }
        (hop, repairs)
    };
    protected.into_iter().map(around).collect()
}

impl Network {
    fn of(database: &Database, topology: TopologyId, now: Instant) -> Self {
        let links = links(database, topology, now);
        let one_way: BTreeSet<(NodeId, NodeId)> =
            links.iter().flat_map(|(from, links)| links.neighbours.iter().map(move |(to, _)| (*from, *to))).collect();
        let both_ways = one_way.iter().copied().filter(|(from, to)| one_way.contains(&(*to, *from))).collect();
        let mut announcers: BTreeMap<Prefix, Vec<(NodeId, RouteKind, u32)>> = BTreeMap::new();
        let mut sids: BTreeMap<NodeId, Sids> = BTreeMap::new();
        for (id, lsp) in database.valid(now).filter(|(id, _)| id.node.pseudonode == 0) {
            for reachable in announced(lsp, topology) {
                let kind = if reachable.leak == Leak::Down { RouteKind::Down } else { RouteKind::Up };
                let found = (id.node, kind, reachable.metric);
                let all = announcers.entry(reachable.prefix).or_default();
                if !all.contains(&found) {
                    all.push(found);
                }
            }
            let of_node = sids.entry(id.node).or_default();
            let own = Locator::of_topology(lsp.tlvs(), topology).filter(|locator| locator.leak == Leak::None);
            for sid in own.flat_map(|locator| locator.sids) {
                of_node.node.extend(end_decapsulates(sid.behavior).map(|decapsulates| (decapsulates, sid.sid)));
            }
            for neighbour in Neighbour::of_topology(lsp.tlvs(), topology) {
                for sid in neighbour.end_x.iter().filter(|sid| sid.algorithm == 0) {
                    let to = sid.neighbour.map_or(neighbour.node, NodeId::of);
                    let found = end_x_decapsulates(sid.behavior).map(|decapsulates| (decapsulates, sid.sid));
                    of_node.adjacencies.entry((neighbour.node, to)).or_default().extend(found);
                }
            }
        }
        Network { links, both_ways, announcers, sids }
    }

    /// What may fail of the way to a neighbour, with what avoiding it protects; the best first.
    fn failures(&self, root: NodeId, hop: NodeId) -> Vec<(Protection, Failure)> {
        let ways = self.ways(root, hop);
        let lans: Vec<NodeId> = ways.iter().copied().filter(|way| *way != hop).collect();
        let direct: Vec<(NodeId, NodeId)> = ways.iter().filter(|way| **way == hop).map(|_| (root, hop)).collect();
        let with_node = Failure { links: Vec::new(), nodes: lans.iter().copied().chain([hop]).collect() };
        let mut failures = vec![
            (Protection::LinkAndNode, with_node),
            (Protection::Link, Failure { links: direct.clone(), nodes: lans.clone() }),
        ];
        if !lans.is_empty() {
            let places = lans.iter().map(|lan| (*lan, hop));
            failures.push((Protection::Node, Failure { links: Vec::new(), nodes: vec![hop] }));
            let links = direct.into_iter().chain(places).collect();
            failures.push((Protection::Adjacency, Failure { links, nodes: Vec::new() }));
        }
        failures
    }

    /// The cheapest ways to a neighbour: itself, for a link to it, and the pseudonodes of LANs.
    fn ways(&self, root: NodeId, hop: NodeId) -> Vec<NodeId> {
        let of_root = self.links.get(&root).map(|links| links.neighbours.as_slice()).unwrap_or_default();
        let leads_there = |next: NodeId| next == hop || next.pseudonode != 0 && self.both_ways.contains(&(next, hop));
        let there = of_root.iter().filter(|(next, _)| self.both_ways.contains(&(root, *next)) && leads_there(*next));
        let least = there.clone().map(|(_, metric)| *metric).min();
        let cheapest: BTreeSet<NodeId> =
            there.filter(|(_, metric)| Some(*metric) == least).map(|(next, _)| *next).collect();
        cheapest.into_iter().collect()
    }

    /// The repair paths of `root` for prefixes.
    fn around(
        &self,
        root: NodeId,
        failed: &Failure,
        protection: Protection,
        prefixes: &[Prefix],
    ) -> BTreeMap<Prefix, Repair> {
        let after = self.tree(root, failed, true);
        let mut before: BTreeMap<NodeId, Tree> = BTreeMap::new();
        let repair = |prefix: &Prefix| {
            let path = self.path(root, &after, *prefix)?;
            let waypoints = self.waypoints(&path, *prefix, failed, &mut before)?;
            let last = waypoints.len().checked_sub(1);
            let segments = waypoints.iter().enumerate().map(|(at, waypoint)| self.sid(*waypoint, Some(at) == last));
            let first = *path.iter().find(|node| node.pseudonode == 0)?;
            Some((*prefix, Repair { first, segments: segments.collect::<Option<_>>()?, path, protection }))
        };
        prefixes.iter().filter_map(repair).collect()
    }

    /// The path to the nearest system that announces a prefix, in a tree; without its root.
    fn path(&self, root: NodeId, tree: &Tree, prefix: Prefix) -> Option<Vec<NodeId>> {
        let (end, ..) = self.nearest(tree, prefix)?.into_iter().find(|(node, _)| *node != root)?;
        let mut path = vec![end];
        let mut at = end;
        while let Some(reach) = tree.get(&at).filter(|reach| reach.before != root) {
            at = reach.before;
            path.push(at);
        }
        path.reverse();
        Some(path)
    }

    /// The nearest systems that announce a prefix, by a tree.
    fn nearest<'t>(&self, tree: &'t Tree, prefix: Prefix) -> Option<Vec<(NodeId, &'t Reach)>> {
        let all = self.announcers.get(&prefix)?.iter().filter_map(|(node, kind, metric)| {
            let reach = tree.get(node)?;
            Some(((*kind, reach.distance + u64::from(*metric)), (*node, reach)))
        });
        let all: Vec<_> = all.collect();
        let least = all.iter().map(|(order, _)| *order).min()?;
        Some(all.into_iter().filter(|(order, _)| *order == least).map(|(_, found)| found).collect())
    }

    /// The points at which the old tables do not lead on along a path; none if they do.
    fn waypoints(
        &self,
        path: &[NodeId],
        prefix: Prefix,
        failed: &Failure,
        before: &mut BTreeMap<NodeId, Tree>,
    ) -> Option<Vec<Waypoint>> {
        let mut waypoints = Vec::new();
        let mut ahead = systems_of(path).into_iter();
        let (_, mut at) = ahead.next()?;
        let mut ahead: Vec<(NodeId, NodeId)> = ahead.collect();
        loop {
            let tree = before.entry(at).or_insert_with(|| self.tree(at, failed, false));
            let is_announcer = |(node, ..): &(NodeId, RouteKind, u32)| *node == at;
            let nearest = self.nearest(tree, prefix)?;
            if self.announcers.get(&prefix)?.iter().any(is_announcer) || nearest.iter().all(|(_, it)| !it.crosses) {
                return Some(waypoints);
            }
            let is_led_to = |(_, node): &(NodeId, NodeId)| tree.get(node).is_some_and(|reach| !reach.crosses);
            let passed = match ahead.iter().rposition(is_led_to) {
                Some(farthest) => {
                    waypoints.push(Waypoint::Node(ahead.get(farthest)?.1));
                    farthest
                }
                None => {
                    let (way, next) = *ahead.first()?;
                    // The SID of an adjacency leads to its system by itself.
                    waypoints.pop_if(|last| matches!(last, Waypoint::Node(node) if *node == at));
                    waypoints.push(Waypoint::Adjacency(at, way, next));
                    0
                }
            };
            at = ahead.get(passed)?.1;
            ahead.drain(..=passed);
        }
    }

    /// The SID of a waypoint; of the last one it has to decapsulate.
    fn sid(&self, waypoint: Waypoint, is_last: bool) -> Option<Ipv6Addr> {
        let sids = match waypoint {
            Waypoint::Node(node) => &self.sids.get(&node)?.node,
            Waypoint::Adjacency(node, way, next) => self.sids.get(&node)?.adjacencies.get(&(way, next))?,
        };
        sids.iter().find(|(decapsulates, _)| *decapsulates || !is_last).map(|(_, sid)| *sid)
    }

    /// The shortest paths from a node: without what fails, or with it and whether they have it in them.
    fn tree(&self, root: NodeId, failed: &Failure, is_cut: bool) -> Tree {
        let mut tree = Tree::from([(root, Reach { distance: 0, crosses: false, before: root })]);
        // Of equal distances pseudonodes come first: what is behind them is no farther.
        let entry = |distance: u64, node: NodeId| Reverse((distance, node.pseudonode == 0, node));
        let mut queue = BinaryHeap::from([entry(0, root)]);
        let mut done = BTreeSet::new();
        while let Some(Reverse((distance, _, node))) = queue.pop() {
            if !done.insert(node) {
                continue;
            }
            let crosses_before = tree.get(&node).is_some_and(|reach| reach.crosses);
            let Some(of_node) = self.links.get(&node).filter(|links| !links.is_overloaded || node == root) else {
                continue;
            };
            for (neighbour, metric) in &of_node.neighbours {
                let is_link = node.pseudonode == 0 || neighbour.pseudonode == 0;
                let is_failed = failed.includes(node, *neighbour);
                if !is_link || !self.both_ways.contains(&(node, *neighbour)) || is_cut && is_failed {
                    continue;
                }
                let crosses = crosses_before || is_failed;
                let further = Reach { distance: distance + u64::from(*metric), crosses, before: node };
                match tree.get_mut(neighbour) {
                    Some(known) if known.distance < further.distance => {}
                    Some(known) if known.distance == further.distance => known.crosses |= crosses,
                    _ => {
                        tree.insert(*neighbour, further);
                        queue.push(entry(further.distance, *neighbour));
                    }
                }
            }
        }
        tree
    }
}

/// The systems of a path, each behind the LAN before it, or else itself.
fn systems_of(path: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let mut lan = None;
    let mut systems = Vec::new();
    for node in path {
        if node.pseudonode != 0 {
            lan = Some(*node);
        } else {
            systems.push((lan.take().unwrap_or(*node), *node));
        }
    }
    systems
}

/// Whether a behaviour is End, and decapsulates (RFC 8986 section 10.2, RFC 9800 section 13.1).
fn end_decapsulates(behavior: u16) -> Option<bool> {
    match behavior {
        1..=4 | 43..=46 => Some(false),
        28..=31 | 47..=50 => Some(true),
        _ => None,
    }
}

/// The same of End.X.
fn end_x_decapsulates(behavior: u16) -> Option<bool> {
    match behavior {
        5..=8 | 52..=55 => Some(false),
        32..=35 | 56..=59 => Some(true),
        _ => None,
    }
}
