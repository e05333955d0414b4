//! Totals of many runs. Merging is independent of the order.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::outcome::{ForgeryOutcome, GroupOutcome, Outcome, Violation};
use crate::schedule::{Event, Message, ResponseKind, Schedule};
use std::collections::BTreeMap;

/// Totals of many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Schedules that were run.
    pub schedules: u64,
    /// Frames received by any element.
    pub hops: u64,
    /// Virtual time of all runs, in nanoseconds.
    pub virtual_ns: u64,
    /// Number of schedules with each kind of fault or event.
    pub drawn: BTreeMap<&'static str, u64>,
    /// Faults that took effect, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Drops of all nodes, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Forged packets by kind.
    pub forged: BTreeMap<&'static str, ForgeryOutcome>,
    /// Evicted receivers, without those that left (D25).
    pub evictions: u64,
    /// Members that left (D30).
    pub leaves: u64,
    pub joins: u64,
    /// Node restarts.
    pub restarts: u64,
    pub groups: u64,
    /// Groups whose source had all data acknowledged.
    pub completed: u64,
    /// Request packets sent by sources, retransmissions included.
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    /// ACK timeouts of sources.
    pub timeouts: u64,
    /// Times from the end of a fault to the next progress.
    pub recoveries: Recoveries,
    /// Failed schedules by seed.
    pub failures: BTreeMap<u64, Failure>,
}

/// A failed schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The first violation of the most severe kind.
    pub violation: Violation,
    pub violations: usize,
}

/// Counts of recovery times, in hundredths of an ACK timeout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recoveries(BTreeMap<u64, u64>);

impl Recoveries {
    fn add(&mut self, recovery_ns: u64, ack_timeout_ns: u64) {
        let hundredths = recovery_ns.saturating_mul(100) / ack_timeout_ns.max(1);
        *self.0.entry(hundredths).or_default() += 1;
    }

    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The quantile of recovery times for `per_mille`, in ACK timeouts; `None` without any.
    pub fn quantile(&self, per_mille: u64) -> Option<f64> {
        let wanted = (self.count() * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map(|(hundredths, _)| *hundredths as f64 / 100.0)
    }
}

impl ForgeryOutcome {
    pub fn merge(&mut self, other: &ForgeryOutcome) {
        self.sent += other.sent;
        add_counts(&mut self.dropped, &other.dropped);
        self.forwarded += other.forwarded;
        self.accepted += other.accepted;
    }
}

impl Summary {
    /// The totals of one run.
    pub fn of(seed: u64, schedule: &Schedule, outcome: Outcome) -> Self {
        let worst = outcome.violations.iter().min_by_key(|violation| (violation.kind, violation.at_ns));
        let failure =
            worst.map(|violation| Failure { violation: violation.clone(), violations: outcome.violations.len() });
        let sum = |of: fn(&GroupOutcome) -> u64| outcome.groups.iter().map(of).sum();
        let mut recoveries = Recoveries::default();
        for group in &outcome.groups {
            group.recoveries_ns.iter().for_each(|recovery_ns| recoveries.add(*recovery_ns, group.ack_timeout_ns));
        }
        Summary {
            schedules: 1,
            virtual_ns: outcome.ended_ns,
            drawn: drawn(schedule).into_iter().map(|name| (name, 1)).collect(),
            groups: outcome.groups.len() as u64,
            completed: sum(|group| u64::from(group.completed_ns.is_some())),
            packets_sent: sum(|group| group.packets_sent),
            packets_retransmitted: sum(|group| group.packets_retransmitted),
            timeouts: sum(|group| group.timeouts),
            recoveries,
            failures: failure.map(|failure| (seed, failure)).into_iter().collect(),
            hops: outcome.hops,
            faults: outcome.faults,
            drops: outcome.drops,
            forged: outcome.forged,
            evictions: outcome.evictions,
            leaves: outcome.leaves,
            joins: outcome.joins,
            restarts: outcome.restarts,
        }
    }

    pub fn merge(&mut self, other: Summary) {
        self.schedules += other.schedules;
        self.hops += other.hops;
        self.virtual_ns += other.virtual_ns;
        add_counts(&mut self.drawn, &other.drawn);
        add_counts(&mut self.faults, &other.faults);
        add_counts(&mut self.drops, &other.drops);
        for (name, outcome) in &other.forged {
            self.forged.entry(name).or_default().merge(outcome);
        }
        self.evictions += other.evictions;
        self.leaves += other.leaves;
        self.joins += other.joins;
        self.restarts += other.restarts;
        self.groups += other.groups;
        self.completed += other.completed;
        self.packets_sent += other.packets_sent;
        self.packets_retransmitted += other.packets_retransmitted;
        self.timeouts += other.timeouts;
        add_counts(&mut self.recoveries.0, &other.recoveries.0);
        self.failures.extend(other.failures);
    }
}

/// Adds counts to others.
pub fn add_counts<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}

/// The kinds of faults and events in a schedule, each once.
fn drawn(schedule: &Schedule) -> Vec<&'static str> {
    let mut names: Vec<&str> = schedule.link.faults().collect();
    names.extend(schedule.events.iter().map(|timed| event_name(&timed.event)));
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        names.push("nothing");
    }
    names
}

/// Name of an event in reports.
pub fn event_name(event: &Event) -> &'static str {
    match event {
        Event::CrashNode { .. } => "node crash",
        Event::CutNode { .. } => "node link cut",
        Event::CutReceiver { .. } => "receiver link cut",
        Event::KillReceiver { .. } => "receiver death",
        Event::FreezeReceiver { .. } => "receiver freeze",
        Event::SlowReceiver { .. } => "slow receiver",
        Event::StarveReceiver { .. } => "receiver not ready",
        Event::FailReceiver { .. } => "fatal NAK",
        Event::Congest { .. } => "congestion",
        Event::Forge(forgery) => message_name(forgery.message),
        Event::UntrueResponse(untrue) => untrue_name(untrue.kind),
        Event::Replay { .. } => "replay",
        Event::Leave { .. } => "leave",
        Event::Join { .. } => "join",
        Event::Rehome { .. } => "re-homing",
    }
}

/// Name of an untrue response in reports.
pub fn untrue_name(kind: ResponseKind) -> &'static str {
    match kind {
        ResponseKind::Ack => "untrue ACK",
        ResponseKind::SequenceNak => "untrue sequence NAK",
        ResponseKind::RnrNak => "untrue RNR NAK",
        ResponseKind::FatalNak => "untrue fatal NAK",
        ResponseKind::Cnp => "untrue CNP",
    }
}

/// Name of a forged packet in reports.
pub fn message_name(message: Message) -> &'static str {
    match message {
        Message::Ack => "forged ACK",
        Message::SequenceNak => "forged sequence NAK",
        Message::RnrNak => "forged RNR NAK",
        Message::FatalNak => "forged fatal NAK",
        Message::Cnp => "forged CNP",
        Message::TamperedTlv => "tampered TLV",
        Message::Data => "forged data",
    }
}
