//! The path of a packet through a fabric: link by link, from host to host.

use crate::topology::{End, HostId, LinkId, NodeId, SwitchId, Topology};

/// Links one behind the other, from a host through switches to another host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Its first host.
    pub from: HostId,
    /// Its last host.
    pub to: HostId,
    /// The links, in their order: the first is the sender's, the last the receiver's.
    pub links: Vec<LinkId>,
}

/// The reason why links form no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PathError {
    /// The error and its place.
    pub problem: String,
}

impl Path {
    /// The path from a host along links.
    ///
    /// # Errors
    ///
    /// A link that does not begin where the one before ends, a host in the middle, a switch at the end.
    pub fn new(topology: &Topology, from: HostId, links: Vec<LinkId>) -> Result<Self, PathError> {
        let mut at = NodeId::Host(from);
        for (index, link) in links.iter().enumerate() {
            if index > 0 && matches!(at, NodeId::Host(_)) {
                let problem = format!("the path goes through {}, which is a host", topology.name(at));
                return Err(PathError { problem });
            }
            let Some((_, far)) = ends_from(topology, at, *link) else {
                let problem = format!("link {} does not begin at {}", topology.link_name(*link), topology.name(at));
                return Err(PathError { problem });
            };
            at = far.node;
        }
        match at {
            NodeId::Host(to) if !links.is_empty() => Ok(Path { from, to, links }),
            NodeId::Host(_) | NodeId::Switch(_) => {
                Err(PathError { problem: format!("the path ends at {}: expected a host", topology.name(at)) })
            }
        }
    }

    /// The same path, if it ends at a host.
    ///
    /// # Errors
    ///
    /// It ends at another one.
    pub fn ends_at(self, topology: &Topology, to: HostId) -> Result<Self, PathError> {
        if self.to == to {
            return Ok(self);
        }
        let [found, expected] = [self.to, to].map(|host| topology.name(NodeId::Host(host)));
        Err(PathError { problem: format!("the path ends at {found}: expected {expected}") })
    }

    /// Each switch of the path with the egress link there.
    pub fn hops<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = (SwitchId, LinkId)> + 'a {
        let mut at = NodeId::Host(self.from);
        self.links.iter().filter_map(move |link| {
            let left = at;
            at = ends_from(topology, left, *link)?.1.node;
            match left {
                NodeId::Switch(switch) => Some((switch, *link)),
                NodeId::Host(_) => None,
            }
        })
    }

    /// The names of the nodes on the way, from host to host.
    pub fn node_names(&self, topology: &Topology) -> Vec<String> {
        let switches = self.hops(topology).map(|(switch, _)| NodeId::Switch(switch));
        let all = [NodeId::Host(self.from)].into_iter().chain(switches).chain([NodeId::Host(self.to)]);
        all.map(|node| topology.name(node).to_owned()).collect()
    }

    /// The same links the other way.
    pub fn reversed(&self) -> Path {
        Path { from: self.to, to: self.from, links: self.links.iter().rev().copied().collect() }
    }
}

/// The ends of a link, the one at a node first; `None` if it has no end there.
pub(crate) fn ends_from(topology: &Topology, node: NodeId, link: LinkId) -> Option<(End, End)> {
    let [one, other] = topology.links().get(link.index())?.ends;
    if one.node == node {
        Some((one, other))
    } else if other.node == node {
        Some((other, one))
    } else {
        None
    }
}
