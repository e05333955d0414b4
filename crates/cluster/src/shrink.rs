//! Shrinking: events, members and groups are removed, and random faults switched off, as long as a violation of the
//! same kind with the same finding remains.

use crate::outcome::{Finding, ViolationKind};
use crate::schedule::{Event, Schedule};
use crate::summary::run_catching_panics;

/// A smaller schedule with a violation of this kind and finding, after at most `max_runs` runs.
pub fn shrink(schedule: &Schedule, kind: ViolationKind, finding: Finding, max_runs: u32) -> Schedule {
    let mut shrinker = Shrinker { best: schedule.clone(), kind, finding, runs: 0, max_runs };
    loop {
        let before = shrinker.best.clone();
        shrinker.events();
        shrinker.faults();
        shrinker.groups();
        shrinker.members();
        if shrinker.best == before || shrinker.runs >= max_runs {
            return shrinker.best;
        }
    }
}

struct Shrinker {
    best: Schedule,
    kind: ViolationKind,
    finding: Finding,
    runs: u32,
    max_runs: u32,
}

impl Shrinker {
    /// Keeps a smaller schedule if it still fails.
    fn keep(&mut self, candidate: Schedule) -> bool {
        if candidate == self.best || self.runs >= self.max_runs || candidate.check().is_err() {
            return false;
        }
        self.runs += 1;
        let violations = run_catching_panics(&candidate).violations;
        let fails = violations.iter().any(|one| (one.kind, one.finding) == (self.kind, self.finding));
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes runs of events, the later ones first, down to single ones.
    fn events(&mut self) {
        let mut length = self.best.events.len();
        while length > 0 {
            let mut end = self.best.events.len();
            while end > 0 {
                let from = end.saturating_sub(length);
                let mut candidate = self.best.clone();
                candidate.events.drain(from..end);
                self.keep(candidate);
                end = from.min(self.best.events.len());
            }
            length /= 2;
        }
    }

    fn faults(&mut self) {
        const SIMPLER: [fn(&mut Schedule); 16] = [
            |schedule| schedule.data_loss_ppm = 0,
            |schedule| schedule.management.loss_ppm = 0,
            |schedule| schedule.management.duplicate_ppm = 0,
            |schedule| schedule.management.late_ppm = 0,
            |schedule| schedule.management.delay_ns = 100_000,
            |schedule| schedule.store_delay_ns = 500_000,
            |schedule| schedule.etcd = None,
            |schedule| schedule.has_leases = false,
            |schedule| schedule.has_bfd = false,
            |schedule| schedule.bud_nodes = None,
            |schedule| schedule.has_peers = false,
            |schedule| schedule.repairers.clear(),
            |schedule| {
                if !schedule.repairers.is_empty() {
                    schedule.repairers = (0..schedule.nodes()).collect();
                }
            },
            |schedule| schedule.groups.iter_mut().for_each(|group| group.repair = None),
            |schedule| schedule.groups.iter_mut().for_each(|group| group.own_psns = false),
            |schedule| schedule.edges.iter_mut().for_each(|edge| edge.has_small_mtu = false),
        ];
        for simpler in SIMPLER {
            let mut candidate = self.best.clone();
            simpler(&mut candidate);
            self.keep(candidate);
        }
    }

    /// Removes the last group, with its events.
    fn groups(&mut self) {
        while self.best.groups.len() > 1 {
            let mut candidate = self.best.clone();
            let gone = candidate.groups.len() - 1;
            candidate.groups.pop();
            candidate.events.retain(|timed| match timed.event {
                Event::Join { group, .. }
                | Event::Leave { group, .. }
                | Event::Close { group }
                | Event::PartitionSource { group, .. } => group != gone,
                _ => true,
            });
            if !self.keep(candidate) {
                return;
            }
        }
    }

    fn members(&mut self) {
        for group in 0..self.best.groups.len() {
            for position in (0..self.best.groups[group].members.len()).rev() {
                let mut candidate = self.best.clone();
                candidate.groups[group].members.remove(position);
                self.keep(candidate);
            }
        }
    }
}
