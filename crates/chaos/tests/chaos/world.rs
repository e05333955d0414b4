//! Single faults: each takes effect, is handled, and violates no check (MT-5.3.1-1, MT-5.3.2-1, MT-9-2, D15, D17, D21,
//! D24, D25, D30, D33).

use srdma_chaos::outcome::Outcome;
use srdma_chaos::schedule::{
    Attacker, Claim, DEFAULT_T_STALL_PERCENT, Event, Forgery, GroupPlan, LinkPlan, ListsPlan, Message, NodePlan,
    OperationPlan, PolicyPlan, ReceiverPlan, Schedule, TimedEvent,
};
use srdma_chaos::world;
use srdma_sim::retransmission::Retransmission;

/// About the middle of a transfer.
const MIDDLE_NS: u64 = 150_000;

/// Several ACK timeouts.
const LONG_NS: u64 = 600_000;

/// A group of 256 packets to receivers 0 to 3; receiver 4 is no member.
///
/// ```text
///          N0
///         ╱  ╲
///       N1    N2 ┄┄┄┄┄┄┄┄┄┐
///      ╱  ╲     ╲         ┊
///    N3    N4    N5      (N3)
///   R0 R1  R2   R3 R4
/// ```
fn without_faults() -> Schedule {
    let node = |parent, spares: &[usize]| NodePlan { parent, spares: spares.to_vec(), can_repair: false };
    let link = LinkPlan::without_faults(10_000_000_000, 1000);
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
        workers: 1,
        retransmission: Retransmission::GoBackN,
        ipv4_hosts: false,
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
        regions: 1,
        own_psns: false,
        policy: PolicyPlan {
            literal: false,
            evict: false,
            prune_retransmit: false,
            lists: ListsPlan::Auto,
            t_hold_percent: 100,
            trailing_cnps: false,
            min_receivers: 1,
            t_stall_percent: DEFAULT_T_STALL_PERCENT,
            t_not_ready_percent: None,
            repair: None,
        },
        unlimited_retries: false,
    }
}

fn evicting() -> Schedule {
    let mut schedule = without_faults();
    schedule.groups[0].policy.evict = true;
    schedule
}

fn with(mut schedule: Schedule, event: Event) -> Schedule {
    schedule.events.push(TimedEvent { at_ns: MIDDLE_NS, event });
    schedule
}

/// Runs a schedule that must not violate a check.
fn run(schedule: &Schedule) -> Outcome {
    let outcome = world::run_with_timeline(schedule);
    let violations: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{violations:#?}\n{:#?}", outcome.timeline);
    outcome
}

fn run_to_completion(schedule: &Schedule) -> Outcome {
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
    let outcome = run_to_completion(&without_faults());
    let group = &outcome.groups[0];
    assert_eq!((group.packets_sent, group.packets_retransmitted, group.timeouts), (256, 0, 0));
    assert!(outcome.drops.is_empty() && outcome.faults.is_empty(), "{:?} {:?}", outcome.drops, outcome.faults);
}

/// D272: hosts of IPv4 have the same transfer; and a translation that damaged a packet would have it sent twice.
#[test]
fn ipv4_hosts_have_the_same_outcome() {
    for operation in [OperationPlan::Write, OperationPlan::Send] {
        let mut schedule = without_faults();
        schedule.groups[0].operation = operation;
        let expected = run_to_completion(&schedule);
        let outcome = run_to_completion(&Schedule { ipv4_hosts: true, ..schedule });
        assert!(outcome.drops.is_empty(), "{:?}", outcome.drops);
        let facts = |outcome: &Outcome| {
            let group = &outcome.groups[0];
            (group.packets_sent, group.packets_retransmitted, group.timeouts)
        };
        assert_eq!(facts(&outcome), facts(&expected));
        assert_eq!(facts(&outcome), (256, 0, 0));
    }
    assert!((0..100).filter(|seed| Schedule::from_seed(*seed).ipv4_hosts).count() > 10);
}

#[test]
fn one_schedule_has_one_outcome() {
    for seed in 0..20 {
        let schedule = Schedule::from_seed(seed);
        assert_eq!(world::run_with_timeline(&schedule), world::run_with_timeline(&schedule), "seed {seed}");
    }
}

#[test]
fn groups_share_sources_nodes_and_receivers() {
    let mut schedule = without_faults();
    schedule.groups = vec![group(0), group(0), group(1)];
    schedule.groups[1].operation = OperationPlan::Write;
    schedule.groups[2].members = vec![2, 4];
    let outcome = run_to_completion(&schedule);
    assert!(outcome.groups.iter().all(|group| group.packets_sent == 256), "{:?}", outcome.groups);
}

#[test]
fn random_link_faults_take_effect_and_end() {
    let ppm = 20_000;
    for (name, change) in [
        ("loss", (|link: &mut LinkPlan| &mut link.loss_ppm) as fn(&mut LinkPlan) -> &mut u32),
        ("duplication", |link| &mut link.duplicate_ppm),
        ("reordering", |link| &mut link.reorder_ppm),
        ("delay spike", |link| &mut link.spike_ppm),
        ("corruption", |link| &mut link.corrupt_ppm),
    ] {
        let mut schedule = without_faults();
        schedule.groups[0].unlimited_retries = true;
        schedule.link.spike_ns = 20_000;
        *change(&mut schedule.link) = ppm;
        let outcome = run_to_completion(&schedule);
        assert!(times(&outcome, name) > 10, "{name}: {:?}", outcome.faults);
    }
}

/// D33, D10: a corrupted packet is dropped and has no other effect.
#[test]
fn corrupted_packets_are_dropped() {
    let mut schedule = without_faults();
    schedule.groups[0].unlimited_retries = true;
    schedule.link.corrupt_ppm = 50_000;
    let outcome = run_to_completion(&schedule);
    assert!(times(&outcome, "corruption") > 100, "{:?}", outcome.faults);
    assert!(drops(&outcome, "bad_icrc") > 0, "responses are verified: {:?}", outcome.drops);
    assert!(outcome.groups[0].packets_retransmitted > 0, "receivers do not accept corrupted data");
}

/// D17: headend, transit and edge.
#[test]
fn restarted_nodes_have_the_committed_groups() {
    for node in [0, 1, 3] {
        let outcome = run_to_completion(&with(without_faults(), Event::CrashNode { node, for_ns: 100_000 }));
        assert_eq!((outcome.restarts, times(&outcome, "node crash")), (1, 1));
        let group = &outcome.groups[0];
        assert!(group.timeouts > 0, "node {node}: the source waited");
        let recovery_ns = group.recoveries_ns.iter().max().copied().expect("one was measured");
        assert!(recovery_ns <= 2 * group.ack_timeout_ns, "node {node}: {recovery_ns} ns");
    }
}

#[test]
fn a_group_completes_after_a_link_failure() {
    for event in [
        Event::CutNode { node: 1, for_ns: 200_000 },
        Event::CutReceiver { receiver: 2, for_ns: 200_000 },
        Event::FreezeReceiver { receiver: 2, for_ns: 200_000 },
    ] {
        let outcome = run_to_completion(&with(without_faults(), event.clone()));
        let without_faults = run_to_completion(&without_faults());
        assert!(outcome.groups[0].timeouts > 0, "{event:?}");
        assert!(outcome.groups[0].completed_ns > without_faults.groups[0].completed_ns, "{event:?}");
    }
}

#[test]
fn slow_receivers_and_rnr_delay_the_group() {
    let calm_ns = run_to_completion(&without_faults()).groups[0].completed_ns;
    let slow = Event::SlowReceiver { receiver: 2, for_ns: 200_000, by_ns: 2000 };
    let outcome = run_to_completion(&with(without_faults(), slow));
    assert!(outcome.groups[0].completed_ns > calm_ns);
    let outcome = run_to_completion(&with(without_faults(), Event::StarveReceiver { receiver: 2, for_ns: 200_000 }));
    assert!(outcome.groups[0].completed_ns > calm_ns);
    assert!(outcome.groups[0].naks_received > 0, "RNR NAKs reach the source (D23)");
}

/// D24, D25: under `strict` the queue pair fails; under `evict` the other members continue.
#[test]
fn dead_and_failed_receivers_end_the_group_or_are_evicted() {
    for event in [Event::KillReceiver { receiver: 2 }, Event::FailReceiver { receiver: 2, group: 0 }] {
        let strict = run(&with(without_faults(), event.clone()));
        assert!(strict.groups[0].failure.is_some() && strict.evictions == 0, "{event:?}: {:?}", strict.groups);
        let evict = run_to_completion(&with(evicting(), event.clone()));
        assert_eq!(evict.evictions, 1, "{event:?}: {:#?}", evict.timeline);
    }
}

/// D196: a receiver that is not ready for longer than T_stall is a member still if the policy has a longer time for it;
/// one that is not ready for longer than that, or dies meanwhile, is evicted.
#[test]
fn receivers_that_are_not_ready_have_a_time_of_their_own() {
    let evictions = |t_not_ready_percent: Option<u16>, for_ns: u64, dies: bool| {
        let mut schedule = with(evicting(), Event::StarveReceiver { receiver: 2, for_ns });
        schedule.groups[0].policy.t_not_ready_percent = t_not_ready_percent;
        schedule.groups[0].unlimited_retries = true;
        if dies {
            schedule.events.push(TimedEvent { at_ns: 2 * MIDDLE_NS, event: Event::KillReceiver { receiver: 2 } });
        }
        run_to_completion(&schedule).evictions
    };
    let (long_ns, very_long_ns) = (4 * LONG_NS, 40 * LONG_NS);
    assert_eq!(evictions(None, long_ns, false), 1);
    assert_eq!(evictions(Some(20_000), long_ns, false), 0);
    assert_eq!(evictions(Some(400), very_long_ns, false), 1);
    assert_eq!(evictions(Some(20_000), very_long_ns, true), 1);
}

/// MT-5.3.3-1
#[test]
fn congestion_at_a_receiver_reaches_the_source_as_cnps() {
    let outcome = run_to_completion(&with(without_faults(), Event::Congest { receiver: 2, for_ns: LONG_NS }));
    assert!(times(&outcome, "congestion") > 0);
    assert!(outcome.groups[0].cnps_received > 0);
}

fn forgery(from: Attacker, claims: Claim, message: Message) -> Event {
    Event::Forge(Forgery { group: 0, from, claims, message, psn_offset: 3, copies: 5 })
}

/// The source's counters, without times.
fn source_counters(outcome: &Outcome) -> [u64; 6] {
    let group = &outcome.groups[0];
    let sent = [group.packets_sent, group.packets_retransmitted, group.timeouts];
    let received = [group.acks_received, group.naks_received, group.cnps_received];
    [sent[0], sent[1], sent[2], received[0], received[1], received[2]]
}

/// MT-9-2, D14: a host cannot send responses in the name of another.
#[test]
fn forged_packets_have_no_effect() {
    let expected = source_counters(&run_to_completion(&without_faults()));
    let messages = [
        Message::Ack,
        Message::SequenceNak,
        Message::RnrNak,
        Message::FatalNak,
        Message::Cnp,
        Message::TamperedTlv,
        Message::Data,
    ];
    for from in [Attacker::Receiver(1), Attacker::External(3), Attacker::External(0), Attacker::External(1)] {
        for claims in [Claim::Receiver(0), Claim::Receiver(2), Claim::Node(3), Claim::Proxy, Claim::Source] {
            for message in messages {
                let outcome = run_to_completion(&with(without_faults(), forgery(from, claims, message)));
                assert_eq!(source_counters(&outcome), expected, "{from:?} {claims:?} {message:?}");
                // A packet to a host is forwarded; the host rejects it, as it is not from its peer.
                let is_hosts = matches!(claims, Claim::Receiver(_) | Claim::Source);
                let passes = message == Message::Data && is_hosts && matches!(from, Attacker::External(_));
                let dropped: u64 = outcome.drops.values().sum();
                assert_eq!(dropped, if passes { 0 } else { 5 }, "{from:?} {claims:?} {message:?}");
            }
        }
    }
}

#[test]
fn replayed_frames_have_no_effect() {
    for up in [true, false] {
        let outcome = run_to_completion(&with(without_faults(), Event::Replay { node: 3, up, frames: 64 }));
        assert!(times(&outcome, "replay") > 8, "{:?}", outcome.faults);
    }
}

/// D30
#[test]
fn receivers_join_and_leave_while_data_flow() {
    let outcome = run_to_completion(&with(without_faults(), Event::Join { group: 0, receiver: 4 }));
    assert_eq!((outcome.joins, times(&outcome, "join")), (1, 1), "{:#?}", outcome.timeline);
    for receiver in [2, 3] {
        let outcome = run_to_completion(&with(without_faults(), Event::Leave { group: 0, receiver }));
        assert_eq!((outcome.leaves, outcome.evictions, times(&outcome, "leave")), (1, 0, 1), "{:#?}", outcome.timeline);
    }
}

#[test]
fn a_node_is_rehomed_away_from_a_dead_parent() {
    let mut schedule = with(without_faults(), Event::CrashNode { node: 1, for_ns: LONG_NS });
    schedule.groups[0].unlimited_retries = true;
    let rehome = Event::Rehome { node: 3, parent: 2 };
    schedule.events.push(TimedEvent { at_ns: MIDDLE_NS + 50_000, event: rehome });
    let outcome = run_to_completion(&schedule);
    assert_eq!(times(&outcome, "re-homing"), 1, "{:#?}", outcome.timeline);
}
