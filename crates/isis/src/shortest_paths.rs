//! Shortest paths over the database (ISO 10589 annex C.2), with equal ones kept side by side.

use crate::database::Database;
use crate::id::{LspId, NodeId};
use crate::tlv::{Locator, Neighbour, Reachability, kind};
use srdma_wire::{Instant, Prefix};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The greatest metric of a link that shortest paths use (RFC 5305 section 3: above it, none may).
const GREATEST_LINK_METRIC: u32 = 0xFF_FFFE;

/// How a node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The sum of metrics.
    pub distance: u64,
    /// The neighbours by which shortest paths begin; none for oneself.
    pub first_hops: BTreeSet<NodeId>,
}

/// What the shortest paths of a database come to, as one node sees them.
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

impl ShortestPaths {
    /// Computes them from `root`. LSPs whose lifetime is over, and nodes whose first fragment is missing, do not count.
    pub fn compute(database: &Database, root: NodeId, now: Instant) -> Self {
        let links = links(database, now);
        let nodes = nodes(&links, root);
        let prefixes = prefixes(database, &nodes, root, now);
        ShortestPaths { nodes, prefixes }
    }
}

/// Whether anything of a node counts: its fragment 0 is there and valid (ISO 10589 section 7.3.15.1).
fn counts(database: &Database, node: NodeId, now: Instant) -> bool {
    database.get(LspId { node, fragment: 0 }).is_some_and(|stored| stored.lifetime_s(now) > 0)
}

fn links(database: &Database, now: Instant) -> BTreeMap<NodeId, Links> {
    let mut links: BTreeMap<NodeId, Links> = BTreeMap::new();
    for (id, stored) in database.iter() {
        if stored.lifetime_s(now) == 0 || !counts(database, id.node, now) {
            continue;
        }
        let node = links.entry(id.node).or_insert(Links { neighbours: Vec::new(), is_overloaded: false });
        node.is_overloaded |= id.fragment == 0 && stored.lsp().flags.is_overloaded;
        for value in stored.lsp().tlvs().of_kind(kind::EXTENDED_IS_REACHABILITY) {
            let found = Neighbour::parse_all(value).unwrap_or_default();
            let usable = found.into_iter().filter(|neighbour| neighbour.metric <= GREATEST_LINK_METRIC);
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
        // Nothing goes through an overloaded system; a pseudonode cannot be one.
        if of_node.is_overloaded && node != root && node.pseudonode == 0 {
            continue;
        }
        let before = reached.get(&node).map(|reached| reached.first_hops.clone()).unwrap_or_default();
        for (neighbour, metric) in &of_node.neighbours {
            if !announced.contains(&(*neighbour, node)) {
                continue;
            }
            let first_hops = if node == root { BTreeSet::from([*neighbour]) } else { before.clone() };
            let further = distance + u64::from(*metric);
            let entry = reached.entry(*neighbour).or_insert(Reached { distance: u64::MAX, ..Reached::default() });
            if further < entry.distance {
                *entry = Reached { distance: further, first_hops };
                queue.push(Reverse((further, *neighbour)));
            } else if further == entry.distance && *neighbour != root && !done.contains(neighbour) {
                entry.first_hops.extend(first_hops);
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
    for (id, stored) in database.iter() {
        let Some(at) = nodes.get(&id.node).filter(|_| id.node != root && stored.lifetime_s(now) > 0) else { continue };
        for (prefix, metric) in announced(stored.lsp()) {
            let distance = at.distance + u64::from(metric);
            let entry = prefixes.entry(prefix).or_insert(Reached { distance: u64::MAX, ..Reached::default() });
            if distance < entry.distance {
                *entry = Reached { distance, first_hops: at.first_hops.clone() };
            } else if distance == entry.distance {
                entry.first_hops.extend(at.first_hops.iter().copied());
            }
        }
    }
    prefixes
}

/// The prefixes of an LSP with their metrics. A locator may be announced as a prefix too; the two are one.
fn announced(lsp: &crate::pdu::Lsp) -> Vec<(Prefix, u32)> {
    use crate::tlv::GREATEST_PATH_METRIC;
    let tlvs = lsp.tlvs();
    let reachable =
        tlvs.of_kind(kind::IPV6_REACHABILITY).flat_map(|value| Reachability::parse_all(value).unwrap_or_default());
    let locators = tlvs.of_kind(kind::SRV6_LOCATOR).flat_map(|value| Locator::parse_all(value).unwrap_or_default());
    let locators = locators.filter(|locator| locator.algorithm == 0).map(|locator| (locator.prefix, locator.metric));
    let mut all: Vec<_> = reachable.map(|reachable| (reachable.prefix, reachable.metric)).chain(locators).collect();
    all.retain(|(_, metric)| *metric <= GREATEST_PATH_METRIC);
    all
}
