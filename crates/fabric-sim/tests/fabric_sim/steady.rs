//! Steady states that are skipped (D219), compared with the same runs packet by packet.

use srdma_fabric_sim::{FabricResults, FabricScenario, Level, VariantResult, run_observed};
use std::path::Path;

/// Eight leaves with eight hosts; one ring of all, whose messages have four packets.
fn scenario(collective: &str, variant_keys: &str) -> FabricScenario {
    scenario_until(100_000, collective, variant_keys)
}

fn scenario_until(drain_us: u64, collective: &str, variant_keys: &str) -> FabricScenario {
    let text = format!(
        "kind = \"fabric\"\ntitle = \"t\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 8\nhosts_per_leaf = 8\n\
         [hosts]\nack_every = 16\n[[workload.job]]\nname = \"train\"\nnics = [\"h*\"]\niterations = 2\npause_us = 30\n\
         {collective}\n[measure]\nduration_us = 1\ndrain_us = {drain_us}\nsample_ns = 20_000\n\
         [[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n{variant_keys}\n"
    );
    FabricScenario::parse(Path::new("t.toml"), &text).unwrap()
}

fn collective(kind: &str, octets: u64) -> String {
    format!("[[workload.job.collective]]\nkind = \"{kind}\"\noctets = {octets}\n")
}

/// The same run with steady states skipped, and packet by packet.
fn both(mut scenario: FabricScenario) -> [VariantResult; 2] {
    [true, false].map(|skips| {
        scenario.set_skip_steady(skips).unwrap();
        let result = run_observed(&scenario, 0, 1, 1, &mut |_| {}, None).unwrap();
        assert_eq!((result.summary.unfinished, result.totals.octets_differing), (0, 0));
        result
    })
}

fn compared([skipping, packets]: &[VariantResult; 2]) -> srdma_fabric_sim::Comparison {
    let results = |run: &VariantResult| FabricResults {
        title: String::new(),
        description: String::new(),
        level: Level::Packet,
        baseline: String::new(),
        runs: vec![run.clone()],
    };
    results(skipping).compared_with(&results(packets)).remove(0)
}

/// Two collectives in each of two iterations: 126 and 63 messages of each rank.
#[test]
fn a_ring_takes_as_long_as_packet_by_packet() {
    let rings = format!("{}{}", collective("all-reduce-ring", 1 << 20), collective("all-gather", 1 << 20));
    for keys in ["paths = \"placed\"", "paths = \"greedy\""] {
        let runs = both(scenario(&rings, keys));
        let comparison = compared(&runs);
        assert!(comparison.difference.unwrap() < 0.001, "{keys}: {comparison:?}");
        assert!(comparison.skipped > 0.2, "{keys}: {comparison:?}");
        let [skipping, packets] = &runs;
        assert!((skipping.packet_hops as f64) < 0.8 * packets.packet_hops as f64);
        assert_eq!(skipping.totals.octets_delivered, packets.totals.octets_delivered);
        assert_eq!(skipping.totals.octets_sent, packets.totals.octets_sent);
        assert_eq!(skipping.totals.data_packets, packets.totals.data_packets);
        assert_eq!(skipping.jobs[0].ideal_ns, packets.jobs[0].ideal_ns);
        for (own, other) in skipping.links.iter().zip(&packets.links) {
            assert_eq!(own.name, other.name);
            assert!(own.octets.abs_diff(other.octets) as f64 <= 0.02 * other.octets as f64, "{own:?} {other:?}");
        }
        let slowest = [skipping, packets].map(|run| run.jobs[0].slowest.as_ref().unwrap().bits_per_s);
        assert!((slowest[0] / slowest[1] - 1.0).abs() < 0.02, "{slowest:?}");
    }
}

/// D219: Flows that share links, and collectives in which a rank sends to several others, are simulated packet by
/// packet.
#[test]
fn what_is_not_steady_is_not_skipped() {
    let ring = collective("all-reduce-ring", 1 << 20);
    for (work, keys) in [(ring, ""), (collective("all-to-all", 1 << 20), "paths = \"placed\"")] {
        let [skipping, packets] = both(scenario(&work, keys));
        assert_eq!(skipping.skipped_ns, 0);
        assert_eq!(skipping, packets, "{keys}");
    }
}

/// Neither a second job that begins meanwhile, nor the limit of the run, falls into a time that is skipped.
#[test]
fn other_events_are_not_skipped() {
    let second = "[[workload.job]]\nname = \"other\"\nnics = [\"h1.1\", \"h2.1\"]\nstart_us = 330\n\
                  [[workload.job.collective]]\nkind = \"send-recv\"\noctets = 4_096\n";
    let work = format!("{}{second}", collective("all-reduce-ring", 1 << 21));
    let runs = both(scenario(&work, "paths = \"placed\""));
    let comparison = compared(&runs);
    assert!(comparison.skipped > 0.15 && comparison.difference.unwrap() < 0.001, "{comparison:?}");
    assert_eq!(runs[0].jobs[1].iterations[0].started_ns, 330_000);
    let one_way = |run: &VariantResult| run.jobs[1].iterations[0].finished_ns.unwrap() - 330_000;
    assert!(one_way(&runs[0]).abs_diff(one_way(&runs[1])) < 2_000, "{} {}", one_way(&runs[0]), one_way(&runs[1]));
    let mut cut = scenario_until(400, &collective("all-reduce-ring", 1 << 21), "paths = \"placed\"");
    cut.set_skip_steady(true).unwrap();
    let cut = run_observed(&cut, 0, 1, 1, &mut |_| {}, None).unwrap();
    assert_eq!((cut.summary.unfinished, cut.jobs[0].iterations.len()), (1, 1));
    assert!(cut.skipped_ns > 0 && cut.skipped_ns < 400_000);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let mut scenario = scenario(&collective("all-reduce-ring", 1 << 20), "paths = \"placed\"");
    scenario.set_skip_steady(true).unwrap();
    let json = |threads| {
        let result = run_observed(&scenario, 0, 1, threads, &mut |_| {}, None).unwrap();
        assert!(result.skipped_ns > 0);
        serde_json::to_string(&result).unwrap()
    };
    let one = json(1);
    assert!(one == json(1) && one == json(2) && one == json(3));
}

#[test]
fn only_jobs_packet_by_packet_have_steady_states() {
    let mut scenario = scenario(&collective("all-reduce-ring", 1 << 20), "");
    scenario.set_level(Level::Flow).unwrap();
    assert!(scenario.set_skip_steady(true).unwrap_err().starts_with("steady states are those of collectives"));
    assert_eq!(scenario.set_skip_steady(false), Ok(()));
}
