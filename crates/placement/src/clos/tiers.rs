//! The tiers of a fabric, from the hosts upward: sets of leaves, pods, planes; or the reason why it is no folded Clos.

use super::{NotClos, not};
use crate::load::Direction;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use std::collections::BTreeMap;

/// The links up of a switch, by the switch that they lead to.
pub(super) struct Up {
    pub(super) links: BTreeMap<SwitchId, Vec<Direction>>,
}

impl Up {
    pub(super) fn of(topology: &Topology, switch: SwitchId) -> Self {
        let (tier, node) = (topology.switches()[switch.index()].tier, NodeId::Switch(switch));
        let mut links: BTreeMap<SwitchId, Vec<Direction>> = BTreeMap::new();
        for port in topology.ports(node) {
            match port.peer.node {
                NodeId::Switch(peer) if topology.switches()[peer.index()].tier > tier => {
                    links.entry(peer).or_default().push(Direction::from(topology, node, port.link));
                }
                NodeId::Switch(_) | NodeId::Host(_) => {}
            }
        }
        Up { links }
    }
}

/// Every link between switches joins a tier with the next.
pub(super) fn check_tiers(topology: &Topology) -> Result<(), NotClos> {
    for link in topology.link_ids() {
        let tiers = topology.links()[link.index()].ends.map(|end| match end.node {
            NodeId::Switch(switch) => Some(topology.switches()[switch.index()].tier),
            NodeId::Host(_) => None,
        });
        if let [Some(one), Some(other)] = tiers
            && one.abs_diff(other) != 1
        {
            return not(format!("link {} does not join neighbouring tiers", topology.link_name(link)));
        }
    }
    Ok(())
}

/// Number of links to each upper switch, and their rate, if they are the same for all.
pub(super) fn even(topology: &Topology, switches: &[SwitchId], above: &[Up]) -> Result<(usize, u64), NotClos> {
    let mut found: Option<(usize, usize, u64)> = None;
    for (switch, up) in switches.iter().zip(above) {
        for links in up.links.values() {
            for Direction { link, .. } in links {
                let own = (up.links.len(), links.len(), topology.links()[link.index()].rate_bits_per_s);
                if *found.get_or_insert(own) != own {
                    let name = topology.name(NodeId::Switch(*switch));
                    return not(format!("the links up of {name} differ in number or rate from others of its tier"));
                }
            }
        }
    }
    Ok(found.map_or((0, 0), |(_, width, rate)| (width, rate)))
}

/// Attachment of hosts.
pub(super) struct Homes {
    /// Links of each host.
    pub(super) homes: usize,
    /// For each host its links, upward, and which of `leaves`.
    pub(super) hosts: Vec<(Vec<Direction>, u32)>,
    /// For each set of leaves that have the same hosts, these leaves in the order of the hosts' links.
    pub(super) leaves: Vec<Vec<SwitchId>>,
}

impl Homes {
    pub(super) fn of(topology: &Topology, above: &BTreeMap<SwitchId, Up>) -> Result<Self, NotClos> {
        let mut found = Homes { homes: 1, hosts: Vec::new(), leaves: Vec::new() };
        let mut numbers: BTreeMap<Vec<SwitchId>, u32> = BTreeMap::new();
        let mut set_of_leaf: BTreeMap<SwitchId, u32> = BTreeMap::new();
        for host in topology.host_ids() {
            let links = attachment(topology, host, above)?;
            let (name, count) = (topology.name(NodeId::Host(host)), links.len());
            if host.index() == 0 {
                found.homes = count;
            }
            if count != found.homes {
                return not(format!("{name} has {count} links, but others have {}", found.homes));
            }
            let (leaves, directions): (Vec<SwitchId>, Vec<Direction>) = links.into_iter().unzip();
            let number = *numbers.entry(leaves.clone()).or_insert_with(|| {
                found.leaves.push(leaves.clone());
                found.leaves.len() as u32 - 1
            });
            for leaf in leaves {
                if *set_of_leaf.entry(leaf).or_insert(number) != number {
                    return not(format!("{name} shares a leaf with hosts that have other leaves as well"));
                }
            }
            found.hosts.push((directions, number));
        }
        Ok(found)
    }
}

/// A host's links with their leaves, in an order that is the same for all hosts there: by what is above the leaves.
fn attachment(
    topology: &Topology,
    host: HostId,
    above: &BTreeMap<SwitchId, Up>,
) -> Result<Vec<(SwitchId, Direction)>, NotClos> {
    let node = NodeId::Host(host);
    let name = topology.name(node);
    let mut links = Vec::new();
    for port in topology.ports(node) {
        match port.peer.node {
            NodeId::Switch(leaf) if above.contains_key(&leaf) => {
                links.push((leaf, Direction::from(topology, node, port.link)));
            }
            NodeId::Switch(_) => return not(format!("{name} is attached above the first tier")),
            NodeId::Host(_) => return not(format!("{name} is joined to a host")),
        }
    }
    links.sort_by_cached_key(|(leaf, _)| (above[leaf].links.keys().copied().collect::<Vec<_>>(), *leaf));
    if links.windows(2).any(|two| two[0].0 == two[1].0) {
        return not(format!("{name} has several links to one leaf"));
    }
    let rate = |direction: Direction| topology.links()[direction.link.index()].rate_bits_per_s;
    if links.windows(2).any(|two| rate(two[0].1) != rate(two[1].1)) {
        return not(format!("the links of {name} differ in rate"));
    }
    Ok(links)
}

/// Leaves that have the same upper switches.
pub(super) struct Pods {
    /// For each set of leaves its pod.
    pub(super) pod_of_leaf: Vec<u32>,
    /// For each pod the switches above its leaves.
    pub(super) members: Vec<Vec<SwitchId>>,
}

impl Pods {
    pub(super) fn of(
        topology: &Topology,
        above: &BTreeMap<SwitchId, Up>,
        leaves: &[Vec<SwitchId>],
    ) -> Result<Self, NotClos> {
        let mut numbers: BTreeMap<Vec<Vec<SwitchId>>, u32> = BTreeMap::new();
        let mut pods = Pods { pod_of_leaf: Vec::new(), members: Vec::new() };
        for homes in leaves {
            let by_home: Vec<Vec<SwitchId>> =
                homes.iter().map(|leaf| above[leaf].links.keys().copied().collect()).collect();
            let mut all = by_home.concat();
            let number = *numbers.entry(by_home).or_insert_with(|| {
                all.sort_unstable();
                all.dedup();
                pods.members.push(all);
                pods.members.len() as u32 - 1
            });
            pods.pod_of_leaf.push(number);
        }
        let mut pod_of_switch: BTreeMap<SwitchId, usize> = BTreeMap::new();
        for (pod, switches) in pods.members.iter().enumerate() {
            for switch in switches {
                if pod_of_switch.insert(*switch, pod).is_some() {
                    let name = topology.name(NodeId::Switch(*switch));
                    return not(format!("some leaves at {name} are joined to other switches than the others"));
                }
            }
        }
        Ok(pods)
    }
}

/// The planes of all pods: switches of the second tier that are joined to the same cores.
pub(super) struct Planes {
    /// For each pod its switches in the order of their planes.
    pub(super) order: Vec<Vec<SwitchId>>,
    /// For each pod and plane the links up.
    pub(super) links: Vec<Vec<Vec<Direction>>>,
    pub(super) rate_bits_per_s: Option<u64>,
}

impl Planes {
    pub(super) fn of(topology: &Topology, pods: &[Vec<SwitchId>]) -> Result<Self, NotClos> {
        let switches: Vec<SwitchId> = pods.iter().flatten().copied().collect();
        let above: Vec<Up> = switches.iter().map(|switch| Up::of(topology, *switch)).collect();
        let (_, rate_bits_per_s) = even(topology, &switches, &above)?;
        let of_switch: BTreeMap<SwitchId, &Up> = switches.iter().copied().zip(&above).collect();
        let has_cores = above.iter().any(|up| !up.links.is_empty());
        if !has_cores && pods.len() > 1 {
            return not(format!("there are {} pods and nothing joins them", pods.len()));
        }
        let mut order: Vec<Vec<SwitchId>> = Vec::new();
        let mut expected: Option<Vec<Vec<SwitchId>>> = None;
        for pod in pods {
            let cores = |switch: &SwitchId| -> Vec<SwitchId> { of_switch[switch].links.keys().copied().collect() };
            let mut own = pod.clone();
            own.sort_by_key(|switch| (cores(switch), *switch));
            let planes: Vec<Vec<SwitchId>> = own.iter().map(cores).collect();
            let first = own.first().map_or("", |switch| topology.name(NodeId::Switch(*switch)));
            if has_cores && planes.windows(2).any(|two| two[0] == two[1]) {
                return not(format!("two switches of the pod of {first} are joined to the same cores"));
            }
            if *expected.get_or_insert_with(|| planes.clone()) != planes {
                return not(format!("the pod of {first} is joined to other cores than the first pod"));
            }
            order.push(own);
        }
        let links = order.iter().map(|pod| {
            pod.iter().map(|switch| of_switch[switch].links.values().flatten().copied().collect()).collect()
        });
        Ok(Planes { links: links.collect(), order, rate_bits_per_s: has_cores.then_some(rate_bits_per_s) })
    }
}
