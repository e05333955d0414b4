//! Load of links.

use srdma_fabric::{LinkId, NodeId, Path, Topology};

/// A link in one direction.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Direction {
    pub link: LinkId,
    /// Whether it is the direction toward the first of the link's ends.
    pub is_backward: bool,
}

impl Direction {
    /// The direction of a link away from a node that it ends at.
    pub fn from(topology: &Topology, node: NodeId, link: LinkId) -> Self {
        Direction { link, is_backward: topology.links()[link.index()].ends[0].node != node }
    }

    /// The other direction of the same link.
    pub fn reversed(self) -> Self {
        Direction { is_backward: !self.is_backward, ..self }
    }

    /// The node at its end.
    pub fn to(self, topology: &Topology) -> NodeId {
        topology.links()[self.link.index()].ends[usize::from(!self.is_backward)].node
    }

    /// The node at its beginning.
    pub fn origin(self, topology: &Topology) -> NodeId {
        self.reversed().to(topology)
    }

    /// Position among all directions: two for each link.
    pub(crate) fn index(self) -> usize {
        2 * self.link.index() + usize::from(self.is_backward)
    }

    /// The direction at a position.
    pub(crate) fn at(index: usize) -> Self {
        Direction { link: LinkId((index / 2) as u32), is_backward: index % 2 == 1 }
    }
}

/// The directions of a path, in their order.
pub fn directions(topology: &Topology, path: &Path) -> Vec<Direction> {
    let mut at = NodeId::Host(path.from);
    let along = path.links.iter().map(|link| {
        let direction = Direction::from(topology, at, *link);
        at = direction.to(topology);
        direction
    });
    along.collect()
}

/// Bits a second that each link carries, by direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads {
    bits_per_s: Vec<u64>,
    /// Incoming load of each switch.
    through_bits_per_s: Vec<u64>,
    /// The rates of each switch's links together.
    capacity_bits_per_s: Vec<u64>,
}

impl Loads {
    /// Nothing on any link.
    pub fn none(topology: &Topology) -> Self {
        let capacity = |switch| {
            let links = topology.ports(NodeId::Switch(switch)).iter().map(|port| port.link.index());
            links.map(|link| topology.links()[link].rate_bits_per_s).sum::<u64>().max(1)
        };
        Loads {
            bits_per_s: vec![0; 2 * topology.links().len()],
            through_bits_per_s: vec![0; topology.switches().len()],
            capacity_bits_per_s: topology.switch_ids().map(capacity).collect(),
        }
    }

    /// Adds a flow's rate to the directions that it uses.
    pub fn add(&mut self, topology: &Topology, along: &[Direction], rate_bits_per_s: u64) {
        self.change(topology, along, |load| *load += rate_bits_per_s);
    }

    /// Takes back what was added.
    pub(crate) fn remove(&mut self, topology: &Topology, along: &[Direction], rate_bits_per_s: u64) {
        self.change(topology, along, |load| *load -= rate_bits_per_s);
    }

    fn change(&mut self, topology: &Topology, along: &[Direction], change: impl Fn(&mut u64)) {
        for direction in along {
            change(&mut self.bits_per_s[direction.index()]);
            if let NodeId::Switch(switch) = direction.to(topology) {
                change(&mut self.through_bits_per_s[switch.index()]);
            }
        }
    }

    /// Incoming load of a switch, relative to the sum of its links' rates; 0 for a host.
    pub fn through(&self, node: NodeId) -> f64 {
        match node {
            NodeId::Switch(switch) => {
                let index = switch.index();
                self.through_bits_per_s[index] as f64 / self.capacity_bits_per_s[index] as f64
            }
            NodeId::Host(_) => 0.0,
        }
    }

    /// Load of a direction, in bits per second.
    pub fn bits_per_s(&self, direction: Direction) -> u64 {
        self.bits_per_s[direction.index()]
    }

    /// Utilization of a direction with an additional load.
    pub fn share_with(&self, topology: &Topology, direction: Direction, more_bits_per_s: u64) -> f64 {
        let rate = topology.links()[direction.link.index()].rate_bits_per_s as f64;
        (self.bits_per_s(direction) + more_bits_per_s) as f64 / rate
    }

    /// The direction that carries most by its link's rate, and how much: 1 is the whole rate. The first of several.
    pub fn most_loaded(&self, topology: &Topology) -> (Direction, f64) {
        let shares = (0..self.bits_per_s.len()).map(|index| {
            let direction = Direction::at(index);
            (direction, self.share_with(topology, direction, 0))
        });
        let first = (Direction::at(0), 0.0);
        shares.fold(first, |most, own| if own.1 > most.1 { own } else { most })
    }
}
