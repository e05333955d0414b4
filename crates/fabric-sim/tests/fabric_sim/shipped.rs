//! The scenarios that are shipped: each is parsed as it is, and run at a small size. Their own sizes take minutes to
//! hours.

use srdma_fabric_sim::{Kind, Provenance, Results, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// All `.toml` files below a folder.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("measured") {
            // Values that scenarios name.
        } else if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}

#[test]
fn every_shipped_scenario_parses() {
    let mut files = Vec::new();
    files_below(Path::new(FOLDER), &mut files);
    let scenarios: Vec<Scenario> = files.iter().map(|file| Scenario::read(file).unwrap()).collect();
    let of_kind = |kind| scenarios.iter().filter(|scenario| scenario.kind() == kind).count();
    let found = [Kind::Fabric, Kind::FlowLevel, Kind::Sweep, Kind::Wan, Kind::EndToEnd].map(of_kind);
    assert_eq!(found, [15, 3, 6, 3, 1], "fabric, flow-level, sweep, wan, end-to-end");
    assert!(scenarios.iter().all(|scenario| scenario.runs(scenario.seeds() as usize) > 0));
}

/// Sweeps are run with their last variant of each method, for a few microseconds, and print their fronts.
#[test]
fn every_shipped_sweep_runs_for_a_short_time() {
    let mut files = Vec::new();
    files_below(&Path::new(FOLDER).join("sweeps"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let short =
            text.replace("duration_us = 6000", "duration_us = 60").replace("duration_us = 4000", "duration_us = 40");
        assert_ne!(text, short, "{}", file.display());
        let mut scenario = Scenario::parse(&file, &short).unwrap_or_else(|error| panic!("{error}"));
        let Scenario::Fabric(sweep) = &mut scenario else { panic!("{}", file.display()) };
        assert!(sweep.first_seed > 100, "seeds of the evaluation are others");
        let mut last: BTreeMap<String, String> = BTreeMap::new();
        for variant in &sweep.variants {
            last.insert(variant.method().to_owned(), variant.name.clone());
        }
        sweep.variants.retain(|variant| last[variant.method()] == variant.name);
        let provenance = Provenance {
            command: String::new(),
            file_text: &short,
            report: None,
            seeds: 1,
            wall: std::time::Duration::from_secs(1),
            threads: 2,
        };
        let results = scenario.run(&[101], 2, &|_, _| (), None).unwrap_or_else(|error| panic!("{error}"));
        let report = results.report(&provenance);
        let table = report.to_string();
        assert_eq!(table.matches("  selected\n").count(), last.len(), "{table}");
        let json = serde_json::to_value(&report).unwrap();
        let points = json["points"].as_array().expect("the objective of each variant");
        assert_eq!(points.len(), last.len(), "one of each method");
        assert!(points.iter().all(|point| point["is_selected"] == true), "{points:?}");
        assert!(json.get("runs").is_none() && json["variants"].as_array().map(Vec::len) == Some(last.len()));
    }
}

/// A scenario, and the changes of its text that make it small.
struct Small {
    file: &'static str,
    changes: &'static [(&'static str, &'static str)],
}

const SMALL: [Small; 22] = [
    Small { file: "allreduce-4096-flow.toml", changes: &[FAT_TREE, PODS, TENSOR_64] },
    Small { file: "allreduce-4096-packets.toml", changes: &[FAT_TREE, PODS, ("67_108_864", "65_536")] },
    Small {
        file: "allreduce-512.toml",
        changes: &[
            ("leaves = 32", "leaves = 2"),
            ("spines = 16", "spines = 2"),
            ("hosts_per_leaf = 16", "hosts_per_leaf = 2"),
            ("tensor = 16", "tensor = 2"),
            ("8_388_608", "65_536"),
        ],
    },
    Small {
        file: "allreduce-65536-flow.toml",
        changes: &[("k = 64", "k = 4"), ("tensor = 256", "tensor = 4"), ("67_108_864", "1_048_576")],
    },
    Small { file: "allreduce.toml", changes: &[("8_388_608", "65_536"), ("iterations = 2", "iterations = 1")] },
    Small { file: "alltoall.toml", changes: &[("8_388_608", "65_536")] },
    Small {
        file: "broadcast-1024.toml",
        changes: &[("hosts_per_leaf = 32", "hosts_per_leaf = 1"), ("1_000_000_000\n", "200_000\n"), ANY_TIME],
    },
    Small { file: "broadcast-60gb.toml", changes: &[("60_000_000_000", "1_000_000"), ANY_TIME] },
    Small { file: "broadcast-flow.toml", changes: &[("67_108_864", "1_048_576")] },
    Small { file: "broadcast-rails.toml", changes: &[("15_000_000_000", "200_000"), ANY_TIME] },
    Small {
        file: "end-to-end.toml",
        changes: &[
            ("octets = 16_777_216", "octets = 1_048_576"),
            ("receivers_per_edge = 4", "receivers_per_edge = 1"),
            ("total_km = 40", "total_km = 10"),
            ("first_hop_km = 5", "first_hop_km = 1"),
            ("loss = 0.00005", "loss = 0.001"),
            ("at_us = 3950", "at_us = 1500"),
            ("down_us = 300", "down_us = 100"),
        ],
    },
    Small { file: "goal-trace.toml", changes: &[("4_194_304", "65_536"), ("iterations = 2", "iterations = 1")] },
    Small {
        file: "incast-dc-400g.toml",
        changes: &[("start_us = 1000", "start_us = 1"), ("duration_us = 4000", "duration_us = 30"), LARGEST],
    },
    Small {
        file: "incast-dc.toml",
        changes: &[("start_us = 1000", "start_us = 1"), ("duration_us = 6000", "duration_us = 30"), LARGEST],
    },
    Small {
        file: "link-failure.toml",
        changes: &[
            ("octets = 1_048_576", "octets = 32_768"),
            ("iterations = 40", "iterations = 3"),
            ("at_us = 2000", "at_us = 20"),
            ("until_us = 252_000", "until_us = 600"),
            ("interval_us = 50_000", "interval_us = 1000"),
        ],
    },
    Small {
        file: "multi-job.toml",
        changes: &[("8_388_608", "65_536"), ("4_194_304", "65_536"), ("iterations = 3", "iterations = 1")],
    },
    Small {
        file: "multicast-incast.toml",
        changes: &[
            ("start_us = 500", "start_us = 1"),
            ("duration_us = 6000", "duration_us = 30"),
            ("max_octets = 1_048_576", "max_octets = 65_536"),
        ],
    },
    Small { file: "permutation.toml", changes: &[("k = 16", "k = 4"), ("4_000_000", "100_000")] },
    Small {
        file: "spine-congestion.toml",
        changes: &[
            ("octets = 2_097_152", "octets = 32_768"),
            ("iterations = 12", "iterations = 2"),
            ("start_us = 1000", "start_us = 1"),
            ("duration_us = 100_000", "duration_us = 300"),
        ],
    },
    Small { file: "wan-equal-hops-r3.toml", changes: &[EQUAL_HOPS, ("[2, 2.4, 2.8, 3.2]", "[3.2]"), WAN_TIME] },
    Small { file: "wan-equal-hops.toml", changes: &[EQUAL_HOPS, EQUAL_QUEUES, WAN_TIME, WAN_TRIPS] },
    Small {
        file: "wan.toml",
        changes: &[
            ("total_km = [50, 100, 200, 300, 400, 500]", "total_km = [10]"),
            ("first_hop_km = 5", "first_hop_km = 1"),
            ("buffers = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16]", "buffers = [1, 4]"),
            ("\nbuffer = 0.5", "\nbuffer = 1"),
            WAN_TIME,
            WAN_TRIPS,
        ],
    },
];

const FAT_TREE: (&str, &str) = ("k = 32", "k = 4");
const PODS: (&str, &str) = ("pods = 16", "pods = 4");
const TENSOR_64: (&str, &str) = ("tensor = 64", "tensor = 4");
const LARGEST: (&str, &str) = ("max_octets = 4_194_304", "max_octets = 65_536");
/// Of a short broadcast the round trip is a large part.
const ANY_TIME: (&str, &str) = ("at_most = 1.1", "at_most = 100.0");
const EQUAL_HOPS: (&str, &str) = ("total_km = [50, 100, 200, 500]", "total_km = [10]");
const EQUAL_QUEUES: (&str, &str) = ("buffers = [0.5, 1, 1.2, 1.4, 1.6, 2, 4, 8, 16]", "buffers = [1.6, 4]");
const WAN_TIME: (&str, &str) = ("min_duration_us = 6000", "min_duration_us = 300");
const WAN_TRIPS: (&str, &str) = ("round_trips = 8", "round_trips = 1");

/// Every variant runs to its end and delivers data unchanged.
#[test]
fn every_shipped_scenario_runs_at_a_small_size() {
    let shipped = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let shipped: BTreeSet<String> = shipped.filter(|name| name.ends_with(".toml")).collect();
    assert_eq!(shipped, SMALL.iter().map(|small| small.file.to_owned()).collect(), "each has a small size here");
    for Small { file, changes } in &SMALL {
        let path = Path::new(FOLDER).join(file);
        let small = changes.iter().fold(std::fs::read_to_string(&path).unwrap(), |text, (from, to)| {
            assert!(text.contains(from), "{file}: {from}");
            text.replace(from, to)
        });
        let scenario = Scenario::parse(&path, &small).unwrap_or_else(|error| panic!("{error}"));
        let results = scenario.run(&[1], 2, &|_, _| (), None).unwrap_or_else(|error| panic!("{file}: {error}"));
        match &results {
            Results::Fabric(scenario, results) => {
                assert_eq!(results.runs.len(), scenario.variants.len(), "{file}");
                for run in &results.runs {
                    let totals = &run.totals;
                    assert_eq!((totals.octets_differing, totals.lost_by_simulator), (0, 0), "{file}: {}", run.variant);
                    assert!(totals.octets_delivered > 0, "{file}: {}", run.variant);
                }
            }
            Results::Wan(_, results) => assert!(results.runs.iter().all(|run| run.delivered_octets > 0), "{file}"),
            Results::EndToEnd(plan, results) => {
                let broken: Vec<_> = results.claims(plan).into_iter().filter(|claim| !claim.holds).collect();
                assert!(broken.is_empty(), "{file}: {broken:?}");
            }
        }
    }
}
