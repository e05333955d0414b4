//! Many flows under one burst of signals: they spread evenly, and flows without a signal keep their paths (D84).

use srdma_steering::{
    Boundary, Cause, Config, FlowKey, Path, PathIndex, SetId, Signal, SignalEffect, Steering, Subject,
};
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const FLOWS: u64 = 4096;

fn spine(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xDB8, 0xFF, 0, 0, 0, 0, number)
}

/// Paths by spines, of these ranks.
fn steering(ranks: &[u16], change: impl FnOnce(&mut Config)) -> (Steering, SetId) {
    let mut config = Config { flows: 4 * FLOWS as usize, seed: 11, ..Config::default() };
    change(&mut config);
    let path = |(number, rank): (u16, &u16)| Path {
        segments: vec![spine(number)],
        nodes: vec![spine(number)],
        rank: *rank,
        is_denied: false,
    };
    let paths: Vec<Path> = (0..).zip(ranks).map(path).collect();
    let mut steering = Steering::new(config);
    let set = steering.set_paths(Instant::ZERO, None, &paths).unwrap();
    (steering, set)
}

fn key(flow: u64) -> FlowKey {
    FlowKey::new((flow + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

fn send(steering: &mut Steering, set: SetId, us: u64, flow: u64) -> PathIndex {
    steering.choose(at(us), set, key(flow), Boundary::WithinMessage).unwrap().path
}

/// How many flows take each path.
fn spread(steering: &mut Steering, set: SetId, us: u64) -> BTreeMap<u16, u64> {
    let mut spread = BTreeMap::new();
    for flow in 0..FLOWS {
        *spread.entry(send(steering, set, us, flow).0).or_default() += 1;
    }
    spread
}

/// Within five standard deviations of an even share.
#[track_caller]
fn is_even(count: u64, of: u64, among: u64) {
    let (of, share) = (of as f64, 1.0 / among as f64);
    let deviation = (count as f64 - of * share).abs() / (of * share * (1.0 - share)).sqrt();
    assert!(deviation < 5.0, "{count} of {of} among {among}");
}

/// One spine of eight fails or is congested, and all of its flows get the signal at once: the seven others share them,
/// and no other flow moves.
#[test]
fn the_flows_of_a_congested_spine_spread_over_the_others() {
    let (mut steering, set) = steering(&[0; 8], |_| ());
    let before: Vec<PathIndex> = (0..FLOWS).map(|flow| send(&mut steering, set, 1, flow)).collect();
    let hit: Vec<u64> = (0..FLOWS).filter(|flow| before[*flow as usize].0 == 3).collect();
    is_even(hit.len() as u64, FLOWS, 8);
    for flow in &hit {
        assert_eq!(
            steering.handle_signal(at(2), Subject::Flow(key(*flow)), Signal::FastCnp { avoid: spine(3) }),
            SignalEffect::FlowMoves
        );
    }
    let mut taken: BTreeMap<u16, u64> = BTreeMap::new();
    for flow in 0..FLOWS {
        let path = send(&mut steering, set, 3, flow);
        if before[flow as usize].0 == 3 {
            *taken.entry(path.0).or_default() += 1;
        } else {
            assert_eq!(path, before[flow as usize], "flow {flow} has no signal");
        }
    }
    assert_eq!((taken.len(), taken.get(&3)), (7, None));
    taken.values().for_each(|count| is_even(*count, hit.len() as u64, 7));
    assert_eq!(steering.counters().moves_by(Cause::FastCnp), hit.len() as u64);
}

/// D85: a dead path is left by all, with no signal for any of them.
#[test]
fn the_flows_of_a_dead_path_spread_over_the_others() {
    let (mut steering, set) = steering(&[0; 4], |_| ());
    let before = spread(&mut steering, set, 1);
    for _ in 0..3 {
        steering.handle_signal(at(2), Subject::Path(set, PathIndex(1)), Signal::ProbeSilent);
    }
    let after = spread(&mut steering, set, 3);
    assert_eq!(after.get(&1), None);
    for path in [0, 2, 3] {
        is_even(after[&path] - before[&path], before[&1], 3);
    }
    assert_eq!(steering.counters().moves_by(Cause::Silence), before[&1]);
}

/// A path that probes find slow is left by a quarter at a time: were all to leave, the next would be slow.
#[test]
fn a_slow_path_is_left_a_share_at_a_time() {
    let (mut steering, set) = steering(&[0, 0], |config| config.limits.two_way_ns = Some(50_000));
    let mut left = spread(&mut steering, set, 1)[&0];
    for round in 1..4 {
        let us = round * 1_000;
        steering.handle_signal(at(us), Subject::Path(set, PathIndex(0)), Signal::TwoWayLatency { ns: 60_000 });
        let now = spread(&mut steering, set, us + 1).get(&0).copied().unwrap_or(0);
        is_even(left - now, left, 4);
        left = now;
    }
    assert_eq!(spread(&mut steering, set, 3_500)[&0], left, "without another signal no flow moves");
    assert!(steering.counters().moves_by(Cause::TwoWayLatency) > FLOWS / 4);
}

/// Flows go back one by one, once the better path was good for long.
#[test]
fn returns_are_spread_over_time() {
    let (mut steering, set) = steering(&[0, 1], |config| config.hold_ns = 1_000_000);
    assert_eq!(spread(&mut steering, set, 1), [(0, FLOWS)].into());
    for path in [0, 1] {
        steering.handle_signal(at(1), Subject::Path(set, PathIndex(path)), Signal::ProbeAnswered);
    }
    for flow in 0..FLOWS {
        steering.handle_signal(at(2), Subject::Flow(key(flow)), Signal::Cnp);
    }
    assert_eq!(spread(&mut steering, set, 3), [(1, FLOWS)].into());
    assert_eq!(spread(&mut steering, set, 1_100), [(1, FLOWS)].into());
    steering.handle_signal(at(2_000), Subject::Path(set, PathIndex(0)), Signal::ProbeAnswered);
    let mut back = 0;
    for us in (2_100..=23_000).step_by(100) {
        let now = spread(&mut steering, set, us).get(&0).copied().unwrap_or(0);
        let expected = FLOWS * us.saturating_sub(12_000).min(10_000) / 10_000;
        assert!(now.abs_diff(expected) < FLOWS / 20, "{now} have gone back by {us} us, expected {expected}");
        assert!(now >= back, "no flow moves back");
        back = now;
    }
    assert_eq!(back, FLOWS);
}

/// A burst with signals about every path: each flow moves once and stays, nothing flaps.
#[test]
fn where_everything_is_congested_flows_stay() {
    let (mut steering, set) = steering(&[0; 4], |_| ());
    spread(&mut steering, set, 1);
    for us in (10..5_000).step_by(10) {
        for flow in 0..FLOWS {
            steering.handle_signal(at(us), Subject::Flow(key(flow)), Signal::Cnp);
            send(&mut steering, set, us + 1, flow);
        }
    }
    let moves = steering.counters().all_moves();
    assert!(moves <= 2 * FLOWS, "{moves} moves of {FLOWS} flows in 5 ms");
    assert!(steering.counters().no_alternative > 0);
}

/// A path that is bad again and again is avoided for longer and longer, up to the limit, and trusted again after that.
/// A denied path is never taken, even where all others carry nothing.
#[test]
fn a_denied_path_is_left_for_a_silent_one() {
    let (mut steering, set) = steering(&[0, 1], |_| {});
    let path = send(&mut steering, set, 1, 7);
    let other = PathIndex(1 - path.0);
    (0..3).for_each(|_| {
        steering.handle_signal(at(2), Subject::Path(set, other), Signal::ProbeSilent);
    });
    let paths = [0, 1].map(|number| Path {
        segments: vec![spine(number)],
        rank: number,
        is_denied: number == path.0,
        ..Path::default()
    });
    steering.set_paths(at(3), Some(set), &paths).unwrap();
    assert_eq!(send(&mut steering, set, 4, 7), other);
}

#[test]
fn hold_times_grow_and_are_reset() {
    let (mut steering, set) = steering(&[0, 1], |config| config.hold_most_ns = 8_000_000);
    let is_bad = |steering: &mut Steering, us| !steering.paths(at(us), set).next().unwrap().state.is_usable();
    let mut us = 1;
    for hold_us in [1_000, 2_000, 4_000, 8_000, 8_000] {
        steering.handle_signal(at(us), Subject::Path(set, PathIndex(0)), Signal::CeRatio { marked: 1, packets: 1 });
        assert!(is_bad(&mut steering, us + hold_us - 1) && !is_bad(&mut steering, us + hold_us), "{hold_us} us");
        us += hold_us;
    }
    us += 8_000;
    steering.handle_signal(at(us), Subject::Path(set, PathIndex(0)), Signal::CeRatio { marked: 1, packets: 1 });
    assert!(is_bad(&mut steering, us + 999) && !is_bad(&mut steering, us + 1_000));
}

/// More flows than there is room for: the table stays as large as it is, and a forgotten flow takes its path again.
#[test]
fn the_table_is_bounded() {
    let (mut steering, set) = steering(&[0; 8], |config| config.flows = 256);
    let first: Vec<PathIndex> = (0..FLOWS).map(|flow| send(&mut steering, set, flow, flow)).collect();
    let second: Vec<PathIndex> = (0..FLOWS).map(|flow| send(&mut steering, set, FLOWS + flow, flow)).collect();
    assert_eq!(first, second);
    assert_eq!((steering.flow_capacity(), steering.flows().count()), (256, 256));
    let counters = steering.counters();
    assert_eq!(counters.flows_started - counters.flows_evicted, 256);
}

/// The youngest stay: a flow that has just sent is not the one that goes.
#[test]
fn the_flow_that_was_quiet_longest_goes() {
    let (mut steering, set) = steering(&[0; 8], |config| config.flows = 256);
    for flow in 0..FLOWS {
        send(&mut steering, set, 2 * flow, flow);
        let place = steering.choose(at(2 * flow + 1), set, key(flow), Boundary::WithinMessage).unwrap();
        assert!(!place.is_new);
    }
    let oldest = steering.flows().map(|flow| flow.last).min().unwrap();
    assert!(oldest >= at(2 * (FLOWS - 1_500)), "{oldest:?}");
}
