//! Recovery time of a group after a single fault (D17, D25): a node crashes and restarts, or a receiver dies and is
//! evicted. The figures are reported.
//!
//! The unit is the source's ACK timeout, which is constant: the endpoint's timer does not back off. The time that the
//! control plane needs is subtracted.
//!
//! `SRDMA_TEST_SEEDS` sets the number of runs of each fault.

use srdma_chaos::outcome::{GroupOutcome, StepKind};
use srdma_chaos::schedule::{DEFAULT_T_STALL_PERCENT, Event, LinkPlan, Schedule, TimedEvent};
use srdma_chaos::token::ReplayToken;
use srdma_chaos::{scale, world};
use srdma_figures::{Figure, report};
use srdma_random::Stream;
use srdma_sim::timing::Timing;
use std::iter;

const DEFAULT_RUNS: u64 = 150;

/// A stall needs as many copies of a packet.
const STALL_SENDS: u64 = 3;

const TIMEOUT: &str = "ACK timeout";
const TIMEOUTS: &str = "ACK timeouts";

/// Larger networks are skipped.
const MAX_NODES: usize = 16;
const MAX_RECEIVERS: usize = 24;

/// The single fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Headend,
    Transit,
    Edge,
    Death { t_stall_percent: u16 },
}

/// A run and its only group.
struct Run {
    seed: u64,
    schedule: Schedule,
    group: GroupOutcome,
    /// Of the longest path, empty.
    round_trip_ns: u64,
    /// The same with a full window in a queue.
    longest_response_ns: u64,
}

impl Run {
    /// Time of the first step of a kind from a time on, in nanoseconds.
    fn step(&self, kind: StepKind, from_ns: u64) -> Option<u64> {
        self.group.steps.iter().find(|step| step.kind == kind && step.at_ns >= from_ns).map(|step| step.at_ns)
    }

    /// The same for a step that must exist.
    fn must(&self, kind: StepKind, from_ns: u64) -> u64 {
        let found = self.step(kind, from_ns);
        found.unwrap_or_else(|| panic!("seed {}: no {kind:?} from {from_ns} ns on: {:?}", self.seed, self.group))
    }
}

/// A seed's network with one group and without faults; only small ones.
fn without_faults(seed: u64) -> Option<Schedule> {
    let mut schedule = Schedule::from_seed(seed);
    let LinkPlan { rate_bits_per_s, delay_ns, .. } = schedule.link;
    schedule.link = LinkPlan::without_faults(rate_bits_per_s, delay_ns);
    (schedule.events, schedule.faults_end_ns) = (Vec::new(), 0);
    schedule.nodes.iter_mut().for_each(|node| node.spares.clear());
    schedule.groups.truncate(1);
    let group = &mut schedule.groups[0];
    (group.start_ns, group.octets, group.unlimited_retries) = (0, 256 << 10, true);
    (group.policy.literal, group.policy.evict, group.policy.min_receivers) = (false, true, 1);
    let is_small = schedule.nodes.len() <= MAX_NODES && schedule.receivers.len() <= MAX_RECEIVERS;
    is_small.then_some(schedule)
}

/// Number of members in a node's subtree.
fn members_below(schedule: &Schedule, node: usize) -> usize {
    let edges = schedule.groups[0].members.iter().map(|member| schedule.receivers[*member].edge);
    edges.filter(|edge| iter::successors(Some(*edge), |of| schedule.nodes[*of].parent).any(|of| of == node)).count()
}

/// The node that removes a branch when a member is evicted: the lowest one with other members below it (D25).
fn remover(schedule: &Schedule, receiver: usize) -> usize {
    let mut node = schedule.receivers[receiver].edge;
    while let (1, Some(parent)) = (members_below(schedule, node), schedule.nodes[node].parent) {
        node = parent;
    }
    node
}

/// A seed's network with one fault at any place and time of the transfer; `None` where that is impossible.
fn draw(seed: u64, fault: Fault) -> Option<Schedule> {
    let mut schedule = without_faults(seed)?;
    let mut rng = Stream::new(seed, "recovery");
    let scale = scale::Scale::of(&schedule);
    let is_edge = |node: usize| schedule.receivers.iter().any(|receiver| receiver.edge == node);
    let inside = (1..schedule.nodes.len()).filter(|node| members_below(&schedule, *node) > 0);
    let candidates: Vec<usize> = match fault {
        Fault::Headend => vec![0],
        Fault::Transit => inside.filter(|node| !is_edge(*node)).collect(),
        Fault::Edge => inside.filter(|node| is_edge(*node)).collect(),
        // One member must remain.
        Fault::Death { .. } if schedule.groups[0].members.len() == 1 => Vec::new(),
        Fault::Death { .. } => schedule.groups[0].members.clone(),
    };
    if candidates.is_empty() {
        return None;
    }
    let candidate = candidates[rng.below(candidates.len() as u64) as usize];
    let event = match fault {
        Fault::Death { t_stall_percent } => {
            schedule.groups[0].policy.t_stall_percent = t_stall_percent;
            Event::KillReceiver { receiver: candidate }
        }
        Fault::Headend | Fault::Transit | Fault::Edge => {
            // Longer than any frame may be in flight.
            let for_ns = scale.ack_timeout_ns / 2 + rng.below(6 * scale.ack_timeout_ns);
            Event::CrashNode { node: candidate, for_ns }
        }
    };
    schedule.events = vec![TimedEvent { at_ns: rng.below(scale.transfer_ns), event }];
    schedule.check().unwrap_or_else(|error| panic!("seed {seed}, {fault:?}: {error}"));
    Some(schedule)
}

/// The runs of a fault. All groups complete without violations.
fn runs(fault: Fault) -> impl Iterator<Item = Run> {
    (1..).filter_map(move |seed| draw(seed, fault).map(|schedule| (seed, schedule))).map(|(seed, schedule)| {
        let mut outcome = world::run(&schedule);
        let token = || ReplayToken::Schedule(Box::new(schedule.clone()));
        assert!(outcome.violations.is_empty(), "seed {seed}: {:?}; {}", outcome.violations, token());
        let group = outcome.groups.remove(0);
        assert!(group.completed_ns.is_some(), "seed {seed}: {group:?}");
        let Timing { round_trip_ns, longest_response_ns, .. } = scale::timing(&schedule);
        Run { seed, schedule, group, round_trip_ns, longest_response_ns }
    })
}

fn run_count() -> usize {
    srdma_testkit::seeds::count(DEFAULT_RUNS) as usize
}

/// Times of the runs of a fault, in units of each run.
#[derive(Default)]
struct Measured(Vec<f64>);

impl Measured {
    fn add(&mut self, ns: i64, unit_ns: u64) {
        self.0.push(ns as f64 / unit_ns as f64);
    }

    fn report(self, what: &str, unit: &str) -> Figure {
        report(what, unit, self.0)
    }

    /// The same, and the number of those above one unit.
    fn report_with_above_one(self, what: &str, unit: &str) -> (Figure, f64) {
        let above = self.0.iter().filter(|measured| **measured > 1.0).count() as f64;
        let all = self.report(what, &format!("{unit}s"));
        report(format!("{what}: above one {unit}"), "runs", [above]);
        (all, above)
    }
}

/// Time from the restore of a restarted node's group entry, without learned state, to the source's next progress, in
/// ACK timeouts. It has two parts: up to one timeout until the source's next retransmission, and less than a round trip
/// for the packet to the node and its response.
fn restart(fault: Fault) -> (Figure, f64) {
    let (mut boot, mut recovery) = (Measured::default(), Measured::default());
    for run in runs(fault) {
        let Event::CrashNode { node, .. } = run.schedule.events[0].event else { unreachable!("{fault:?}: a crash") };
        // Otherwise the transfer had completed before.
        if let Some(back_ns) = run.step(StepKind::NodeRestarted(node), 0) {
            let whole_ns = run.must(StepKind::GroupApplied(node), back_ns);
            let recovery_ns = run.must(StepKind::Progress, whole_ns) - whole_ns;
            let timeout_ns = run.group.ack_timeout_ns;
            assert!(recovery_ns <= timeout_ns + run.round_trip_ns, "seed {}: {recovery_ns} ns", run.seed);
            boot.add((whole_ns - back_ns) as i64, timeout_ns);
            recovery.add(recovery_ns as i64, timeout_ns);
        }
        if recovery.0.len() == run_count() {
            break;
        }
    }
    let node = format!("{fault:?}").to_lowercase();
    boot.report(&format!("{node} restarts: until it has its group entry"), TIMEOUTS);
    recovery.report_with_above_one(&format!("{node} has its group entry: until the source's next progress"), TIMEOUT)
}

/// D17: two ACK timeouts at most.
#[test]
fn a_group_recovers_from_the_restart_of_its_headend_or_a_transit_node() {
    for fault in [Fault::Headend, Fault::Transit] {
        let (recovery, _) = restart(fault);
        assert!(recovery.most <= 2.0, "{recovery}");
    }
}

/// One ACK timeout and a round trip: a node that is restored just after a retransmission waits for the next one. Few
/// are above one timeout.
#[test]
fn a_group_recovers_from_the_restart_of_an_edge() {
    let (recovery, above) = restart(Fault::Edge);
    assert!(above * 50.0 <= recovery.count as f64, "{above} above one ACK timeout: {recovery}");
}

/// Time from the first packet to a dead receiver to the source's next progress, in round trips, without T_stall and
/// without the control plane's time from the eviction request to the removal of the branch.
///
/// A stall needs the third copy of a packet. The source's timer starts with its last response, which is to an earlier
/// packet, and comes a round trip after the first copy at most, with a full window in a queue. Beyond this and T_stall
/// it takes a round trip at most: from the third copy at the source to the edge, and from the removal to the source.
fn death(t_stall_percent: u16) -> (Figure, f64) {
    let (mut grant, mut whole, mut at_limit) = (Measured::default(), Measured::default(), Measured::default());
    for run in runs(Fault::Death { t_stall_percent }) {
        let Event::KillReceiver { receiver } = run.schedule.events[0].event else { unreachable!("a death") };
        // Otherwise it had received all data.
        if let Some(unanswered_ns) = run.step(StepKind::SentToDeadReceiver(receiver), 0) {
            let asked_ns = run.must(StepKind::EvictionRequested(receiver), unanswered_ns);
            let removed_ns = run.must(StepKind::GroupApplied(remover(&run.schedule, receiver)), asked_ns);
            let on_ns = run.must(StepKind::Progress, removed_ns);
            let timeout_ns = run.group.ack_timeout_ns;
            let t_stall_ns = timeout_ns * u64::from(t_stall_percent) / 100;
            let own_ns = (on_ns - unanswered_ns) - (removed_ns - asked_ns);
            let third_copy_ns = (STALL_SENDS - 1) * timeout_ns + run.longest_response_ns;
            let most_ns = t_stall_ns.max(third_copy_ns) + run.round_trip_ns;
            assert!(own_ns <= most_ns, "seed {}: {own_ns} ns, at most {most_ns}", run.seed);
            grant.add((removed_ns - asked_ns) as i64, timeout_ns);
            whole.add((on_ns - unanswered_ns) as i64, timeout_ns);
            at_limit.add(own_ns as i64 - t_stall_ns as i64, run.round_trip_ns);
        }
        if at_limit.0.len() == run_count() {
            break;
        }
    }
    let t_stall = f64::from(t_stall_percent) / 100.0;
    let what = format!("receiver dies, T_stall {t_stall} ACK timeouts");
    grant.report(&format!("{what}: from the edge's request to the removal of the branch"), TIMEOUTS);
    whole.report(&format!("{what}: until the source's next progress"), TIMEOUTS);
    at_limit.report_with_above_one(&format!("{what}: the same less T_stall and that removal"), "round trip")
}

/// D25: T_stall and a round trip at most, where the third copy of a packet comes within T_stall.
#[test]
fn a_group_recovers_from_a_dead_receiver() {
    let (at_limit, _) = death(250);
    assert!(at_limit.most <= 1.0, "{at_limit}");
}

/// With a T_stall of two ACK timeouts the third copy comes later.
#[test]
fn a_stall_is_not_detected_before_the_third_copy() {
    let (at_limit, above) = death(DEFAULT_T_STALL_PERCENT);
    assert!(above > 0.0, "{at_limit}");
}
