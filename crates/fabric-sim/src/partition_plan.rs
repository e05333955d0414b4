//! Division of a topology into partitions, which threads simulate at the same time.
//!
//! Switches with hosts are divided in the order of the topology, in which neighbours are close to each other, and hosts
//! follow their switches. A switch above them belongs where most of its links lead: the switches of a pod stay
//! together. Where its links lead everywhere alike, as those of a spine, the partition with the fewest ports gets it.

use srdma_fabric::{HostId, NodeId, SwitchId, Topology};

/// The partition of each switch and each host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionPlan {
    partitions: u16,
    switches: Vec<u16>,
    hosts: Vec<u16>,
}

impl PartitionPlan {
    /// At most `threads` partitions of a topology, each with a switch that has hosts.
    pub(super) fn new(topology: &Topology, threads: usize) -> Self {
        let mut hosts_of = vec![0_usize; topology.switches().len()];
        for host in topology.host_ids() {
            topology.attached_to(host).take(1).for_each(|switch| hosts_of[switch.index()] += 1);
        }
        let edges = hosts_of.iter().filter(|hosts| **hosts > 0).count();
        let partitions = threads.clamp(1, edges.clamp(1, usize::from(u16::MAX)));
        let mut plan = PartitionPlan {
            partitions: partitions as u16,
            switches: vec![0; topology.switches().len()],
            hosts: vec![0; topology.hosts().len()],
        };
        if partitions > 1 {
            plan.divide(topology, &hosts_of);
        }
        plan
    }

    fn divide(&mut self, topology: &Topology, hosts_of: &[usize]) {
        let (all, partitions) = (hosts_of.iter().sum::<usize>().max(1), usize::from(self.partitions));
        let mut ports = vec![0; partitions];
        let mut is_placed = vec![false; hosts_of.len()];
        let mut before = 0;
        for switch in topology.switch_ids().filter(|switch| hosts_of[switch.index()] > 0) {
            let hosts = hosts_of[switch.index()];
            // Where the middle one of its hosts is among all.
            let partition = (2 * before + hosts) * partitions / (2 * all);
            before += hosts;
            self.switches[switch.index()] = partition as u16;
            is_placed[switch.index()] = true;
            ports[partition] += topology.ports(NodeId::Switch(switch)).len();
        }
        let mut above: Vec<SwitchId> = topology.switch_ids().filter(|switch| !is_placed[switch.index()]).collect();
        above.sort_by_key(|switch| topology.switches()[switch.index()].tier);
        for switch in above {
            let mut links = vec![0; partitions];
            for port in topology.ports(NodeId::Switch(switch)) {
                if let NodeId::Switch(peer) = port.peer.node
                    && is_placed[peer.index()]
                {
                    links[usize::from(self.switches[peer.index()])] += 1;
                }
            }
            let best = (0..partitions).min_by_key(|partition| (usize::MAX - links[*partition], ports[*partition]));
            let partition = best.unwrap_or(0);
            self.switches[switch.index()] = partition as u16;
            is_placed[switch.index()] = true;
            ports[partition] += topology.ports(NodeId::Switch(switch)).len();
        }
        for host in topology.host_ids() {
            let edge = topology.attached_to(host).next();
            self.hosts[host.index()] = edge.map_or(0, |edge| self.switches[edge.index()]);
        }
    }

    /// Number of partitions, at least one.
    pub(super) fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The partition of a switch.
    pub(super) fn of_switch(&self, switch: SwitchId) -> u16 {
        self.switches[switch.index()]
    }

    /// The partition of a host.
    pub(super) fn of_host(&self, host: HostId) -> u16 {
        self.hosts[host.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FabricScenario;
    use std::path::Path;

    fn topology(lines: &str) -> Topology {
        let file = format!(
            "kind = \"fabric\"\ntitle = \"t\"\n[topology]\n{lines}\n[[workload.permutation]]\nsize_octets = 1000\n\
             [measure]\nduration_us = 1\n[[variant]]\nname = \"v\"\ntitle = \"v\"\nsignal = \"none\"\ncontrol = \"none\"\n"
        );
        FabricScenario::parse(Path::new("t.toml"), &file).unwrap().topology
    }

    /// Hosts and switches of each partition, and links between partitions.
    fn shape(topology: &Topology, threads: usize) -> (Vec<[usize; 2]>, usize) {
        let plan = PartitionPlan::new(topology, threads);
        let mut sizes = vec![[0; 2]; usize::from(plan.partitions())];
        topology.host_ids().for_each(|host| sizes[usize::from(plan.of_host(host))][0] += 1);
        topology.switch_ids().for_each(|switch| sizes[usize::from(plan.of_switch(switch))][1] += 1);
        let partition = |node| match node {
            NodeId::Host(host) => plan.of_host(host),
            NodeId::Switch(switch) => plan.of_switch(switch),
        };
        let crosses = |ends: [NodeId; 2]| partition(ends[0]) != partition(ends[1]);
        let between = topology.links().iter().filter(|link| crosses(link.ends.map(|end| end.node))).count();
        (sizes, between)
    }

    #[test]
    fn pods_stay_together_and_cores_are_shared_out() {
        // 16 hosts, 8 edge switches, 8 aggregation switches, 4 core switches with a link to each of 4 pods.
        let fat_tree = topology("kind = \"fat-tree\"\ntiers = 3\nk = 4");
        assert_eq!(shape(&fat_tree, 1), (vec![[16, 20]], 0));
        assert_eq!(shape(&fat_tree, 2), (vec![[8, 10]; 2], 8));
        assert_eq!(shape(&fat_tree, 4), (vec![[4, 5]; 4], 12));
    }

    #[test]
    fn spines_are_shared_out_and_no_partition_is_without_hosts() {
        let leaf_spine = topology("kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4");
        assert_eq!(shape(&leaf_spine, 3).0.iter().map(|[hosts, _]| *hosts).collect::<Vec<usize>>(), [4, 4, 4]);
        assert_eq!(shape(&leaf_spine, 16), shape(&leaf_spine, 3));
    }
}
