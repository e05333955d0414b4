//! Collectives as flows, counted by hand, and placed without a link above its rate.

use srdma_fabric::{FatTree, LeafSpine, NextHops, Speeds, Topology};
use srdma_placement::{Flow, GroupKind, Job, Loads, Placement, ecmp, jobs_from_toml};
use std::collections::BTreeMap;

const RATE: u64 = Speeds::DEFAULT.host_rate_bits_per_s;

fn leaf_spine(leaves: u16, spines: u16, hosts_per_leaf: u16) -> Topology {
    LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn job(topology: &Topology, text: &str) -> Job {
    jobs_from_toml(text, topology).unwrap().remove(0)
}

fn flows(topology: &Topology, text: &str) -> Vec<Flow> {
    let job = job(topology, text);
    job.flows(&job.collectives[0], RATE)
}

/// Eight ranks, two to a tensor group, two data-parallel, two stages: the groups as Megatron-LM's documentation lists
/// them for these sizes.
#[test]
fn ranks_are_in_the_groups_that_differ_in_one_of_three() {
    let topology = leaf_spine(2, 2, 4);
    let job = job(&topology, "[[job]]\nname = \"j\"\nnics = [\"h1.*\", \"h2.*\"]\ntensor = 2\npipeline = 2\n");
    let groups = |kind| job.groups(kind);
    assert_eq!(groups(GroupKind::Tensor), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(groups(GroupKind::Data), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    assert_eq!(groups(GroupKind::Pipeline), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(groups(GroupKind::Expert), groups(GroupKind::Data));
    assert_eq!(groups(GroupKind::All), [[0, 1, 2, 3, 4, 5, 6, 7]]);
}

/// By hand, for four ranks: outgoing and incoming load of each NIC, in parts of its rate.
#[test]
fn collectives_send_the_octets_of_their_algorithms() {
    let topology = leaf_spine(2, 2, 2);
    let shares = |kind: &str| {
        let text = format!("[[job]]\nname = \"j\"\nnics = [\"h*\"]\n[[job.collective]]\nkind = \"{kind}\"\n");
        let mut sums: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        for flow in flows(&topology, &text) {
            sums.entry(flow.from.0).or_default()[0] += flow.rate_bits_per_s as f64 / RATE as f64;
            sums.entry(flow.to.0).or_default()[1] += flow.rate_bits_per_s as f64 / RATE as f64;
        }
        let rounded = |share: f64| (share * 1000.0).round() / 1000.0;
        sums.into_values().map(|sums| sums.map(rounded)).collect::<Vec<_>>()
    };
    for kind in ["all-reduce-ring", "all-gather", "reduce-scatter", "all-to-all"] {
        assert_eq!(shares(kind), [[1.0, 1.0]; 4], "{kind}");
    }
    for kind in ["broadcast", "send-recv"] {
        assert_eq!(shares(kind), [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0]], "{kind}");
    }
    // Two trees: 2 below 0, and 1 and 3 below 2; 1 below 3, and 2 and 0 below 1. Ranks 1 and 2 have four neighbours.
    assert_eq!(shares("all-reduce-tree"), [[0.5, 0.5], [1.0, 1.0], [1.0, 1.0], [0.5, 0.5]]);
}

/// The count computed without generating flows equals their number; for two trees, which share edges, it is not less.
#[test]
fn flows_are_counted_before_they_are_made() {
    let topology = leaf_spine(2, 2, 4);
    for group in ["all", "tensor", "data", "expert", "pipeline"] {
        for kind in ["all-reduce-ring", "all-gather", "all-to-all", "all-reduce-tree", "broadcast", "send-recv"] {
            let sizes = "tensor = 2\ndata = 4\nexpert = 2";
            let collective = format!("[[job.collective]]\nkind = \"{kind}\"\ngroup = \"{group}\"\n");
            let text = format!("[[job]]\nname = \"j\"\nnics = [\"h*\"]\n{sizes}\n{collective}");
            let job = job(&topology, &text);
            let found = job.flows(&job.collectives[0], RATE).len() as u64;
            let most = job.most_flows(&job.collectives[0]);
            let is_exact = !["all-reduce-tree", "broadcast", "send-recv"].contains(&kind);
            assert!(found <= most && (found == most || !is_exact), "{kind} of {group}: {found}, {most} counted");
        }
    }
}

/// A 64 MiB ring of four ranks every 10 ms: 2 · 3/4 · 64 MiB each.
#[test]
fn a_period_gives_the_rate() {
    let topology = leaf_spine(2, 2, 2);
    let text =
        "[[job]]\nname = \"j\"\nnics = [\"h*\"]\n[[job.collective]]\nkind = \"all-reduce-ring\"\nperiod_us = 10000\n";
    let expected = (1.5 * 67_108_864.0 * 8.0 / 0.01) as u64;
    assert!(flows(&topology, text).iter().all(|flow| flow.rate_bits_per_s == expected));
}

/// D298: a period gives a rate that links can have.
#[test]
fn a_rate_beyond_every_link_is_refused() {
    let topology = leaf_spine(2, 2, 2);
    let text = |octets: u64| {
        let collective = format!("[[job.collective]]\nkind = \"all-to-all\"\noctets = {octets}\nperiod_us = 1\n");
        format!("[[job]]\nname = \"j\"\nnics = [\"h*\"]\n{collective}")
    };
    assert_eq!(flows(&topology, &text(1_250_000)).len(), 12);
    let error = jobs_from_toml(&text(1_250_001), &topology).unwrap_err().to_string();
    assert_eq!(error, "line 4: 1250001 octets every 1 microseconds: expected 10000000000000 bits a second at most");
    assert!(jobs_from_toml(&text(i64::MAX as u64), &topology).is_err());
}

/// On a fabric that does not block every collective fits, where hashes collide.
#[test]
fn every_collective_is_placed_without_a_link_above_its_rate() {
    let fat_tree = FatTree { tiers: 3, k: 8, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap();
    for topology in [leaf_spine(8, 8, 8), fat_tree] {
        let next_hops = NextHops::new(&topology);
        for (kind, group) in [
            ("all-reduce-ring", "all"),
            ("all-reduce-ring", "data"),
            ("all-gather", "tensor"),
            ("reduce-scatter", "data"),
            ("send-recv", "pipeline"),
            ("all-to-all", "expert"),
        ] {
            let text = format!(
                "[[job]]\nname = \"j\"\nnics = [\"h*\"]\ntensor = 4\npipeline = 4\nexpert = 2\n\
                 [[job.collective]]\nkind = \"{kind}\"\ngroup = \"{group}\"\n"
            );
            let flows = flows(&topology, &text);
            let placement = Placement::new(&topology, &flows).unwrap();
            assert_eq!(placement.most_loaded().1, 1.0, "{kind} {group}");
            let mut hashed = Loads::none(&topology);
            for (number, flow) in (0..).zip(&flows) {
                let along = ecmp(&topology, &next_hops, [flow.from, flow.to], number, 1);
                assert_eq!(along.last().map(|last| last.to(&topology)), Some(srdma_fabric::NodeId::Host(flow.to)));
                hashed.add(&topology, &along, flow.rate_bits_per_s);
            }
            assert!(hashed.most_loaded(&topology).1 >= 1.0);
        }
    }
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let topology = leaf_spine(2, 2, 2);
    let refused = |text: &str| jobs_from_toml(text, &topology).unwrap_err().to_string();
    let job = "[[job]]\nname = \"j\"\n";
    assert_eq!(refused(&format!("{job}nics = [\"h1.1\", \"x\"]\n")), "line 3: x is no NIC of this fabric");
    assert_eq!(
        refused(&format!("{job}nics = [\"h*\"]\ntensor = 3\n")),
        "line 1: tensor 3 × data 1 × pipeline 1 ranks, but the job has 4 NICs"
    );
    assert_eq!(
        refused(&format!("{job}nics = [\"h*\"]\nexpert = 3\n")),
        "line 4: expert 3: expected a number that divides data, 4"
    );
    assert_eq!(refused(&format!("{job}nics = [\"h*\"]\ntenant = 5000\n")), "line 4: tenant 5000: expected 0 to 4095");
    assert!(refused(&format!("{job}nics = [\"h*\"]\nranks = 3\n")).starts_with("line 4: unknown key `ranks`"));
    assert!(
        refused(&format!("{job}nics = [\"h*\"]\n{job}nics = [\"h*\"]\n")).contains("line 5: two jobs are called j")
    );
    let collective = "[[job.collective]]\nkind = \"gossip\"\n";
    assert!(refused(&format!("{job}nics = [\"h*\"]\n{collective}")).starts_with("line 5: unknown value `gossip`"));
}
