//! Flows of different rates, and drained fabrics of three tiers, on a Clos: the result is the optimum, which these tests
//! compute themselves from what has to pass the links of a host, a leaf or a pod.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{FatTree, HostId, LinkId, NodeId, Path, Speeds, Topology};
use srdma_placement::{Flow, FlowId, Loads, Placement, directions, jobs_from_toml};

const RATE: u64 = Speeds::DEFAULT.host_rate_bits_per_s;

fn all_flows(topology: &Topology, jobs: &str) -> Vec<Flow> {
    let jobs = jobs_from_toml(jobs, topology).unwrap();
    jobs.iter().flat_map(|job| job.wanted(topology, |_| true)).map(|listed| listed.flow).collect()
}

fn loads<'a>(topology: &Topology, flows: impl IntoIterator<Item = (&'a Flow, Path)>) -> Loads {
    let mut loads = Loads::none(topology);
    for (flow, path) in flows {
        loads.add(topology, &directions(topology, &path), flow.rate_bits_per_s);
    }
    loads
}

/// All collectives of the shipped multi-homed fabrics at once load no link above what the most loaded NIC has to send or
/// receive, evenly over its links: less cannot be.
#[test]
fn mixed_collectives_on_multi_homed_fabrics_are_at_the_optimum() {
    let shipped = [
        (include_str!("../../../../fabrics/dual-homed.toml"), include_str!("../../../../fabrics/dual-homed-jobs.toml")),
        (include_str!("../../../../fabrics/dual-plane.toml"), include_str!("../../../../fabrics/dual-plane-jobs.toml")),
    ];
    for (fabric, jobs) in shipped {
        let topology = Topology::from_toml(fabric).unwrap();
        let flows = all_flows(&topology, jobs);
        let of_host = |host: HostId| {
            let ports = topology.ports(NodeId::Host(host)).iter();
            let rate: u64 = ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).sum();
            let sum = |end: fn(&Flow) -> HostId| -> u64 {
                flows.iter().filter(|flow| end(flow) == host).map(|flow| flow.rate_bits_per_s).sum()
            };
            sum(|flow| flow.from).max(sum(|flow| flow.to)) as f64 / rate as f64
        };
        let least = topology.host_ids().map(of_host).fold(0.0, f64::max);
        let placement = Placement::new(&topology, &flows).unwrap();
        let paths = placement.flows().map(|(id, flow)| (flow, placement.path(id).unwrap()));
        let found = loads(&topology, paths).most_loaded(&topology).1;
        assert!(found <= least * (1.0 + 1e-6), "{found}, but {least} would do");
    }
}

fn links_of(topology: &Topology, name: &str) -> Vec<LinkId> {
    topology.ports(topology.node(name).unwrap()).iter().map(|port| port.link).collect()
}

/// Without one core, its plane has room for fewer flows, and the others for more: the load is what whole flows need on
/// the links of the leaf or the pod that has most, and few other flows have moved. A fabric of three tiers, full of
/// permutations.
#[test]
fn a_drained_core_leaves_the_optimum() {
    let mut random = Pcg64Mcg::seed_from_u64(8);
    for (k, pods, several) in [(8_u16, 4_u16, 4_usize), (8, 8, 4), (16, 8, 8)] {
        let topology = FatTree { tiers: 3, k, pods: Some(pods), speeds: Speeds::DEFAULT }.topology().unwrap();
        let half = usize::from(k / 2);
        let hosts = topology.hosts().len() as u32;
        for plane in 1..=half {
            let mut flows: Vec<Flow> = Vec::new();
            for _ in 0..several {
                let mut to: Vec<u32> = (0..hosts).collect();
                to.shuffle(&mut random);
                let pairs = (0..).map(HostId).zip(to.into_iter().map(HostId)).filter(|(from, to)| from != to);
                let rate_bits_per_s = RATE / several as u64;
                flows.extend(pairs.map(|(from, to)| Flow { from, to, rate_bits_per_s }));
            }
            // Hosts are numbered leaf by leaf, pod by pod.
            let most = |size: usize, links: usize| {
                let of = |end: fn(&Flow) -> HostId, place: usize| {
                    let leaves = |flow: &&Flow| flow.from.index() / size != flow.to.index() / size;
                    let crossing = flows.iter().filter(leaves).filter(|flow| end(flow).index() / size == place);
                    crossing.count().div_ceil(links)
                };
                (0..hosts as usize / size).map(|place| of(|flow| flow.from, place).max(of(|flow| flow.to, place))).max()
            };
            let least = most(half, half).unwrap().max(most(half * half, half * half - 1).unwrap()).max(several);
            let core = links_of(&topology, &format!("core{plane}.1"));
            let mut placement = Placement::new(&topology, &flows).unwrap();
            let path = |placement: &Placement<'_>, id| placement.path(FlowId(id)).unwrap();
            let before: Vec<Path> = (0..flows.len() as u32).map(|id| path(&placement, id)).collect();
            let homeless = before.iter().filter(|path| path.links.iter().any(|link| core.contains(link))).count();
            let moved = placement.drain(&core).unwrap();
            let paths: Vec<Path> = (0..flows.len() as u32).map(|id| path(&placement, id)).collect();
            assert!(paths.iter().all(|path| path.links.iter().all(|link| !core.contains(link))));
            let changed: Vec<FlowId> = (0..)
                .map(FlowId)
                .zip(before.iter().zip(&paths))
                .filter(|(_, (was, is))| was != is)
                .map(|(id, _)| id)
                .collect();
            assert!(changed.iter().all(|id| moved.contains(id)), "k {k}, {pods} pods, plane {plane}");
            assert!(moved.len() < 8 * homeless, "k {k}, {pods} pods, plane {plane}: {} of {homeless}", moved.len());
            let found = loads(&topology, flows.iter().zip(paths)).most_loaded(&topology).1;
            let least = least as f64 / several as f64;
            assert!(found <= least + 1e-9, "k {k}, {pods} pods, plane {plane}: {found}, but {least} would do");
            placement.release(&core);
            assert!(placement.most_loaded().1 <= least + 1e-9, "k {k}, {pods} pods, plane {plane}: released");
        }
    }
}
