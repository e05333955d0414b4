//! Dijkstra's algorithm for link-state protocols: equal paths are kept side by side, a link counts if both its ends
//! announce it, and LANs are vertices of their own.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A vertex of the graph.
pub trait Vertex: Copy + Ord {
    /// Whether it is a LAN, and no system.
    fn is_network(&self) -> bool;
}

/// The announcements of one vertex.
pub trait Edges<N> {
    /// Its neighbours, with metrics.
    fn neighbours(&self) -> &[(N, u32)];

    /// Whether paths may lead through it.
    fn is_transit(&self) -> bool;
}

/// Path to a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached<N> {
    /// The sum of metrics.
    pub distance: u64,
    /// The first systems of shortest paths; none for the root itself, and of a LAN beside it the LAN.
    pub first_hops: BTreeSet<N>,
}

impl<N> Default for Reached<N> {
    fn default() -> Self {
        Reached { distance: 0, first_hops: BTreeSet::new() }
    }
}

impl<N: Copy + Ord> Reached<N> {
    /// Farther than everything.
    pub const NOT: Reached<N> = Reached { distance: u64::MAX, first_hops: BTreeSet::new() };

    /// Takes another way; whether it is nearer than those before. Equal ones stand side by side.
    pub fn is_nearer_by(&mut self, distance: u64, first_hops: &BTreeSet<N>) -> bool {
        let order = distance.cmp(&self.distance);
        match order {
            Ordering::Less => *self = Reached { distance, first_hops: first_hops.clone() },
            Ordering::Equal => self.first_hops.extend(first_hops),
            Ordering::Greater => {}
        }
        order == Ordering::Less
    }
}

/// The paths from `root` to all vertices that can be reached.
pub fn shortest_paths<N: Vertex, E: Edges<N>>(links: &BTreeMap<N, E>, root: N) -> BTreeMap<N, Reached<N>> {
    let announced: BTreeSet<(N, N)> =
        links.iter().flat_map(|(from, links)| links.neighbours().iter().map(move |(to, _)| (*from, *to))).collect();
    let mut reached = BTreeMap::from([(root, Reached::default())]);
    // Of equal distances LANs come first: what is behind them is no farther.
    let entry = |distance: u64, node: N| Reverse((distance, !node.is_network(), node));
    let mut queue = BinaryHeap::from([entry(0, root)]);
    let mut done = BTreeSet::new();
    while let Some(Reverse((distance, _, node))) = queue.pop() {
        if !done.insert(node) {
            continue;
        }
        let Some(of_node) = links.get(&node) else { continue };
        // No path leads through an overloaded system.
        if !of_node.is_transit() && node != root {
            continue;
        }
        let before = reached.get(&node).map(|reached| reached.first_hops.clone()).unwrap_or_default();
        for (neighbour, metric) in of_node.neighbours() {
            // Behind a LAN there are systems.
            let is_link = !node.is_network() || !neighbour.is_network();
            if done.contains(neighbour) || !is_link || !announced.contains(&(*neighbour, node)) {
                continue;
            }
            let first_hops = if node == root {
                &BTreeSet::from([*neighbour])
            } else if node.is_network() && before.contains(&node) {
                // Beside the root stands a LAN for the systems behind it.
                &before.iter().map(|hop| if *hop == node { *neighbour } else { *hop }).collect()
            } else {
                &before
            };
            let further = distance + u64::from(*metric);
            if reached.entry(*neighbour).or_insert(Reached::NOT).is_nearer_by(further, first_hops) {
                queue.push(entry(further, *neighbour));
            }
        }
    }
    reached
}
