//! Jobs in scenarios: results of their collectives, for each path selection, and under failures.

use srdma_fabric::{Encoding, NextHops, NodeId, Program, SidPlan, Topology};
use srdma_fabric_sim::{FabricScenario, VariantResult, run, run_observed};
use std::cmp::Ordering;
use std::path::Path;

/// Four leaves below four spines, with four hosts each.
const FABRIC: &str = "kind = \"fabric\"
title = \"four leaves\"
[topology]
kind = \"leaf-spine\"
leaves = 4
spines = 4
hosts_per_leaf = 4
[hosts]
ack_every = 8
[measure]
duration_us = 1
";

/// Host n of every leaf is in ring n, so that all that is sent goes through the spines.
const RINGS: &str = "[[workload.job]]
name = \"train\"
nics = [\"h1.*\", \"h2.*\", \"h3.*\", \"h4.*\"]
tensor = 4
iterations = 2
[[workload.job.collective]]
kind = \"all-reduce-ring\"
group = \"data\"
octets = 1_048_576
";

fn variant(keys: &str) -> String {
    format!("[[variant]]\nname = \"a\"\nsignal = \"none\"\ncontrol = \"none\"\n{keys}\n")
}

fn run_of(job: &str, variant_keys: &str, seed: u64) -> VariantResult {
    let text = format!("{FABRIC}{job}{}", variant(variant_keys));
    let scenario = FabricScenario::parse(Path::new("file.toml"), &text).unwrap();
    run(&scenario, 0, seed, &mut |_| {}).unwrap()
}

fn is_whole(result: &VariantResult) {
    let totals = &result.totals;
    assert_eq!((totals.octets_differing, totals.lost_by_simulator, totals.dropped), (0, 0, 0));
    assert_eq!(result.summary.unfinished, 0);
}

/// By hand: each of 16 ranks sends 2 · 3/4 of a mebibyte, in each of two iterations.
#[test]
fn a_ring_carries_its_traffic_on_any_paths() {
    for keys in ["", "queue_pairs = 4", "paths = \"random\"", "paths = \"greedy\"", "paths = \"placed\""] {
        let result = run_of(RINGS, keys, 1);
        is_whole(&result);
        assert_eq!(result.totals.octets_delivered, 2 * 16 * (3 << 19), "{keys}");
        let job = &result.jobs[0];
        assert_eq!((job.name.as_str(), job.iterations.len()), ("train", 2));
        // A packet of 4,096 octets takes 4,198 on the wire, 78 of headers and 24 of framing: 1.5 MiB take 129 us.
        assert!((job.ideal_ns - 384.0 * 4198.0 * 0.08).abs() < 1.0, "{keys}: {}", job.ideal_ns);
        assert!(job.iterations.iter().all(|it| (it.finished_ns.unwrap() - it.started_ns) as f64 > job.ideal_ns));
    }
}

/// PP-5.2-1: homogeneous utilisation. Hashes put several flows on one link; placed, each has its own.
#[test]
fn placed_paths_share_no_link_and_hashed_ones_do() {
    let placed = run_of(RINGS, "paths = \"placed\"", 1).summary;
    assert_eq!((placed.link_over_mean, placed.busiest_link, placed.pauses), (Some(1.0), Some(1.0), 0));
    assert!(placed.iteration_over_ideal.unwrap() < 1.2, "{placed:?}");
    let hashed: Vec<f64> = (1..=3).map(|seed| run_of(RINGS, "", seed).summary.busiest_link.unwrap()).collect();
    assert!(hashed.iter().all(|busiest| *busiest >= 1.9), "{hashed:?}");
}

/// By hand, buffers of 64 KiB in one group of 16: what all ranks send together.
#[test]
fn every_collective_arrives() {
    let buffer = 65_536;
    let cases = [
        ("all-reduce-ring", 30 * buffer),
        ("all-gather", 15 * buffer),
        ("reduce-scatter", 15 * buffer),
        ("all-reduce-tree", 30 * buffer),
        ("all-to-all", 15 * buffer),
        ("broadcast", 15 * buffer),
        ("broadcast-tree", 15 * buffer),
        ("broadcast-unicast", 15 * buffer),
        ("send-recv", 15 * buffer),
    ];
    for (kind, octets) in cases {
        let job = RINGS.replace("all-reduce-ring", kind).replace("\"data\"", "\"all\"").replace("1_048_576", "65_536");
        for keys in ["", "paths = \"placed\""] {
            let result = run_of(&job, keys, 1);
            is_whole(&result);
            assert_eq!(result.totals.octets_delivered, 2 * octets, "{kind}");
        }
    }
}

/// PP-7-2: the program of a tenant's flow ends in the tenant's service, whose table has the tenant's hosts alone.
#[test]
fn tenants_have_services_of_their_own() {
    let tenant = RINGS.replace("tensor = 4", "tensor = 4\ntenant = 7");
    let result = run_of(&tenant, "paths = \"placed\"", 1);
    is_whole(&result);
    assert_eq!(result.summary.link_over_mean, Some(1.0));
}

/// PP-7-1: rings with one member in each data centre, so that everything crosses the WAN, on the way of six switches,
/// whose ids fit the outer address. Every packet arrives, in order; by hand, a ring of two sends its tensor once in each
/// direction. The way there takes at least the 500 µs of the WAN.
///
/// By hand, the links that the placement chose: eight flows, and the ACKs of each back along its links. Two data centres
/// have 16 directions between leaves and spines and 16 between spines and borders, so that each carries one flow and the
/// ACKs of another; the WAN has four directions with two flows each. An iteration of a flow has two messages of 8
/// packets of 4,096 octets, with an ACK each; a frame has 78 octets of headers, 24 of framing, 40 of the outer header,
/// and no SRH; the first of a message has an RETH, the last one an immediate, and an ACK has an AETH. The run ends with
/// the last message, whose ACK is still on the WAN.
#[test]
fn placed_flows_cross_data_centres() {
    let fabric = FABRIC.replace(
        "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n",
        "kind = \"data-centres\"\ndata_centres = 2\nleaves = 2\nspines = 2\nborders = 2\nhosts_per_leaf = 2\nwan_delay_ns = 500_000\n",
    );
    assert_ne!(fabric, FABRIC);
    let rings = RINGS
        .replace("[\"h1.*\", \"h2.*\", \"h3.*\", \"h4.*\"]", "[\"h1.*\", \"h2.*\"]")
        .replace("1_048_576", "65_536");
    let text = format!("{fabric}{rings}{}", variant("paths = \"placed\""));
    let scenario = FabricScenario::parse(Path::new("file.toml"), &text).unwrap();
    let result = run(&scenario, 0, 1, &mut |_| {}).unwrap();
    is_whole(&result);
    assert_eq!(result.totals.octets_delivered, 2 * 8 * 65_536);
    assert_eq!(result.summary.out_of_order, Some(0));
    let iterations = &result.jobs[0].iterations;
    assert!(iterations.iter().all(|it| it.finished_ns.expect("it ends") - it.started_ns > 1_000_000), "{iterations:?}");
    let (headers, messages) = (78 + 24 + 40, 2 * 2);
    let (packets, ack) = (8 * (4096 + headers) + 16 + 4, headers + 4);
    let tier = |switch: &str| ["leaf", "spine", "border"].iter().position(|kind| switch.contains(kind));
    let between: Vec<_> = result.links.iter().filter(|link| link.in_fabric).collect();
    assert_eq!(between.len(), 16 + 16 + 4);
    for link in between {
        let (from, to) = link.name.split_once('-').unwrap();
        let octets = match tier(from).cmp(&tier(to)) {
            Ordering::Less => messages * (packets + ack),
            Ordering::Equal => 2 * messages * (packets + ack),
            Ordering::Greater => messages * (packets + ack) - ack,
        };
        assert_eq!(link.octets, octets, "{}", link.name);
    }
    assert_eq!(program_between_data_centres(&scenario.topology), (6, 0));
}

/// Ids in the address and segments in the SRH of a program from the first host of one data centre to the last of the
/// other.
fn program_between_data_centres(topology: &Topology) -> (usize, usize) {
    let [from, to] = ["h1.1.1", "h2.2.2"].map(|name| match topology.node(name) {
        Some(NodeId::Host(host)) => host,
        other => panic!("{name}: {other:?}"),
    });
    let path = srdma_fabric::Path { from, to, links: NextHops::new(topology).path(topology, from, to) };
    let plan = SidPlan::new(topology, SidPlan::BLOCK).unwrap();
    let program = Program::encode(&plan, topology, &path, Encoding::Nodes, None).unwrap();
    let ids = program.destination.segments()[2..].iter().filter(|id| **id != 0).count();
    (ids, program.segments.len())
}

/// Collectives of one job follow one another.
#[test]
fn a_collective_begins_when_the_one_before_has_ended() {
    let half =
        |kind: &str| format!("[[workload.job.collective]]\nkind = \"{kind}\"\ngroup = \"data\"\noctets = 1_048_576\n");
    let head = RINGS.split("[[workload.job.collective]]").next().unwrap();
    let two = format!("{head}{}{}", half("reduce-scatter"), half("all-gather"));
    let [one, two] = [RINGS, &two].map(|job| run_of(job, "paths = \"placed\"", 1));
    is_whole(&two);
    assert_eq!(one.totals.octets_delivered, two.totals.octets_delivered);
    let [one, two] = [one, two].map(|result| result.summary.iteration_p50_ns.unwrap());
    assert!(two > one && two < one + 30_000.0, "{two} after {one}");
}

/// A switch that fails loses its traffic until routing has converged: 5 ms later, which only the hashes' variant
/// depends on. The Local ACK timeout, code 9, is 2.1 ms.
#[test]
fn hashed_flows_recover_when_routing_has_converged() {
    let failing = format!(
        "{}[switches]\nreconvergence_us = 5000\n[[failure]]\nname = \"spine2\"\nat_us = 700\n",
        RINGS.replace("iterations = 2", "iterations = 12")
    );
    let text = format!("{FABRIC}{failing}{}", variant("")).replace("ack_every = 8", "ack_every = 8\nack_timeout = 9");
    let scenario = FabricScenario::parse(Path::new("file.toml"), &text).unwrap();
    let result = run(&scenario, 0, 1, &mut |_| {}).unwrap();
    is_whole(&result);
    let summary = &result.summary;
    assert!(summary.lost_on_links.unwrap() > 0 && summary.retransmitted > 0, "{summary:?}");
    let recovery_ns = summary.recovery_ns.unwrap();
    assert!((5e6..12e6).contains(&recovery_ns), "{recovery_ns}");
}

/// D85: no SID is withdrawn. NICs that probe their paths once in half a millisecond detect by themselves that a spine
/// is dead: within three intervals and a round trip, the iteration during which it happened to the end.
#[test]
fn steered_flows_leave_a_dead_spine_by_themselves() {
    let job = RINGS.replace("iterations = 2", "iterations = 12");
    let failure = "[[failure]]\nname = \"spine2\"\nat_us = 700\nuntil_us = 15_000\n";
    let fabric = FABRIC.replace("spines = 4", "spines = 5").replace("ack_every = 8", "ack_every = 8\nack_timeout = 6");
    let recovery_ns = |keys: &str| {
        let text = format!("{fabric}{job}{failure}{}", variant(keys));
        let result = run(&FabricScenario::parse(Path::new("file.toml"), &text).unwrap(), 0, 1, &mut |_| {}).unwrap();
        is_whole(&result);
        assert!(result.summary.lost_on_links.unwrap() > 0, "{keys}");
        (result.summary.recovery_ns.unwrap(), result.summary.path_changes)
    };
    let (placed_ns, none) = recovery_ns("paths = \"placed\"");
    assert!(placed_ns > 14e6 && none.is_none(), "nothing but the spine's return helps: {placed_ns}");
    let (steered_ns, moves) = recovery_ns("paths = \"placed\"\nsteering = true\nprobe_interval_us = 500");
    assert!(steered_ns < 1.6e6 && moves.unwrap() > 0, "{steered_ns} {moves:?}");
}

/// A stream through one spine fills it, and flows that receive Fast CNPs for it are rerouted (FC-4-8, PP-4-6).
#[test]
fn steered_flows_leave_a_spine_that_others_fill() {
    let fabric = FABRIC.replace("hosts_per_leaf = 4", "hosts_per_leaf = 5").replace("\nleaves = 4", "\nleaves = 8");
    let fabric = fabric.replace("spines = 4", "spines = 6");
    let nics: Vec<String> = (1..=4).flat_map(|leaf| (1..=4).map(move |host| format!("\"h{leaf}.{host}\""))).collect();
    let job = RINGS.replace("\"h1.*\", \"h2.*\", \"h3.*\", \"h4.*\"", &nics.join(", "));
    let job = job.replace("iterations = 2", "iterations = 8");
    // From leaves that the job has no part in: what is full is the spine, not the uplink of a leaf.
    let streams = (1..=4).map(|leaf| {
        let from = leaf + 4;
        format!("[[workload.stream]]\nname = \"s{leaf}\"\nfrom = \"h{from}.1\"\nto = \"h{leaf}.5\"\nvia = \"spine1\"\n")
    });
    let streams: String = streams.collect();
    let longest_ns = |keys: &str| {
        let variant = variant(keys)
            .replace("signal = \"none\"\ncontrol = \"none\"", "signal = \"fast-cnp\"\ncontrol = \"dcqcn\"");
        let text = format!("{}{job}{streams}{variant}", fabric.replace("duration_us = 1", "duration_us = 50_000"));
        let result = run(&FabricScenario::parse(Path::new("file.toml"), &text).unwrap(), 0, 1, &mut |_| {}).unwrap();
        is_whole(&result);
        result.jobs[0].iterations.last().and_then(|it| Some(it.finished_ns? - it.started_ns)).unwrap()
    };
    let placed = longest_ns("paths = \"placed\"");
    let steered = longest_ns("paths = \"placed\"\nsteering = true");
    assert!(placed as f64 > 1.5 * steered as f64, "{placed} {steered}");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    for keys in ["queue_pairs = 4", "paths = \"random\"", "paths = \"placed\"\nsteering = true"] {
        assert_eq!(run_of(RINGS, keys, 7), run_of(RINGS, keys, 7));
    }
}

/// A trace of two ranks below two leaves, in a file beside that of the scenario.
const TRACE: &str = "num_ranks 2
rank 0 {
a: calc 10000
b: send 1048576b to 1 tag 3
b requires a
c: recv 4096b from 1
}
rank 1 {
a: recv 1048576b from 0 tag 3
b: calc 5000
b requires a
c: send 4096b to 0
c requires b
}
";

/// PP-4-1: the four jobs of the shipped scenario are not slower on placed paths than on greedy ones, relative to the
/// ideal: with half of the data and one iteration, and with a quarter and an eighth, where latency counts more.
#[test]
fn several_jobs_are_placed_no_worse_than_greedy() {
    let shipped = include_str!("../../../../scenarios/multi-job.toml");
    for (part, iterations) in [(2, 1), (4, 1), (8, 2)] {
        let octets = |octets: u64| format!("octets = {}", octets / part);
        let text = shipped
            .replace("octets = 8_388_608", &octets(8 << 20))
            .replace("octets = 4_194_304", &octets(4 << 20))
            .replace("iterations = 3", &format!("iterations = {iterations}"));
        let scenario = FabricScenario::parse(Path::new("multi-job.toml"), &text).unwrap();
        let over_ideal = |name: &str| {
            let result = run(&scenario, scenario.variant(name).unwrap(), 1, &mut |_| {}).unwrap();
            is_whole(&result);
            result.summary.iteration_over_ideal.unwrap()
        };
        let (greedy, placed) = (over_ideal("greedy"), over_ideal("placed"));
        assert!(placed <= greedy * 1.001, "placed {placed}, greedy {greedy}, 1/{part} of the data");
    }
}

/// Delay of each link of the fabric.
const DELAY_NS: f64 = 500.0;

fn traced(level: &str, threads: usize) -> VariantResult {
    let directory = std::env::temp_dir().join(format!("srdma-trace-{}-{level}-{threads}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("two.goal"), TRACE).unwrap();
    let job = "[[workload.job]]\nname = \"two\"\nnics = [\"h1.1\", \"h3.2\"]\ntrace = \"two.goal\"\n\
               iterations = 3\npause_us = 50\n";
    let fabric = FABRIC.replace("kind = \"fabric\"", &format!("kind = \"{level}\""));
    let text = format!("{fabric}sample_ns = 1_000\n{job}{}", variant(""));
    let scenario = FabricScenario::parse(&directory.join("file.toml"), &text);
    std::fs::remove_dir_all(&directory).unwrap();
    run_observed(&scenario.unwrap(), 0, 1, threads, &mut |_| {}, None).unwrap()
}

/// D218, by hand, at 100 Gbit/s on four links of 500 ns: 256 frames of 4,198 octets, of which the first has 16 more and
/// the last 4, 80 ps an octet; the last one is sent again by three switches. Then one frame of 4,218 octets back, and
/// its acknowledgement of 106, with which the last send ends.
#[test]
fn a_trace_takes_as_long_as_by_hand() {
    let there = 0.08 * (256.0 * 4198.0 + 20.0) + 3.0 * 0.08 * 4202.0 + 4.0 * DELAY_NS;
    let back = 4.0 * 0.08 * 4218.0 + 4.0 * DELAY_NS;
    let answer = 4.0 * 0.08 * 106.0 + 4.0 * DELAY_NS;
    let expected = 10_000.0 + there + 5_000.0 + back + answer;
    let packets = traced("fabric", 1);
    is_whole(&packets);
    assert_eq!(packets.totals.octets_delivered, 3 * (1_048_576 + 4096));
    for (result, limit) in [(&packets, 0.001), (&traced("flow-level", 1), 0.003)] {
        assert_eq!(result.jobs[0].iterations.len(), 3);
        for iteration in &result.jobs[0].iterations {
            let took = (iteration.finished_ns.unwrap() - iteration.started_ns) as f64;
            assert!((took / expected - 1.0).abs() < limit, "{took} ns, by hand {expected}");
        }
    }
    assert_eq!(serde_json::to_string(&traced("fabric", 2)).unwrap(), serde_json::to_string(&packets).unwrap());
}
