//! The default distribution of a schedule's events.

use crate::rng::Rng;
use crate::scale::Scale;
use crate::schedule::{Attacker, Claim, Event, Forgery, Message, OperationPlan, Schedule, TimedEvent};

/// Events of one schedule, at most.
const MAX_EVENTS: u64 = 12;

/// Kinds of events and their weights, in percent.
const WEIGHTS: [(Kind, u64); 14] = [
    (Kind::CrashNode, 14),
    (Kind::CutNode, 8),
    (Kind::CutReceiver, 8),
    (Kind::KillReceiver, 4),
    (Kind::FreezeReceiver, 8),
    (Kind::SlowReceiver, 6),
    (Kind::StarveReceiver, 6),
    (Kind::FailReceiver, 3),
    (Kind::Congest, 8),
    (Kind::Forge, 10),
    (Kind::Replay, 6),
    (Kind::Leave, 5),
    (Kind::Join, 6),
    (Kind::Rehome, 8),
];

#[derive(Clone, Copy)]
enum Kind {
    CrashNode,
    CutNode,
    CutReceiver,
    KillReceiver,
    FreezeReceiver,
    SlowReceiver,
    StarveReceiver,
    FailReceiver,
    Congest,
    Forge,
    Replay,
    Leave,
    Join,
    Rehome,
}

/// Draws the events of a schedule, ordered by time. All other parts of the schedule are already set.
pub(crate) fn draw(rng: &mut Rng, schedule: &Schedule, scale: &Scale) -> Vec<TimedEvent> {
    let count = if rng.one_in(8) { 0 } else { rng.log_uniform(1, MAX_EVENTS) };
    let mut events = Vec::new();
    for _ in 0..count {
        let event = draw_event(rng, schedule, scale);
        // Membership changes take time: they begin early, before the group has completed.
        let is_change = matches!(event, Some(Event::Leave { .. } | Event::Join { .. } | Event::Rehome { .. }));
        let latest_ns = match rng.below(4) {
            _ if is_change => scale.transfer_ns / 2,
            0 => 2 * scale.transfer_ns + 2 * scale.ack_timeout_ns,
            _ => scale.transfer_ns,
        };
        let at_ns = rng.range(0, latest_ns);
        events.extend(event.map(|event| TimedEvent { at_ns, event }));
    }
    events.sort_by_key(|timed| timed.at_ns);
    events
}

/// An event; `None` when the drawn kind is impossible in this schedule.
fn draw_event(rng: &mut Rng, schedule: &Schedule, scale: &Scale) -> Option<Event> {
    let receiver = rng.below(schedule.receivers.len());
    let node = rng.below(schedule.nodes.len());
    let group = rng.below(schedule.groups.len());
    let for_ns = rng.log_uniform(scale.ack_timeout_ns / 16, 6 * scale.ack_timeout_ns);
    let plan = &schedule.groups[group];
    let is_member = plan.members.contains(&receiver);
    match rng.weighted(&WEIGHTS) {
        Kind::CrashNode => Some(Event::CrashNode { node, for_ns }),
        Kind::CutNode => (node > 0).then_some(Event::CutNode { node, for_ns }),
        Kind::CutReceiver => Some(Event::CutReceiver { receiver, for_ns }),
        Kind::KillReceiver => {
            // Without eviction the groups of a dead receiver just fail: few of these are enough.
            let all_evict = schedule.groups.iter().all(|group| group.policy.evict);
            (all_evict || rng.one_in(4)).then_some(Event::KillReceiver { receiver })
        }
        Kind::FreezeReceiver => Some(Event::FreezeReceiver { receiver, for_ns }),
        Kind::SlowReceiver => Some(Event::SlowReceiver { receiver, for_ns, by_ns: rng.log_uniform(50, 3200) }),
        Kind::StarveReceiver => {
            let any_send = schedule.groups.iter().any(|group| group.operation == OperationPlan::Send);
            any_send.then_some(Event::StarveReceiver { receiver, for_ns })
        }
        Kind::FailReceiver => {
            let wanted = is_member && (plan.policy.evict || rng.one_in(4));
            wanted.then_some(Event::FailReceiver { receiver, group })
        }
        Kind::Congest => Some(Event::Congest { receiver, for_ns }),
        Kind::Forge => Some(Event::Forge(draw_forgery(rng, schedule, scale))),
        Kind::Replay => {
            let frames = rng.log_uniform(1, 64) as u32;
            (node > 0).then_some(Event::Replay { node, up: !rng.one_in(3), frames })
        }
        Kind::Leave => is_member.then_some(Event::Leave { group, receiver }),
        Kind::Join => (!is_member).then_some(Event::Join { group, receiver }),
        Kind::Rehome => {
            let plan = &schedule.nodes[node];
            let back = rng.one_in(3);
            let spare = (!plan.spares.is_empty()).then(|| rng.choose(&plan.spares))?;
            Some(Event::Rehome { node, parent: plan.parent.filter(|_| back).unwrap_or(spare) })
        }
    }
}

/// A forged packet in the name of another host, from inside or outside of the domain.
pub(crate) fn draw_forgery(rng: &mut Rng, schedule: &Schedule, scale: &Scale) -> Forgery {
    let from = if rng.one_in(2) {
        Attacker::Receiver(rng.below(schedule.receivers.len()))
    } else {
        Attacker::External(rng.below(schedule.nodes.len()))
    };
    let message = rng.choose(&[
        Message::Ack,
        Message::Ack,
        Message::Ack,
        Message::SequenceNak,
        Message::RnrNak,
        Message::FatalNak,
        Message::Cnp,
        Message::TamperedTlv,
        Message::Data,
    ]);
    let window = i64::from(scale.window_packets);
    let psn_offset = match rng.below(6) {
        0 => 0,
        1 => -1,
        2 => rng.range(1, 2 * window as u64) as i64,
        3 => -(rng.range(1, window as u64) as i64),
        4 => rng.range(0, 1 << 22) as i64,
        _ => rng.range(0, 1 << 24) as i64 - (1 << 23),
    };
    Forgery {
        group: rng.below(schedule.groups.len()),
        from,
        claims: draw_claim(rng, schedule, from),
        message,
        psn_offset: psn_offset as i32,
        copies: rng.log_uniform(1, if message == Message::Cnp { 256 } else { 8 }) as u32,
    }
}

fn draw_claim(rng: &mut Rng, schedule: &Schedule, from: Attacker) -> Claim {
    let receiver = rng.below(schedule.receivers.len());
    match rng.below(8) {
        0..4 if from != Attacker::Receiver(receiver) => Claim::Receiver(receiver),
        0..6 => Claim::Node(rng.below(schedule.nodes.len())),
        6 => Claim::Proxy,
        _ => match from {
            Attacker::Receiver(_) => Claim::Source,
            Attacker::External(_) => Claim::External,
        },
    }
}
