//! Rails, planes and dual-homed hosts are folded Clos fabrics too: every permutation and every shipped collective loads
//! no link above the bound of whole flows. Loads are counted link by link along the paths.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_placement::{Clos, Flow, Loads, Placement, directions, jobs_from_toml};

const SHIPPED: [(&str, &str, &str); 4] = [
    (
        "figure1",
        include_str!("../../../../fabrics/figure1.toml"),
        include_str!("../../../../fabrics/figure1-jobs.toml"),
    ),
    ("rail", include_str!("../../../../fabrics/rail.toml"), include_str!("../../../../fabrics/rail-jobs.toml")),
    (
        "dual-plane",
        include_str!("../../../../fabrics/dual-plane.toml"),
        include_str!("../../../../fabrics/dual-plane-jobs.toml"),
    ),
    (
        "dual-homed",
        include_str!("../../../../fabrics/dual-homed.toml"),
        include_str!("../../../../fabrics/dual-homed-jobs.toml"),
    ),
];

/// Load of the most loaded link, recomputed.
fn most_loaded(topology: &Topology, placement: &Placement<'_>) -> f64 {
    let mut loads = Loads::none(topology);
    for (id, flow) in placement.flows() {
        loads.add(topology, &directions(topology, &placement.path(id).unwrap()), flow.rate_bits_per_s);
    }
    loads.most_loaded(topology).1
}

/// Everything that leaves a set of leaves has so many links: the bound, counted in another way than the placement's.
fn bound(topology: &Topology, flows: &[Flow], homes: u64, uplinks: u64) -> f64 {
    let rate = topology.links()[0].rate_bits_per_s;
    let mut most = 0;
    for end in [|flow: &Flow| flow.from, |flow: &Flow| flow.to] {
        let end: fn(&Flow) -> HostId = end;
        for host in topology.host_ids() {
            let leaves = |host: HostId| topology.attached_to(host).collect::<Vec<_>>();
            let own = leaves(host);
            let at_host = flows.iter().filter(|flow| end(flow) == host).count() as u64;
            let leaving = flows.iter().filter(|flow| leaves(end(flow)) == own && leaves(flow.from) != leaves(flow.to));
            most = most.max(at_host.div_ceil(homes)).max((leaving.count() as u64).div_ceil(uplinks));
        }
    }
    (most * flows[0].rate_bits_per_s) as f64 / rate as f64
}

#[test]
fn a_thousand_permutations_on_every_kind() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let fabrics = [
        (SHIPPED[1].1.to_owned(), 1, 4),
        (SHIPPED[2].1.to_owned(), 2, 16),
        (SHIPPED[3].1.to_owned(), 2, 16),
        ("kind = \"planes\"\nplanes = 3\nleaves = 4\nspines = 3\nhosts_per_leaf = 5\n".to_owned(), 3, 9),
        ("kind = \"planes\"\nplanes = 4\nleaves = 3\nspines = 2\nhosts_per_leaf = 8\n".to_owned(), 4, 8),
    ];
    let fabrics = fabrics.map(|(text, homes, uplinks)| (Topology::from_toml(&text).unwrap(), homes, uplinks));
    for round in 0..1000 {
        let (topology, homes, uplinks) = &fabrics[round % fabrics.len()];
        // If several permutations share the hosts' links, every flow leaves its leaf.
        let several = 1 + round / fabrics.len() % 4;
        let stays = |from: HostId, to: HostId| topology.attached_to(from).eq(topology.attached_to(to));
        let mut flows = Vec::new();
        for _ in 0..several {
            let mut to: Vec<HostId> = topology.host_ids().collect();
            to.shuffle(&mut random);
            let rate_bits_per_s = topology.links()[0].rate_bits_per_s;
            let pairs = topology.host_ids().zip(to).filter(|(from, to)| from != to);
            let pairs = pairs.filter(|(from, to)| several == 1 || !stays(*from, *to));
            flows.extend(pairs.map(|(from, to)| Flow { from, to, rate_bits_per_s }));
        }
        let placement = Placement::new(topology, &flows).unwrap();
        let expected = bound(topology, &flows, *homes, *uplinks);
        assert_eq!(most_loaded(topology, &placement), expected, "round {round}, {several} permutations");
        assert_eq!(placement.bound(), expected);
    }
}

#[test]
fn every_shipped_collective_meets_the_bound() {
    for (name, fabric, jobs) in SHIPPED {
        let topology = Topology::from_toml(fabric).unwrap();
        Clos::recognise(&topology).unwrap();
        let rate = topology.links()[0].rate_bits_per_s;
        for job in jobs_from_toml(jobs, &topology).unwrap() {
            for collective in &job.collectives {
                let flows = job.flows(collective, rate);
                let placement = Placement::new(&topology, &flows).unwrap();
                let (found, bound) = (most_loaded(&topology, &placement), placement.bound());
                assert!((found - bound).abs() < 1e-9, "{name}, {}: {found}, bound {bound}", collective.name);
            }
        }
    }
}

/// Nothing is placed on what has failed, on a Clos and on any other fabric.
#[test]
fn failed_links_get_no_flow() {
    let sites = include_str!("../../../../fabrics/data-centres.toml");
    for (text, failed) in [(SHIPPED[1].1, "spine2"), (SHIPPED[2].1, "p2.spine1"), (sites, "dc1.border2")] {
        let topology = Topology::from_toml(&format!("{text}\n[[failed]]\nname = \"{failed}\"\n")).unwrap();
        let hosts = topology.hosts().len() as u32;
        let flow =
            |from: u32| Flow { from: HostId(from), to: HostId(hosts - 1 - from), rate_bits_per_s: 1_000_000_000 };
        let flows: Vec<Flow> = (0..hosts).map(flow).collect();
        let mut placement = Placement::new(&topology, &flows).unwrap();
        let links = topology.links_named(failed).unwrap();
        // It has failed: it cannot be released.
        placement.release(&links);
        placement.add(flow(1)).unwrap();
        let node = topology.node(failed).unwrap();
        for (id, _) in placement.flows() {
            let path = placement.path(id).unwrap();
            let backup = placement.backup(id).into_iter();
            for path in [path].into_iter().chain(backup) {
                assert!(path.hops(&topology).all(|(switch, _)| NodeId::Switch(switch) != node), "{failed}");
            }
        }
    }
}
