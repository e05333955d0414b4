//! One stream from end to end: placed by its NIC, tunnelled through a congested WAN, replicated, over links with
//! losses, past a restart.

use srdma_fabric_sim::end_to_end::{EndToEndRun, EndToEndScenario, run_end_to_end};
use std::path::Path;

/// A small stream to four receivers over a short WAN.
const FILE: &str = r#"
kind = "end-to-end"
title = "t"

[end_to_end]
congested = "R1"
total_km = 10
first_hop_km = 1
octets = 2_097_152
message_octets = 65_536
edges = 2
receivers_per_edge = 2

[hosts]
outstanding_packets = 1024
ack_every = 8
ack_timeout = 9
"#;

const SENDERS: &str = "receivers_per_edge = 2\nsenders = 8\nhold_us = 300\n";

fn plan(text: &str) -> Result<EndToEndScenario, String> {
    EndToEndScenario::parse(Path::new("e.toml"), text).map_err(|error| error.to_string())
}

/// Everything that was to be shown has to hold.
fn runs(text: &str, seeds: &[u64]) -> Vec<EndToEndRun> {
    let plan = plan(text).unwrap();
    let results = run_end_to_end(&plan, seeds, 2, &|_| (), None).unwrap();
    for claim in results.claims(&plan) {
        assert!(claim.holds, "{}: {}: {}", claim.at, claim.expected, claim.found);
    }
    assert!(results.runs.iter().all(|run| run.lost_by_simulator == 0));
    results.runs
}

/// PP-4-3, CN-3-1, MT-5.2-4: without loss every packet crosses the source's link and the WAN once, and the receivers'
/// memory is the source's.
#[test]
fn a_stream_is_placed_tunnelled_and_replicated() {
    let runs = runs(FILE, &[1, 2]);
    for run in runs {
        assert_eq!((run.packets, run.source_frames, run.headend_packets), (512, 512, 512));
        assert_eq!((run.lost_on_links, run.dropped.len(), run.naks_of_receivers), (0, 0, 0));
        assert_eq!(run.receivers.len(), 4);
        assert_eq!(run.acks_of_receivers, 4 * run.acks_at_source, "one ACK for one of each receiver");
    }
}

/// CN-4.1-2, CN-4.1-3, CN-4.2-2, FC-4-5, MT-5.3.3-4: other flows overload R1; the source receives notifications from R1
/// by END.E, and CNPs from its receivers, which the tree aggregates.
#[test]
fn congestion_in_the_wan_is_reported_from_both_ends() {
    for run in runs(&FILE.replace("receivers_per_edge = 2\n", SENDERS), &[1]) {
        assert!(run.cnps_at_source > 0 && run.cnps_at_source < run.cnps_of_receivers, "{run:?}");
        assert!(run.gateway_paused_ns > 0);
    }
}

/// MT-5.3.1-1, MT-5.3.2-1, D17, D62: whichever switch loses its state, no false response reaches the source, and what
/// it sent arrives.
#[test]
fn any_switch_may_restart_in_the_middle() {
    let nodes = ["dc1.leaf1", "dc1.gateway", "PE1", "R1", "R3", "PE2", "dc2.gateway", "dc2.spine1", "dc2.leaf2"];
    let lossy = SENDERS.to_owned() + "loss = 0.001\n";
    let restart = format!("\n[end_to_end.restart]\nnodes = {nodes:?}\nat_us = 1500\ndown_us = 100\n");
    let text = FILE.replace("receivers_per_edge = 2\n", &lossy) + &restart;
    let runs = runs(&text, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let restarted: Vec<&str> = runs.iter().filter_map(|run| run.restarted.as_deref()).collect();
    assert_eq!(restarted, nodes);
}

#[test]
fn results_follow_from_the_seed() {
    let lossy = FILE.replace("receivers_per_edge = 2\n", "receivers_per_edge = 1\nsenders = 3\nloss = 0.001\n");
    let plan = plan(&lossy).unwrap();
    let run = |threads| run_end_to_end(&plan, &[7, 8], threads, &|_| (), None).unwrap();
    let results = run(1);
    assert_eq!(results, run(2));
    assert_ne!(results.runs[0].sha256, results.runs[1].sha256);
}

#[test]
fn contradictory_keys_are_refused_at_their_line() {
    let refused = |from: &str, to: &str| plan(&FILE.replace(from, to)).unwrap_err();
    assert_eq!(refused("total_km = 10", "total_km = 1"), "e.toml:7: total_km 1: expected hops of 0.1 to 40000 km");
    let many = refused("receivers_per_edge = 2", "receivers_per_edge = 2\nsenders = 15");
    assert_eq!(many, "e.toml:11: 2 edges and 15 senders: expected 16 of both together at most");
    let wrong = refused("receivers_per_edge = 2", "receivers_per_edge = 2\nbuffer = 0");
    assert_eq!(wrong, "e.toml:13: buffer 0: expected 0.001 to 100 of rate times round trip");
    let restart = "[end_to_end.restart]\nnodes = [\"R9\"]\nat_us = 1\ndown_us = 1\n[hosts]\n";
    let unknown = refused("[hosts]\n", restart);
    assert_eq!(unknown, "e.toml:15: \"R9\" is no switch of the network, as dc2.leaf1 or R1 are");
    assert!(refused("edges = 2", "edges = 17").starts_with("e.toml:11: "));
}

/// D62: a congested node that has restarted cancels nothing; the pause that it has requested ends with its hold time.
#[test]
fn a_pause_ends_although_its_requester_has_restarted() {
    let restart = "\n[end_to_end.restart]\nnodes = [\"R1\"]\nat_us = 150\ndown_us = 50\n";
    let plan = plan(&(FILE.replace("receivers_per_edge = 2\n", SENDERS) + restart)).unwrap();
    let run = &run_end_to_end(&plan, &[1], 1, &|_| (), None).unwrap().runs[0];
    assert_eq!((run.end_c_expired, run.longest_hold_ns, run.hold_ns), (1, 300_000, 300_000), "{run:?}");
    assert_eq!(run.still_paused, Vec::<String>::new());
    assert!(run.completion_ns.is_some() && run.receivers.iter().all(|receiver| receiver.is_identical));
}

/// A change that makes a run wrong, and how what it breaks begins.
type Spoilt = (fn(&mut EndToEndRun), &'static str);

const SPOILT: &[Spoilt] = &[
    (|run| run.completion_ns = None, "the transfer finishes"),
    (|run| run.receivers[1].sha256.clone_from(&"0".repeat(64)), "the memory of 4 receivers"),
    (|run| run.receivers[3].is_identical = false, "the memory of 4 receivers"),
    (|run| run.source_frames += 1, "the source's link"),
    (|run| run.headend_packets = run.source_frames + 1, "the source's link"),
    (|run| run.invariant_violations = 1, "no ACK reaches the source"),
    (|run| run.cnps_at_source = run.cnps_of_receivers + run.acks_of_receivers, "responses are aggregated"),
    (|run| run.fast_cnps_at_source = 0, "the congested node notifies the senders"),
    (|run| run.end_c_taken = run.end_c_sent + 1, "the congested node pauses the gateway"),
    (|run| run.longest_hold_ns = run.hold_ns + 1, "no pause lasts longer"),
    (|run| run.still_paused.push("PE1".to_owned()), "no pause lasts longer"),
    (|run| run.lost_on_links = 0, "frames are lost"),
    (|run| run.acknowledged_at_restart = Some(run.octets), "a switch restarts during the transfer"),
];

/// Each claim fails when what it is about is not so, and no other one does.
#[test]
fn claims_fail_when_they_should() {
    let more = SENDERS.to_owned() + "loss = 0.001\n";
    let restart = "\n[end_to_end.restart]\nnodes = [\"dc2.spine1\"]\nat_us = 1500\ndown_us = 100\n";
    let plan = plan(&(FILE.replace("receivers_per_edge = 2\n", &more) + restart)).unwrap();
    let good = run_end_to_end(&plan, &[1], 1, &|_| (), None).unwrap();
    assert!(good.claims(&plan).iter().all(|claim| claim.holds));
    for (spoil, broken) in SPOILT {
        let mut results = good.clone();
        spoil(&mut results.runs[0]);
        let claims = results.claims(&plan);
        let failed: Vec<&str> =
            claims.iter().filter(|claim| !claim.holds).map(|claim| claim.expected.as_str()).collect();
        assert!(failed.len() == 1 && failed[0].starts_with(broken), "{broken}: {failed:?}");
    }
}
