//! Placement on folded Clos fabrics is as even as whole flows can be. Loads are counted link by link along the paths, not
//! by the choices that made them.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{Encoding, FatTree, HostId, LeafSpine, Path, Program, SidPlan, Speeds, Topology};
use srdma_placement::{Choice, Clos, Flow, Loads, directions};

const RATE: u64 = 100_000_000_000;

fn leaf_spine(leaves: u16, spines: u16, hosts_per_leaf: u16) -> Topology {
    LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn fat_tree(k: u16) -> Topology {
    FatTree { tiers: 3, k, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn flow(from: u32, to: u32) -> Flow {
    Flow { from: HostId(from), to: HostId(to), rate_bits_per_s: RATE }
}

fn permutation(hosts: usize, random: &mut Pcg64Mcg) -> Vec<Flow> {
    let mut to: Vec<u32> = (0..hosts as u32).collect();
    to.shuffle(random);
    (0..).zip(to).filter(|(from, to)| from != to).map(|(from, to)| flow(from, to)).collect()
}

fn loads(topology: &Topology, clos: &Clos, flows: &[Flow], choices: &[Choice]) -> Loads {
    let mut loads = Loads::none(topology);
    for (flow, choice) in flows.iter().zip(choices) {
        let along = clos.along(flow, *choice);
        // The links are joined to one another, and end where the flow does.
        let path = Path::new(topology, flow.from, along.iter().map(|direction| direction.link).collect()).unwrap();
        assert_eq!((path.to, directions(topology, &path)), (flow.to, along.clone()));
        loads.add(topology, &along, flow.rate_bits_per_s);
    }
    loads
}

fn most_loaded(topology: &Topology, flows: &[Flow]) -> f64 {
    let clos = Clos::recognise(topology).unwrap();
    let choices = clos.place(flows);
    loads(topology, &clos, flows, &choices).most_loaded(topology).1
}

/// Every permutation on a fabric that does not block has a placement with no link above its rate, and it is found; also
/// where the number of spines is odd, or prime.
#[test]
fn a_thousand_permutations_load_no_link_above_its_rate() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let fabrics =
        [leaf_spine(8, 8, 8), leaf_spine(9, 3, 3), leaf_spine(5, 7, 7), leaf_spine(4, 6, 6), fat_tree(4), fat_tree(6)];
    for round in 0..1000 {
        let topology = &fabrics[round % fabrics.len()];
        let flows = permutation(topology.hosts().len(), &mut random);
        assert_eq!(most_loaded(topology, &flows), 1.0, "round {round}");
    }
}

/// Random choices, as those of a hash of the 5-tuple, collide.
#[test]
fn random_choices_do_not() {
    let topology = fat_tree(8);
    let clos = Clos::recognise(&topology).unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let flows = permutation(topology.hosts().len(), &mut random);
    let mut draw = |choices: usize| random.random_range(0..choices as u16);
    let choices: Vec<Choice> =
        flows.iter().map(|_| Choice { plane: draw(clos.plane_choices()), core: draw(clos.core_choices()) }).collect();
    assert!(loads(&topology, &clos, &flows, &choices).most_loaded(&topology).1 >= 3.0);
}

/// More flows than fit: the load is the least that whole flows allow. Hosts have several flows each.
#[test]
fn many_flows_meet_the_bound_of_whole_flows() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for topology in [leaf_spine(6, 4, 8), leaf_spine(7, 5, 3), fat_tree(4), fat_tree(6)] {
        let clos = Clos::recognise(&topology).unwrap();
        for several in 2..6 {
            let hosts = topology.hosts().len();
            let flows: Vec<Flow> = (0..several).flat_map(|_| permutation(hosts, &mut random)).collect();
            assert_eq!(most_loaded(&topology, &flows), clos.bound(&topology, &flows), "{several} of {hosts}");
        }
    }
}

/// The bound is the optimum, and placement reaches it: every choice of few flows is tried.
#[test]
fn no_choice_of_paths_is_better() {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let topology = leaf_spine(3, 2, 3);
    let clos = Clos::recognise(&topology).unwrap();
    for _ in 0..100 {
        let hosts = topology.hosts().len() as u32;
        let flows: Vec<Flow> = (0..8)
            .map(|_| {
                let from = random.random_range(0..hosts);
                flow(from, (from + random.random_range(1..hosts)) % hosts)
            })
            .collect();
        let best = (0..1_u32 << flows.len())
            .map(|bits| {
                let choices: Vec<Choice> =
                    (0..flows.len()).map(|index| Choice { plane: (bits >> index & 1) as u16, core: 0 }).collect();
                loads(&topology, &clos, &flows, &choices).most_loaded(&topology).1
            })
            .fold(f64::INFINITY, f64::min);
        assert_eq!(most_loaded(&topology, &flows), best);
    }
}

/// Flows of different rates: no link above an even share by more than the highest rate.
#[test]
fn different_rates_are_spread() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let topology = leaf_spine(8, 8, 16);
    let clos = Clos::recognise(&topology).unwrap();
    for _ in 0..20 {
        let mut flows: Vec<Flow> = (0..4).flat_map(|_| permutation(128, &mut random)).collect();
        for flow in &mut flows {
            flow.rate_bits_per_s = random.random_range(1..=40) * (RATE / 100);
        }
        let highest = flows.iter().map(|flow| flow.rate_bits_per_s).max().unwrap() as f64 / RATE as f64;
        let bound = clos.bound(&topology, &flows);
        let found = most_loaded(&topology, &flows);
        assert!(found <= bound + highest, "{found} where {bound} is the bound");
    }
}

/// The order of links is the same in every pod, so that a choice means the same at both ends.
#[test]
fn a_placed_path_is_a_program_of_five_switches() {
    let topology = fat_tree(8);
    let clos = Clos::recognise(&topology).unwrap();
    let plan = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    let flows = permutation(topology.hosts().len(), &mut Pcg64Mcg::seed_from_u64(6));
    for (flow, choice) in flows.iter().zip(clos.place(&flows)) {
        let links = clos.along(flow, choice).iter().map(|direction| direction.link).collect();
        let path = Path::new(&topology, flow.from, links).unwrap();
        let program = Program::encode(&plan, &topology, &path, Encoding::Nodes, None).unwrap();
        assert!(program.segments.is_empty());
        let steps = program.decode(&plan, &topology, None).unwrap();
        assert_eq!(steps.len(), path.links.len() - 1);
    }
}

#[test]
fn the_same_flows_get_the_same_paths() {
    let topology = fat_tree(6);
    let clos = Clos::recognise(&topology).unwrap();
    let flows = permutation(topology.hosts().len(), &mut Pcg64Mcg::seed_from_u64(7));
    assert_eq!(clos.place(&flows), Clos::recognise(&topology).unwrap().place(&flows));
}

#[test]
fn a_fabric_that_is_no_clos_is_refused_with_the_reason() {
    let refusal = |text: &str| {
        let topology = Topology::from_toml(text).unwrap();
        Clos::recognise(&topology).unwrap_err().to_string()
    };
    let sites = include_str!("../../../../fabrics/data-centres.toml");
    let long = "no folded Clos: link dc1.border1-dc2.border1 does not join neighbouring tiers";
    assert_eq!(refusal(sites), long);
    let homes = r#"
        kind = "links"
        host = [{ name = "a" }, { name = "b" }, { name = "c" }]
        switch = [{ name = "l1" }, { name = "l2" }, { name = "l3" }, { name = "s", tier = 2 }]
        link = [
            { ends = ["a", "l1"] }, { ends = ["a", "l2"] }, { ends = ["b", "l1"] }, { ends = ["b", "l2"] },
            { ends = ["c", "l2"] }, { ends = ["c", "l3"] },
            { ends = ["l1", "s"] }, { ends = ["l2", "s"] }, { ends = ["l3", "s"] },
        ]
    "#;
    assert_eq!(refusal(homes), "no folded Clos: c shares a leaf with hosts that have other leaves as well");
    let twice = homes.replace("\"c\", \"l3\"", "\"c\", \"l2\"");
    assert_eq!(refusal(&twice), "no folded Clos: c has several links to one leaf");
    let single = homes.replace("{ ends = [\"c\", \"l2\"] }, ", "");
    assert_eq!(refusal(&single), "no folded Clos: c has 1 links, but others have 2");
    let slower = homes.replace("\"c\", \"l3\"]", "\"c\", \"l3\"], rate_bits_per_s = 1");
    assert_eq!(refusal(&slower), "no folded Clos: the links of c differ in rate");
    let uneven = r#"
        kind = "links"
        host = [{ name = "a" }, { name = "b" }]
        switch = [{ name = "l1" }, { name = "l2" }, { name = "s1", tier = 2 }, { name = "s2", tier = 2 }]
        link = [
            { ends = ["a", "l1"] }, { ends = ["b", "l2"] }, { ends = ["l1", "s1"] }, { ends = ["l1", "s2"] },
            { ends = ["l2", "s1"] },
        ]
    "#;
    assert!(refusal(uneven).contains("the links up of l2 differ"), "{}", refusal(uneven));
    let across = r#"
        kind = "links"
        host = [{ name = "a" }, { name = "b" }]
        switch = [{ name = "l1" }, { name = "l2" }]
        link = [{ ends = ["a", "l1"] }, { ends = ["b", "l2"] }, { ends = ["l1", "l2"] }]
    "#;
    assert!(refusal(across).contains("link l1-l2 does not join neighbouring tiers"), "{}", refusal(across));
}
