//! Repair paths for links to neighbours: TI-LFA by SRv6 (RFC 9855; D265).
//!
//! ```text
//!   S ──╳── N         the path to D over all links but S-N, as it is after convergence:
//!   │       │
//!   1 ─ P ═ Q ─ D     S ▶ 1, then while others have their old tables: End of P, End.X of P toward Q, decapsulated at Q
//! ```
//!
//! From 1 the path is divided where the old tables of a system do not lead on along it: up to P all old paths avoid the
//! link (P-space), from Q on those to the destination do (Q-space). All that is asked of other systems are their SIDs.

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
    /// The path, from the first neighbour to the system that announces the prefix, with the pseudonodes between.
    pub path: Vec<NodeId>,
}

/// The repair paths of a system: by the neighbour whose link fails, and by prefix.
pub type Repairs = BTreeMap<NodeId, BTreeMap<Prefix, Repair>>;

/// A link, in either direction.
#[derive(Clone, Copy)]
struct Link(NodeId, NodeId);

impl Link {
    fn is(self, one: NodeId, other: NodeId) -> bool {
        (self.0, self.1) == (one, other) || (self.1, self.0) == (one, other)
    }
}

/// How a tree reaches a node.
#[derive(Clone, Copy)]
struct Reach {
    distance: u64,
    /// Some shortest path has the link in it.
    crosses: bool,
    before: NodeId,
}

type Tree = BTreeMap<NodeId, Reach>;

/// A point at which the packet leaves the path that the old tables give it.
#[derive(Clone, Copy)]
enum Waypoint {
    Node(NodeId),
    /// From a system by its link to another.
    Adjacency(NodeId, NodeId),
}

/// The SIDs of a system, those that decapsulate (USD) first.
#[derive(Default)]
struct Sids {
    /// Each with whether it decapsulates.
    node: Vec<(bool, Ipv6Addr)>,
    adjacencies: BTreeMap<NodeId, Vec<(bool, Ipv6Addr)>>,
}

struct Network {
    links: BTreeMap<NodeId, Links>,
    both_ways: BTreeSet<(NodeId, NodeId)>,
    /// The systems that announce each prefix.
    announcers: BTreeMap<Prefix, Vec<(NodeId, RouteKind, u32)>>,
    sids: BTreeMap<NodeId, Sids>,
}

/// The repair paths for all routes of a level that have one first hop, which is a neighbour at the end of a
/// point-to-point link. `paths` are those of the level. A prefix without a path, or without the SIDs that it takes, has
/// none; nor have what came from level 2 down, and the way out of the area.
pub(crate) fn repairs(
    database: &Database,
    root: NodeId,
    topology: TopologyId,
    paths: &ShortestPaths,
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
        // Behind a pseudonode others are as far: the link that fails is not the neighbour's alone.
        network.both_ways.contains(&(root, hop)).then(|| (hop, network.around(root, hop, &prefixes)))
    };
    protected.into_iter().filter_map(around).collect()
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
                    of_node.adjacencies.entry(to).or_default().extend(found);
                }
            }
        }
        Network { links, both_ways, announcers, sids }
    }

    /// The repair paths of `root` for prefixes, when its link to `hop` fails.
    fn around(&self, root: NodeId, hop: NodeId, prefixes: &[Prefix]) -> BTreeMap<Prefix, Repair> {
        let failed = Link(root, hop);
        let after = self.tree(root, failed, true);
        let mut before: BTreeMap<NodeId, Tree> = BTreeMap::new();
        let repair = |prefix: &Prefix| {
            let path = self.path(root, &after, *prefix)?;
            let waypoints = self.waypoints(&path, *prefix, failed, &mut before)?;
            let last = waypoints.len().checked_sub(1);
            let segments = waypoints.iter().enumerate().map(|(at, waypoint)| self.sid(*waypoint, Some(at) == last));
            let first = *path.iter().find(|node| node.pseudonode == 0)?;
            Some((*prefix, Repair { first, segments: segments.collect::<Option<_>>()?, path }))
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
        failed: Link,
        before: &mut BTreeMap<NodeId, Tree>,
    ) -> Option<Vec<Waypoint>> {
        let mut waypoints = Vec::new();
        let mut ahead = path.iter().copied().filter(|node| node.pseudonode == 0);
        let mut at = ahead.next()?;
        let mut ahead: Vec<NodeId> = ahead.collect();
        loop {
            let tree = before.entry(at).or_insert_with(|| self.tree(at, failed, false));
            let is_announcer = |(node, ..): &(NodeId, RouteKind, u32)| *node == at;
            let nearest = self.nearest(tree, prefix)?;
            if self.announcers.get(&prefix)?.iter().any(is_announcer) || nearest.iter().all(|(_, it)| !it.crosses) {
                return Some(waypoints);
            }
            let is_led_to = |node: &NodeId| tree.get(node).is_some_and(|reach| !reach.crosses);
            let passed = match ahead.iter().rposition(is_led_to) {
                Some(farthest) => {
                    waypoints.push(Waypoint::Node(*ahead.get(farthest)?));
                    farthest
                }
                None => {
                    let next = *ahead.first()?;
                    // The SID of an adjacency leads to its system by itself.
                    waypoints.pop_if(|last| matches!(last, Waypoint::Node(node) if *node == at));
                    waypoints.push(Waypoint::Adjacency(at, next));
                    0
                }
            };
            at = *ahead.get(passed)?;
            ahead.drain(..=passed);
        }
    }

    /// The SID of a waypoint; of the last one it has to decapsulate.
    fn sid(&self, waypoint: Waypoint, is_last: bool) -> Option<Ipv6Addr> {
        let sids = match waypoint {
            Waypoint::Node(node) => &self.sids.get(&node)?.node,
            Waypoint::Adjacency(node, next) => self.sids.get(&node)?.adjacencies.get(&next)?,
        };
        sids.iter().find(|(decapsulates, _)| *decapsulates || !is_last).map(|(_, sid)| *sid)
    }

    /// The shortest paths from a node: without a link, or with it and whether they have it in them.
    fn tree(&self, root: NodeId, link: Link, is_cut: bool) -> Tree {
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
                let is_failed = link.is(node, *neighbour);
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
