//! The tree of a group over the network.
//!
//! The cheapest tree that joins given nodes is a Steiner tree, which is NP-hard to find. The heuristic of Takahashi
//! and Matsuyama (1980) is used: the edge nearest to the tree is added by its shortest path, then the next nearest,
//! until all are in. If all nodes may carry it, its cost is at most 2 - 2/n times the least, with n edges and headend.
//! Nodes with receivers may, as bud nodes (D246); the tests compare it with the best tree of small networks.
//!
//! ```text
//!   headend ──► shortest paths from all of the tree ──► nearest edge is added ─┐
//!                        ▲                                                    │
//!                        └────────────────────────────────────────────────────┘
//! ```

use crate::network::Network;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::Ipv6Addr;

/// Builds a tree: each node with its parent; the headend has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeBuilder {
    headend: Ipv6Addr,
    above: BTreeMap<Ipv6Addr, Ipv6Addr>,
    edges: BTreeSet<Ipv6Addr>,
    /// A node below which there is none.
    avoided: Option<Ipv6Addr>,
}

/// An added edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// From the node of the tree where it was attached, to the edge.
    pub(crate) path: Vec<Ipv6Addr>,
    /// The cost of the path.
    pub(crate) cost: u32,
}

/// No tree was found, since no path leads to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreachable(pub(crate) Ipv6Addr);

impl TreeBuilder {
    /// A tree of a headend alone, which has no receivers.
    pub(crate) fn new(headend: Ipv6Addr) -> Self {
        TreeBuilder { headend, above: BTreeMap::new(), edges: BTreeSet::new(), avoided: None }
    }

    /// The same, with no node below this one.
    pub(crate) fn without(self, avoided: Ipv6Addr) -> Self {
        TreeBuilder { avoided: Some(avoided), ..self }
    }

    /// An existing tree. `above`: pairs of node and parent.
    pub(crate) fn of(
        headend: Ipv6Addr,
        above: impl IntoIterator<Item = (Ipv6Addr, Ipv6Addr)>,
        edges: impl IntoIterator<Item = Ipv6Addr>,
    ) -> Self {
        TreeBuilder { headend, above: above.into_iter().collect(), edges: edges.into_iter().collect(), avoided: None }
    }

    /// Adds edges, the nearest first.
    pub(crate) fn add_edges(&mut self, network: &Network, edges: &[Ipv6Addr]) -> Result<Vec<Step>, Unreachable> {
        let mut missing: BTreeSet<Ipv6Addr> = edges.iter().copied().filter(|edge| !self.contains(*edge)).collect();
        self.edges.extend(edges);
        let mut steps = Vec::new();
        let mut search = Search::new(network);
        let nodes = std::iter::once(self.headend).chain(self.above.keys().copied());
        nodes.filter(|node| self.carries(network, *node)).for_each(|node| search.begin_at(node));
        // The search continues from step to step: the nodes of each path are further roots.
        while !missing.is_empty() {
            let Some(step) = search.next_end(&missing, |via| Some(via) != self.avoided) else {
                let unreachable = missing.first().copied().unwrap_or(self.headend);
                return Err(Unreachable(unreachable));
            };
            for pair in step.path.windows(2) {
                self.above.insert(pair[1], pair[0]);
            }
            if let Some(edge) = step.path.last() {
                missing.remove(edge);
            }
            let carriers = step.path.iter().filter(|node| self.carries(network, **node));
            carriers.for_each(|node| search.begin_at(*node));
            steps.push(step);
        }
        Ok(steps)
    }

    /// Another path from the tree to one of its nodes, avoiding all nodes below it, and a node that is given.
    pub(crate) fn alternative_path(
        &self,
        network: &Network,
        node: Ipv6Addr,
        avoided: Option<Ipv6Addr>,
    ) -> Option<Step> {
        let below = self.below(node);
        let roots: Vec<Ipv6Addr> = std::iter::once(self.headend)
            .chain(self.above.keys().copied())
            .filter(|root| self.carries(network, *root) && !below.contains(root) && Some(*root) != avoided)
            .filter(|root| avoided.is_none_or(|avoided| !self.is_below(*root, avoided)))
            .collect();
        let may_pass = |via: Ipv6Addr| Some(via) != avoided && !below.contains(&via) && !self.above.contains_key(&via);
        let mut search = Search::new(network);
        roots.into_iter().for_each(|root| search.begin_at(root));
        search.next_end(&BTreeSet::from([node]), may_pass)
    }

    /// Adds a node, or an edge, below one of the tree, whether there is a path between them or not.
    pub(crate) fn put_below(&mut self, node: Ipv6Addr, above: Ipv6Addr) {
        self.above.insert(node, above);
    }

    /// Whether a node is in the tree.
    pub(crate) fn contains(&self, node: Ipv6Addr) -> bool {
        node == self.headend || self.above.contains_key(&node)
    }

    /// Whether nodes may be attached at a node of the tree.
    pub(crate) fn carries(&self, network: &Network, node: Ipv6Addr) -> bool {
        Some(node) != self.avoided && (node == self.headend || network.replicates(node))
    }

    /// The node and its descendants.
    fn below(&self, node: Ipv6Addr) -> BTreeSet<Ipv6Addr> {
        let is_in = |other: &Ipv6Addr| *other == node || self.is_below(*other, node);
        self.above.keys().copied().filter(is_in).chain([node]).collect()
    }

    fn is_below(&self, node: Ipv6Addr, other: Ipv6Addr) -> bool {
        let mut at = node;
        // A tree has no cycle, but input may have one.
        for _ in 0..=self.above.len() {
            match self.above.get(&at) {
                Some(above) if *above == other => return true,
                Some(above) => at = *above,
                None => return false,
            }
        }
        false
    }

    /// The nodes, parents before children, each with the one above.
    pub(crate) fn nodes(&self) -> Vec<(Ipv6Addr, Option<Ipv6Addr>)> {
        let mut children: BTreeMap<Ipv6Addr, Vec<Ipv6Addr>> = BTreeMap::new();
        for (node, above) in &self.above {
            children.entry(*above).or_default().push(*node);
        }
        let mut nodes = vec![(self.headend, None)];
        let mut next = 0;
        while let Some((node, _)) = nodes.get(next).copied() {
            nodes.extend(children.remove(&node).into_iter().flatten().map(|child| (child, Some(node))));
            next += 1;
        }
        nodes
    }

    /// Number of links of the shortest paths from the headend to each edge, which unicast would use.
    pub(crate) fn links_of_unicast(&self, network: &Network) -> u32 {
        let mut search = Search::new(network);
        search.begin_at(self.headend);
        let mut missing = self.edges.clone();
        let mut links = 0;
        while let Some(step) = search.next_end(&missing, |_| true) {
            links += step.path.len().saturating_sub(1) as u32;
            let Some(edge) = step.path.last() else { break };
            missing.remove(edge);
        }
        links
    }
}

/// A search for the ends that are nearest to some roots (Dijkstra 1959), one after the other. Roots may be added in
/// between: labels only decrease, so that what was found is used again, and each node is visited once for each
/// decrease. Of equal paths the one of the lowest addresses is found, as by a search that begins anew.
struct Search<'a> {
    network: &'a Network,
    /// The cost of each node's path, and the node before it; none for a root.
    labels: BTreeMap<Ipv6Addr, (u32, Option<Ipv6Addr>)>,
    heap: BinaryHeap<Reverse<(u32, Ipv6Addr)>>,
}

impl<'a> Search<'a> {
    fn new(network: &'a Network) -> Self {
        Search { network, labels: BTreeMap::new(), heap: BinaryHeap::new() }
    }

    /// Adds a root, if new trees may use the node.
    fn begin_at(&mut self, root: Ipv6Addr) {
        let is_usable = self.network.node(root).is_some_and(|node| node.is_usable);
        if is_usable && self.labels.insert(root, (0, None)) != Some((0, None)) {
            self.heap.push(Reverse((0, root)));
        }
    }

    /// The path from a root to the nearest of `wanted`, which may pass through these nodes, as far as they replicate.
    /// An end that was found is not to be wanted again.
    fn next_end(&mut self, wanted: &BTreeSet<Ipv6Addr>, may_pass: impl Fn(Ipv6Addr) -> bool) -> Option<Step> {
        while let Some(Reverse((cost, at))) = self.heap.pop() {
            if self.labels.get(&at).is_some_and(|(known, _)| *known < cost) {
                continue;
            }
            // Paths to other ends may lead through this one.
            if self.labels.get(&at).is_some_and(|(_, before)| before.is_none()) || self.carries(at, &may_pass) {
                self.look_around(at, cost, wanted, &may_pass);
            }
            if wanted.contains(&at) {
                return Some(Step { path: self.path_to(at), cost });
            }
        }
        None
    }

    /// Labels the neighbours of a node.
    fn look_around(
        &mut self,
        at: Ipv6Addr,
        cost: u32,
        wanted: &BTreeSet<Ipv6Addr>,
        may_pass: &impl Fn(Ipv6Addr) -> bool,
    ) {
        for hop in self.network.hops(at).filter(|hop| !hop.is_down) {
            let cost = cost.saturating_add(hop.cost.max(1));
            let known = self.labels.get(&hop.to);
            // First, since that is so for most links.
            if known.is_some_and(|(known, before)| (cost, Some(at)) >= (*known, *before)) {
                continue;
            }
            // A lower address before it, at the same cost, changes no other label.
            let is_visited_again = known.is_none_or(|(known, _)| cost < *known);
            let Some(next) = self.network.node(hop.to) else { continue };
            if !next.is_usable || !(wanted.contains(&hop.to) || self.carries(hop.to, may_pass)) {
                continue;
            }
            self.labels.insert(hop.to, (cost, Some(at)));
            if is_visited_again {
                self.heap.push(Reverse((cost, hop.to)));
            }
        }
    }

    fn carries(&self, node: Ipv6Addr, may_pass: &impl Fn(Ipv6Addr) -> bool) -> bool {
        self.network.replicates(node) && may_pass(node)
    }

    fn path_to(&self, end: Ipv6Addr) -> Vec<Ipv6Addr> {
        let mut path = vec![end];
        let mut at = end;
        while let Some((_, Some(before))) = self.labels.get(&at) {
            path.push(*before);
            at = *before;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use srdma_api::{Link, PROTOCOL, Registration};

    fn loopback(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
    }

    fn registration(links: &[(u16, u16, u32)], number: u16) -> Registration {
        let ends = links.iter().flat_map(|(a, b, cost)| [(*a, *b, *cost), (*b, *a, *cost)]);
        let links = ends.filter(|(from, _, _)| *from == number);
        Registration {
            protocol: PROTOCOL,
            name: format!("N{number}"),
            loopback: loopback(number),
            end_mt: None,
            replication: format!("2001:db8:ff:{number:x}:f::/80").parse().ok(),
            links: links.map(|(_, to, cost)| Link { to: loopback(to), mtu: 9000, cost }).collect(),
            hosts: Vec::new(),
            groups: Vec::new(),
            repairs: false,
        }
    }

    fn network(nodes: u16, links: &[(u16, u16, u32)]) -> Network {
        let mut network = Network::default();
        for number in 0..nodes {
            network.put(&registration(links, number), true);
        }
        network
    }

    fn cost(network: &Network, tree: &TreeBuilder) -> u32 {
        let costs = tree.above.iter().map(|(node, above)| network.hop(*above, *node).unwrap().cost);
        costs.sum()
    }

    /// The cost of the best tree, by trying each set of nodes to carry it: a spanning tree of each set.
    fn least_cost(network: &Network, nodes: u16, headend: u16, edges: &[u16]) -> Option<u32> {
        let others: Vec<u16> = (0..nodes).filter(|node| *node != headend && !edges.contains(node)).collect();
        let with_edges = || edges.iter().copied().chain([headend]);
        let mut least = None;
        for chosen in 0_u32..1 << others.len() {
            let carriers = (0..others.len()).filter(|bit| chosen & 1 << bit != 0).map(|bit| others[bit]);
            let inner: Vec<Ipv6Addr> = carriers.chain(with_edges()).map(loopback).collect();
            // Prim among those that carry, edges included.
            let mut reached = vec![loopback(headend)];
            let mut sum = 0;
            while reached.len() < inner.len() {
                let hops = reached.iter().flat_map(|node| network.hops(*node));
                let next = hops.filter(|hop| inner.contains(&hop.to) && !reached.contains(&hop.to));
                let Some(next) = next.min_by_key(|hop| hop.cost) else { break };
                sum += next.cost;
                reached.push(next.to);
            }
            if reached.len() == inner.len() {
                least = Some(least.map_or(sum, |least: u32| least.min(sum)));
            }
        }
        least
    }

    proptest! {
        /// Every edge is in, and the cost is within the heuristic's bound of the best.
        #[test]
        fn a_tree_costs_at_most_twice_the_least(
            links in prop::collection::btree_map((0_u16..9, 0_u16..9), 1_u32..9, 8..30),
            edges in prop::collection::btree_set(1_u16..9, 1..5),
        ) {
            let links: Vec<(u16, u16, u32)> =
                links.into_iter().filter(|((a, b), _)| a < b).map(|((a, b), cost)| (a, b, cost)).collect();
            let network = network(9, &links);
            let edges: Vec<u16> = edges.into_iter().collect();
            let wanted: Vec<Ipv6Addr> = edges.iter().copied().map(loopback).collect();
            let mut tree = TreeBuilder::new(loopback(0));
            let least = least_cost(&network, 9, 0, &edges);
            match tree.add_edges(&network, &wanted) {
                Ok(steps) => {
                    let nodes = tree.nodes();
                    for edge in &wanted {
                        prop_assert!(nodes.iter().any(|(node, _)| node == edge));
                    }
                    let cost = cost(&network, &tree);
                    prop_assert_eq!(cost, steps.iter().map(|step| step.cost).sum::<u32>());
                    let least = least.expect("there is a tree");
                    prop_assert!(cost >= least && cost <= 2 * least, "{} against {}", cost, least);
                }
                Err(_) => prop_assert_eq!(least, None),
            }
        }
    }

    /// The tree, and the links of unicast, by a new search for each edge.
    fn by_new_searches(network: &Network, edges: &[Ipv6Addr]) -> (BTreeMap<Ipv6Addr, Ipv6Addr>, u32) {
        let mut missing: BTreeSet<Ipv6Addr> = edges.iter().copied().collect();
        let mut above: BTreeMap<Ipv6Addr, Ipv6Addr> = BTreeMap::new();
        let unicast = edges.iter().filter_map(|edge| {
            let mut search = Search::new(network);
            search.begin_at(loopback(0));
            search.next_end(&BTreeSet::from([*edge]), |_| true).map(|step| step.path.len() as u32 - 1)
        });
        let unicast = unicast.sum();
        while !missing.is_empty() {
            let mut search = Search::new(network);
            search.begin_at(loopback(0));
            above.keys().for_each(|node| search.begin_at(*node));
            let Some(step) = search.next_end(&missing, |_| true) else { break };
            above.extend(step.path.windows(2).map(|pair| (pair[1], pair[0])));
            missing.remove(step.path.last().unwrap());
        }
        (above, unicast)
    }

    proptest! {
        /// A search that continues finds what new searches find, also where paths cost the same.
        #[test]
        fn a_continued_search_finds_what_new_ones_find(
            links in prop::collection::btree_map((0_u16..12, 0_u16..12), 1_u32..3, 10..60),
            edges in prop::collection::btree_set(1_u16..12, 1..7),
        ) {
            let links: Vec<(u16, u16, u32)> =
                links.into_iter().filter(|((a, b), _)| a < b).map(|((a, b), cost)| (a, b, cost)).collect();
            let network = network(12, &links);
            let wanted: Vec<Ipv6Addr> = edges.into_iter().map(loopback).collect();
            let mut tree = TreeBuilder::new(loopback(0));
            let found = tree.add_edges(&network, &wanted);
            let (above, unicast) = by_new_searches(&network, &wanted);
            if found.is_ok() {
                prop_assert_eq!(&tree.above, &above);
            }
            prop_assert_eq!(tree.links_of_unicast(&network), unicast);
        }
    }

    /// Figure 1: five links where three unicast paths have seven... each edge by itself has two.
    #[test]
    fn paths_are_shared() {
        let network = network(6, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1), (2, 5, 1)]);
        let mut tree = TreeBuilder::new(loopback(0));
        tree.add_edges(&network, &[loopback(3), loopback(4), loopback(5)]).unwrap();
        assert_eq!((tree.nodes().len() - 1, tree.links_of_unicast(&network)), (5, 6));
    }

    /// The children of a removed node are attached elsewhere; nodes below them are no alternative.
    #[test]
    fn children_are_attached_elsewhere() {
        let network = network(6, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (3, 4, 1), (2, 3, 1), (4, 2, 1)]);
        let tree = TreeBuilder::of(
            loopback(0),
            [(1, 0), (3, 1), (4, 3)].map(|(node, above)| (loopback(node), loopback(above))),
            [loopback(4)],
        );
        let step = tree.alternative_path(&network, loopback(3), Some(loopback(1))).unwrap();
        assert_eq!(step.path, [0, 2, 3].map(loopback));
        assert_eq!(tree.alternative_path(&network, loopback(1), Some(loopback(0))), None);
    }

    /// In any order: the headend's own receivers, those of a node that carries, and those behind one that has some.
    #[test]
    fn edges_may_carry() {
        let network = network(4, &[(0, 1, 1), (1, 2, 1)]);
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for order in orders {
            let mut tree = TreeBuilder::new(loopback(0));
            for edge in order {
                tree.add_edges(&network, &[loopback(edge)]).unwrap();
            }
            assert_eq!(
                tree.nodes(),
                [(0, None), (1, Some(0)), (2, Some(1))].map(|(node, above)| (loopback(node), above.map(loopback))),
                "{order:?}"
            );
        }
        let mut tree = TreeBuilder::new(loopback(0));
        assert_eq!(tree.add_edges(&network, &[loopback(3)]), Err(Unreachable(loopback(3))));
    }

    /// A node without a Replication SID has receivers, and none below it.
    #[test]
    fn a_node_that_does_not_replicate_carries_nothing() {
        let mut network = network(4, &[(0, 1, 1), (1, 2, 1), (0, 3, 5), (3, 2, 5)]);
        let registration = Registration { replication: None, ..registration(&[(0, 1, 1), (1, 2, 1)], 1) };
        network.put(&registration, true);
        let mut tree = TreeBuilder::new(loopback(0));
        tree.add_edges(&network, &[loopback(1)]).unwrap();
        let steps = tree.add_edges(&network, &[loopback(2)]).unwrap();
        assert_eq!(steps[0].path, [0, 3, 2].map(loopback));
    }
}
