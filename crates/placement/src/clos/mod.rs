//! Folded Clos fabrics: the choices of a flow, and choices that load all links evenly.
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
//! choice of its own. Where hosts are at several leaves each, of one fabric or of several planes, the leaves with the
//! same hosts count as one, and the first choice is that of the leaf by which a flow leaves and arrives.

mod tiers;

use crate::colour::{Evenly, colour};
use crate::flow::Flow;
use crate::group_flow::{GroupFlow, crossing};
use crate::load::Direction;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use std::collections::BTreeMap;
use tiers::{Homes, Planes, Pods, Up, check_tiers, even};

/// A fabric whose switches are joined so evenly that a flow's path is a choice, or two.
#[derive(Clone, Debug)]
pub struct Clos {
    /// For each host its links, upward, and its leaf, or leaves that have the same hosts.
    hosts: Vec<(Vec<Direction>, u32)>,
    /// Links of a host.
    homes: usize,
    /// For each leaf its pod.
    pod_of_leaf: Vec<u32>,
    pods: usize,
    /// For each leaf its links up, in the order of the first choice: home by home.
    leaf_links: Vec<Vec<Direction>>,
    /// In the order of the first choice, the plane.
    plane_of_choice: Vec<u32>,
    /// For each pod and plane the links up, in the order of the second choice.
    plane_links: Vec<Vec<Vec<Direction>>>,
    /// Rates of the links of leaves and, if there are any, of planes, in bits a second.
    leaf_rate_bits_per_s: u64,
    plane_rate_bits_per_s: Option<u64>,
}

/// The reason why a fabric is no folded Clos.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no folded Clos: {problem}")]
pub struct NotClos {
    /// The irregularity, and its place.
    pub problem: String,
}

/// Choices of a flow. Those that its path does not need have no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// Index of the leaf's uplink; for flows within a leaf, that of the first of the host's links.
    pub plane: u16,
    /// Index of the plane's uplink.
    pub core: u16,
}

/// The two ends of a flow.
const ENDS: [fn(&Flow) -> HostId; 2] = [|flow| flow.from, |flow| flow.to];

/// A link up, in the direction at the beginning of a flow (end 0) or at its end.
fn toward(end: usize, up: Direction) -> Direction {
    if end == 0 { up } else { up.reversed() }
}

fn not<T>(problem: String) -> Result<T, NotClos> {
    Err(NotClos { problem })
}

impl Clos {
    /// Finds the tiers, pods and planes of a fabric.
    ///
    /// # Errors
    ///
    /// More than three tiers; hosts with different numbers of links, or links of different rates, or several to one
    /// leaf, or above the first tier; hosts that share some leaves but not all; a switch whose links up differ from
    /// those of its neighbours in number or rate; planes that pods do not share.
    pub fn recognise(topology: &Topology) -> Result<Self, NotClos> {
        if topology.tiers() > 3 {
            return not(format!("there are {} tiers: expected 3 at most", topology.tiers()));
        }
        check_tiers(topology)?;
        let is_leaf = |id: &SwitchId| topology.switches()[id.index()].tier == 1;
        let leaves: Vec<SwitchId> = topology.switch_ids().filter(is_leaf).collect();
        let above: Vec<Up> = leaves.iter().map(|leaf| Up::of(topology, *leaf)).collect();
        let (leaf_width, leaf_rate_bits_per_s) = even(topology, &leaves, &above)?;
        let above: BTreeMap<SwitchId, Up> = leaves.into_iter().zip(above).collect();
        let Homes { homes, hosts, leaves } = Homes::of(topology, &above)?;
        let Pods { pod_of_leaf, members } = Pods::of(topology, &above, &leaves)?;
        let planes = Planes::of(topology, &members)?;
        let in_order = |leaf: &SwitchId, pod: u32| -> Vec<(u32, &[Direction])> {
            let own = &above[leaf].links;
            (0..)
                .zip(&planes.order[pod as usize])
                .filter_map(|(plane, switch)| Some((plane, &own.get(switch)?[..])))
                .collect()
        };
        let mut plane_of_choice: Option<Vec<u32>> = None;
        let mut leaf_links = Vec::new();
        for (homes, pod) in leaves.iter().zip(&pod_of_leaf) {
            let links: Vec<(u32, &[Direction])> = homes.iter().flat_map(|leaf| in_order(leaf, *pod)).collect();
            let own = links.iter().flat_map(|(plane, _)| vec![*plane; leaf_width]).collect();
            if *plane_of_choice.get_or_insert_with(|| Vec::clone(&own)) != own {
                let name = topology.name(NodeId::Switch(homes[0]));
                return not(format!("{name} is joined to other planes than the first leaf"));
            }
            leaf_links.push(links.into_iter().flat_map(|(_, links)| links).copied().collect());
        }
        Ok(Clos {
            hosts,
            homes,
            pods: members.len(),
            leaf_links,
            plane_of_choice: plane_of_choice.unwrap_or_default(),
            pod_of_leaf,
            plane_links: planes.links,
            leaf_rate_bits_per_s,
            plane_rate_bits_per_s: planes.rate_bits_per_s,
        })
    }

    /// Number of links of a host.
    pub fn homes(&self) -> usize {
        self.homes
    }

    /// Number of uplinks of a leaf: the first choice of a flow.
    pub fn plane_choices(&self) -> usize {
        self.plane_of_choice.len()
    }

    /// Number of uplinks of a plane in each pod: the second choice of a flow between pods; 0 with two tiers.
    pub fn core_choices(&self) -> usize {
        self.plane_links.first().and_then(|planes| planes.first()).map_or(0, Vec::len)
    }

    /// The choices of flows that load all links as evenly as whole flows can.
    ///
    /// Flows of equal rates load no link above [`Clos::bound`], unless flows that stay in a pod and flows that leave it
    /// share a leaf and neither fill its links, or hosts at several leaves have both flows that stay there and flows
    /// that leave; with different rates a link may get one flow's rate more.
    pub fn place(&self, flows: &[Flow]) -> Vec<Choice> {
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        order.sort_by_key(|flow| std::cmp::Reverse(flows[*flow as usize].rate_bits_per_s));
        let homes = self.place_at_homes(flows, &order);
        let (leaves, width) = (self.pod_of_leaf.len() * self.homes, self.width());
        let [from, to] = ENDS.map(|end| {
            let numbered =
                || flows.iter().zip(&homes).map(|(flow, home)| (flow, self.leaf(end(flow)), u32::from(*home)));
            let at_home = |group: u32, home: u32| group * self.homes as u32 + home;
            let leaf: Vec<u32> = numbered().map(|(_, leaf, home)| at_home(leaf, home)).collect();
            let split = flows.iter().zip(&leaf).map(|(flow, leaf)| 2 * leaf + u32::from(self.leaves_pod(flow)));
            let mut levels = vec![(split.collect(), 2 * leaves), (leaf.clone(), leaves)];
            if self.homes > 1 {
                let pod = numbered().map(|(_, leaf, home)| at_home(self.pod(leaf), home));
                levels.push((pod.collect(), self.pods * self.homes));
            }
            levels.push((numbered().map(|(_, leaf, _)| self.pod(leaf)).collect(), self.pods));
            Evenly::new(levels)
        });
        let mut upward: Vec<u32> =
            order.iter().copied().filter(|flow| self.leaves_leaf(&flows[*flow as usize])).collect();
        let planes = colour(width, &from, &to, &mut upward);
        let plane = |(plane, home): (u16, u16)| home * width as u16 + plane;
        let mut choices: Vec<Choice> =
            planes.into_iter().zip(homes).map(|own| Choice { plane: plane(own), core: 0 }).collect();
        self.place_in_planes(flows, &order, &mut choices);
        choices
    }

    /// For each flow which of the hosts' links it takes, at both ends: as evenly as can be at hosts and at leaves.
    fn place_at_homes(&self, flows: &[Flow], order: &[u32]) -> Vec<u16> {
        if self.homes == 1 {
            return vec![0; flows.len()];
        }
        let (hosts, leaves) = (self.hosts.len(), self.pod_of_leaf.len());
        let [from, to] = ENDS.map(|end| {
            let host: Vec<u32> = flows.iter().map(|flow| end(flow).0).collect();
            let kind = |flow: &Flow| u32::from(self.leaves_leaf(flow));
            let leaf = flows.iter().map(|flow| self.leaf(end(flow)));
            let leaf_by_kind = flows.iter().map(|flow| 2 * self.leaf(end(flow)) + kind(flow)).collect();
            let mut kinds = vec![None; hosts];
            let is_mixed = flows.iter().any(|flow| *kinds[end(flow).index()].get_or_insert(kind(flow)) != kind(flow));
            // Only groups in groups can all be even: flows that stay and flows that leave are distinguished at the leaf
            // where no host has both.
            Evenly::new(match is_mixed {
                false => vec![(host, hosts), (leaf_by_kind, 2 * leaves), (leaf.collect(), leaves)],
                true => {
                    let by_kind = flows.iter().map(|flow| 2 * end(flow).0 + kind(flow));
                    vec![(by_kind.collect(), 2 * hosts), (host, hosts), (leaf.collect(), leaves)]
                }
            })
        });
        colour(self.homes, &from, &to, &mut order.to_vec())
    }

    /// Makes the second choice of all flows that leave their pods.
    fn place_in_planes(&self, flows: &[Flow], order: &[u32], choices: &mut [Choice]) {
        let [from, to] = ENDS.map(|end| {
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
        let [(first, from), (last, to)] = [flow.from, flow.to].map(|end| {
            let (links, leaf) = &self.hosts[end.index()];
            (links[choice.plane as usize / self.width()], *leaf)
        });
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

    /// The choice of a flow that uses these links; `None` if no choice does.
    pub(crate) fn choice(&self, flow: &Flow, along: &[Direction]) -> Option<Choice> {
        let (links, leaf) = &self.hosts[flow.from.index()];
        let plane = match self.leaves_leaf(flow) {
            true => self.leaf_links[*leaf as usize].iter().position(|link| along.get(1) == Some(link))?,
            false => links.iter().position(|link| along.first() == Some(link))? * self.width(),
        };
        let core = match self.leaves_pod(flow) {
            true => {
                let plane = *self.plane_of_choice.get(plane)? as usize;
                let links = &self.plane_links[self.pod(*leaf) as usize][plane];
                links.iter().position(|link| along.get(2) == Some(link))?
            }
            false => 0,
        };
        let choice = Choice { plane: plane as u16, core: core as u16 };
        (self.along(flow, choice) == along).then_some(choice)
    }

    /// All choices between which a flow's path differs.
    pub fn choices(&self, flow: &Flow) -> impl Iterator<Item = Choice> + use<> {
        let (homes, width) = (self.homes as u16, self.width() as u16);
        let planes = if self.leaves_leaf(flow) { width } else { 1 };
        let cores = if self.leaves_pod(flow) { self.core_choices() as u16 } else { 1 };
        let planes = (0..homes).flat_map(move |home| (0..planes).map(move |plane| home * width + plane));
        planes.flat_map(move |plane| (0..cores).map(move |core| Choice { plane, core }))
    }

    /// The leaf, or the set of leaves, at one of the ends of a flow: 0 is the beginning.
    pub(crate) fn leaf_at(&self, flow: &Flow, end: usize) -> u32 {
        self.leaf(ENDS[end](flow))
    }

    /// Number of pods.
    pub(crate) fn pods(&self) -> u32 {
        self.pods as u32
    }

    /// The pod of a leaf.
    pub(crate) fn pod_of(&self, leaf: u32) -> u32 {
        self.pod(leaf)
    }

    /// The direction by which flows with this first choice leave a leaf upward (end 0) or come down to it (end 1).
    pub(crate) fn leaf_link(&self, end: usize, leaf: u32, plane: u16) -> Direction {
        toward(end, self.leaf_links[leaf as usize][plane as usize])
    }

    /// The directions between a pod and the cores in the plane of a first choice, up (end 0) or down (end 1).
    pub(crate) fn core_links(&self, end: usize, pod: u32, plane: u16) -> impl Iterator<Item = Direction> + '_ {
        let plane = self.plane_of_choice[plane as usize] as usize;
        self.plane_links[pod as usize][plane].iter().map(move |link| toward(end, *link))
    }

    /// The other first choices that lead through the same links of hosts.
    pub(crate) fn other_planes(&self, plane: u16) -> impl Iterator<Item = u16> + use<> {
        let width = self.width() as u16;
        let first = plane / width * width;
        (first..first + width).filter(move |other| *other != plane)
    }

    /// Lower bound of the utilization of the most loaded link, for any choice of paths: whole flows of the smallest
    /// rate, spread evenly, over the links of a host, of a leaf, and of a pod.
    pub fn bound(&self, topology: &Topology, flows: &[Flow]) -> f64 {
        self.bound_with(topology, flows, &[])
    }

    /// The same with groups, which cross the links around a place once.
    pub(crate) fn bound_with(&self, topology: &Topology, flows: &[Flow], groups: &[GroupFlow]) -> f64 {
        let mut bound = 0.0_f64;
        let host_rate = |host: usize| topology.links()[self.hosts[host].0[0].link.index()].rate_bits_per_s;
        for (is_outgoing, end) in [true, false].into_iter().zip(ENDS) {
            let at_hosts = crossing(flows, groups, is_outgoing, HostId::index);
            let at_hosts = Shares::of(&at_hosts, self.hosts.len(), |flow| Some(end(flow).index()));
            bound = bound.max(at_hosts.bound(self.homes, host_rate));
            let leaf = |flow: &Flow| self.leaves_leaf(flow).then(|| self.leaf(end(flow)) as usize);
            let at_leaves = crossing(flows, groups, is_outgoing, |host| self.leaf(host) as usize);
            let at_leaves = Shares::of(&at_leaves, self.pod_of_leaf.len(), leaf);
            bound = bound.max(at_leaves.bound(self.plane_choices(), |_| self.leaf_rate_bits_per_s));
            if let Some(rate) = self.plane_rate_bits_per_s {
                let pod = |flow: &Flow| self.leaves_pod(flow).then(|| self.pod(self.leaf(end(flow))) as usize);
                let width = self.plane_links[0].len() * self.core_choices();
                let at_pods = crossing(flows, groups, is_outgoing, |host| self.pod(self.leaf(host)) as usize);
                bound = bound.max(Shares::of(&at_pods, self.pods, pod).bound(width, |_| rate));
            }
        }
        bound
    }

    /// Uplinks of a leaf for each of its hosts' links; 1 without uplinks.
    fn width(&self) -> usize {
        (self.plane_choices() / self.homes).max(1)
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

    pub(crate) fn leaves_pod(&self, flow: &Flow) -> bool {
        self.pod(self.leaf(flow.from)) != self.pod(self.leaf(flow.to))
    }
}

/// Traffic from, or to, each of some places.
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
