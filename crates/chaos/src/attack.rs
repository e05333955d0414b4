//! Chaos tests under attack: each schedule runs twice, without forged packets and with many, from inside and from
//! outside of the domain. An attack may cost time and packets but must not change any aggregation state.

use crate::events;
use crate::outcome::{GroupOutcome, Outcome};
use crate::rng::Rng;
use crate::runner::{Merge, Progress, RunConfig, RunSchedule, run_catching_panics, run_each};
use crate::scale::Scale;
use crate::schedule::{Event, Schedule, TimedEvent};
use crate::summary::{Summary, add_counts};
use std::collections::BTreeMap;

/// Attacks per schedule.
const ATTACKS: (u64, u64) = (8, 64);

const MAX_REPLAYED: u64 = 64;

impl Schedule {
    /// The schedule of a seed without forged and replayed packets.
    pub fn without_attack(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed(seed);
        schedule.events.retain(|timed| !matches!(timed.event, Event::Forge(_) | Event::Replay { .. }));
        schedule
    }

    /// [`Schedule::without_attack`] with forged ACKs, NAKs, CNPs, receiver lists and data, and with replayed frames,
    /// while the groups are active.
    pub fn under_attack(seed: u64) -> Schedule {
        let mut schedule = Schedule::without_attack(seed);
        let scale = Scale::of(&schedule);
        let mut rng = Rng::new(seed, "attack");
        for _ in 0..rng.log_uniform(ATTACKS.0, ATTACKS.1) {
            let at_ns = rng.range(0, scale.transfer_ns + scale.ack_timeout_ns);
            let event = if rng.one_in(6) {
                let node = 1 + rng.below(schedule.nodes.len() - 1);
                let frames = rng.log_uniform(1, MAX_REPLAYED) as u32;
                Event::Replay { node, up: !rng.one_in(3), frames }
            } else {
                Event::Forge(events::draw_forgery(&mut rng, &schedule, &scale))
            };
            schedule.events.push(TimedEvent { at_ns, event });
        }
        schedule.events.sort_by_key(|timed| timed.at_ns);
        schedule
    }
}

/// The combined result of many attacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Runs under attack.
    pub attacked: Summary,
    /// Groups that completed both with and without the attack.
    pub pairs: u64,
    /// Groups that completed without the attack only.
    pub prevented: u64,
    /// Counts of completion times under attack, in percent of the time without it.
    pub completion_percent: BTreeMap<u64, u64>,
    /// Cost of these groups without the attack.
    pub cost_without_attack: Cost,
    /// Cost of these groups under attack.
    pub cost_under_attack: Cost,
}

/// Cost of groups to their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Sum of completion times, in nanoseconds.
    pub completion_ns: u64,
    /// Retransmitted packets.
    pub packets_retransmitted: u64,
    /// ACK timeouts.
    pub timeouts: u64,
    /// CNPs received by the sources.
    pub cnps: u64,
}

impl Cost {
    fn add(&mut self, group: &GroupOutcome) {
        self.completion_ns += group.completed_ns.unwrap_or(0);
        self.packets_retransmitted += group.packets_retransmitted;
        self.timeouts += group.timeouts;
        self.cnps += group.cnps_received;
    }

    fn merge(&mut self, other: &Cost) {
        self.completion_ns += other.completion_ns;
        self.packets_retransmitted += other.packets_retransmitted;
        self.timeouts += other.timeouts;
        self.cnps += other.cnps;
    }
}

impl Comparison {
    /// Forged packets that changed a node's aggregation state. Must be 0.
    pub fn accepted(&self) -> u64 {
        self.attacked.forged.values().map(|outcome| outcome.accepted).sum()
    }

    /// A quantile of completion times under attack, in percent of those without.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (self.pairs * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.completion_percent.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map(|(percent, _)| *percent)
    }

    fn compare(&mut self, without_attack: &Outcome, attacked: &Outcome) {
        for (without, with) in without_attack.groups.iter().zip(&attacked.groups) {
            match (without.completed_ns, with.completed_ns) {
                (Some(without_ns), Some(with_ns)) => {
                    self.pairs += 1;
                    *self.completion_percent.entry(with_ns * 100 / without_ns.max(1)).or_default() += 1;
                    self.cost_without_attack.add(without);
                    self.cost_under_attack.add(with);
                }
                (Some(_), None) => self.prevented += 1,
                (None, _) => {}
            }
        }
    }
}

impl Merge for Comparison {
    fn merge(&mut self, other: Self) {
        Merge::merge(&mut self.attacked, other.attacked);
        self.pairs += other.pairs;
        self.prevented += other.prevented;
        add_counts(&mut self.completion_percent, &other.completion_percent);
        self.cost_without_attack.merge(&other.cost_without_attack);
        self.cost_under_attack.merge(&other.cost_under_attack);
    }
}

/// Runs each seed without and with its attack. Failures without an attack are not counted here: ordinary chaos tests
/// find them.
pub fn run(config: &RunConfig, world: RunSchedule<'_>, go_on: &(dyn Fn(Progress) -> bool + Sync)) -> Comparison {
    run_each(config, go_on, &|seed, comparison: &mut Comparison| {
        let without_attack = run_catching_panics(world, &Schedule::without_attack(seed));
        let schedule = Schedule::under_attack(seed);
        let attacked = run_catching_panics(world, &schedule);
        let fails = !attacked.violations.is_empty();
        comparison.compare(&without_attack, &attacked);
        comparison.attacked.merge(Summary::of(seed, &schedule, attacked));
        fails
    })
}
