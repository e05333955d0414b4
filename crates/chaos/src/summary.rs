//! What many runs together come to. Merging two summaries does not depend on the order.

use crate::outcome::{Complaint, Fates, GroupOutcome, Outcome};
use crate::schedule::{Event, Message, Schedule};
use std::collections::BTreeMap;

/// What many runs together come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Schedules that were run.
    pub schedules: u64,
    /// Frames that arrived anywhere.
    pub hops: u64,
    /// Virtual time of all runs, in nanoseconds.
    pub virtual_ns: u64,
    /// In how many schedules each kind of fault or event was drawn.
    pub drawn: BTreeMap<&'static str, u64>,
    /// How often each fault really took place.
    pub faults: BTreeMap<&'static str, u64>,
    /// What nodes dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// What became of forged packets, by what they were.
    pub forged: BTreeMap<&'static str, Fates>,
    /// Receivers that were evicted against their will (D25).
    pub evictions: u64,
    /// Receivers that left by their own wish (D30).
    pub leaves: u64,
    /// Receivers that joined.
    pub joins: u64,
    /// Nodes that came back.
    pub restarts: u64,
    /// Groups of all schedules.
    pub groups: u64,
    /// Those whose source had everything acknowledged.
    pub completed: u64,
    /// Request packets that sources sent, retransmissions included.
    pub packets_sent: u64,
    /// Those that had been sent before.
    pub packets_retransmitted: u64,
    /// Times that a source's ACK timer ran out.
    pub timeouts: u64,
    /// From the end of a fault to the next progress.
    pub recoveries: Recoveries,
    /// Schedules that failed, by seed.
    pub failures: BTreeMap<u64, Failure>,
}

/// A schedule that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The first of the gravest complaints.
    pub complaint: Complaint,
    /// How many there are in all.
    pub complaints: usize,
}

/// Recovery times, in hundredths of an ACK timeout, and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recoveries(BTreeMap<u64, u64>);

impl Recoveries {
    fn add(&mut self, recovery_ns: u64, ack_timeout_ns: u64) {
        let hundredths = recovery_ns.saturating_mul(100) / ack_timeout_ns.max(1);
        *self.0.entry(hundredths).or_default() += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The recovery time, in ACK timeouts, that so many of a thousand do not exceed; `None` when there was none.
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

impl Fates {
    /// Adds what became of others.
    pub fn merge(&mut self, other: &Fates) {
        self.sent += other.sent;
        add_counts(&mut self.refused, &other.refused);
        self.passed_on += other.passed_on;
        self.believed += other.believed;
    }
}

impl Summary {
    /// One run.
    pub fn of(seed: u64, schedule: &Schedule, outcome: Outcome) -> Self {
        let gravest = outcome.complaints.iter().min_by_key(|complaint| (complaint.kind, complaint.at_ns));
        let failure =
            gravest.map(|complaint| Failure { complaint: complaint.clone(), complaints: outcome.complaints.len() });
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

    /// Adds the runs of another summary.
    pub fn merge(&mut self, other: Summary) {
        self.schedules += other.schedules;
        self.hops += other.hops;
        self.virtual_ns += other.virtual_ns;
        add_counts(&mut self.drawn, &other.drawn);
        add_counts(&mut self.faults, &other.faults);
        add_counts(&mut self.drops, &other.drops);
        for (name, fates) in &other.forged {
            self.forged.entry(name).or_default().merge(fates);
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

/// Adds counts to counts of the same names.
pub(crate) fn add_counts<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}

/// The kinds of faults and events of a schedule, each once.
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

/// What an event is called in reports.
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
        Event::Replay { .. } => "replay",
        Event::Leave { .. } => "leave",
        Event::Join { .. } => "join",
        Event::Rehome { .. } => "re-homing",
    }
}

/// What a forged packet is called in reports.
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
