//! The shortest paths, by number of links that have not failed: for each switch and destination the ports that lie on
//! one.
//!
//! Hosts that are attached to the same switches are reached alike, so paths are computed once for each such class: one
//! search in breadth from its switches. A fabric of thousands of hosts has some hundreds of classes.

use crate::topology::{HostId, LinkId, NodeId, SwitchId, Topology};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Links to a destination that is not reached.
const UNREACHED: u16 = u16::MAX;

/// For each switch and destination the ports toward it.
#[derive(Clone, Debug)]
pub struct NextHops {
    switches: usize,
    class_of_host: Vec<u32>,
    /// For each class the switches that its hosts are attached to.
    attached: Vec<Vec<SwitchId>>,
    /// For each class, and in it for each switch, the number of links to the nearest switch with the hosts.
    distance: Vec<u16>,
    /// The same order: which of `sets`.
    set: Vec<u32>,
    /// Every set of ports that occurs, each in ascending order.
    sets: Vec<Vec<u16>>,
    /// For each host the switches that it is attached to, with the ports there.
    last_hops: Vec<Vec<(SwitchId, Vec<u16>)>>,
}

impl NextHops {
    /// Computes all shortest paths.
    pub fn new(topology: &Topology) -> Self {
        let mut classes: BTreeMap<Vec<SwitchId>, u32> = BTreeMap::new();
        let mut attached: Vec<Vec<SwitchId>> = Vec::new();
        let mut class_of_host = Vec::new();
        for host in topology.host_ids() {
            let switches: Vec<SwitchId> = last_hops(topology, host).into_iter().map(|(at, _)| at).collect();
            let class = *classes.entry(switches).or_insert_with_key(|switches| {
                attached.push(switches.clone());
                attached.len() as u32 - 1
            });
            class_of_host.push(class);
        }
        let mut next_hops = NextHops {
            switches: topology.switches().len(),
            class_of_host,
            attached,
            distance: Vec::new(),
            set: Vec::new(),
            sets: Vec::new(),
            last_hops: topology.host_ids().map(|host| last_hops(topology, host)).collect(),
        };
        next_hops.search(topology);
        next_hops
    }

    fn search(&mut self, topology: &Topology) {
        let mut known: BTreeMap<Vec<u16>, u32> = BTreeMap::new();
        let neighbours = all_neighbours(topology);
        for attached in &self.attached {
            let distance = distances(&neighbours, attached);
            for (own, neighbours) in distance.iter().zip(&neighbours) {
                let is_nearer = |(_, next): &&(u16, SwitchId)| *own != UNREACHED && distance[next.index()] < *own;
                let ports: Vec<u16> = neighbours.iter().filter(is_nearer).map(|(port, _)| *port).collect();
                let sets = &mut self.sets;
                self.set.push(*known.entry(ports).or_insert_with_key(|ports| {
                    sets.push(ports.clone());
                    sets.len() as u32 - 1
                }));
            }
            self.distance.extend(distance);
        }
    }

    /// The class of a host: hosts of one class are attached to the same switches. Classes count from 0 in the order of
    /// their first hosts.
    pub fn class(&self, host: HostId) -> u32 {
        self.class_of_host[host.index()]
    }

    /// Number of classes.
    pub fn classes(&self) -> u32 {
        self.attached.len() as u32
    }

    /// The switches that the hosts of a class are attached to.
    pub fn attached(&self, class: u32) -> &[SwitchId] {
        &self.attached[class as usize]
    }

    /// The ports of a switch toward the hosts of a class, in ascending order. None where such a host is attached, as
    /// each has its own port there, and none where no path leads to them.
    pub fn toward_class(&self, switch: SwitchId, class: u32) -> &[u16] {
        &self.sets[self.set[self.index(switch, class)] as usize]
    }

    /// The ports of a switch toward a host, in ascending order. None where no path leads to it.
    pub fn toward(&self, switch: SwitchId, host: HostId) -> &[u16] {
        match self.last_hops[host.index()].iter().find(|(attached, _)| *attached == switch) {
            Some((_, ports)) => ports,
            None => self.toward_class(switch, self.class(host)),
        }
    }

    /// The ports of a host that begin a shortest path to another host, in ascending order.
    pub fn from_host(&self, topology: &Topology, from: HostId, to: HostId) -> Vec<u16> {
        let class = self.class(to);
        let ports = topology.open_ports(NodeId::Host(from)).filter_map(|port| match port.peer.node {
            NodeId::Switch(switch) => Some((port.port, self.distance[self.index(switch, class)])),
            NodeId::Host(_) => None,
        });
        let least = ports.clone().map(|(_, distance)| distance).min().unwrap_or(UNREACHED);
        ports.filter(|(_, distance)| *distance == least && least != UNREACHED).map(|(port, _)| port).collect()
    }

    /// Links on a shortest path between two hosts; 0 from a host to itself.
    pub fn distance(&self, from: HostId, to: HostId) -> u32 {
        if from == to {
            return 0;
        }
        let attached = &self.attached[self.class(from) as usize];
        let between = attached.iter().map(|switch| self.distance[self.index(*switch, self.class(to))]).min();
        2 + u32::from(between.unwrap_or(UNREACHED))
    }

    /// The greatest of all distances between two hosts, in links.
    pub fn diameter(&self) -> u32 {
        let mut greatest = 0;
        for attached in &self.attached {
            for other in 0..self.classes() {
                let nearest = attached.iter().map(|switch| self.distance[self.index(*switch, other)]).min();
                greatest = greatest.max(2 + u32::from(nearest.unwrap_or(0)));
            }
        }
        greatest
    }

    /// Whether a shortest path from a host to another one contains a switch.
    pub fn is_between(&self, topology: &Topology, from: HostId, switch: SwitchId, to: HostId) -> bool {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![NodeId::Host(from)];
        while let Some(at) = waiting.pop() {
            let ports = match at {
                NodeId::Host(host) if host == from => self.from_host(topology, host, to),
                NodeId::Host(_) => continue,
                NodeId::Switch(switch) => self.toward(switch, to).to_vec(),
            };
            let next = ports.into_iter().filter_map(|port| topology.port(at, port)).map(|port| port.peer.node);
            waiting.extend(next.filter(|next| reached.insert(*next)));
        }
        reached.contains(&NodeId::Switch(switch))
    }

    /// The links of one shortest path, that of the lowest ports; empty from a host to itself.
    pub fn path(&self, topology: &Topology, from: HostId, to: HostId) -> Vec<LinkId> {
        let mut path = Vec::new();
        let mut at = NodeId::Host(from);
        while at != NodeId::Host(to) {
            let first = match at {
                NodeId::Host(host) => self.from_host(topology, host, to).first().copied(),
                NodeId::Switch(switch) => self.toward(switch, to).first().copied(),
            };
            let Some(port) = first.and_then(|port| topology.port(at, port)) else { break };
            path.push(port.link);
            at = port.peer.node;
        }
        path
    }

    fn index(&self, switch: SwitchId, class: u32) -> usize {
        class as usize * self.switches + switch.index()
    }
}

/// For each switch the ports to other switches, with these.
pub(crate) fn all_neighbours(topology: &Topology) -> Vec<Vec<(u16, SwitchId)>> {
    topology.switch_ids().map(|at| neighbours(topology, at)).collect()
}

fn neighbours(topology: &Topology, switch: SwitchId) -> Vec<(u16, SwitchId)> {
    let ports = topology.open_ports(NodeId::Switch(switch));
    let neighbour = |port: &crate::Port| match port.peer.node {
        NodeId::Switch(next) => Some((port.port, next)),
        NodeId::Host(_) => None,
    };
    ports.filter_map(neighbour).collect()
}

/// For each switch the number of links to the nearest of these; `u16::MAX` where there is no way.
pub(crate) fn distances(neighbours: &[Vec<(u16, SwitchId)>], from: &[SwitchId]) -> Vec<u16> {
    let mut distance = vec![UNREACHED; neighbours.len()];
    let mut waiting: VecDeque<SwitchId> = from.iter().copied().collect();
    for switch in from {
        distance[switch.index()] = 0;
    }
    while let Some(at) = waiting.pop_front() {
        for (_, next) in &neighbours[at.index()] {
            if distance[next.index()] == UNREACHED {
                distance[next.index()] = distance[at.index()] + 1;
                waiting.push_back(*next);
            }
        }
    }
    distance
}

fn last_hops(topology: &Topology, host: HostId) -> Vec<(SwitchId, Vec<u16>)> {
    let mut last_hops: BTreeMap<SwitchId, Vec<u16>> = BTreeMap::new();
    for port in topology.open_ports(NodeId::Host(host)) {
        if let NodeId::Switch(switch) = port.peer.node {
            last_hops.entry(switch).or_default().push(port.peer.port);
        }
    }
    for ports in last_hops.values_mut() {
        ports.sort_unstable();
    }
    last_hops.into_iter().collect()
}
