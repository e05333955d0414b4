//! Shrinking: parts of a failing schedule are removed and its numbers reduced as long as the kind of violation remains.

use crate::outcome::ViolationKind;
use crate::schedule::{Event, GroupPlan, ListsPlan, OperationPlan, PATH_MTU_OCTETS, Schedule};

/// Result of shrinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The smallest failing schedule found.
    pub schedule: Schedule,
    /// Schedules run.
    pub runs: u32,
}

/// Shrinks a schedule with violations of `kind`. `run` returns the kinds of violations of a schedule; it is called at
/// most `max_runs` times.
pub fn shrink(
    schedule: &Schedule,
    kind: ViolationKind,
    max_runs: u32,
    run: &mut dyn FnMut(&Schedule) -> Vec<ViolationKind>,
) -> Shrunk {
    let mut shrinker = Shrinker { best: schedule.clone(), kind, runs: 0, max_runs, run };
    loop {
        let before = shrinker.best.clone();
        shrinker.events();
        shrinker.groups();
        shrinker.receivers();
        shrinker.nodes();
        shrinker.choices();
        shrinker.numbers();
        if shrinker.best == before || shrinker.runs >= max_runs {
            return Shrunk { schedule: shrinker.best, runs: shrinker.runs };
        }
    }
}

struct Shrinker<'a> {
    best: Schedule,
    kind: ViolationKind,
    runs: u32,
    max_runs: u32,
    run: &'a mut dyn FnMut(&Schedule) -> Vec<ViolationKind>,
}

impl Shrinker<'_> {
    /// Runs a smaller schedule. If it still fails it becomes the best one.
    fn try_schedule(&mut self, candidate: Schedule) -> bool {
        if candidate == self.best || self.runs >= self.max_runs || candidate.check().is_err() {
            return false;
        }
        self.runs += 1;
        let fails = (self.run)(&candidate).contains(&self.kind);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes runs of parts: first all, then halves, down to single ones. `without` removes a number of parts from a
    /// position on, `count` returns the number of parts.
    fn remove_runs(
        &mut self,
        count: fn(&Schedule) -> usize,
        without: &dyn Fn(&Schedule, usize, usize) -> Option<Schedule>,
    ) {
        let mut length = count(&self.best);
        while length > 0 {
            // From the end: later parts often depend on earlier ones.
            let mut end = count(&self.best);
            while end > 0 {
                let from = end.saturating_sub(length);
                if let Some(candidate) = without(&self.best, from, end - from) {
                    self.try_schedule(candidate);
                }
                end = from.min(count(&self.best));
            }
            length /= 2;
        }
    }

    fn events(&mut self) {
        self.remove_runs(|schedule| schedule.events.len(), &|schedule, from, length| {
            let mut candidate = schedule.clone();
            candidate.events.drain(from..from + length);
            Some(candidate)
        });
    }

    fn groups(&mut self) {
        self.remove_runs(|schedule| schedule.groups.len(), &|schedule, from, length| {
            (0..length).try_fold(schedule.clone(), |left, _| left.without_group(from))
        });
        for group in 0..self.best.groups.len() {
            let mut length = self.best.groups[group].members.len();
            while length > 0 {
                let mut end = self.best.groups[group].members.len();
                while end > 0 {
                    let from = end.saturating_sub(length);
                    let mut candidate = self.best.clone();
                    candidate.groups[group].members.drain(from..end);
                    self.try_schedule(candidate);
                    end = from;
                }
                length /= 2;
            }
        }
    }

    fn receivers(&mut self) {
        self.remove_runs(|schedule| schedule.receivers.len(), &|schedule, from, length| {
            let groups = schedule.groups.len();
            let left = (0..length).try_fold(schedule.clone(), |left, _| left.without_receiver(from))?;
            (left.groups.len() == groups).then_some(left)
        });
    }

    fn nodes(&mut self) {
        for receiver in 1..self.best.receivers.len() {
            let mut candidate = self.best.clone();
            candidate.receivers[receiver].edge = candidate.receivers[0].edge;
            self.try_schedule(candidate);
        }
        for node in (1..self.best.nodes.len()).rev() {
            if let Some(candidate) = self.best.without_node(node) {
                self.try_schedule(candidate);
            }
        }
        for node in 1..self.best.nodes.len() {
            let mut candidate = self.best.clone();
            candidate.nodes[node].spares.clear();
            candidate.remove_impossible_rehomings();
            self.try_schedule(candidate);
        }
    }

    /// Replaces each choice by its simplest value.
    fn choices(&mut self) {
        const SIMPLER: [fn(&mut GroupPlan); 11] = [
            |group| group.policy.literal = false,
            |group| group.policy.evict = false,
            |group| group.policy.prune_retransmit = false,
            |group| group.policy.trailing_cnps = false,
            |group| group.policy.lists = ListsPlan::Provisioned,
            |group| group.policy.t_hold_percent = 100,
            |group| group.unlimited_retries = true,
            |group| group.operation = OperationPlan::Write,
            |group| group.regions = 1,
            |group| group.own_psns = false,
            |group| group.source = 0,
        ];
        for group in 0..self.best.groups.len() {
            for simpler in SIMPLER {
                let mut candidate = self.best.clone();
                simpler(&mut candidate.groups[group]);
                self.try_schedule(candidate);
            }
        }
    }

    /// Reduces each number to its minimum, or halves it while the schedule fails.
    fn numbers(&mut self) {
        let mut count = 0;
        visit_numbers(&mut self.best.clone(), &mut |_, _| count += 1);
        for position in 0..count {
            if !self.change_number(position, |_, least| least) {
                while self.change_number(position, |number, least| (number / 2).max(least)) {}
            }
        }
    }

    fn change_number(&mut self, position: usize, change: fn(u64, u64) -> u64) -> bool {
        let mut candidate = self.best.clone();
        let mut at = 0;
        visit_numbers(&mut candidate, &mut |number, least| {
            if at == position {
                *number = change(*number, least);
            }
            at += 1;
        });
        candidate.events.sort_by_key(|timed| timed.at_ns);
        self.try_schedule(candidate)
    }
}

/// Calls `visit` for every number that may be reduced, with its minimum.
fn visit_numbers(schedule: &mut Schedule, visit: &mut dyn FnMut(&mut u64, u64)) {
    let link = &mut schedule.link;
    for ppm in
        [&mut link.loss_ppm, &mut link.duplicate_ppm, &mut link.reorder_ppm, &mut link.spike_ppm, &mut link.corrupt_ppm]
    {
        visit_narrow(ppm, 0, visit);
    }
    visit(&mut link.spike_ns, 0);
    visit(&mut link.delay_ns, 0);
    visit(&mut schedule.faults_end_ns, 0);
    for group in &mut schedule.groups {
        visit(&mut group.start_ns, 0);
        visit(&mut group.octets, 1);
        visit_narrow(&mut group.message_octets, u64::from(PATH_MTU_OCTETS), visit);
        visit_narrow(&mut group.first_psn, 0, visit);
        visit_narrow(&mut group.policy.min_receivers, 1, visit);
    }
    for timed in &mut schedule.events {
        visit(&mut timed.at_ns, 0);
        match &mut timed.event {
            Event::CrashNode { node: _, for_ns }
            | Event::CutNode { node: _, for_ns }
            | Event::CutReceiver { receiver: _, for_ns }
            | Event::FreezeReceiver { receiver: _, for_ns }
            | Event::StarveReceiver { receiver: _, for_ns }
            | Event::Congest { receiver: _, for_ns } => visit(for_ns, 0),
            Event::SlowReceiver { receiver: _, for_ns, by_ns } => {
                visit(for_ns, 0);
                visit(by_ns, 0);
            }
            Event::Replay { node: _, up: _, frames } => visit_narrow(frames, 1, visit),
            Event::UntrueResponse(untrue) => visit_narrow(&mut untrue.copies, 1, visit),
            Event::Forge(forgery) => visit_narrow(&mut forgery.copies, 1, visit),
            Event::KillReceiver { .. }
            | Event::FailReceiver { .. }
            | Event::Leave { .. }
            | Event::Join { .. }
            | Event::Rehome { .. } => {}
        }
    }
}

fn visit_narrow(number: &mut u32, least: u64, visit: &mut dyn FnMut(&mut u64, u64)) {
    let mut wide = u64::from(*number);
    visit(&mut wide, least);
    // Numbers only decrease.
    *number = u32::try_from(wide).unwrap_or(*number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::TimedEvent;

    fn crashes(schedule: &Schedule) -> usize {
        schedule.events.iter().filter(|timed| matches!(timed.event, Event::CrashNode { .. })).count()
    }

    /// Fails when a node crashes while some group has two members and there is loss.
    fn fails(schedule: &Schedule) -> Vec<ViolationKind> {
        let two = schedule.groups.iter().any(|group| group.members.len() >= 2 && group.octets > 5000);
        let stuck = crashes(schedule) >= 1 && two && schedule.link.loss_ppm > 3;
        if stuck { vec![ViolationKind::Leak, ViolationKind::Liveness] } else { vec![ViolationKind::Leak] }
    }

    #[test]
    fn a_shrunk_schedule_is_minimal() {
        let mut tried = 0;
        for seed in 0..300 {
            let schedule = Schedule::from_seed(seed);
            if !fails(&schedule).contains(&ViolationKind::Liveness) {
                continue;
            }
            tried += 1;
            let shrunk = shrink(&schedule, ViolationKind::Liveness, 10_000, &mut |schedule| fails(schedule));
            let small = &shrunk.schedule;
            // The crashed node may differ from the receivers' edge.
            assert!(small.nodes.len() <= 3, "seed {seed}: {} nodes", small.nodes.len());
            assert_eq!((small.receivers.len(), small.groups.len(), small.events.len()), (2, 1, 1), "seed {seed}");
            let TimedEvent { at_ns, event } = &small.events[0];
            assert!(matches!((at_ns, event), (0, Event::CrashNode { node: _, for_ns: 0 })), "seed {seed}: {event:?}");
            assert!((5001..10_002).contains(&small.groups[0].octets), "{}", small.groups[0].octets);
            assert!((4..8).contains(&small.link.loss_ppm), "{}", small.link.loss_ppm);
            assert_eq!((small.link.duplicate_ppm, small.link.corrupt_ppm, small.groups[0].first_psn), (0, 0, 0));
        }
        assert!(tried > 10, "{tried} schedules failed");
    }

    #[test]
    fn shrinking_ends_after_max_runs() {
        let schedule = Schedule::from_seed(1);
        let mut runs = 0;
        let shrunk = shrink(&schedule, ViolationKind::Liveness, 25, &mut |_| {
            runs += 1;
            vec![ViolationKind::Liveness]
        });
        assert_eq!((runs, shrunk.runs), (25, 25));
    }
}
