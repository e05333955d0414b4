//! Placement where there is no folded Clos, or not a whole one: near the bound on every shipped fabric, and the bound is
//! one.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_placement::{Flow, Loads, Placement, directions, divided_bound, jobs_from_toml};

macro_rules! shipped {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../fabrics/", $name, ".toml")),
            include_str!(concat!("../../../../fabrics/", $name, "-jobs.toml")))),*]
    };
}

/// Each collective of the shipped files, and all of them at once, are within 5 % of the bound.
#[test]
fn shipped_fabrics_are_within_five_percent_of_the_bound() {
    for (name, fabric, jobs) in shipped!("data-centres", "failures", "mixed", "torus") {
        let topology = Topology::from_toml(fabric).unwrap();
        let mut all: Vec<Flow> = Vec::new();
        let check = |what: &str, flows: &[Flow]| {
            let placement = Placement::new(&topology, flows).unwrap();
            let mut loads = Loads::none(&topology);
            for (id, flow) in placement.flows() {
                let along = directions(&topology, &placement.path(id).unwrap());
                loads.add(&topology, &along, flow.rate_bits_per_s);
            }
            let (found, bound) = (loads.most_loaded(&topology).1, placement.bound());
            assert!(bound > 0.0 && found <= 1.05 * bound, "{name}, {what}: {found}, bound {bound}");
        };
        for job in jobs_from_toml(jobs, &topology).unwrap() {
            for collective in &job.collectives {
                let ports = job.nics.iter().flat_map(|nic| topology.ports(NodeId::Host(*nic)));
                let rate = ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap();
                let flows = job.flows(collective, rate);
                check(&collective.name, &flows);
                all.extend(flows);
            }
        }
        check("all at once", &all);
    }
}

/// A ring of four switches with a host each: two ways between any two, so every choice of few flows can be tried.
const RING: &str = r#"
kind = "links"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }, { name = "h4" }]
switch = [{ name = "s1" }, { name = "s2" }, { name = "s3" }, { name = "s4" }]
link = [
    { ends = ["h1", "s1"], rate_bits_per_s = 900 }, { ends = ["h2", "s2"], rate_bits_per_s = 900 },
    { ends = ["h3", "s3"], rate_bits_per_s = 900 }, { ends = ["h4", "s4"], rate_bits_per_s = 900 },
    { ends = ["s1", "s2"], rate_bits_per_s = 100 }, { ends = ["s2", "s3"], rate_bits_per_s = 200 },
    { ends = ["s3", "s4"], rate_bits_per_s = 100 }, { ends = ["s4", "s1"], rate_bits_per_s = 300 },
]
"#;

/// The optimum by trying everything: no bound is above it, and placement is not far from it.
#[test]
fn bounds_are_below_every_choice() {
    let topology = Topology::from_toml(RING).unwrap();
    let rate = |link: usize| topology.links()[link].rate_bits_per_s as f64;
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut exact = 0;
    for _ in 0..200 {
        let flows: Vec<Flow> = (0..random.random_range(1..9))
            .map(|_| {
                let from = random.random_range(0..4);
                let to = HostId((from + random.random_range(1..4)) % 4);
                Flow { from: HostId(from), to, rate_bits_per_s: 10 * random.random_range(1..5) }
            })
            .collect();
        // A detour goes from switch to switch, over link s_i–s_(i+1) in one of both directions.
        let carried = |clockwise: u32| {
            let mut loads = [[0_u64; 4]; 2];
            for (number, flow) in flows.iter().enumerate() {
                let is_clockwise = clockwise >> number & 1 == 1;
                let (mut at, to) = (flow.from.0, flow.to.0);
                while at != to {
                    let next = if is_clockwise { (at + 1) % 4 } else { (at + 3) % 4 };
                    let link = if is_clockwise { at } else { next };
                    loads[usize::from(is_clockwise)][link as usize] += flow.rate_bits_per_s;
                    at = next;
                }
            }
            let between = (0..4).map(|link| loads[0][link].max(loads[1][link]) as f64 / rate(4 + link));
            between.fold(0.0, f64::max)
        };
        let at_hosts = topology.host_ids().map(|host| {
            let sum = |end: fn(&Flow) -> HostId| -> u64 {
                flows.iter().filter(|flow| end(flow) == host).map(|flow| flow.rate_bits_per_s).sum()
            };
            sum(|flow| flow.from).max(sum(|flow| flow.to)) as f64 / 900.0
        });
        let best = (0..1 << flows.len()).map(carried).fold(f64::INFINITY, f64::min).max(at_hosts.fold(0.0, f64::max));
        let placement = Placement::new(&topology, &flows).unwrap();
        let (found, bound) = (placement.most_loaded().1, placement.bound());
        assert!(bound <= best + 1e-9 && found >= best - 1e-9, "bound {bound}, best {best}, found {found}");
        assert!(divided_bound(&topology, &flows, |_| true, 100) <= best + 1e-9);
        exact += usize::from(found <= best + 1e-9);
    }
    assert!(exact >= 180, "the optimum {exact} times of 200");
}
