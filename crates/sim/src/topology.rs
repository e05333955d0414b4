//! Tree topologies: a source above the root node, receivers at the edge nodes.

use srdma_group::NodeRole;

/// Number of branches that a node of a generated tree has, at most.
pub const FAN_OUT: usize = 8;

/// Number of receivers that a generated tree may have.
pub const MAX_RECEIVERS: usize = 1024;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// Its name.
    pub name: String,
    /// The number in its name, from 1.
    pub number: u16,
    /// The position of the node above; `None` for the first alone.
    pub parent: Option<usize>,
}

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its name.
    pub name: String,
    /// The number in its name, from 1.
    pub number: u16,
    /// The position of the edge node that it is attached to.
    pub edge: usize,
}

/// A tree: the source's first-hop node first, every other node behind the one above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<TreeNode>,
    receivers: Vec<Leaf>,
}

/// The source's name.
pub const SOURCE_NAME: &str = "S1";

impl Topology {
    /// The draft's Figure 1 (D34).
    ///
    /// ```text
    ///              S1
    ///              │
    ///              N6
    ///            ╱    ╲
    ///          N4      N5
    ///         ╱  ╲      │
    ///       N1    N2    N3
    ///      ╱  ╲   │    ╱  ╲
    ///     R1  R2  R3  R4  R5
    /// ```
    pub fn figure_1() -> Self {
        let node = |number, parent| TreeNode { name: format!("N{number}"), number, parent };
        let nodes = [(6, None), (4, Some(0)), (5, Some(0)), (1, Some(1)), (2, Some(1)), (3, Some(2))];
        let edges = [3, 3, 4, 5, 5];
        Topology {
            nodes: nodes.map(|(number, parent)| node(number, parent)).into(),
            receivers: edges.into_iter().zip(1..).map(|(edge, number)| leaf(number, edge)).collect(),
        }
    }

    /// The lowest balanced tree of [`FAN_OUT`] for so many receivers, 1 to [`MAX_RECEIVERS`]: a root that is no edge,
    /// as many levels of transit nodes as it takes, and edges with up to [`FAN_OUT`] receivers. `None` for other
    /// numbers.
    pub fn balanced(receivers: usize) -> Option<Self> {
        if receivers == 0 || receivers > MAX_RECEIVERS {
            return None;
        }
        let mut widths = vec![receivers.div_ceil(FAN_OUT)];
        while let Some(width) = widths.last().copied().filter(|width| *width > FAN_OUT) {
            widths.push(width.div_ceil(FAN_OUT));
        }
        let mut nodes = vec![TreeNode { name: "N1".to_owned(), number: 1, parent: None }];
        let mut above = 0..1;
        for width in widths.into_iter().rev() {
            let level = nodes.len()..nodes.len() + width;
            for position in 0..width {
                let number = nodes.len() as u16 + 1;
                let parent = above.start + share(position, width, above.len());
                nodes.push(TreeNode { name: format!("N{number}"), number, parent: Some(parent) });
            }
            above = level;
        }
        let edge = |position| above.start + share(position, receivers, above.len());
        let receivers = (0..receivers).map(|position| leaf(position as u16 + 1, edge(position))).collect();
        Some(Topology { nodes, receivers })
    }

    /// The nodes, the first-hop node first.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// The receivers.
    pub fn receivers(&self) -> &[Leaf] {
        &self.receivers
    }

    /// Whether receivers are attached to the node at this position.
    pub fn is_edge(&self, position: usize) -> bool {
        self.receivers.iter().any(|receiver| receiver.edge == position)
    }

    /// The role of the node at this position; `is_headend`: it is that of the tree.
    pub(crate) fn role(&self, position: usize, is_headend: bool) -> NodeRole {
        NodeRole::of(self.is_edge(position), is_headend || self.children(position).next().is_some())
    }

    /// The positions of the nodes below a node.
    pub fn children(&self, position: usize) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |child| self.nodes[*child].parent == Some(position))
    }

    /// The position of the node itself, of the one above it, and so on up to the first-hop node.
    pub fn path_up(&self, position: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(position), |position| self.nodes[*position].parent)
    }

    /// Number of nodes that a packet passes from the source to a receiver, at most.
    pub fn levels(&self) -> usize {
        self.receivers.iter().map(|receiver| self.path_up(receiver.edge).count()).max().unwrap_or(0)
    }
}

fn leaf(number: u16, edge: usize) -> Leaf {
    Leaf { name: format!("R{number}"), number, edge }
}

/// To which of `groups` the item at `position` of `items` belongs, when they are shared out evenly and in order.
fn share(position: usize, items: usize, groups: usize) -> usize {
    position * groups / items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D34
    #[test]
    fn figure_1_is_that_of_the_draft() {
        let topology = Topology::figure_1();
        let name = |position: usize| topology.nodes[position].name.as_str();
        let mut links: Vec<String> = vec![format!("S1-{}", name(0))];
        links.extend(topology.nodes.iter().filter_map(|node| Some(format!("{}-{}", name(node.parent?), node.name))));
        links.extend(topology.receivers.iter().map(|leaf| format!("{}-{}", name(leaf.edge), leaf.name)));
        let expected = "S1-N6 N6-N4 N6-N5 N4-N1 N4-N2 N5-N3 N1-R1 N1-R2 N2-R3 N3-R4 N3-R5";
        assert_eq!(links.join(" "), expected);
        assert_eq!(topology.levels(), 3);
    }

    #[test]
    fn generated_trees_are_balanced_and_within_the_fan_out() {
        for receivers in 1..=MAX_RECEIVERS {
            let topology = Topology::balanced(receivers).unwrap();
            assert_eq!(topology.receivers.len(), receivers);
            let mut loads = vec![0; topology.nodes.len()];
            for leaf in &topology.receivers {
                loads[leaf.edge] += 1;
            }
            for (position, node) in topology.nodes.iter().enumerate() {
                assert!(node.parent.is_none_or(|parent| parent < position));
                let children = topology.children(position).count();
                assert!(children <= FAN_OUT && loads[position] <= FAN_OUT, "{receivers} receivers: {}", node.name);
                assert!((children == 0) != (loads[position] == 0), "a node is either transit or edge");
            }
            let edges = loads.iter().filter(|load| **load > 0);
            let (least, most) = (edges.clone().min().unwrap(), edges.max().unwrap());
            assert!(most - least <= 1, "{receivers} receivers: {least} to {most} at an edge");
            let depths: Vec<usize> =
                topology.receivers.iter().map(|leaf| topology.path_up(leaf.edge).count()).collect();
            assert!(depths.iter().all(|depth| *depth == topology.levels()));
        }
    }

    #[test]
    fn the_largest_tree_has_four_levels() {
        let topology = Topology::balanced(1024).unwrap();
        assert_eq!((topology.nodes.len(), topology.levels()), (1 + 2 + 16 + 128, 4));
        assert_eq!(Topology::balanced(1).unwrap().nodes.len(), 2);
        assert!(Topology::balanced(0).is_none() && Topology::balanced(1025).is_none());
    }
}
