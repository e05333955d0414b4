//! What links carry.

use crate::flow::Flow;
use srdma_fabric::{LinkId, NodeId, Path, Topology};

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Direction {
    /// The link.
    pub link: LinkId,
    /// Whether it is the direction toward the first of the link's ends.
    pub is_backward: bool,
}

/// Bits a second that each link carries, by direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Forward and backward, link by link.
    bits_per_s: Vec<[u64; 2]>,
}

impl Loads {
    /// Nothing on any link.
    pub fn none(topology: &Topology) -> Self {
        Loads { bits_per_s: vec![[0; 2]; topology.links().len()] }
    }

    /// What flows on their paths make.
    pub fn of<'a>(topology: &Topology, placed: impl IntoIterator<Item = (&'a Flow, &'a Path)>) -> Self {
        let mut loads = Loads::none(topology);
        placed.into_iter().for_each(|(flow, path)| loads.add(topology, path, flow.rate_bits_per_s));
        loads
    }

    /// Adds a flow's rate to the links of its path.
    pub fn add(&mut self, topology: &Topology, path: &Path, rate_bits_per_s: u64) {
        let mut at = NodeId::Host(path.from);
        for link in &path.links {
            let [first, second] = topology.links()[link.index()].ends;
            let is_backward = first.node != at;
            self.bits_per_s[link.index()][usize::from(is_backward)] += rate_bits_per_s;
            at = if is_backward { first.node } else { second.node };
        }
    }

    /// What a link carries in a direction, in bits a second.
    pub fn bits_per_s(&self, direction: Direction) -> u64 {
        self.bits_per_s[direction.link.index()][usize::from(direction.is_backward)]
    }

    /// The direction that carries most by its link's rate, and how much: 1 is the whole rate. The first of several.
    pub fn most_loaded(&self, topology: &Topology) -> (Direction, f64) {
        let none = Direction { link: LinkId(0), is_backward: false };
        let mut most = (none, 0.0);
        for link in topology.link_ids() {
            let rate = topology.links()[link.index()].rate_bits_per_s as f64;
            for is_backward in [false, true] {
                let direction = Direction { link, is_backward };
                let load = self.bits_per_s(direction) as f64 / rate;
                if load > most.1 {
                    most = (direction, load);
                }
            }
        }
        most
    }
}
