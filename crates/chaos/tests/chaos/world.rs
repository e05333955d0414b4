//! A storm's world, fault by fault: each takes place, is seen to, and does no harm (MT-5.3.1-1, MT-5.3.2-1, MT-9-2, D15,
//! D17, D21, D24, D25, D30, D33).

use srdma_chaos::outcome::Outcome;
use srdma_chaos::schedule::{
    Claim, Event, Forger, Forgery, GroupPlan, LinkPlan, ListsPlan, Message, NodePlan, OperationPlan, PolicyPlan,
    ReceiverPlan, Schedule, Timed, USUAL_T_STALL_PERCENT,
};
use srdma_chaos::world;

/// About the middle of a transfer.
const MIDDLE_NS: u64 = 150_000;

/// Several ACK timeouts.
const LONG_NS: u64 = 600_000;

/// A group of 256 packets to receivers 0 to 3; receiver 4 is left outside.
///
/// ```text
///          N0
///         ╱  ╲
///       N1    N2 ┄┄┄┄┄┄┄┄┄┐
///      ╱  ╲     ╲         ┊
///    N3    N4    N5      (N3)
///   R0 R1  R2   R3 R4
/// ```
fn calm() -> Schedule {
    let node = |parent, spares: &[usize]| NodePlan { parent, spares: spares.to_vec() };
    let link = LinkPlan::calm(10_000_000_000, 1000);
    Schedule {
        seed: 1,
        nodes: vec![
            node(None, &[]),
            node(Some(0), &[]),
            node(Some(0), &[]),
            node(Some(1), &[2]),
            node(Some(1), &[]),
            node(Some(2), &[]),
        ],
        receivers: [3, 3, 4, 5, 5].map(|edge| ReceiverPlan { edge }).to_vec(),
        link,
        groups: vec![group(0)],
        events: Vec::new(),
        faults_end_ns: 4 * LONG_NS,
    }
}

fn group(source: usize) -> GroupPlan {
    GroupPlan {
        source,
        members: vec![0, 1, 2, 3],
        start_ns: 0,
        octets: 256 << 10,
        message_octets: 4 << 10,
        first_psn: 0xFF_FFF0,
        operation: OperationPlan::Send,
        policy: PolicyPlan {
            literal: false,
            evict: false,
            prune_retransmit: false,
            lists: ListsPlan::Auto,
            t_hold_percent: 100,
            trailing_cnps: false,
            min_receivers: 1,
            t_stall_percent: USUAL_T_STALL_PERCENT,
        },
        unlimited_retries: false,
    }
}

fn evicting() -> Schedule {
    let mut schedule = calm();
    schedule.groups[0].policy.evict = true;
    schedule
}

fn with(mut schedule: Schedule, event: Event) -> Schedule {
    schedule.events.push(Timed { at_ns: MIDDLE_NS, event });
    schedule
}

/// Runs a schedule that is to end well.
fn run(schedule: &Schedule) -> Outcome {
    let outcome = world::tell(schedule);
    let complaints: Vec<String> = outcome.complaints.iter().map(ToString::to_string).collect();
    assert!(complaints.is_empty(), "{complaints:#?}\n{:#?}", outcome.timeline);
    outcome
}

fn run_to_the_end(schedule: &Schedule) -> Outcome {
    let outcome = run(schedule);
    for group in &outcome.groups {
        assert!(group.completed_ns.is_some(), "{:?}\n{:#?}", group.failure, outcome.timeline);
    }
    outcome
}

fn times(outcome: &Outcome, fault: &str) -> u64 {
    outcome.faults.get(fault).copied().unwrap_or(0)
}

fn drops(outcome: &Outcome, reason: &str) -> u64 {
    outcome.drops.get(reason).copied().unwrap_or(0)
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    let outcome = run_to_the_end(&calm());
    let group = &outcome.groups[0];
    assert_eq!((group.packets_sent, group.packets_retransmitted, group.timeouts), (256, 0, 0));
    assert!(outcome.drops.is_empty() && outcome.faults.is_empty(), "{:?} {:?}", outcome.drops, outcome.faults);
}

#[test]
fn one_schedule_has_one_outcome() {
    for seed in 0..20 {
        let schedule = Schedule::from_seed(seed);
        assert_eq!(world::tell(&schedule), world::tell(&schedule), "seed {seed}");
    }
}

#[test]
fn groups_share_sources_nodes_and_receivers() {
    let mut schedule = calm();
    schedule.groups = vec![group(0), group(0), group(1)];
    schedule.groups[1].operation = OperationPlan::Write;
    schedule.groups[2].members = vec![2, 4];
    let outcome = run_to_the_end(&schedule);
    assert!(outcome.groups.iter().all(|group| group.packets_sent == 256), "{:?}", outcome.groups);
}

#[test]
fn chances_of_links_come_true_and_end() {
    let chance = 20_000;
    for (name, change) in [
        ("loss", (|link: &mut LinkPlan| &mut link.loss_ppm) as fn(&mut LinkPlan) -> &mut u32),
        ("duplication", |link| &mut link.duplicate_ppm),
        ("reordering", |link| &mut link.reorder_ppm),
        ("delay spike", |link| &mut link.spike_ppm),
        ("corruption", |link| &mut link.corrupt_ppm),
    ] {
        let mut schedule = calm();
        schedule.groups[0].unlimited_retries = true;
        schedule.link.spike_ns = 20_000;
        *change(&mut schedule.link) = chance;
        let outcome = run_to_the_end(&schedule);
        assert!(times(&outcome, name) > 10, "{name}: {:?}", outcome.faults);
    }
}

/// D33, D10: a damaged packet is dropped somewhere, and nothing else comes of it.
#[test]
fn changed_bits_are_found() {
    let mut schedule = calm();
    schedule.groups[0].unlimited_retries = true;
    schedule.link.corrupt_ppm = 50_000;
    let outcome = run_to_the_end(&schedule);
    assert!(times(&outcome, "corruption") > 100, "{:?}", outcome.faults);
    assert!(drops(&outcome, "bad_icrc") > 0, "responses are verified: {:?}", outcome.drops);
    assert!(outcome.groups[0].packets_retransmitted > 0, "receivers do not take damaged data");
}

/// D17: headend, transit and edge.
#[test]
fn nodes_come_back_with_what_was_committed() {
    for node in [0, 1, 3] {
        let outcome = run_to_the_end(&with(calm(), Event::CrashNode { node, for_ns: 100_000 }));
        assert_eq!((outcome.restarts, times(&outcome, "node crash")), (1, 1));
        let group = &outcome.groups[0];
        assert!(group.timeouts > 0, "node {node}: the source waited");
        let recovery_ns = group.recoveries_ns.iter().max().copied().expect("one was measured");
        assert!(recovery_ns <= 2 * group.ack_timeout_ns, "node {node}: {recovery_ns} ns");
    }
}

#[test]
fn what_is_cut_off_is_caught_up_with() {
    for event in [
        Event::CutNode { node: 1, for_ns: 200_000 },
        Event::CutReceiver { receiver: 2, for_ns: 200_000 },
        Event::FreezeReceiver { receiver: 2, for_ns: 200_000 },
    ] {
        let outcome = run_to_the_end(&with(calm(), event.clone()));
        let calm = run_to_the_end(&calm());
        assert!(outcome.groups[0].timeouts > 0, "{event:?}");
        assert!(outcome.groups[0].completed_ns > calm.groups[0].completed_ns, "{event:?}");
    }
}

#[test]
fn slow_and_starving_receivers_hold_the_group_up() {
    let calm_ns = run_to_the_end(&calm()).groups[0].completed_ns;
    let slow = Event::SlowReceiver { receiver: 2, for_ns: 200_000, by_ns: 2000 };
    let outcome = run_to_the_end(&with(calm(), slow));
    assert!(outcome.groups[0].completed_ns > calm_ns);
    let outcome = run_to_the_end(&with(calm(), Event::StarveReceiver { receiver: 2, for_ns: 200_000 }));
    assert!(outcome.groups[0].completed_ns > calm_ns);
    assert!(outcome.groups[0].naks_received > 0, "RNR NAKs reach the source (D23)");
}

/// D24, D25: under `strict` the queue pair fails; under `evict` the others go on.
#[test]
fn the_dead_and_the_failed_end_the_group_or_are_evicted() {
    for event in [Event::KillReceiver { receiver: 2 }, Event::FailReceiver { receiver: 2, group: 0 }] {
        let strict = run(&with(calm(), event.clone()));
        assert!(strict.groups[0].failure.is_some() && strict.evictions == 0, "{event:?}: {:?}", strict.groups);
        let evict = run_to_the_end(&with(evicting(), event.clone()));
        assert_eq!(evict.evictions, 1, "{event:?}: {:#?}", evict.timeline);
    }
}

/// MT-5.3.3-1
#[test]
fn congestion_at_a_receiver_is_told_to_the_source() {
    let outcome = run_to_the_end(&with(calm(), Event::Congest { receiver: 2, for_ns: LONG_NS }));
    assert!(times(&outcome, "congestion") > 0);
    assert!(outcome.groups[0].cnps_received > 0);
}

fn forgery(from: Forger, claims: Claim, message: Message) -> Event {
    Event::Forge(Forgery { group: 0, from, claims, message, psn_offset: 3, copies: 5 })
}

/// What the source saw of its group, times apart.
fn seen_by_source(outcome: &Outcome) -> [u64; 6] {
    let group = &outcome.groups[0];
    let sent = [group.packets_sent, group.packets_retransmitted, group.timeouts];
    let received = [group.acks_received, group.naks_received, group.cnps_received];
    [sent[0], sent[1], sent[2], received[0], received[1], received[2]]
}

/// MT-9-2, D14: nobody speaks for another.
#[test]
fn forged_packets_have_no_effect() {
    let calm_groups = seen_by_source(&run_to_the_end(&calm()));
    let messages = [
        Message::Ack,
        Message::SequenceNak,
        Message::RnrNak,
        Message::FatalNak,
        Message::Cnp,
        Message::TamperedTlv,
        Message::Data,
    ];
    for from in [Forger::Receiver(1), Forger::Stranger(3), Forger::Stranger(0), Forger::Stranger(1)] {
        for claims in [Claim::Receiver(0), Claim::Receiver(2), Claim::Node(3), Claim::Proxy, Claim::Source] {
            for message in messages {
                let outcome = run_to_the_end(&with(calm(), forgery(from, claims, message)));
                assert_eq!(seen_by_source(&outcome), calm_groups, "{from:?} {claims:?} {message:?}");
                // A host's packet to a host is passed on; it is the host that refuses it, as not its peer's.
                let is_hosts = matches!(claims, Claim::Receiver(_) | Claim::Source);
                let passes = message == Message::Data && is_hosts && matches!(from, Forger::Stranger(_));
                let dropped: u64 = outcome.drops.values().sum();
                assert_eq!(dropped, if passes { 0 } else { 5 }, "{from:?} {claims:?} {message:?}");
            }
        }
    }
}

#[test]
fn what_is_replayed_is_old() {
    for up in [true, false] {
        let outcome = run_to_the_end(&with(calm(), Event::Replay { node: 3, up, frames: 64 }));
        assert!(times(&outcome, "replay") > 8, "{:?}", outcome.faults);
    }
}

/// D30
#[test]
fn receivers_join_and_leave_while_data_flow() {
    let outcome = run_to_the_end(&with(calm(), Event::Join { group: 0, receiver: 4 }));
    assert_eq!((outcome.joins, times(&outcome, "join")), (1, 1), "{:#?}", outcome.timeline);
    for receiver in [2, 3] {
        let outcome = run_to_the_end(&with(calm(), Event::Leave { group: 0, receiver }));
        assert_eq!((outcome.leaves, outcome.evictions, times(&outcome, "leave")), (1, 0, 1), "{:#?}", outcome.timeline);
    }
}

#[test]
fn a_node_is_rehomed_away_from_a_dead_parent() {
    let mut schedule = with(calm(), Event::CrashNode { node: 1, for_ns: LONG_NS });
    schedule.groups[0].unlimited_retries = true;
    let rehome = Event::Rehome { node: 3, parent: 2 };
    schedule.events.push(Timed { at_ns: MIDDLE_NS + 50_000, event: rehome });
    let outcome = run_to_the_end(&schedule);
    assert_eq!(times(&outcome, "re-homing"), 1, "{:#?}", outcome.timeline);
}
