//! Folded Clos fabrics: what choices a flow has, and the choices that load all links evenly.
//!
//! ```text
//!            core 1.1  core 1.2      core 2.1  core 2.2       second choice: which core of the plane
//!                 ╲      ╱  ╲          ╱  ╲      ╱
//!        plane 1: agg 1.1   agg 2.1   agg 1.2   agg 2.2       first choice: which plane
//!                   │  ╲       │  ╲ ╱     ╲       │
//!                 leaf …                        leaf …        no choice: the way down follows
//!                 ╰─── pod 1 ───╯          ╰─── pod 2 ───╯
//! ```
//!
//! Two tiers are one pod without cores: its planes are the spines. Where n links join two switches, each counts as a
//! choice of its own.

use crate::colour::{Evenly, colour};
use crate::flow::Flow;
use crate::load::Direction;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use std::collections::BTreeMap;

/// A fabric whose switches are joined so evenly that a flow's path is a choice, or two.
#[derive(Clone, Debug)]
pub struct Clos {
    /// For each host its link, upward, and its leaf.
    hosts: Vec<(Direction, u32)>,
    /// For each leaf its pod.
    pod_of_leaf: Vec<u32>,
    pods: usize,
    /// For each leaf its links up, in the order of the first choice.
    leaf_links: Vec<Vec<Direction>>,
    /// For each pod, in the order of the first choice, the plane.
    plane_of_choice: Vec<u32>,
    /// For each pod and plane the links up, in the order of the second choice.
    plane_links: Vec<Vec<Vec<Direction>>>,
    /// Rates of the links of leaves and, if there are any, of planes, in bits a second.
    leaf_rate_bits_per_s: u64,
    plane_rate_bits_per_s: Option<u64>,
}

/// Why a fabric is no folded Clos.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no folded Clos: {problem}")]
pub struct NotClos {
    /// What is not even, and where.
    pub problem: String,
}

/// What a flow has chosen. What its path does not need counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// Which of the leaf's links up.
    pub plane: u16,
    /// Which of the plane's links up.
    pub core: u16,
}

fn not<T>(problem: String) -> Result<T, NotClos> {
    Err(NotClos { problem })
}

impl Clos {
    /// Finds the tiers, pods and planes of a fabric.
    ///
    /// # Errors
    ///
    /// More than three tiers; a host with more than one link or above the first tier; a switch whose links up differ
    /// from those of its neighbours in number or rate; planes that pods do not share.
    pub fn recognise(topology: &Topology) -> Result<Self, NotClos> {
        if topology.tiers() > 3 {
            return not(format!("there are {} tiers: expected 3 at most", topology.tiers()));
        }
        let of_tier = |tier: u8| topology.switch_ids().filter(move |id| topology.switches()[id.index()].tier == tier);
        let leaves: Vec<SwitchId> = of_tier(1).collect();
        let leaf_numbers: BTreeMap<SwitchId, u32> = leaves.iter().copied().zip(0..).collect();
        let hosts =
            topology.host_ids().map(|host| attachment(topology, host, &leaf_numbers)).collect::<Result<_, _>>()?;
        let above: Vec<Up> = leaves.iter().map(|leaf| Up::of(topology, *leaf)).collect::<Result<_, _>>()?;
        let (leaf_width, leaf_rate_bits_per_s) = even(topology, &leaves, &above)?;

        // A pod is made of the leaves that are joined to the same switches.
        let mut pods: BTreeMap<Vec<SwitchId>, u32> = BTreeMap::new();
        let mut members: Vec<Vec<SwitchId>> = Vec::new();
        let mut pod_of_leaf = Vec::new();
        for up in &above {
            let switches: Vec<SwitchId> = up.links.keys().copied().collect();
            let pod = *pods.entry(switches).or_insert_with_key(|switches| {
                members.push(switches.clone());
                members.len() as u32 - 1
            });
            pod_of_leaf.push(pod);
        }
        let mut pod_of_switch: BTreeMap<SwitchId, usize> = BTreeMap::new();
        for (pod, switches) in members.iter().enumerate() {
            for switch in switches {
                if pod_of_switch.insert(*switch, pod).is_some() {
                    let name = topology.name(NodeId::Switch(*switch));
                    return not(format!("some leaves at {name} are joined to other switches than the others"));
                }
            }
        }
        let planes = Planes::of(topology, &members)?;
        let leaf_links = above.iter().zip(&pod_of_leaf).map(|(up, pod)| {
            let in_order = planes.order[*pod as usize].iter();
            in_order.flat_map(|switch| up.links[switch].iter().copied()).collect()
        });
        Ok(Clos {
            hosts,
            pods: members.len(),
            leaf_links: leaf_links.collect(),
            plane_of_choice: (0..planes.count).flat_map(|plane| vec![plane as u32; leaf_width]).collect(),
            pod_of_leaf,
            plane_links: planes.links,
            leaf_rate_bits_per_s,
            plane_rate_bits_per_s: planes.rate_bits_per_s,
        })
    }

    /// How many links up a leaf has: the first choice of a flow.
    pub fn plane_choices(&self) -> usize {
        self.plane_of_choice.len()
    }

    /// How many links up a plane has in each pod: the second choice of a flow between pods; 0 with two tiers.
    pub fn core_choices(&self) -> usize {
        self.plane_links.first().and_then(|planes| planes.first()).map_or(0, Vec::len)
    }

    /// The choices of flows that load all links as evenly as whole flows can.
    ///
    /// Flows of equal rates load no link above [`Clos::bound`], unless flows that stay in a pod and flows that leave it
    /// share a leaf and neither fill its links; with different rates a link may get one flow's rate more.
    pub fn place(&self, flows: &[Flow]) -> Vec<Choice> {
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        order.sort_by_key(|flow| std::cmp::Reverse(flows[*flow as usize].rate_bits_per_s));
        let leaves = self.pod_of_leaf.len();
        let [from, to] = [|flow: &Flow| flow.from, |flow: &Flow| flow.to].map(|end: fn(&Flow) -> HostId| {
            let leaf: Vec<u32> = flows.iter().map(|flow| self.leaf(end(flow))).collect();
            let split = flows.iter().zip(&leaf).map(|(flow, leaf)| 2 * leaf + u32::from(self.leaves_pod(flow)));
            let pod = leaf.iter().map(|leaf| self.pod(*leaf));
            Evenly::new([(split.collect(), 2 * leaves), (leaf.clone(), leaves), (pod.collect(), self.pods)])
        });
        let mut upward: Vec<u32> =
            order.iter().copied().filter(|flow| self.leaves_leaf(&flows[*flow as usize])).collect();
        let planes = colour(self.plane_choices(), &from, &to, &mut upward);
        let mut choices: Vec<Choice> = planes.into_iter().map(|plane| Choice { plane, core: 0 }).collect();
        self.place_in_planes(flows, &order, &mut choices);
        choices
    }

    /// Makes the second choice of all flows that leave their pods.
    fn place_in_planes(&self, flows: &[Flow], order: &[u32], choices: &mut [Choice]) {
        let [from, to] = [|flow: &Flow| flow.from, |flow: &Flow| flow.to].map(|end: fn(&Flow) -> HostId| {
            let pod = flows.iter().map(|flow| self.pod(self.leaf(end(flow))));
            Evenly::new([(pod.collect(), self.pods)])
        });
        let planes = self.plane_links.first().map_or(0, Vec::len);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); planes];
        for flow in order.iter().filter(|flow| self.leaves_pod(&flows[**flow as usize])) {
            members[self.plane_of_choice[choices[*flow as usize].plane as usize] as usize].push(*flow);
        }
        for members in &mut members {
            let cores = colour(self.core_choices(), &from, &to, members);
            members.iter().for_each(|flow| choices[*flow as usize].core = cores[*flow as usize]);
        }
    }

    /// The links that a flow with a choice uses; none if it stays at its host.
    pub fn along(&self, flow: &Flow, choice: Choice) -> Vec<Direction> {
        if flow.from == flow.to {
            return Vec::new();
        }
        let ((first, from), (last, to)) = (self.hosts[flow.from.index()], self.hosts[flow.to.index()]);
        let mut along = vec![first];
        if from != to {
            let plane = choice.plane as usize;
            along.push(self.leaf_links[from as usize][plane]);
            let (from_pod, to_pod) = (self.pod(from) as usize, self.pod(to) as usize);
            if from_pod != to_pod {
                let (plane, core) = (self.plane_of_choice[plane] as usize, choice.core as usize);
                along.push(self.plane_links[from_pod][plane][core]);
                along.push(self.plane_links[to_pod][plane][core].reversed());
            }
            along.push(self.leaf_links[to as usize][plane].reversed());
        }
        along.push(last.reversed());
        along
    }

    /// All choices between which a flow's path differs.
    pub fn choices(&self, flow: &Flow) -> impl Iterator<Item = Choice> + use<> {
        let planes = if self.leaves_leaf(flow) { self.plane_choices() as u16 } else { 1 };
        let cores = if self.leaves_pod(flow) { self.core_choices() as u16 } else { 1 };
        (0..planes).flat_map(move |plane| (0..cores).map(move |core| Choice { plane, core }))
    }

    /// What the most loaded link carries at least, by its rate, whatever paths are chosen: whole flows of the least
    /// rate that occurs, spread evenly, over the links of a host, of a leaf, and of a pod.
    pub fn bound(&self, topology: &Topology, flows: &[Flow]) -> f64 {
        let mut bound = 0.0_f64;
        let host_rate = |host: usize| topology.links()[self.hosts[host].0.link.index()].rate_bits_per_s;
        for end in [|flow: &Flow| flow.from, |flow: &Flow| flow.to] {
            let end: fn(&Flow) -> HostId = end;
            let at_hosts = Shares::of(flows, self.hosts.len(), |flow| Some(end(flow).index()));
            bound = bound.max(at_hosts.bound(1, host_rate));
            let leaf = |flow: &Flow| self.leaves_leaf(flow).then(|| self.leaf(end(flow)) as usize);
            let at_leaves = Shares::of(flows, self.pod_of_leaf.len(), leaf);
            bound = bound.max(at_leaves.bound(self.plane_choices(), |_| self.leaf_rate_bits_per_s));
            if let Some(rate) = self.plane_rate_bits_per_s {
                let pod = |flow: &Flow| self.leaves_pod(flow).then(|| self.pod(self.leaf(end(flow))) as usize);
                let width = self.plane_links[0].len() * self.core_choices();
                bound = bound.max(Shares::of(flows, self.pods, pod).bound(width, |_| rate));
            }
        }
        bound
    }

    fn leaf(&self, host: HostId) -> u32 {
        self.hosts[host.index()].1
    }

    fn pod(&self, leaf: u32) -> u32 {
        self.pod_of_leaf[leaf as usize]
    }

    fn leaves_leaf(&self, flow: &Flow) -> bool {
        self.leaf(flow.from) != self.leaf(flow.to)
    }

    fn leaves_pod(&self, flow: &Flow) -> bool {
        self.pod(self.leaf(flow.from)) != self.pod(self.leaf(flow.to))
    }
}

/// What comes from, or goes to, each of some places.
struct Shares {
    /// For each place how many flows, their rates together, and the least and the highest of them, in bits a second.
    places: Vec<(u64, u64, u64, u64)>,
}

impl Shares {
    fn of(flows: &[Flow], places: usize, place: impl Fn(&Flow) -> Option<usize>) -> Self {
        let mut all = vec![(0, 0, u64::MAX, 0); places];
        for flow in flows {
            if let Some(place) = place(flow) {
                let (count, sum, least, most) = &mut all[place];
                *count += 1;
                *sum += flow.rate_bits_per_s;
                *least = flow.rate_bits_per_s.min(*least);
                *most = flow.rate_bits_per_s.max(*most);
            }
        }
        Shares { places: all }
    }

    /// The bound if each place has so many links.
    fn bound(&self, width: usize, rate_bits_per_s: impl Fn(usize) -> u64) -> f64 {
        let of_place = |(place, (count, sum, least, most)): (usize, &(u64, u64, u64, u64))| {
            let whole = count.div_ceil(width.max(1) as u64) * if *count > 0 { *least } else { 0 };
            let spread = *sum as f64 / width.max(1) as f64;
            spread.max(whole as f64).max(*most as f64) / rate_bits_per_s(place) as f64
        };
        self.places.iter().enumerate().map(of_place).fold(0.0, f64::max)
    }
}

/// The links up of a switch, by the switch that they lead to.
struct Up {
    links: BTreeMap<SwitchId, Vec<Direction>>,
}

impl Up {
    fn of(topology: &Topology, switch: SwitchId) -> Result<Self, NotClos> {
        let (tier, node) = (topology.switches()[switch.index()].tier, NodeId::Switch(switch));
        let mut links: BTreeMap<SwitchId, Vec<Direction>> = BTreeMap::new();
        for port in topology.ports(node) {
            let upward = Direction::from(topology, node, port.link);
            if let NodeId::Switch(peer) = port.peer.node {
                match topology.switches()[peer.index()].tier {
                    other if other == tier + 1 => links.entry(peer).or_default().push(upward),
                    other if other + 1 == tier => {}
                    _ => {
                        return not(format!("link {} does not join neighbouring tiers", topology.link_name(port.link)));
                    }
                }
            }
        }
        Ok(Up { links })
    }
}

/// How many links go to each switch above, and their rate, where that is the same for all.
fn even(topology: &Topology, switches: &[SwitchId], above: &[Up]) -> Result<(usize, u64), NotClos> {
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

fn attachment(
    topology: &Topology,
    host: HostId,
    leaves: &BTreeMap<SwitchId, u32>,
) -> Result<(Direction, u32), NotClos> {
    let node = NodeId::Host(host);
    let name = topology.name(node);
    match topology.ports(node) {
        [port] => match port.peer.node {
            NodeId::Switch(switch) => match leaves.get(&switch) {
                Some(leaf) => Ok((Direction::from(topology, node, port.link), *leaf)),
                None => not(format!("{name} is attached above the first tier")),
            },
            NodeId::Host(_) => not(format!("{name} is joined to a host")),
        },
        ports => not(format!("{name} has {} links: expected one", ports.len())),
    }
}

/// The planes of all pods: switches of the second tier that are joined to the same cores.
struct Planes {
    count: usize,
    /// For each pod its switches in the order of their planes.
    order: Vec<Vec<SwitchId>>,
    /// For each pod and plane the links up.
    links: Vec<Vec<Vec<Direction>>>,
    rate_bits_per_s: Option<u64>,
}

impl Planes {
    fn of(topology: &Topology, pods: &[Vec<SwitchId>]) -> Result<Self, NotClos> {
        let switches: Vec<SwitchId> = pods.iter().flatten().copied().collect();
        let above: Vec<Up> = switches.iter().map(|switch| Up::of(topology, *switch)).collect::<Result<_, _>>()?;
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
        Ok(Planes {
            count: order.first().map_or(0, Vec::len),
            links: links.collect(),
            order,
            rate_bits_per_s: has_cores.then_some(rate_bits_per_s),
        })
    }
}
