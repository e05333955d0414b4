//! Totals of many runs, and the run of many seeds. The order of runs has no effect.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::outcome::{Finding, Outcome, Violation, ViolationKind};
use crate::phase::Phase;
use crate::schedule::{Event, Schedule};
use crate::world;
use srdma_chaos::runner::{self, Merge, Progress, RunConfig};
use srdma_chaos::summary::add_counts;
use std::collections::BTreeMap;

/// Totals of many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub schedules: u64,
    pub hops: u64,
    /// Messages, orders, durable writes, requests and faults.
    pub events: u64,
    pub virtual_ns: u64,
    pub counts: BTreeMap<&'static str, u64>,
    /// Faults by name and phase of a group.
    pub phases: BTreeMap<(&'static str, Phase), u64>,
    pub responses: u64,
    pub comparisons: u64,
    pub groups: u64,
    pub ready: u64,
    /// Schedules with each finding, and the lowest seed.
    pub findings: BTreeMap<(Finding, ViolationKind), (u64, u64)>,
    /// Failed schedules by seed, with the first violation of the most severe kind.
    pub failures: BTreeMap<u64, Violation>,
    /// Digest of all outcomes.
    pub digest: u64,
}

impl Summary {
    pub fn of(seed: u64, schedule: &Schedule, outcome: Outcome) -> Self {
        let mut findings = BTreeMap::new();
        for violation in &outcome.violations {
            findings.insert((violation.finding, violation.kind), (1, seed));
        }
        let worst = outcome.violations.iter().min_by_key(|violation| (violation.kind, violation.at_ns));
        Summary {
            schedules: 1,
            hops: outcome.hops,
            events: outcome.events,
            virtual_ns: outcome.ended_ns,
            phases: outcome.phases,
            responses: outcome.responses,
            comparisons: outcome.comparisons,
            groups: schedule.groups.len() as u64,
            ready: outcome.ready,
            findings,
            failures: worst.map(|violation| (seed, violation.clone())).into_iter().collect(),
            digest: outcome.digest,
            counts: outcome.counts,
        }
    }
}

impl Summary {
    /// The pairs of a fault and a phase that can meet, with the number of times they did, the rarest first.
    pub fn pairs(&self) -> Vec<(&'static str, Phase, u64)> {
        let all = Event::AIMED.into_iter().flat_map(|fault| Phase::AIMED.map(|phase| (fault, phase)));
        let possible = all.filter(|(fault, phase)| phase.excludes(fault).is_none());
        let times = |pair| self.phases.get(&pair).copied().unwrap_or(0);
        let mut pairs: Vec<_> = possible.map(|(fault, phase)| (fault, phase, times((fault, phase)))).collect();
        pairs.sort_by_key(|(_, _, times)| *times);
        pairs
    }
}

impl Merge for Summary {
    fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.hops += other.hops;
        self.events += other.events;
        self.virtual_ns += other.virtual_ns;
        add_counts(&mut self.counts, &other.counts);
        add_counts(&mut self.phases, &other.phases);
        self.responses += other.responses;
        self.comparisons += other.comparisons;
        self.groups += other.groups;
        self.ready += other.ready;
        for (kind, (times, seed)) in other.findings {
            let known = self.findings.entry(kind).or_insert((0, seed));
            *known = (known.0 + times, known.1.min(seed));
        }
        self.failures.extend(other.failures);
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

/// Runs seeds. `go_on` is called after each, on any thread; once it returns false no further seed starts.
pub fn run(
    config: &RunConfig,
    draw: &(dyn Fn(u64) -> Schedule + Sync),
    go_on: &(dyn Fn(Progress) -> bool + Sync),
) -> Summary {
    runner::run_each(config, go_on, &|seed, summary: &mut Summary| {
        let schedule = draw(seed);
        let outcome = run_catching_panics(&schedule);
        let fails = !outcome.violations.is_empty();
        summary.merge(Summary::of(seed, &schedule, outcome));
        fails
    })
}

/// Runs one schedule. A panic becomes a violation with its message.
pub fn run_catching_panics(schedule: &Schedule) -> Outcome {
    runner::catch_panic(|| world::run(schedule)).unwrap_or_else(|text| {
        let violation = Violation { at_ns: 0, kind: ViolationKind::Panic, finding: Finding::Unknown, text };
        Outcome { violations: vec![violation], ..Outcome::default() }
    })
}
