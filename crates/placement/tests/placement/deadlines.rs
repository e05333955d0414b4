//! Time limits end improvements, and never leave a flow without a path.

use srdma_fabric::{HostId, Topology};
use srdma_placement::{Deadline, Flow, FlowId, Phase, Placement};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fabric with a failed link, on which the improvement has much to try.
const FABRIC: &str =
    "kind = \"leaf-spine\"\nleaves = 6\nspines = 4\nhosts_per_leaf = 4\n[[failed]]\nname = \"leaf1-spine1\"\n";

/// Flows from all to all, whose rates differ.
fn flows(topology: &Topology) -> Vec<Flow> {
    let hosts: Vec<HostId> = topology.host_ids().collect();
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let rate = |from: HostId, to: HostId| 1_000_000_000 + 7_000_001 * u64::from(from.0 * 13 + to.0 * 5 % 11);
    pairs.filter(|(from, to)| from != to).map(|(from, to)| Flow { from, to, rate_bits_per_s: rate(from, to) }).collect()
}

fn has_all_paths(placement: &Placement<'_>, flows: usize) -> bool {
    (0..flows as u32).all(|id| placement.path(FlowId(id)).is_some_and(|path| path.links.len() >= 2))
}

#[test]
fn a_deadline_that_does_not_strike_changes_nothing() {
    let topology = Topology::from_toml(FABRIC).unwrap();
    let flows = flows(&topology);
    let improves = || Phase::Improve;
    let free = Placement::new(&topology, &flows).unwrap();
    let limited = Placement::new_within(&topology, &flows, Deadline::of(&improves)).unwrap();
    let paths =
        |placement: &Placement<'_>| (0..flows.len() as u32).map(|id| placement.path(FlowId(id))).collect::<Vec<_>>();
    assert_eq!(paths(&free), paths(&limited));
    assert!(!limited.is_cut_short());
}

/// Wherever it strikes, every flow has a path, and the result is no worse than without any improvement.
#[test]
fn a_deadline_may_strike_anywhere() {
    let topology = Topology::from_toml(FABRIC).unwrap();
    let flows = flows(&topology);
    let mut first = None;
    for calls in [0, 1, 10, 100, 300, 1000, 3000, 10_000] {
        let left = AtomicU32::new(calls);
        let phase = || match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Phase::Improve,
            Err(_) => Phase::Place,
        };
        let mut placement = Placement::new_within(&topology, &flows, Deadline::of(&phase)).unwrap();
        assert!(has_all_paths(&placement, flows.len()), "after {calls} calls");
        let most = placement.most_loaded().1;
        assert!(most <= *first.get_or_insert(most) + 1e-9, "after {calls} calls: {most}, {first:?} at first");
        assert_eq!(placement.is_cut_short(), left.load(Ordering::Relaxed) == 0, "after {calls} calls");
        let (id, moved) = placement.add(flows[0]).unwrap();
        assert!(placement.path(id).is_some() && (moved.is_empty() || !placement.is_cut_short()));
    }
}

#[test]
fn a_placement_ends_when_its_time_is_over() {
    let topology = Topology::from_toml(FABRIC).unwrap();
    let flows = flows(&topology);
    let over = || Phase::Stop;
    let refused = Placement::new_within(&topology, &flows, Deadline::of(&over)).unwrap_err();
    assert_eq!(refused.problem, "the time for a placement is over");
}
