//! Jobs at flow level, compared with the same jobs packet by packet.

use srdma_fabric_sim::{FabricScenario, Level, VariantResult, run};
use srdma_figures::report;
use std::path::Path;

/// Eight leaves below eight spines: 64 hosts.
const FABRIC: &str = "kind = \"fabric\"
title = \"eight leaves\"
[topology]
kind = \"leaf-spine\"
leaves = 8
spines = 8
hosts_per_leaf = 8
[hosts]
ack_every = 16
outstanding_packets = 128
[measure]
duration_us = 1
drain_us = 1_000_000
";

/// Host n of every leaf is in group n: all that is sent goes through the spines.
fn job(kind: &str, octets: u64) -> String {
    format!(
        "[[workload.job]]\nname = \"train\"\nnics = [\"h*\"]\ntensor = 8\n\
         [[workload.job.collective]]\nkind = \"{kind}\"\ngroup = \"data\"\noctets = {octets}\n"
    )
}

fn scenario(job: &str, variant_keys: &str) -> FabricScenario {
    let text =
        format!("{FABRIC}{job}[[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n{variant_keys}\n");
    FabricScenario::parse(Path::new("file.toml"), &text).unwrap()
}

/// The same run at both levels: as fluids, and packet by packet.
fn both(mut scenario: FabricScenario, seed: u64) -> [VariantResult; 2] {
    [Level::Flow, Level::Packet].map(|level| {
        scenario.set_level(level).unwrap();
        let result = run(&scenario, 0, seed, &mut |_| {}).unwrap();
        assert_eq!(result.summary.unfinished, 0);
        result
    })
}

/// Selections of paths, and their keys.
const VARIANTS: [(&str, &str); 5] = [
    ("ECMP", ""),
    ("ECMP, 4 queue pairs", "queue_pairs = 4"),
    ("random", "paths = \"random\""),
    ("greedy", "paths = \"greedy\""),
    ("placed", "paths = \"placed\""),
];

/// How far the times of an iteration may be apart. In a tree a rank has several flows at once, and what packets do to
/// each other in queues counts for more.
fn limit(kind: &str) -> f64 {
    if kind == "all-reduce-tree" { 0.1 } else { 0.05 }
}

/// Iterations take about as long as packet by packet, and every link carries as much: the paths are the same.
#[test]
fn iterations_and_links_are_those_of_packets() {
    let kinds = [
        "all-reduce-ring",
        "all-reduce-tree",
        "all-gather",
        "all-to-all",
        "broadcast",
        "broadcast-tree",
        "broadcast-unicast",
        "send-recv",
    ];
    let compared = std::thread::scope(|scope| {
        let threads = kinds.map(|kind| scope.spawn(move || VARIANTS.map(|(_, keys)| Comparison::of(kind, keys))));
        threads.map(|thread| thread.join().expect("both levels run"))
    });
    let mut wrong = Vec::new();
    for (kind, of_kind) in kinds.into_iter().zip(compared) {
        for ((variant, _), Comparison { iteration, links }) in VARIANTS.into_iter().zip(of_kind) {
            report(format!("{kind}: {variant}"), "", [iteration]);
            if (iteration - 1.0).abs() > limit(kind) {
                wrong.push(format!("{kind}, {variant}: {iteration} times as long as packet by packet"));
            }
            wrong.extend(links.into_iter().map(|link| format!("{kind}, {variant}: {link}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A collective at flow level beside the same packet by packet.
struct Comparison {
    /// How long an iteration takes, relative to that packet by packet.
    iteration: f64,
    /// Links that carry more or less.
    links: Vec<String>,
}

impl Comparison {
    fn of(kind: &str, keys: &str) -> Self {
        let [flow, packet] = both(scenario(&job(kind, 4 << 20), keys), 1);
        let [own, expected] = [&flow, &packet].map(|result| result.summary.iteration_p50_ns.unwrap());
        let most = packet.links.iter().map(|link| link.octets).max().unwrap() as f64;
        let both = flow.links.iter().zip(&packet.links);
        let is_apart = |own: u64, expected: u64| (own as f64 - expected as f64).abs() > 0.03 * most;
        let apart = both.filter(|(own, expected)| own.name != expected.name || is_apart(own.octets, expected.octets));
        let links = apart.map(|(own, expected)| format!("{own:?}, packet by packet {expected:?}"));
        Comparison { iteration: own / expected, links: links.collect() }
    }
}

/// A spine fails for 3 ms: steering NICs leave it after three probe intervals of 100 us and a round trip, routes after
/// 1 ms, programs without steering never.
#[test]
fn flows_leave_a_failed_link_as_late_as_packets() {
    let failure =
        "[[failure]]\nname = \"spine2\"\nat_us = 100\nuntil_us = 3_100\n[switches]\nreconvergence_us = 1_000\n";
    let took_us = |keys: &str| {
        let text = format!("{}{failure}", job("all-reduce-ring", 1 << 20));
        let result = run(&at_flow_level(scenario(&text, keys)), 0, 1, &mut |_| {}).unwrap();
        assert_eq!(result.summary.unfinished, 0);
        result.summary.iteration_p50_ns.unwrap() / 1e3
    };
    let undisturbed =
        run(&at_flow_level(scenario(&job("all-reduce-ring", 1 << 20), "paths = \"placed\"")), 0, 1, &mut |_| {});
    let usual = undisturbed.unwrap().summary.iteration_p50_ns.unwrap() / 1e3;
    let steered = took_us("paths = \"placed\"\nsteering = true\nprobe_interval_us = 100");
    // Then two flows share a spine's link: the rest of the iteration takes twice as long.
    assert!((usual + 300.0..2.0 * usual + 310.0).contains(&steered), "{steered} us, undisturbed {usual}");
    let placed = took_us("paths = \"placed\"");
    assert!((3_000.0..3_000.0 + usual + 10.0).contains(&placed), "{placed} us, undisturbed {usual}");
    let hashed = took_us("");
    assert!((1_000.0..3_000.0).contains(&hashed), "{hashed} us");
}

fn at_flow_level(mut scenario: FabricScenario) -> FabricScenario {
    scenario.set_level(Level::Flow).unwrap();
    scenario
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let result = || run(&at_flow_level(scenario(&job("all-to-all", 1 << 20), "queue_pairs = 4")), 0, 7, &mut |_| {});
    assert_eq!(result().unwrap(), result().unwrap());
}

/// D295: rates that are computed less often give other times, not far from the others, and carry the same.
#[test]
fn rates_may_be_computed_less_often() {
    let work = job("all-to-all", 1 << 20).replace("\"data\"", "\"all\"");
    let at = |share: f64| {
        let mut scenario = at_flow_level(scenario(&work, "queue_pairs = 4"));
        scenario.set_rate_interval(share).unwrap();
        run(&scenario, 0, 1, &mut |_| {}).unwrap()
    };
    let (default, seldom) = (at(0.005), at(0.05));
    let mut untouched = at_flow_level(scenario(&work, "queue_pairs = 4"));
    assert_eq!(run(&untouched, 0, 1, &mut |_| {}).unwrap(), default);
    let [own, other] = [&seldom, &default].map(|result| result.summary.iteration_p50_ns.unwrap());
    assert!(own != other && (own / other - 1.0).abs() < 0.05, "{own} ns, {other}");
    assert_eq!(seldom.totals, default.totals);
    assert_eq!(seldom.links, default.links);
    assert_eq!(untouched.set_rate_interval(1.5), Err("1.5: expected a share from 0 to 1".to_owned()));
    let error = scenario(&job("all-to-all", 4 << 20), "").set_rate_interval(0.1).unwrap_err();
    assert!(error.starts_with("rates are those of flow level"), "{error}");
}

/// D296, by hand: eight groups of a sender and seven receivers below other leaves. On placed trees each has a spine for
/// itself, so that 4 MiB take what a link takes for them and no more than 1 % of latency; each of the 8 · (1 + 1 + 7 + 7)
/// links of the trees carries the same, once. Along a chain as much takes seven times the latency, and to each receiver
/// seven times the time.
#[test]
fn a_group_takes_as_long_as_one_copy() {
    let took = |kind: &str, keys: &str| {
        let text = format!("{}{}", FABRIC.replace("\"fabric\"", "\"flow-level\""), job(kind, 4 << 20));
        let text = format!("{text}[[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n{keys}\n");
        let scenario = FabricScenario::parse(Path::new("file.toml"), &text).unwrap();
        let result = run(&scenario, 0, 1, &mut |_| {}).unwrap();
        assert_eq!(result.summary.unfinished, 0);
        let ideal_ns = result.jobs[0].ideal_ns;
        (result.summary.iteration_p50_ns.unwrap() / ideal_ns, ideal_ns, result)
    };
    let (over, ideal_ns, placed) = took("broadcast-multicast", "paths = \"placed\"");
    assert!((ideal_ns - 1024.0 * 4198.0 * 0.08).abs() < 1.0, "{ideal_ns}");
    assert!((1.0..1.03).contains(&over), "{over}");
    let carried: Vec<u64> = placed.links.iter().map(|link| link.octets).filter(|octets| *octets > 0).collect();
    assert_eq!((carried.len(), carried.iter().min()), (8 * (1 + 1 + 7 + 7), carried.iter().max()));
    for keys in ["", "paths = \"random\"", "paths = \"greedy\"", "queue_pairs = 4"] {
        let (over, ..) = took("broadcast-multicast", keys);
        assert!((1.0..4.1).contains(&over), "{keys}: {over}");
    }
    let (unicast, unicast_ns, _) = took("broadcast-unicast", "paths = \"placed\"");
    assert!((7.0..7.2).contains(&(unicast * unicast_ns / ideal_ns)), "{unicast}");
    let error = FabricScenario::parse(
        Path::new("file.toml"),
        &format!(
            "{FABRIC}{}[[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n",
            job("broadcast-multicast", 1)
        ),
    );
    assert!(error.unwrap_err().to_string().contains("broadcast-multicast is simulated at flow level"));
}

/// Fluids are for jobs alone: what else is sent reacts to queues.
#[test]
fn other_workloads_are_refused_with_the_line() {
    let text = format!(
        "{}[[workload.permutation]]\nsize_octets = 1\n\
         [[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n",
        FABRIC.replace("\"fabric\"", "\"flow-level\"")
    );
    let error = FabricScenario::parse(Path::new("file.toml"), &text).unwrap_err().to_string();
    assert!(error.starts_with("file.toml:1: flow level: expected [[workload.job]] and no other workload"), "{error}");
}
