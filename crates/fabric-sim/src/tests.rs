//! Tables and reports of artificial results in which every element occurs.

use crate::results::{FlowKind, FlowResult, NotificationResult, PortResult, Series, SeriesKind, Summary, Totals};
use crate::{FabricReport, Provenance, Report};
use crate::{FabricResults, FabricScenario, Level, VariantResult, run_all};
use std::path::Path;
use std::time::Duration;

const FILE: &str = r#"
kind = "fabric"
title = "Two to one"
description = "Two hosts send to a third. <Nothing> else."
seeds = 2

[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 2

[[workload.incast]]
receiver = "h1.1"
senders = 2
min_octets = 20_000
max_octets = 50_000
start_us = 1

[measure]
duration_us = 20

[[variant]]
name = "old"
title = "Receiver CNP, DCQCN"
signal = "receiver-cnp"
control = "dcqcn"
baseline = true

[[variant]]
name = "new"
title = "Fast CNP & DCQCN"
signal = "fast-cnp"
control = "dcqcn"
"#;

fn scenario() -> FabricScenario {
    FabricScenario::parse(Path::new("two.toml"), FILE).unwrap()
}

/// A flow with this slowdown.
fn flow(kind: FlowKind, number: u64, size_octets: u64, slowdown: f64) -> FlowResult {
    FlowResult {
        kind,
        name: (kind == FlowKind::Stream).then(|| "victim".to_owned()),
        source: format!("h2.{}", 1 + number % 2),
        destination: "h1.1".to_owned(),
        size_octets,
        started_ns: 1000 * number,
        finished_ns: (kind != FlowKind::Stream).then(|| 1000 * number + (10_000.0 * slowdown) as u64),
        ideal_ns: 10_000,
        slowdown: (kind != FlowKind::Stream).then_some(slowdown),
        receivers: None,
        transmission_ns: None,
        limit_ns: None,
        retransmitted: 0,
    }
}

/// A run whose measures are all worse by this factor.
fn made_up(variant: &str, title: &str, seed: u64, badness: f64) -> VariantResult {
    let bad = badness * (1.0 + seed as f64 / 20.0);
    let kinds = [(FlowKind::Background, 50_000), (FlowKind::Background, 500_000), (FlowKind::Incast, 40_000)];
    let mut flows: Vec<FlowResult> = (0..60)
        .map(|number| {
            let (kind, size) = kinds[number as usize % kinds.len()];
            flow(kind, number, size, 1.0 + bad * (number % 17) as f64)
        })
        .collect();
    flows.push(flow(FlowKind::Stream, 60, 9_000_000, 0.0));
    let wave = |index: u64| 0.5 + 0.5 * (index as f64 / 9.0).sin();
    let series = |kind, name: &str, most: f64| Series {
        kind,
        name: name.to_owned(),
        step_ns: 10_000,
        values: (0..200).map(|index| most * wave(index)).collect(),
    };
    let port = |name: &str, peak: f64, paused_ns: f64| PortResult {
        name: name.to_owned(),
        peak_octets: peak as u64,
        pauses_sent: (paused_ns / 1000.0) as u64,
        paused_ns: paused_ns as u64,
        marked: 10,
        dropped: 0,
    };
    let notification = |flow: usize| NotificationResult {
        flow,
        port: "leaf1-h1.1".to_owned(),
        congested_ns: 5000,
        reacted_ns: (flow > 0).then(|| 5000 + 1300 + (900.0 * bad * flow as f64) as u64),
        return_path_ns: 1200,
    };
    VariantResult {
        variant: variant.to_owned(),
        title: title.to_owned(),
        seed,
        simulated_ns: 2_000_000,
        packet_hops: 12_345,
        skipped_ns: 0,
        verified_icrc: false,
        flows,
        ports: vec![
            port("leaf1-h1.1", 900_000.0 * bad, 0.0),
            port("spine1-leaf1", 300_000.0 * bad, 40_000.0 * (bad - 1.0)),
            port("leaf2-spine1", 100_000.0 * bad, 90_000.0 * (bad - 1.0)),
        ],
        series: vec![
            series(SeriesKind::Rate, "incast", 100e9 / bad),
            series(SeriesKind::Rate, "victim", 50e9 / bad),
            series(SeriesKind::Queue, "leaf1-h1.1", 900_000.0 * bad),
            series(SeriesKind::Queue, "spine1-leaf1", 300_000.0 * bad),
            series(SeriesKind::Pause, "leaf2-spine1", (bad - 1.0).clamp(0.0, 1.0)),
        ],
        notifications: (0..20).map(notification).collect(),
        jobs: Vec::new(),
        links: Vec::new(),
        totals: Totals { marked: 10, octets_delivered: 10_000_000, ..Totals::default() },
        summary: Summary {
            short_slowdown_p99: Some(16.0 * bad),
            short_slowdown_p50: Some(8.0 * bad),
            victim_share: Some(0.9 / bad),
            victim_bits_per_s: Some(45e9 / bad),
            peak_queue_octets: (900_000.0 * bad) as u64,
            pauses: (130.0 * (bad - 1.0)) as u64,
            notification_p50_ns: Some(9000.0 * bad),
            notification_p99_ns: Some(18_000.0 * bad),
            ..Summary::default()
        },
    }
}

fn results() -> FabricResults {
    let (mut runs, scenario) = (Vec::new(), scenario());
    for (variant, badness) in scenario.variants.iter().zip([2.0, 1.0]) {
        runs.extend([1, 2].map(|seed| made_up(&variant.name, variant.title(), seed, badness)));
    }
    made_of(&scenario, runs)
}

fn made_of(scenario: &FabricScenario, runs: Vec<VariantResult>) -> FabricResults {
    let (title, description) = (scenario.title.clone(), scenario.description.clone());
    FabricResults { title, description, level: Level::Packet, baseline: "old".to_owned(), runs }
}

fn provenance() -> Provenance<'static> {
    Provenance {
        command: "srdma sim two.toml --first 1 --seeds 2".to_owned(),
        file_text: FILE,
        report: None,
        seeds: 2,
        wall: Duration::from_millis(100),
        threads: 2,
    }
}

fn with_report<T>(look: impl FnOnce(&FabricReport<'_>) -> T) -> T {
    let (scenario, results) = (scenario(), results());
    look(&FabricReport { scenario: &scenario, results: &results, provenance: &provenance() })
}

#[test]
fn the_table_compares_with_the_baseline() {
    let text = with_report(|report| report.to_string());
    insta::assert_snapshot!(text, @r#"
Two to one
4 hosts, 3 switches, 6 links; 2 variants, 2 seeds each

median of the seeds                               old                  new
short flows, slowdown p99                       34.4×        17.2× (-50 %)
short flows, slowdown median                    17.2×         8.6× (-50 %)
victim's rate                             20.9 Gbit/s 41.9 Gbit/s (+100 %)
victim's share                                 41.9 %      83.8 % (+100 %)
peak queue                                   1.85 MiB      945 KiB (-50 %)
PAUSE frames                                      150          9.5 (-94 %)
time paused                                    150 µs      9.75 µs (-93 %)
notification delay, median                    19.4 µs      9.68 µs (-50 %)
notification delay, p99                       38.7 µs      19.4 µs (-50 %)
packets marked                                     10           10     (=)
data delivered                               9.54 MiB     9.54 MiB     (=)
differences are to old

hosts did not verify the ICRC of received packets
simulated   49,380 packet-hops, 2.000 ms at most, in 0.1 s on 2 threads: 493,800 packet-hops a second
again       srdma sim two.toml --first 1 --seeds 2
"#);
}

#[test]
fn the_report_shows_everything_that_was_measured() {
    let html = with_report(|report| report.page().html());
    let sections =
        ["Results", "Flow completion", "Over time", "Notification delay", "Fabric", "Configuration", "Terms"];
    let mut rest = html.as_str();
    for section in sections {
        let heading = format!(">{section}</h2>");
        rest = rest.split_once(&heading).unwrap_or_else(|| panic!("no section {section}, or out of order")).1;
    }
    let plots = html.matches("<figure class=\"plot\">").count();
    // Four bars of measures; of three classes of flows two bars and three distributions; of rates, queues and pauses
    // one each for both variants; the delay.
    assert_eq!(plots, 4 + 2 + 3 + 6 + 1);
    // Pauses and queues, of both variants.
    assert_eq!(html.matches("<figure class=\"picture\">").count(), 4);
    for text in [
        "Fast CNP &amp; DCQCN: short flows, slowdown p99 17.2× instead of 34.4× (−50 %)",
        "&lt;Nothing&gt; else.",
        "srdma sim two.toml --first 1 --seeds 2",
        "Hosts did not verify the ICRC",
        "incast sender",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf "));
}

#[test]
fn a_scenario_that_gave_nothing_has_a_report_too() {
    let scenario = scenario();
    let results = made_of(&scenario, Vec::new());
    let provenance = Provenance { wall: Duration::ZERO, threads: 1, ..provenance() };
    let report = FabricReport { scenario: &scenario, results: &results, provenance: &provenance };
    assert!(report.page().html().contains("Configuration"));
    assert!(!report.to_string().is_empty());
}

/// A run that corrupted data or lost frames fails the command, whether or not it has a target.
#[test]
fn differing_octets_and_lost_frames_are_failures() {
    let (scenario, provenance) = (scenario(), provenance());
    let failures = |spoil: &dyn Fn(&mut [VariantResult])| {
        let mut results = results();
        spoil(&mut results.runs);
        Report::Fabric(FabricReport { scenario: &scenario, results: &results, provenance: &provenance }).failures()
    };
    assert_eq!(failures(&|_| ()), [""; 0]);
    let differ = |runs: &mut [VariantResult]| runs[1].totals.octets_differing = 4096;
    assert_eq!(failures(&differ), ["variant old, seed 2: 4,096 octets differ"]);
    let lose = |runs: &mut [VariantResult]| {
        runs[0].totals.lost_by_simulator = 2;
        runs[2].totals = Totals { octets_differing: 7, lost_by_simulator: 3, ..runs[2].totals };
    };
    let expected = [
        "variant old, seed 1: 2 frames lost by the simulator",
        "variant new, seed 1: 7 octets differ",
        "variant new, seed 1: 3 frames lost by the simulator",
    ];
    assert_eq!(failures(&lose), expected);
}

/// The same file, variants and seeds give the same results on any number of threads, in the order of variants and
/// seeds.
#[test]
fn results_do_not_depend_on_threads() {
    let scenario = scenario();
    let run = |threads| run_all(&scenario, &[4, 2, 9], threads, &|_, _| (), None).unwrap();
    let alone = run(1);
    let order: Vec<(&str, u64)> = alone.runs.iter().map(|run| (run.variant.as_str(), run.seed)).collect();
    assert_eq!(order, [("old", 4), ("old", 2), ("old", 9), ("new", 4), ("new", 2), ("new", 9)]);
    let text = |results| serde_json::to_string(&results).unwrap();
    assert_eq!(text(alone), text(run(5)));
}
