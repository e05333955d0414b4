//! Faults that wait for a phase of a group's change, after what brings that phase about.

use crate::generate::{EVENTS_FROM_NS, EVENTS_UNTIL_NS, Kind, MS, WEIGHTS, draw_event};
use crate::phase::Phase;
use crate::schedule::{Event, Schedule, StoreFate, TimedEvent};
use srdma_chaos::rng::Rng;

/// Greatest number of aimed faults in a schedule.
const MAX_AIMS: usize = 4;

/// How often faults are aimed at a phase: more often at those that are short, or rare otherwise.
pub(crate) fn weight(phase: Phase) -> u64 {
    match phase {
        Phase::Removing | Phase::Aborting => 4,
        Phase::Stopped => 3,
        Phase::Storing | Phase::Restoring => 2,
        Phase::Open
        | Phase::Preparing
        | Phase::Committing
        | Phase::Pausing
        | Phase::Ready
        | Phase::Closing
        | Phase::Verifying
        | Phase::Down => 1,
        // They have aims of their own.
        Phase::Reserving | Phase::Succeeding => 0,
    }
}

/// A change before a store is restored from a backup is committed within this time.
const CHANGE_NS: u64 = 2_500 * MS;

/// The aimed faults of a schedule, with what they need.
pub(crate) fn draw_aims(rng: &mut Rng, schedule: &Schedule) -> Vec<TimedEvent> {
    (0..rng.below(MAX_AIMS + 1)).flat_map(|_| draw_aim(rng, schedule)).collect()
}

/// A fault of any kind at a phase. All kinds are equally frequent.
fn draw_aim(rng: &mut Rng, schedule: &Schedule) -> Vec<TimedEvent> {
    let phase = rng.weighted(&Phase::AIMED.map(|phase| (phase, weight(phase))));
    let (events, at_ns) = draw_cause(rng, schedule, phase);
    with_fault(rng, schedule, events, at_ns, phase)
}

/// Adds a fault of any kind at a phase to what brings the phase about.
pub(crate) fn with_fault(
    rng: &mut Rng,
    schedule: &Schedule,
    mut events: Vec<TimedEvent>,
    at_ns: u64,
    phase: Phase,
) -> Vec<TimedEvent> {
    // The loss of a store is two kinds.
    let kinds = WEIGHTS.map(|(kind, _)| (kind, if kind == Kind::LoseStore { 2 } else { 1 }));
    let faults = loop {
        let faults = draw_event(rng, schedule, &kinds);
        if faults.iter().all(|fault| phase.excludes(fault.name()).is_none()) {
            break faults;
        }
    };
    for event in faults {
        match event {
            Event::Backup => events.insert(0, TimedEvent::at(rng.range(0, at_ns), event)),
            _ => events.push(TimedEvent { at_ns, event, phase: Some(phase) }),
        }
    }
    events
}

/// What brings a phase about, and when to wait for it.
pub(crate) fn draw_cause(rng: &mut Rng, schedule: &Schedule, phase: Phase) -> (Vec<TimedEvent>, u64) {
    let receiver = rng.below(schedule.receivers.len());
    let group = rng.below(schedule.groups.len());
    let at_ns = rng.range(EVENTS_FROM_NS, EVENTS_UNTIL_NS);
    let crash = |for_ns, store| Event::CrashController { after_writes: 0, for_ns, store };
    let join = Event::Join { group, receiver };
    let at = |event| TimedEvent::at(at_ns, event);
    let events = match phase {
        Phase::Open => return (Vec::new(), 0),
        Phase::Ready => Vec::new(),
        Phase::Preparing | Phase::Storing | Phase::Committing => {
            vec![at(if rng.one_in(2) { Event::Leave { group, receiver } } else { join })]
        }
        Phase::Pausing | Phase::Reserving => vec![at(join)],
        Phase::Aborting => return draw_abort(rng, schedule, group, at_ns),
        Phase::Removing => draw_removal(rng, schedule, group).into_iter().map(at).collect(),
        Phase::Restoring => {
            let for_ns = Some(rng.log_uniform(20 * MS, 2_000 * MS));
            vec![at(Event::CrashNode { node: rng.below(schedule.nodes()), for_ns })]
        }
        Phase::Closing => vec![at(Event::Close { group })],
        Phase::Succeeding => vec![at(Event::Resume { group, after_ns: 20 * MS })],
        Phase::Verifying => vec![at(crash(20 * MS, StoreFate::Kept))],
        Phase::Stopped => {
            // The headend loses the record that the backup does not have.
            let change = if rng.one_in(2) { join } else { Event::Leave { group, receiver } };
            let at_ns = at_ns.min(EVENTS_UNTIL_NS - CHANGE_NS);
            let later_ns = at_ns + CHANGE_NS;
            let headend = Event::CrashNode { node: 0, for_ns: Some(rng.log_uniform(20 * MS, 500 * MS)) };
            let restored = crash(rng.log_uniform(20 * MS, 2_000 * MS), StoreFate::Backup);
            let events = [(at_ns, Event::Backup), (at_ns, change), (later_ns, restored), (later_ns, headend)];
            return (events.map(|(at_ns, event)| TimedEvent::at(at_ns, event)).into(), later_ns);
        }
        Phase::Down => vec![at(crash(rng.range(200 * MS, 2_000 * MS), StoreFate::Kept))],
    };
    (events, at_ns)
}

/// A node is lost after it was given an entry and before it has prepared it: in the first commit, or while a receiver
/// joins at an edge that has others.
fn draw_abort(rng: &mut Rng, schedule: &Schedule, group: usize, at_ns: u64) -> (Vec<TimedEvent>, u64) {
    let members = &schedule.groups[group].members;
    let node = schedule.node_of_receiver(rng.choose(members));
    let is_new = |receiver: &usize| schedule.node_of_receiver(*receiver) == node && !members.contains(receiver);
    let newcomer = (0..schedule.receivers.len()).find(is_new);
    let silent = Event::PartitionNode { node, for_ns: rng.range(3_200 * MS, 6_000 * MS) };
    let aimed = |at_ns, event| TimedEvent { at_ns, event, phase: Some(Phase::Preparing) };
    match newcomer.filter(|_| rng.one_in(2)) {
        Some(receiver) => (vec![TimedEvent::at(at_ns, Event::Join { group, receiver }), aimed(at_ns, silent)], at_ns),
        None => (vec![aimed(0, silent)], 0),
    }
}

/// All first members at an edge leave, if there are others; or a transit node is drained.
fn draw_removal(rng: &mut Rng, schedule: &Schedule, group: usize) -> Vec<Event> {
    let members = &schedule.groups[group].members;
    let node = schedule.node_of_receiver(rng.choose(members));
    let (gone, others): (Vec<usize>, Vec<usize>) =
        members.iter().partition(|member| schedule.node_of_receiver(**member) == node);
    if others.is_empty() || rng.one_in(4) {
        return vec![Event::Drain { node: 1 + rng.below(schedule.transits), for_ns: rng.range(MS, 4_000 * MS) }];
    }
    gone.into_iter().map(|receiver| Event::Leave { group, receiver }).collect()
}
