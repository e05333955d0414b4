//! What happens in a schedule: the default distribution of events.

use crate::dice::Dice;
use crate::scale::Scale;
use crate::schedule::{Claim, Event, Forger, Forgery, Message, OperationPlan, Schedule, Timed};

/// Events of one schedule.
const MOST_EVENTS: u64 = 12;

/// Kinds of events, and of how many hundred each is one on average.
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

/// The events of a schedule whose other parts are there, in the order of time.
pub(crate) fn draw(dice: &mut Dice, schedule: &Schedule, scale: &Scale) -> Vec<Timed> {
    let count = if dice.one_in(8) { 0 } else { dice.over_doublings(1, MOST_EVENTS) };
    let mut events = Vec::new();
    for _ in 0..count {
        let event = draw_event(dice, schedule, scale);
        // What takes its time to come into effect begins early, or the group is over before.
        let is_change = matches!(event, Some(Event::Leave { .. } | Event::Join { .. } | Event::Rehome { .. }));
        let latest_ns = match dice.position(4) {
            _ if is_change => scale.transfer_ns / 2,
            0 => 2 * scale.transfer_ns + 2 * scale.ack_timeout_ns,
            _ => scale.transfer_ns,
        };
        let at_ns = dice.between(0, latest_ns);
        events.extend(event.map(|event| Timed { at_ns, event }));
    }
    events.sort_by_key(|timed| timed.at_ns);
    events
}

/// An event, or none when the kind that is drawn has no place in this schedule.
fn draw_event(dice: &mut Dice, schedule: &Schedule, scale: &Scale) -> Option<Event> {
    let receiver = dice.position(schedule.receivers.len());
    let node = dice.position(schedule.nodes.len());
    let group = dice.position(schedule.groups.len());
    let for_ns = dice.over_doublings(scale.ack_timeout_ns / 16, 6 * scale.ack_timeout_ns);
    let plan = &schedule.groups[group];
    let is_member = plan.members.contains(&receiver);
    match draw_kind(dice) {
        Kind::CrashNode => Some(Event::CrashNode { node, for_ns }),
        Kind::CutNode => (node > 0).then_some(Event::CutNode { node, for_ns }),
        Kind::CutReceiver => Some(Event::CutReceiver { receiver, for_ns }),
        Kind::KillReceiver => {
            // Where nobody is evicted the groups of a dead receiver just end; seldom is enough.
            let all_evict = schedule.groups.iter().all(|group| group.policy.evict);
            (all_evict || dice.one_in(4)).then_some(Event::KillReceiver { receiver })
        }
        Kind::FreezeReceiver => Some(Event::FreezeReceiver { receiver, for_ns }),
        Kind::SlowReceiver => Some(Event::SlowReceiver { receiver, for_ns, by_ns: dice.over_doublings(50, 3200) }),
        Kind::StarveReceiver => {
            let any_send = schedule.groups.iter().any(|group| group.operation == OperationPlan::Send);
            any_send.then_some(Event::StarveReceiver { receiver, for_ns })
        }
        Kind::FailReceiver => {
            let wanted = is_member && (plan.policy.evict || dice.one_in(4));
            wanted.then_some(Event::FailReceiver { receiver, group })
        }
        Kind::Congest => Some(Event::Congest { receiver, for_ns }),
        Kind::Forge => Some(Event::Forge(draw_forgery(dice, schedule, scale))),
        Kind::Replay => {
            let frames = dice.over_doublings(1, 64) as u32;
            (node > 0).then_some(Event::Replay { node, up: !dice.one_in(3), frames })
        }
        Kind::Leave => is_member.then_some(Event::Leave { group, receiver }),
        Kind::Join => (!is_member).then_some(Event::Join { group, receiver }),
        Kind::Rehome => {
            let plan = &schedule.nodes[node];
            let back = dice.one_in(3);
            let spare = (!plan.spares.is_empty()).then(|| dice.one_of(&plan.spares))?;
            Some(Event::Rehome { node, parent: plan.parent.filter(|_| back).unwrap_or(spare) })
        }
    }
}

fn draw_kind(dice: &mut Dice) -> Kind {
    let total: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let mut left = dice.between(1, total);
    for (kind, weight) in WEIGHTS {
        if left <= weight {
            return kind;
        }
        left -= weight;
    }
    unreachable!("the weights add up to the total")
}

/// A lie about somebody else, from inside or from outside the domain.
pub(crate) fn draw_forgery(dice: &mut Dice, schedule: &Schedule, scale: &Scale) -> Forgery {
    let from = if dice.one_in(2) {
        Forger::Receiver(dice.position(schedule.receivers.len()))
    } else {
        Forger::Stranger(dice.position(schedule.nodes.len()))
    };
    let message = dice.one_of(&[
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
    let psn_offset = match dice.position(6) {
        0 => 0,
        1 => -1,
        2 => dice.between(1, 2 * window as u64) as i64,
        3 => -(dice.between(1, window as u64) as i64),
        4 => dice.between(0, 1 << 22) as i64,
        _ => dice.between(0, 1 << 24) as i64 - (1 << 23),
    };
    Forgery {
        group: dice.position(schedule.groups.len()),
        from,
        claims: draw_claim(dice, schedule, from),
        message,
        psn_offset: psn_offset as i32,
        copies: dice.over_doublings(1, if message == Message::Cnp { 256 } else { 8 }) as u32,
    }
}

fn draw_claim(dice: &mut Dice, schedule: &Schedule, from: Forger) -> Claim {
    let receiver = dice.position(schedule.receivers.len());
    match dice.position(8) {
        0..4 if from != Forger::Receiver(receiver) => Claim::Receiver(receiver),
        0..6 => Claim::Node(dice.position(schedule.nodes.len())),
        6 => Claim::Proxy,
        _ => match from {
            Forger::Receiver(_) => Claim::Source,
            Forger::Stranger(_) => Claim::Stranger,
        },
    }
}
