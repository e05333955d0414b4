//! Shortest paths over the database (ISO 10589 annex C.2), with equal ones kept side by side.

use crate::database::Database;
use crate::id::NodeId;
use crate::pdu::Lsp;
use crate::tlv::{GREATEST_PATH_METRIC, Locator, Neighbour, Reachability, UNUSABLE_METRIC, kind};
use srdma_wire::{Instant, Prefix};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Path to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The sum of metrics.
    pub distance: u64,
    /// The first neighbours of shortest paths; none for the root itself.
    pub first_hops: BTreeSet<NodeId>,
}

/// The shortest paths of a database, from one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortestPaths {
    /// The nodes that can be reached.
    pub nodes: BTreeMap<NodeId, Reached>,
    /// The prefixes that can be reached: locators and others, each over the nodes that announce it nearest.
    pub prefixes: BTreeMap<Prefix, Reached>,
}

/// The links that one node announces.
struct Links {
    neighbours: Vec<(NodeId, u32)>,
    is_overloaded: bool,
}

impl Reached {
    /// Farther than everything.
    const NOT: Reached = Reached { distance: u64::MAX, first_hops: BTreeSet::new() };

    /// Takes another way; whether it is nearer than those before. Equal ones stand side by side.
    fn is_nearer_by(&mut self, distance: u64, first_hops: &BTreeSet<NodeId>) -> bool {
        let order = distance.cmp(&self.distance);
        match order {
            Ordering::Less => *self = Reached { distance, first_hops: first_hops.clone() },
            Ordering::Equal => self.first_hops.extend(first_hops),
            Ordering::Greater => {}
        }
        order == Ordering::Less
    }
}

impl ShortestPaths {
    /// Computes them from `root`. Expired LSPs, and nodes without their first fragment, are ignored.
    pub fn compute(database: &Database, root: NodeId, now: Instant) -> Self {
        let links = links(database, now);
        let nodes = nodes(&links, root);
        let prefixes = prefixes(database, &nodes, root, now);
        ShortestPaths { nodes, prefixes }
    }
}

fn links(database: &Database, now: Instant) -> BTreeMap<NodeId, Links> {
    let mut links: BTreeMap<NodeId, Links> = BTreeMap::new();
    for (id, lsp) in database.valid(now) {
        let node = links.entry(id.node).or_insert(Links { neighbours: Vec::new(), is_overloaded: false });
        node.is_overloaded |= id.fragment == 0 && lsp.flags.is_overloaded;
        for value in lsp.tlvs().of_kind(kind::EXTENDED_IS_REACHABILITY) {
            let found = Neighbour::parse_all(value).unwrap_or_default();
            let usable = found.into_iter().filter(|neighbour| neighbour.metric < UNUSABLE_METRIC);
            node.neighbours.extend(usable.map(|neighbour| (neighbour.node, neighbour.metric)));
        }
    }
    links
}

/// Dijkstra's algorithm. A link counts if both its ends announce it.
fn nodes(links: &BTreeMap<NodeId, Links>, root: NodeId) -> BTreeMap<NodeId, Reached> {
    let announced: BTreeSet<(NodeId, NodeId)> =
        links.iter().flat_map(|(from, links)| links.neighbours.iter().map(move |(to, _)| (*from, *to))).collect();
    let mut reached = BTreeMap::from([(root, Reached::default())]);
    let mut queue = BinaryHeap::from([Reverse((0_u64, root))]);
    let mut done = BTreeSet::new();
    while let Some(Reverse((distance, node))) = queue.pop() {
        if !done.insert(node) {
            continue;
        }
        let Some(of_node) = links.get(&node) else { continue };
        // No path leads through an overloaded system; a pseudonode cannot be overloaded.
        if of_node.is_overloaded && node != root && node.pseudonode == 0 {
            continue;
        }
        let before = reached.get(&node).map(|reached| reached.first_hops.clone()).unwrap_or_default();
        for (neighbour, metric) in &of_node.neighbours {
            if done.contains(neighbour) || !announced.contains(&(*neighbour, node)) {
                continue;
            }
            let first_hops = if node == root { &BTreeSet::from([*neighbour]) } else { &before };
            let further = distance + u64::from(*metric);
            if reached.entry(*neighbour).or_insert(Reached::NOT).is_nearer_by(further, first_hops) {
                queue.push(Reverse((further, *neighbour)));
            }
        }
    }
    reached
}

fn prefixes(
    database: &Database,
    nodes: &BTreeMap<NodeId, Reached>,
    root: NodeId,
    now: Instant,
) -> BTreeMap<Prefix, Reached> {
    let mut prefixes: BTreeMap<Prefix, Reached> = BTreeMap::new();
    for (id, lsp) in database.valid(now) {
        let Some(at) = nodes.get(&id.node).filter(|_| id.node != root) else { continue };
        for (prefix, metric) in announced(lsp) {
            let distance = at.distance + u64::from(metric);
            prefixes.entry(prefix).or_insert(Reached::NOT).is_nearer_by(distance, &at.first_hops);
        }
    }
    prefixes
}

/// The prefixes of an LSP with their metrics. A locator may be announced as a prefix too; the two are one.
fn announced(lsp: &Lsp) -> Vec<(Prefix, u32)> {
    let tlvs = lsp.tlvs();
    let reachable =
        tlvs.of_kind(kind::IPV6_REACHABILITY).flat_map(|value| Reachability::parse_all(value).unwrap_or_default());
    let locators = tlvs.of_kind(kind::SRV6_LOCATOR).flat_map(|value| Locator::parse_all(value).unwrap_or_default());
    let locators = locators.filter(|locator| locator.algorithm == 0).map(|locator| (locator.prefix, locator.metric));
    let mut all: Vec<_> = reachable.map(|reachable| (reachable.prefix, reachable.metric)).chain(locators).collect();
    all.retain(|(_, metric)| *metric <= GREATEST_PATH_METRIC);
    all
}
