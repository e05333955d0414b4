//! The distribution of schedules: from a seed to a schedule. `docs/chaos.md` has it as a table.

use crate::aims::{draw_aims, draw_cause, weight, with_fault};
use crate::phase::Phase;
use crate::schedule::{
    BudPlan, EdgePlan, EtcdPlan, Event, GroupPlan, ManagementPlan, RepairPlan, Schedule, StoreFate, TimedEvent,
};
use srdma_chaos::rng::Rng;
use srdma_group::RepairMode;

pub(crate) const MS: u64 = 1_000_000;

/// Events begin within this time, when groups usually exist.
pub(crate) const EVENTS_FROM_NS: u64 = 300 * MS;
pub(crate) const EVENTS_UNTIL_NS: u64 = 9_000 * MS;

/// Kinds of events and their weights, in percent.
pub(crate) const WEIGHTS: [(Kind, u64); 18] = [
    (Kind::PartitionNode, 13),
    (Kind::PartitionSource, 3),
    (Kind::PauseAgent, 4),
    (Kind::CrashNode, 10),
    (Kind::KillNode, 5),
    (Kind::CutLink, 6),
    (Kind::CutReceiver, 3),
    (Kind::KillReceiver, 3),
    (Kind::CrashController, 12),
    (Kind::Depose, 3),
    (Kind::LoseStore, 2),
    (Kind::RestoreBackup, 3),
    (Kind::FailStore, 2),
    (Kind::JumpClock, 2),
    (Kind::Join, 14),
    (Kind::Leave, 8),
    (Kind::Close, 3),
    (Kind::Drain, 4),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    PartitionNode,
    PartitionSource,
    PauseAgent,
    CrashNode,
    KillNode,
    CutLink,
    CutReceiver,
    KillReceiver,
    CrashController,
    Depose,
    LoseStore,
    RestoreBackup,
    FailStore,
    JumpClock,
    Join,
    Leave,
    Close,
    Drain,
}

impl Schedule {
    /// The schedule of a seed.
    pub fn from_seed(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_11(seed);
        add_second_headend(&mut Rng::new(seed, "cluster second headend"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 11 of the generator: sources are attached to one node.
    pub fn from_seed_of_version_11(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_10(seed);
        let may_have = !schedule.dual_homed.is_empty();
        schedule.has_peers = may_have && Rng::new(seed, "cluster peers").one_in(2);
        add_host_links(&mut Rng::new(seed, "cluster host links"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 10 of the generator: a receiver answers by the link by which it has received.
    pub fn from_seed_of_version_10(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_9(seed);
        add_dual_homed(&mut Rng::new(seed, "cluster dual-homed"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 9 of the generator: receivers are attached to one node.
    pub fn from_seed_of_version_9(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_8(seed);
        let mut rng = Rng::new(seed, "cluster own PSNs");
        schedule.groups.iter_mut().for_each(|group| group.own_psns = rng.one_in(2));
        schedule
    }

    /// The schedule of a seed in version 8 of the generator: receivers have the group's PSNs.
    pub fn from_seed_of_version_8(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_7(seed);
        add_bud_nodes(&mut Rng::new(seed, "cluster bud nodes"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 7 of the generator: receivers are at edges, and edges carry no trees.
    pub fn from_seed_of_version_7(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_6(seed);
        add_resumptions(&mut Rng::new(seed, "cluster resumptions"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 6 of the generator: no source starts again.
    pub fn from_seed_of_version_6(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_5(seed);
        add_two_steps(&mut Rng::new(seed, "cluster two steps"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 5 of the generator: receivers join in one step.
    pub fn from_seed_of_version_5(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_4(seed);
        add_repair(&mut Rng::new(seed, "cluster repair"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 4 of the generator: without nodes that repair.
    pub fn from_seed_of_version_4(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed_of_version_3(seed);
        extend(&mut Rng::new(seed, "cluster extension"), &mut schedule);
        schedule
    }

    /// The schedule of a seed in version 3 of the generator: without etcd, leases and BFD.
    pub fn from_seed_of_version_3(seed: u64) -> Schedule {
        let mut rng = Rng::new(seed, "cluster");
        let transits = rng.choose(&[2, 2, 2, 3]);
        let edges: Vec<EdgePlan> = (0..rng.range(2, 4)).map(|_| draw_edge(&mut rng, transits)).collect();
        let receivers: Vec<usize> =
            (0..edges.len()).flat_map(|edge| (0..rng.range(1, 3)).map(move |_| edge).collect::<Vec<_>>()).collect();
        let groups = (0..rng.choose(&[1, 1, 2])).map(|_| draw_group(&mut rng, &receivers)).collect();
        let is_rough = rng.one_in(2);
        let mut ppm = |most: u64| if is_rough { rng.log_uniform(1_000, most) as u32 } else { 0 };
        let management = ManagementPlan {
            loss_ppm: ppm(50_000),
            duplicate_ppm: ppm(50_000),
            late_ppm: ppm(30_000),
            delay_ns: rng.log_uniform(100_000, 20 * MS),
        };
        let mut schedule = Schedule {
            seed,
            transits,
            edges,
            receivers,
            groups,
            management,
            data_loss_ppm: if rng.one_in(3) { rng.log_uniform(500, 30_000) as u32 } else { 0 },
            store_delay_ns: rng.log_uniform(MS / 2, 100 * MS),
            etcd: None,
            has_leases: false,
            has_bfd: false,
            repairers: Vec::new(),
            two_steps: Vec::new(),
            bud_nodes: None,
            dual_homed: Vec::new(),
            second_headend: None,
            has_peers: false,
            workers: 1,
            faults_end_ns: rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS),
            events: Vec::new(),
        };
        schedule.events = draw_events(&mut rng, &schedule);
        schedule
    }
}

/// In half of the schedules some receivers are attached to an edge more, and the nodes of some of them die or are
/// drained.
fn add_dual_homed(rng: &mut Rng, schedule: &mut Schedule) {
    if !rng.one_in(2) {
        return;
    }
    let edges: Vec<usize> = (0..schedule.edges.len()).map(|edge| schedule.edge_node(edge)).collect();
    for receiver in 0..schedule.receivers.len() {
        let node = schedule.node_of_receiver(receiver);
        let others: Vec<usize> = edges.iter().copied().filter(|edge| *edge != node).collect();
        if !others.is_empty() && !rng.one_in(3) {
            schedule.dual_homed.push((receiver, rng.choose(&others)));
        }
    }
    if schedule.dual_homed.is_empty() {
        return;
    }
    for _ in 0..rng.below(3) {
        let (receiver, other) = rng.choose(&schedule.dual_homed);
        let node = if rng.one_in(3) { other } else { schedule.node_of_receiver(receiver) };
        let for_ns = rng.log_uniform(20 * MS, 8_000 * MS);
        let fault = match rng.below(4) {
            0 => Event::Drain { node, for_ns },
            1 => Event::CrashNode { node, for_ns: None },
            _ => Event::CrashNode { node, for_ns: Some(for_ns) },
        };
        schedule.events.extend(draw_fault(rng, schedule, fault));
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// In two thirds of the schedules with receivers at two nodes up to three of their links are cut.
fn add_host_links(rng: &mut Rng, schedule: &mut Schedule) {
    if schedule.dual_homed.is_empty() {
        return;
    }
    for _ in 0..rng.choose(&[0, 1, 3]) {
        let (receiver, _) = rng.choose(&schedule.dual_homed);
        let for_ns = (!rng.one_in(4)).then(|| rng.log_uniform(20 * MS, 8_000 * MS));
        let fault = Event::CutHostLink { receiver, is_second: rng.one_in(3), for_ns };
        schedule.events.extend(draw_fault(rng, schedule, fault));
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// In half of the schedules all sources are attached to a second node, in two thirds of these nodes have a lease, if it
/// is possible, and up to three times one of the two nodes dies, is drained, or loses its link to a source.
fn add_second_headend(rng: &mut Rng, schedule: &mut Schedule) {
    if !rng.one_in(2) {
        return;
    }
    let second = 1 + rng.below(schedule.nodes() - 1);
    schedule.second_headend = Some(second);
    schedule.has_leases |= schedule.etcd.is_none() && !rng.one_in(3);
    for _ in 0..rng.below(4) {
        let is_second = rng.one_in(3);
        let node = if is_second { second } else { 0 };
        let for_ns = rng.log_uniform(20 * MS, 8_000 * MS);
        let fault = match rng.below(6) {
            0 => Event::Drain { node, for_ns },
            1 => Event::CrashNode { node, for_ns: None },
            2 | 3 => Event::CrashNode { node, for_ns: Some(for_ns) },
            _ => {
                let (group, for_ns) = (rng.below(schedule.groups.len()), (!rng.one_in(4)).then_some(for_ns));
                Event::CutSourceLink { group, is_second, for_ns }
            }
        };
        schedule.events.extend(draw_fault(rng, schedule, fault));
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// In half of the schedules receivers are at any node, and some edges are linked to each other.
fn add_bud_nodes(rng: &mut Rng, schedule: &mut Schedule) {
    if !rng.one_in(2) {
        return;
    }
    let (receivers, edges) = (schedule.receivers.len(), schedule.edges.len());
    let elsewhere: Vec<usize> = (0..receivers).filter(|_| rng.one_in(3)).collect();
    let receivers = elsewhere.into_iter().map(|receiver| (receiver, rng.below(1 + schedule.transits))).collect();
    let pairs: Vec<(usize, usize)> = (1..edges).flat_map(|lower| (0..lower).map(move |upper| (upper, lower))).collect();
    let links = pairs.into_iter().filter(|_| rng.one_in(2)).collect();
    schedule.bud_nodes = Some(BudPlan { receivers, links });
}

/// Adds what version 4 has and version 3 has not.
fn extend(rng: &mut Rng, schedule: &mut Schedule) {
    schedule.etcd = rng.one_in(2).then(|| draw_etcd(rng));
    // Those of a leader in etcd have to be longer than the timeout of silent nodes in these runs.
    schedule.has_leases = schedule.etcd.is_none() && rng.one_in(2);
    schedule.has_bfd = rng.one_in(2);
    let cuts = if schedule.etcd.is_some() { rng.below(3) } else { 0 };
    let breaks = if schedule.has_bfd { rng.below(3) } else { 0 };
    for _ in 0..cuts {
        let fault = Event::CutEtcd { for_ns: rng.log_uniform(20 * MS, 12_000 * MS) };
        schedule.events.extend(draw_fault(rng, schedule, fault));
    }
    for _ in 0..breaks {
        let (upper, lower) = rng.choose(&schedule.links());
        let fault = Event::BreakSession { upper, lower, for_ns: rng.log_uniform(20 * MS, 8_000 * MS) };
        schedule.events.extend(draw_fault(rng, schedule, fault));
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// Adds what version 5 has and version 4 has not: nodes that repair, groups that are repaired by them, and losses to be
/// repaired.
fn add_repair(rng: &mut Rng, schedule: &mut Schedule) {
    if rng.one_in(4) {
        return;
    }
    let all = 0..schedule.nodes();
    schedule.repairers = if rng.one_in(2) { all.collect() } else { all.filter(|_| rng.one_in(2)).collect() };
    for group in &mut schedule.groups {
        let mode = rng.choose(&[RepairMode::Off, RepairMode::Edge, RepairMode::Tree, RepairMode::Tree]);
        group.repair = Some(RepairPlan { mode, window_packets: rng.choose(&[1, 2, 3, 16, 512]) });
    }
    if schedule.data_loss_ppm == 0 && rng.one_in(2) {
        schedule.data_loss_ppm = rng.log_uniform(500, 30_000) as u32;
    }
}

/// Adds what version 6 has and version 5 has not: receivers that join in two steps, and faults between the steps, of
/// which half are the death of the receiver.
fn add_two_steps(rng: &mut Rng, schedule: &mut Schedule) {
    if rng.one_in(4) {
        return;
    }
    let all = 0..schedule.receivers.len();
    schedule.two_steps = if rng.one_in(2) { all.collect() } else { all.filter(|_| rng.one_in(2)).collect() };
    if schedule.two_steps.is_empty() {
        return;
    }
    for _ in 0..rng.below(4) {
        let (group, receiver) = (rng.below(schedule.groups.len()), rng.choose(&schedule.two_steps));
        let at_ns = rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS);
        let join = TimedEvent::at(at_ns, Event::Join { group, receiver });
        let events = if rng.one_in(2) {
            let death = Event::KillReceiver { receiver };
            vec![join, TimedEvent { at_ns, event: death, phase: Some(Phase::Reserving) }]
        } else {
            with_fault(rng, schedule, vec![join], at_ns, Phase::Reserving)
        };
        schedule.events.extend(events);
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// Adds what version 7 has and version 6 has not: sources that die and resume their groups, one after the other or two
/// at nearly the same time, half of them with a fault while the former group ends.
fn add_resumptions(rng: &mut Rng, schedule: &mut Schedule) {
    if rng.one_in(3) {
        return;
    }
    for _ in 0..rng.range(1, 3) {
        let group = rng.below(schedule.groups.len());
        let at_ns = rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS);
        let resume = |rng: &mut Rng| Event::Resume { group, after_ns: rng.log_uniform(MS, 6_000 * MS) };
        let mut events = vec![TimedEvent::at(at_ns, resume(rng))];
        if rng.one_in(2) {
            let phase = rng.choose(&[Phase::Succeeding, Phase::Succeeding, Phase::Open, Phase::Preparing]);
            events = with_fault(rng, schedule, events, at_ns, phase);
        } else if rng.one_in(3) {
            events.push(TimedEvent::at(at_ns + rng.log_uniform(MS, 8_000 * MS), resume(rng)));
        }
        schedule.events.extend(events);
    }
    schedule.events.sort_by_key(|timed| timed.at_ns);
}

/// A fault at a phase, or at any time.
fn draw_fault(rng: &mut Rng, schedule: &Schedule, fault: Event) -> Vec<TimedEvent> {
    let phase = rng.weighted(&Phase::AIMED.map(|phase| (phase, weight(phase))));
    if rng.one_in(3) || phase.excludes(fault.name()).is_some() {
        return vec![TimedEvent::at(rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS), fault)];
    }
    let (mut events, at_ns) = draw_cause(rng, schedule, phase);
    events.push(TimedEvent { at_ns, event: fault, phase: Some(phase) });
    events
}

fn draw_etcd(rng: &mut Rng) -> EtcdPlan {
    let is_rough = rng.one_in(2);
    let mut ppm = || if is_rough { rng.log_uniform(1_000, 100_000) as u32 } else { 0 };
    let (lost_request_ppm, lost_response_ppm, late_ppm) = (ppm(), ppm(), ppm());
    // Those of the product, or few, so that batches are written by journals.
    let (operations, piece_octets) =
        if rng.one_in(2) { (120, 700_000) } else { (rng.range(3, 12) as usize, rng.range(200, 4_000) as usize) };
    EtcdPlan { lost_request_ppm, lost_response_ppm, late_ppm, operations, piece_octets }
}

fn draw_edge(rng: &mut Rng, transits: usize) -> EdgePlan {
    let first = rng.below(transits);
    let mut uplinks = vec![first];
    if !rng.one_in(5) {
        uplinks.push((first + 1 + rng.below(transits - 1)) % transits);
    }
    EdgePlan { uplinks, has_small_mtu: rng.one_in(6) }
}

fn draw_group(rng: &mut Rng, receivers: &[usize]) -> GroupPlan {
    // The receivers of an edge, and some others, may join later.
    let late_edge = rng.one_in(2).then(|| rng.choose(receivers));
    let is_early = |rng: &mut Rng, receiver: usize| Some(receivers[receiver]) != late_edge && !rng.one_in(4);
    let mut members: Vec<usize> = (0..receivers.len()).filter(|receiver| is_early(rng, *receiver)).collect();
    if members.is_empty() {
        members.push(rng.below(receivers.len()));
    }
    let first_psn = match rng.below(4) {
        0 => 0,
        1 => (1 << 24) - rng.range(1, 200),
        2 => (1 << 23) - rng.range(1, 200),
        _ => rng.range(0, (1 << 24) - 1),
    };
    GroupPlan {
        at_ns: rng.range(0, 200 * MS),
        members,
        evict: rng.one_in(2),
        first_psn: first_psn as u32,
        message_packets: rng.range(1, 2) as u32,
        own_psns: false,
        repair: None,
    }
}

fn draw_events(rng: &mut Rng, schedule: &Schedule) -> Vec<TimedEvent> {
    let count = rng.log_uniform(1, 16);
    let mut events = Vec::new();
    if rng.one_in(4) {
        events.extend(draw_change_at_silent_node(rng, schedule));
    }
    for _ in 0..count {
        // Bursts of events at nearly the same time meet the phases of a change.
        let last = events.last().map(|timed: &TimedEvent| timed.at_ns);
        let at_ns = match last {
            Some(at_ns) if rng.one_in(2) => at_ns + rng.log_uniform(MS, 400 * MS),
            Some(_) | None => rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS),
        };
        for event in draw_event(rng, schedule, &WEIGHTS) {
            if event == Event::Backup {
                let at_ns = rng.range(EVENTS_FROM_NS, at_ns.max(EVENTS_FROM_NS));
                events.insert(0, TimedEvent::at(at_ns, event));
            } else {
                events.push(TimedEvent::at(at_ns, event));
            }
        }
    }
    events.extend(draw_aims(&mut Rng::new(schedule.seed, "cluster aims"), schedule));
    events.sort_by_key(|timed| timed.at_ns);
    events
}

/// A node is silent for long, and meanwhile a receiver joins at an edge, or a node above one dies.
fn draw_change_at_silent_node(rng: &mut Rng, schedule: &Schedule) -> Vec<TimedEvent> {
    let receiver = rng.below(schedule.receivers.len());
    let (at_ns, for_ns) = (rng.range(1_000 * MS, 3_000 * MS), rng.range(3_500 * MS, 14_000 * MS));
    let node = schedule.node_of_receiver(receiver);
    let silent = if rng.one_in(5) { Event::PauseAgent { node, for_ns } } else { Event::PartitionNode { node, for_ns } };
    let change = match rng.below(4) {
        0 => Event::CrashNode { node: 1 + rng.below(schedule.transits), for_ns: None },
        1 => Event::Leave { group: rng.below(schedule.groups.len()), receiver },
        _ => Event::Join { group: rng.below(schedule.groups.len()), receiver },
    };
    let later_ns = at_ns + rng.range(3_200 * MS, 3_200 * MS + for_ns);
    vec![TimedEvent::at(at_ns, silent), TimedEvent::at(later_ns, change)]
}

/// A fault or request of a kind that is drawn with these weights; a backup comes before the crash that needs it.
pub(crate) fn draw_event(rng: &mut Rng, schedule: &Schedule, weights: &[(Kind, u64)]) -> Vec<Event> {
    let node = rng.below(schedule.nodes());
    let group = rng.below(schedule.groups.len());
    let receiver = rng.below(schedule.receivers.len());
    let others = (0..schedule.receivers.len()).filter(|one| !schedule.groups[group].members.contains(one));
    let others: Vec<usize> = others.collect();
    let newcomer = if others.is_empty() || rng.one_in(4) { receiver } else { rng.choose(&others) };
    // From a blink to longer than a node may be silent.
    let for_ns = rng.log_uniform(20 * MS, 8_000 * MS);
    let crash = |rng: &mut Rng, store| Event::CrashController {
        after_writes: rng.range(0, 6) as u32,
        for_ns: rng.log_uniform(20 * MS, 6_000 * MS),
        store,
    };
    match rng.weighted(weights) {
        Kind::PartitionNode => {
            let for_ns = rng.log_uniform(20 * MS, 14_000 * MS);
            vec![Event::PartitionNode { node, for_ns }]
        }
        Kind::PartitionSource => vec![Event::PartitionSource { group, for_ns }],
        Kind::PauseAgent => vec![Event::PauseAgent { node, for_ns }],
        Kind::CrashNode => vec![Event::CrashNode { node, for_ns: Some(for_ns) }],
        // A group does not survive the one headend of its source.
        Kind::KillNode => vec![Event::CrashNode { node: 1 + rng.below(schedule.nodes() - 1), for_ns: None }],
        Kind::CutLink => {
            let (upper, lower) = rng.choose(&schedule.links());
            vec![Event::CutLink { upper, lower, for_ns }]
        }
        Kind::CutReceiver => vec![Event::CutReceiver { receiver, for_ns }],
        Kind::KillReceiver => vec![Event::KillReceiver { receiver }],
        Kind::CrashController => vec![crash(rng, StoreFate::Kept)],
        Kind::Depose => vec![Event::Depose { for_ns }],
        Kind::LoseStore => {
            let store = rng.choose(&[StoreFate::Emptied, StoreFate::Rebuilt]);
            vec![crash(rng, store)]
        }
        Kind::RestoreBackup => vec![Event::Backup, crash(rng, StoreFate::Backup)],
        Kind::FailStore => vec![Event::FailStore],
        Kind::JumpClock => {
            let by_ms = rng.log_uniform(1_000, 100_000_000_000) as i64;
            vec![Event::JumpClock { by_ms: if rng.one_in(2) { by_ms } else { -by_ms } }]
        }
        Kind::Join => vec![Event::Join { group, receiver: newcomer }],
        Kind::Leave => vec![Event::Leave { group, receiver }],
        Kind::Close => vec![Event::Close { group }],
        Kind::Drain => vec![Event::Drain { node, for_ns }],
    }
}
