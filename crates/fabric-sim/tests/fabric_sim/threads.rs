//! One run on several threads: the same results, to the last octet (D223).

use srdma_fabric_sim::{FabricScenario, run_observed};
use std::path::Path;

const FAT_TREE: &str = "kind = \"fabric\"\ntitle = \"t\"\n[topology]\nkind = \"fat-tree\"\ntiers = 3\nk = 4\n";

/// Links of different lengths: a window between partitions is longer than one within.
const LEAF_SPINE: &str = "kind = \"fabric\"\ntitle = \"t\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 3\n\
                          hosts_per_leaf = 4\nhost_delay_ns = 100\nfabric_delay_ns = 700\n";

fn variant(keys: &str) -> String {
    format!("[[variant]]\nname = \"a\"\n{keys}\n")
}

/// All results of a run as JSON.
fn json(scenario: &FabricScenario, seed: u64, threads: usize) -> String {
    let result = run_observed(scenario, 0, seed, threads, &mut |_| {}, None).unwrap();
    assert!(result.packet_hops > 3_000, "{} packet-hops", result.packet_hops);
    assert_eq!(result.totals.lost_by_simulator, 0);
    serde_json::to_string(&result).unwrap()
}

fn is_the_same_on_any_number_of_threads(name: &str, text: &str) {
    let scenario = FabricScenario::parse(Path::new("t.toml"), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    for seed in [1, 2] {
        let one = json(&scenario, seed, 1);
        for threads in [2, 3] {
            assert!(one == json(&scenario, seed, threads), "{name}, seed {seed}, {threads} threads");
        }
    }
}

/// D223.
#[test]
fn a_permutation() {
    let work = "[[workload.permutation]]\nsize_octets = 300_000\n[measure]\nduration_us = 1\n";
    let text = format!("{FAT_TREE}{work}{}", variant("signal = \"none\"\ncontrol = \"none\""));
    is_the_same_on_any_number_of_threads("permutation", &text);
}

/// D223.
#[test]
fn incasts_with_every_signal_and_control() {
    let work = "[[workload.incast]]\nreceiver = \"h1.1\"\nsenders = 12\nmin_octets = 500_000\nmax_octets = 900_000\n\
                start_us = 5\n[[workload.background]]\nload = 0.3\nsizes = \"hadoop\"\n\
                [measure]\nduration_us = 60\nsample_ns = 10_000\n";
    for (signal, control) in [("receiver-cnp", "dcqcn"), ("fast-cnp", "dcqcn"), ("fast-cnp", "hpcc")] {
        let keys = format!("signal = \"{signal}\"\ncontrol = \"{control}\"");
        let text = format!("{LEAF_SPINE}{work}{}", variant(&keys));
        is_the_same_on_any_number_of_threads(&keys, &text);
    }
}

/// Messages of all ranks depend on each other, on paths that the hosts choose, and on which a link fails.
#[test]
fn jobs_on_placed_and_steered_paths_with_a_failure() {
    let work = "[[workload.job]]\nname = \"train\"\nnics = [\"h*\"]\ntensor = 4\niterations = 2\n\
                [[workload.job.collective]]\nkind = \"all-reduce-ring\"\ngroup = \"data\"\noctets = 1_048_576\n\
                [[workload.job.collective]]\nkind = \"all-to-all\"\noctets = 262_144\n\
                [[failure]]\nname = \"leaf1-spine1\"\nat_us = 30\nuntil_us = 300\n\
                [measure]\nduration_us = 1\ndrain_us = 20_000\n";
    for keys in ["paths = \"placed\"", "paths = \"placed\"\nsteering = true", "queue_pairs = 2"] {
        let keys = format!("signal = \"fast-cnp\"\ncontrol = \"dcqcn\"\n{keys}");
        let text = format!("{LEAF_SPINE}{work}{}", variant(&keys));
        is_the_same_on_any_number_of_threads(&keys, &text);
    }
}

/// Copies of a packet share their payload, and cross to other partitions one by one.
#[test]
fn a_group_across_partitions() {
    let work = "[[workload.multicast]]\nname = \"m\"\nfrom = \"h1.1\"\nreceivers_below = [\"leaf2\", \"leaf4\"]\n\
                [measure]\nduration_us = 200\n";
    for control in ["dcqcn", "hpcc"] {
        let text = format!("{LEAF_SPINE}{work}{}", variant(&format!("signal = \"fast-cnp\"\ncontrol = \"{control}\"")));
        is_the_same_on_any_number_of_threads(control, &text);
    }
}
