//! Storms with an attacker: each schedule is run twice, without any forged packet and with very many, from inside and
//! from outside the domain. What differs is what the attack has cost; what it has achieved must be nothing.

use crate::dice::Dice;
use crate::events;
use crate::outcome::{GroupOutcome, Outcome};
use crate::runner::{Gathered, Order, Progress, World, guarded, run_each};
use crate::scale::Scale;
use crate::schedule::{Event, Schedule, Timed};
use crate::summary::{Summary, add_counts};
use std::collections::BTreeMap;

/// Attacks on one schedule.
const ATTACKS: (u64, u64) = (8, 64);

/// Frames of one replay, at most.
const MOST_REPLAYED: u64 = 64;

impl Schedule {
    /// The schedule of a seed without anybody who lies.
    pub fn honest(seed: u64) -> Schedule {
        let mut schedule = Schedule::from_seed(seed);
        schedule.events.retain(|timed| !matches!(timed.event, Event::Forge(_) | Event::Replay { .. }));
        schedule
    }

    /// [`Schedule::honest`] under attack: forged ACKs, NAKs, CNPs, lists and data, and packets said again, while the
    /// groups are at work.
    pub fn attacked(seed: u64) -> Schedule {
        let mut schedule = Schedule::honest(seed);
        let scale = Scale::of(&schedule);
        let mut dice = Dice::new(seed, "attack");
        for _ in 0..dice.over_doublings(ATTACKS.0, ATTACKS.1) {
            let at_ns = dice.between(0, scale.transfer_ns + scale.ack_timeout_ns);
            let event = if dice.one_in(6) {
                let node = 1 + dice.position(schedule.nodes.len() - 1);
                let frames = dice.over_doublings(1, MOST_REPLAYED) as u32;
                Event::Replay { node, up: !dice.one_in(3), frames }
            } else {
                Event::Forge(events::draw_forgery(&mut dice, &schedule, &scale))
            };
            schedule.events.push(Timed { at_ns, event });
        }
        schedule.events.sort_by_key(|timed| timed.at_ns);
        schedule
    }
}

/// What many attacks come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The runs under attack.
    pub attacked: Summary,
    /// Groups that were complete both with and without the attack.
    pub pairs: u64,
    /// Groups that were complete without the attack alone, though nothing else went wrong.
    pub prevented: u64,
    /// Completion time under attack, in hundredths of that without, and how often each was seen.
    pub completion_percent: BTreeMap<u64, u64>,
    /// What those groups cost without the attack.
    pub honest_cost: Cost,
    /// What they cost under attack.
    pub attacked_cost: Cost,
}

/// What groups cost their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nanoseconds until all was acknowledged, of all groups together.
    pub completion_ns: u64,
    /// Packets that were sent again.
    pub packets_retransmitted: u64,
    /// ACK timers that ran out.
    pub timeouts: u64,
    /// CNPs that reached the sources.
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
    /// Forged packets that changed what a node aggregates; there must be none.
    pub fn believed(&self) -> u64 {
        self.attacked.forged.values().map(|fates| fates.believed).sum()
    }

    /// The completion time under attack, in hundredths of that without, that so many of 1,000 groups do not exceed.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let wanted = (self.pairs * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.completion_percent.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map(|(percent, _)| *percent)
    }

    fn compare(&mut self, honest: &Outcome, attacked: &Outcome) {
        for (without, with) in honest.groups.iter().zip(&attacked.groups) {
            match (without.completed_ns, with.completed_ns) {
                (Some(without_ns), Some(with_ns)) => {
                    self.pairs += 1;
                    *self.completion_percent.entry(with_ns * 100 / without_ns.max(1)).or_default() += 1;
                    self.honest_cost.add(without);
                    self.attacked_cost.add(with);
                }
                (Some(_), None) => self.prevented += 1,
                (None, _) => {}
            }
        }
    }
}

impl Gathered for Comparison {
    fn merge(&mut self, other: Self) {
        Gathered::merge(&mut self.attacked, other.attacked);
        self.pairs += other.pairs;
        self.prevented += other.prevented;
        add_counts(&mut self.completion_percent, &other.completion_percent);
        self.honest_cost.merge(&other.honest_cost);
        self.attacked_cost.merge(&other.attacked_cost);
    }
}

/// Runs each seed without and with its attack. A schedule that fails without its attack is none of the attack's
/// business and is left to ordinary storms.
pub fn run(order: &Order, world: World<'_>, go_on: &(dyn Fn(Progress) -> bool + Sync)) -> Comparison {
    run_each(order, go_on, &|seed, comparison: &mut Comparison| {
        let honest = guarded(world, &Schedule::honest(seed));
        let schedule = Schedule::attacked(seed);
        let attacked = guarded(world, &schedule);
        let fails = !attacked.complaints.is_empty();
        comparison.compare(&honest, &attacked);
        comparison.attacked.merge(Summary::of(seed, &schedule, attacked));
        fails
    })
}
