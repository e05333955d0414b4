//! Lower bounds for the most loaded link of any fabric, for divisible and for indivisible flows.
//!
//! Let every direction of a link have a length. However flows are divided, a flow covers at least the distance between
//! its ends; so rates times distances, all flows together, over rates times lengths, all links together, is a share
//! that some link carries at least. That holds for any lengths (weak duality of the linear program of least
//! congestion); good ones are found by making loaded links longer, round by round (Young 1995, Garg and Könemann 1998).

use crate::flow::Flow;
use crate::group_flow::{GroupFlow, crossing};
use crate::load::Direction;
use crate::search::Ways;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Increase of the most loaded link's length per round: constant in the first half, then decreasing.
const STEP: f64 = 0.2;
const LAST_STEP: f64 = 0.005;

/// A bound below which no placement of the flows loads its most loaded link, by the link's rate. More rounds make it
/// sharper.
pub fn divided_bound(topology: &Topology, flows: &[Flow], may_use: impl Fn(Direction) -> bool, rounds: usize) -> f64 {
    divided_bound_with(topology, flows, &[], may_use, rounds)
}

/// The same with groups, also for those that are divided among several trees: a tree covers at least the distance to
/// its farthest receiver.
pub(crate) fn divided_bound_with(
    topology: &Topology,
    flows: &[Flow],
    groups: &[GroupFlow],
    may_use: impl Fn(Direction) -> bool,
    rounds: usize,
) -> f64 {
    let mut by_source: BTreeMap<HostId, Vec<&Flow>> = BTreeMap::new();
    flows
        .iter()
        .filter(|flow| flow.from != flow.to)
        .for_each(|flow| by_source.entry(flow.from).or_default().push(flow));
    groups.iter().for_each(|group| _ = by_source.entry(group.from).or_default());
    let usable: Vec<bool> = (0..2 * topology.links().len()).map(|index| may_use(Direction::at(index))).collect();
    let rate = |index: usize| topology.links()[index / 2].rate_bits_per_s as f64;
    // A length times a rate is a weight: all links begin with the same.
    let mut weights = vec![1.0_f64; usable.len()];
    let mut bound = 0.0_f64;
    for round in 0..rounds {
        let late = (2.0 * round as f64 / rounds as f64 - 1.0).max(0.0);
        let step = STEP * (LAST_STEP / STEP).powf(late);
        let lengths: Vec<f64> = (0..weights.len()).map(|index| weights[index] / rate(index)).collect();
        let total: f64 = (0..weights.len()).filter(|index| usable[*index]).map(|index| weights[index]).sum();
        let mut covered = 0.0;
        let mut used = vec![0.0_f64; weights.len()];
        for (source, flows) in &by_source {
            // Lengths are not negative, and the bits of such numbers have their order.
            let ways = Ways::from(topology, *source, None, 0.0_f64.to_bits(), |length, direction| {
                let index = direction.index();
                usable[index].then(|| (f64::from_bits(length) + lengths[index]).to_bits())
            });
            for flow in flows {
                let rate_bits_per_s = flow.rate_bits_per_s as f64;
                covered += rate_bits_per_s * ways.cost(flow.to).map_or(0.0, f64::from_bits);
                ways.back(flow.to).for_each(|direction| used[direction.index()] += rate_bits_per_s);
            }
            for group in groups.iter().filter(|group| group.from == *source) {
                let rate_bits_per_s = group.rate_bits_per_s as f64;
                let distances = group.to.iter().map(|to| ways.cost(*to).map_or(0.0, f64::from_bits));
                covered += rate_bits_per_s * distances.fold(0.0, f64::max);
                let tree: BTreeSet<Direction> = group.to.iter().flat_map(|to| ways.back(*to)).collect();
                tree.into_iter().for_each(|direction| used[direction.index()] += rate_bits_per_s);
            }
        }
        bound = bound.max(covered / total);
        let most = (0..used.len()).map(|index| used[index] / rate(index)).fold(0.0, f64::max);
        if most == 0.0 {
            break;
        }
        for index in 0..weights.len() {
            weights[index] *= 1.0 + step * used[index] / rate(index) / most;
        }
    }
    bound
}

/// Links that carry all traffic from, or to, some nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The host, or a switch together with its hosts and with the other switches that these are at.
    pub around: NodeId,
    /// Whether it is about what leaves.
    pub is_outgoing: bool,
}

/// A bound from the links around hosts that are attached alike: their incoming or outgoing traffic, in whole flows of
/// the smallest rate, if the links are alike. The links of each host are such a set as well. Groups cross such links
/// once.
pub(crate) fn cut_bound(
    topology: &Topology,
    flows: &[Flow],
    groups: &[GroupFlow],
    may_use: impl Fn(Direction) -> bool,
) -> (f64, Option<Cut>) {
    let mut parts: BTreeMap<Vec<SwitchId>, Vec<HostId>> = BTreeMap::new();
    for host in topology.host_ids() {
        parts.entry(topology.attached_to(host).collect()).or_default().push(host);
    }
    let mut part_of_host = vec![0; topology.hosts().len()];
    for (number, hosts) in parts.values().enumerate() {
        hosts.iter().for_each(|host| part_of_host[host.index()] = number);
    }
    let mut best = (0.0_f64, None);
    for (is_outgoing, end) in [(true, (|flow| flow.from) as fn(&Flow) -> HostId), (false, |flow| flow.to)] {
        let mut at_hosts = vec![Crossing::NONE; topology.hosts().len()];
        let mut at_parts = vec![Crossing::NONE; parts.len()];
        for flow in crossing(flows, groups, is_outgoing, HostId::index).iter() {
            at_hosts[end(flow).index()].add(flow);
        }
        for flow in crossing(flows, groups, is_outgoing, |host| part_of_host[host.index()]).iter() {
            if part_of_host[flow.from.index()] != part_of_host[flow.to.index()] {
                at_parts[part_of_host[end(flow).index()]].add(flow);
            }
        }
        let around = |inside: &BTreeSet<NodeId>| -> Vec<u64> {
            let ports = inside.iter().flat_map(|node| topology.ports(*node).iter().map(move |port| (*node, port)));
            let leaving = ports.filter(|(_, port)| !inside.contains(&port.peer.node));
            let open = leaving.filter(|(node, port)| may_use(Direction::from(topology, *node, port.link)));
            open.map(|(_, port)| topology.links()[port.link.index()].rate_bits_per_s).collect()
        };
        for (host, crossing) in topology.host_ids().zip(at_hosts) {
            let own = NodeId::Host(host);
            let open = topology.ports(own).iter().filter(|port| may_use(Direction::from(topology, own, port.link)));
            let rates = open.map(|port| topology.links()[port.link.index()].rate_bits_per_s);
            let bound = crossing.bound(&rates.collect::<Vec<u64>>());
            if bound > best.0 {
                best = (bound, Some(Cut { around: own, is_outgoing }));
            }
        }
        for ((switches, hosts), crossing) in parts.iter().zip(at_parts) {
            let hosts = hosts.iter().map(|host| NodeId::Host(*host));
            let inside = switches.iter().map(|switch| NodeId::Switch(*switch)).chain(hosts).collect();
            let bound = crossing.bound(&around(&inside));
            if let Some(first) = switches.first().filter(|_| bound > best.0) {
                best = (bound, Some(Cut { around: NodeId::Switch(*first), is_outgoing }));
            }
        }
    }
    best
}

/// The least load, no less than a bound, that whole flows can make on some link: a multiple of what all rates have in
/// common.
pub(crate) fn rounded_up(topology: &Topology, flows: &[Flow], groups: &[GroupFlow], bound: f64) -> f64 {
    let rates = flows.iter().map(|flow| flow.rate_bits_per_s).chain(groups.iter().map(|group| group.rate_bits_per_s));
    let common = rates.fold(0, greatest_common_divisor);
    let rates: BTreeSet<u64> = topology.links().iter().map(|link| link.rate_bits_per_s).collect();
    let next = |rate: u64| {
        let unit = common.max(1) as f64 / rate as f64;
        // A value that is a multiple except for rounding stays as it is.
        (bound / unit * (1.0 - 1e-9)).ceil() * unit
    };
    let least = rates.into_iter().map(next).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least.max(bound) } else { bound }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Flows that all have to use one of some links.
#[derive(Clone, Copy)]
struct Crossing {
    count: u64,
    sum_bits_per_s: u64,
    least_bits_per_s: u64,
    most_bits_per_s: u64,
}

impl Crossing {
    const NONE: Crossing = Crossing { count: 0, sum_bits_per_s: 0, least_bits_per_s: u64::MAX, most_bits_per_s: 0 };

    fn add(&mut self, flow: &Flow) {
        self.count += 1;
        self.sum_bits_per_s += flow.rate_bits_per_s;
        self.least_bits_per_s = self.least_bits_per_s.min(flow.rate_bits_per_s);
        self.most_bits_per_s = self.most_bits_per_s.max(flow.rate_bits_per_s);
    }

    /// Lower bound of the most loaded of links with these rates.
    fn bound(&self, rates_bits_per_s: &[u64]) -> f64 {
        let [Some(slowest), Some(fastest)] = [rates_bits_per_s.iter().min(), rates_bits_per_s.iter().max()] else {
            return 0.0;
        };
        if self.count == 0 {
            return 0.0;
        }
        let divided = self.sum_bits_per_s as f64 / rates_bits_per_s.iter().sum::<u64>().max(1) as f64;
        let one = self.most_bits_per_s as f64 / *fastest as f64;
        let whole = match slowest == fastest {
            true => self.count.div_ceil(rates_bits_per_s.len() as u64) * self.least_bits_per_s,
            false => 0,
        };
        divided.max(one).max(whole as f64 / *fastest as f64)
    }
}
