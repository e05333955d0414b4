//! Runs with failures, and their explanations. The snapshots are the output for a user.

use crate::explain::network::{Bench, Filter, Of, Plan};
use serde_json::Value;
use srdma_frame::PortId;
use srdma_wire::Instant;
use std::cell::Cell;
use std::rc::Rc;

/// PSN of the RoCEv2 packet whose BTH begins at this offset of the frame.
fn psn_at(octets: &[u8], bth: usize) -> Option<u32> {
    let psn = octets.get(bth + 9..bth + 12)?;
    Some(u32::from_be_bytes([0, psn[0], psn[1], psn[2]]))
}

/// Offset of the BTH in a frame without SRH or tunnel.
const BTH: usize = 14 + 40 + 8;

/// Whether a host gets the packet of this PSN: not the first time.
fn loses_once(who: &'static str, psn: u32) -> impl Fn(&str, u64, PortId, &[u8]) -> bool {
    let lost = Cell::new(false);
    move |at: &str, _: u64, _: PortId, octets: &[u8]| {
        at != who || psn_at(octets, BTH) != Some(psn) || lost.replace(true)
    }
}

/// R3 loses a packet, and responses of R1 are lost from 8 us until then.
fn late_r1(until_ns: u64) -> Filter {
    let lost = loses_once("r3", 1009);
    Rc::new(move |at: &str, now_ns: u64, port: PortId, octets: &[u8]| {
        let from_r1 = at == "n2" && port == PortId(1) && (8_000..until_ns).contains(&now_ns);
        lost(at, now_ns, port, octets) && !from_r1
    })
}

/// R3 is dead from 20 us on.
fn dead_receiver() -> Plan {
    Plan { passes: Rc::new(|at, now_ns, _, _| at != "r3" || now_ns < 20_000), ..Plan::quiet() }
}

fn as_it_is(_: &str, _: u64, _: &mut Vec<u8>) -> bool {
    true
}

#[test]
fn a_run_without_faults() {
    let bench = Bench::of(Plan::quiet(), Of::N1, 0, as_it_is);
    insta::assert_snapshot!(bench.run(&[]));
}

/// R5 in its usual form: the NAK of one receiver waits for the minimum to get there.
#[test]
fn a_nak_is_held_until_the_other_branches_reach_its_psn() {
    let plan = Plan { passes: late_r1(16_000), ..Plan::quiet() };
    let text = Bench::of(plan, Of::N2, 0, as_it_is).run(&[]);
    assert!(text.contains("by R3, caused by 2001:db8:bb::1"), "{text}");
    insta::assert_snapshot!(text);
}

/// R5 in its other form: R1's responses are lost for a while, so that the minimum does not get there within T_hold.
#[test]
fn a_nak_is_forwarded_when_its_hold_time_expires() {
    let bench = Bench::of(Plan { passes: late_r1(40_000), ..Plan::quiet() }, Of::N2, 0, as_it_is);
    let text = bench.run(&[]);
    assert!(text.contains("by R5, caused by 2001:db8:bb::3; 2001:db8:bb::1 holds the minimum"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_dead_receiver_blocks_the_group() {
    let bench = Bench::of(dead_receiver(), Of::N2, 0, as_it_is);
    insta::assert_snapshot!("dead_receiver_at_its_edge", bench.run(&[]));
    // The root sees the same from further away: its branch is the edge.
    let bench = Bench::of(dead_receiver(), Of::N1, 0, as_it_is);
    insta::assert_snapshot!("dead_receiver_at_the_root", bench.run(&[]));
}

/// D270: an explanation has the group's PSNs, also where a receiver has others.
#[test]
fn a_receiver_with_psns_of_its_own_is_explained_by_the_groups() {
    let plans = [0, 0xFF_8000].map(|psn_offset| Plan { psn_offset, ..dead_receiver() });
    let [of_group, own] = plans.map(|plan| Bench::of(plan, Of::N2, 0, as_it_is).run(&[]));
    assert_eq!(of_group, own);
}

#[test]
fn a_receiver_that_is_not_ready_blocks_the_group() {
    let plan = Plan { receives: [32, 5, 32, 32], until: Instant::from_ns(3_000_000), ..Plan::quiet() };
    let bench = Bench::of(plan, Of::N2, 0, as_it_is);
    insta::assert_snapshot!(bench.run(&[]));
}

/// Responses of the root to the source are lost.
#[test]
fn a_source_without_responses_goes_back() {
    let passes = |at: &str, now_ns: u64, _: PortId, _: &[u8]| at != "s1" || now_ns < 30_000;
    let bench = Bench::of(Plan { passes: Rc::new(passes), ..Plan::quiet() }, Of::N1, 0, as_it_is);
    insta::assert_snapshot!(bench.run(&[]));
}

/// D17, R6: the captures begin in mid-flow, and one branch is silent from there on.
#[test]
fn captures_that_begin_within_a_flow_are_noted() {
    let bench = Bench::of(Plan::quiet(), Of::N2, 30_000, as_it_is);
    insta::assert_snapshot!("mid_flow", bench.run(&[]));
    let bench = Bench::of(dead_receiver(), Of::N2, 40_000, as_it_is);
    insta::assert_snapshot!("mid_flow_with_a_dead_receiver", bench.run(&[]));
}

/// The node restarts: its later responses differ from those of a node that did not restart.
#[test]
fn a_restart_shows_in_the_comparison() {
    let plan = Plan { restart_n2_at: Some(Instant::from_ns(66_000)), ..Plan::quiet() };
    let bench = Bench::of(plan, Of::N2, 0, as_it_is);
    let text = bench.run(&[]);
    assert!(text.contains("which the rules give"), "{text}");
    insta::assert_snapshot!(text);
}

/// An ACK that was changed behind the node, or forged by it, acknowledges three packets more than R3 has.
#[test]
fn a_forged_response_is_found() {
    let lie = |port: &str, _: u64, octets: &mut Vec<u8>| {
        if port == "up" && octets.len() < 100 && psn_at(octets, BTH) == Some(1013) {
            octets[BTH + 11] += 3;
        }
        true
    };
    let bench = Bench::of(dead_receiver(), Of::N2, 0, lie);
    let json: Value = serde_json::from_str(&bench.run(&["--json"])).expect("one JSON object");
    let group = &json["groups"][0];
    assert!(group["upstream"]["compared"]["untrue"].as_u64() >= Some(1), "{group:#}");
    let text = bench.run(&[]);
    let line = text.lines().find(|line| line.contains("THE NODE SENT"));
    assert!(line.is_some_and(|line| line.contains("ACK 1016: not true")), "{text}");
}

/// Damaged responses are refused: BadIcrc (D33). The responses of the real node are left out, since it received them
/// undamaged.
#[test]
fn damaged_responses_are_refused() {
    let damage = |port: &str, now_ns: u64, octets: &mut Vec<u8>| {
        if now_ns > 20_000 && port == "r3" && octets[6..12] == [2, 0, 0, 0, 0xbb, 3] {
            octets[BTH + 14] ^= 1;
        }
        now_ns <= 20_000 || port != "up" || octets.len() > 100
    };
    let bench = Bench::of(Plan::quiet(), Of::N2, 0, damage);
    let text = bench.run(&[]);
    assert!(text.contains("dropped, bad_icrc"), "{text}");
    let json: Value = serde_json::from_str(&bench.run(&["--json"])).expect("one JSON object");
    let branch = &json["groups"][0]["branches"][2];
    assert!(branch["refused"]["bad_icrc"].as_u64() > Some(3), "{branch:#}");
}

/// The names in JSON stay what they are.
#[test]
fn json_has_stable_names() {
    let bench = Bench::of(dead_receiver(), Of::N2, 0, as_it_is);
    let mut json: Value = serde_json::from_str(&bench.run(&["--json", "--to", "200us"])).expect("one JSON object");
    let timeline = json["groups"][0]["timeline"].as_array_mut().expect("a timeline");
    timeline.truncate(4);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("it was JSON"));
}

/// `--all`, `--branch`, `--from` and `--to` choose lines of the timeline; nothing is lost by summing up.
#[test]
fn parts_of_the_timeline() {
    let plan = Plan { passes: Rc::new(loses_once("r3", 1009)), ..Plan::quiet() };
    let bench = Bench::of(plan, Of::N2, 0, as_it_is);
    let some = ["--all", "--branch", "2001:db8:bb::3", "--from", "10us", "--to", "14us"];
    insta::assert_snapshot!(bench.run(&some));
    let parse = |text: String| serde_json::from_str::<Value>(&text).expect("one JSON object");
    let (all, summed) = (parse(bench.run(&["--json", "--all"])), parse(bench.run(&["--json"])));
    let lines = |json: &Value| json["groups"][0]["timeline"].as_array().expect("a timeline").clone();
    let data = lines(&all).iter().filter(|line| line["kind"] == "data").count() as u64;
    let summed_data: u64 = lines(&summed).iter().filter_map(|line| line["data"].as_u64()).sum();
    assert_eq!((data, summed_data), (all["groups"][0]["data"].as_u64().unwrap_or(0), data));
    assert!(lines(&summed).len() < 20 && lines(&all).len() > 200);
}
