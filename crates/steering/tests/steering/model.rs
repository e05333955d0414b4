//! Steering beside a slow model that keeps every signal, and computes each result anew from them.
//! Chance is not modelled: the model gives the permitted paths, and follows the choice.

use proptest::prelude::*;
use srdma_steering::{
    Boundary, Cause, Choice, Config, FlowKey, Limits, Mode, Path, PathIndex, SetId, Signal, Steering, Subject,
};
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const DWELL: u64 = 100;
const HOLD: u64 = 1_000;
const HOLD_MOST: u64 = 8_000;
const IDLE: u64 = 150;
const SILENT: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send { flow: u8, begins: bool },
    Cnp(u8),
    FastCnp { flow: u8, node: u8 },
    Silent(u8),
    Answered(u8),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8, any::<bool>()).prop_map(|(flow, begins)| Step::Send { flow, begins }),
        1 => (0..5_u8).prop_map(Step::Cnp),
        2 => (0..5_u8, 0..5_u8).prop_map(|(flow, node)| Step::FastCnp { flow, node }),
        3 => (0..4_u8).prop_map(Step::Silent),
        2 => (0..4_u8).prop_map(Step::Answered),
        4 => prop_oneof![0..30_u16, 30..300_u16, 300..3_000_u16].prop_map(Step::Pass),
    ]
}

/// A signal about a path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Observed {
    Congested,
    Dead,
    Answered,
}

/// How a path stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Usable,
    Congested,
    Silent,
}

#[derive(Clone, Debug, Default)]
struct ModelPath {
    rank: u16,
    is_denied: bool,
    observed: Vec<(u64, Observed)>,
    unanswered: usize,
}

impl ModelPath {
    /// Reads the whole history once more.
    fn standing(&self, now: u64) -> Standing {
        let mut standing = Standing::Usable;
        let (mut until, mut usable_since, mut strikes, mut answered) = (0, 0, 0_u32, false);
        let expire = |standing: &mut Standing, until: u64, usable_since: &mut u64, answered: bool, now: u64| {
            let is_over = match standing {
                Standing::Usable => false,
                Standing::Congested => now >= until,
                Standing::Silent => answered && now >= until,
            };
            if is_over {
                (*standing, *usable_since) = (Standing::Usable, until);
            }
        };
        for (at, observed) in &self.observed {
            expire(&mut standing, until, &mut usable_since, answered, *at);
            let strike = |standing: Standing, strikes: &mut u32| {
                if standing == Standing::Usable {
                    *strikes = if at - usable_since >= HOLD_MOST { 1 } else { *strikes + 1 };
                }
                at + (HOLD << (*strikes - 1).min(30)).min(HOLD_MOST)
            };
            match (observed, standing) {
                (Observed::Congested, Standing::Silent) => {}
                (Observed::Congested, _) => {
                    until = strike(standing, &mut strikes);
                    standing = Standing::Congested;
                }
                (Observed::Dead, _) => {
                    until = strike(standing, &mut strikes);
                    (standing, answered) = (Standing::Silent, false);
                }
                (Observed::Answered, Standing::Silent) if *at >= until => {
                    (standing, usable_since) = (Standing::Usable, *at);
                }
                (Observed::Answered, _) => answered = true,
            }
        }
        expire(&mut standing, until, &mut usable_since, answered, now);
        standing
    }
}

#[derive(Clone, Copy, Debug)]
struct ModelFlow {
    path: usize,
    moved: Option<u64>,
    last: u64,
    wanted: bool,
}

#[derive(Debug)]
struct Model {
    paths: Vec<ModelPath>,
    flows: BTreeMap<u8, ModelFlow>,
    is_ordered: bool,
}

impl Model {
    fn order(&self, now: u64, path: usize) -> Option<(u8, u16)> {
        let entry = &self.paths[path];
        let badness = match entry.standing(now) {
            Standing::Usable => 0,
            Standing::Congested => 1,
            Standing::Silent => 2,
        };
        (!entry.is_denied).then_some((badness, entry.rank))
    }

    fn best(&self, now: u64, may: impl Fn(usize, u8) -> bool) -> Vec<usize> {
        let ordered: Vec<_> = (0..self.paths.len())
            .filter_map(|path| {
                self.order(now, path).filter(|(badness, _)| may(path, *badness)).map(|order| (order, path))
            })
            .collect();
        let best = ordered.iter().map(|(order, _)| *order).min();
        ordered.into_iter().filter(|(order, _)| Some(*order) == best).map(|(_, path)| path).collect()
    }

    /// Records the choice, and returns whether it is permitted.
    fn send(&mut self, now: u64, flow: u8, begins: bool, chosen: Choice) -> Result<(), String> {
        let path = chosen.path.index();
        let Some(known) = self.flows.get(&flow).copied() else {
            let may = self.best(now, |_, _| true);
            self.flows.insert(flow, ModelFlow { path, moved: None, last: now, wanted: false });
            return if may.contains(&path) { Ok(()) } else { Err(format!("begins on {path}, best are {may:?}")) };
        };
        let is_silent = self.paths[known.path].standing(now) == Standing::Silent;
        let is_idle = now - known.last >= IDLE;
        let may_move = !self.is_ordered || begins || is_idle || is_silent;
        let limit = u8::from(is_silent);
        let others = self.best(now, |other, badness| other != known.path && badness <= limit);
        let result = match (known.wanted || is_silent) && may_move {
            true if others.is_empty() && path == known.path => Ok(()),
            true if others.contains(&path) => Ok(()),
            // What carries nothing was found to be so before, and there was nowhere to go.
            true if is_silent && !known.wanted && path == known.path => Ok(()),
            false if path == known.path => Ok(()),
            moves => Err(format!("on {}, moves {moves}, takes {path}, could take {others:?}", known.path)),
        };
        let moved = if path == known.path { known.moved } else { Some(now) };
        let wanted = known.wanted && !may_move;
        self.flows.insert(flow, ModelFlow { path, moved, last: now, wanted });
        result
    }

    fn congested(&mut self, now: u64, flow: u8, node: Option<usize>) {
        let Some(known) = self.flows.get_mut(&flow) else { return };
        if let Some(node) = node.filter(|node| *node < self.paths.len()) {
            self.paths[node].observed.push((now, Observed::Congested));
        }
        let dwells = known.moved.is_some_and(|moved| now < moved + DWELL);
        if dwells || node.is_some_and(|node| node != known.path) {
            return;
        }
        if node.is_none() {
            self.paths[known.path].observed.push((now, Observed::Congested));
        }
        known.wanted = true;
    }
}

fn node(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, number as u16)
}

fn key(flow: u8) -> FlowKey {
    FlowKey::new(0x1234_5678_9ABC_DEF0_u64.wrapping_mul(u64::from(flow) * 2 + 1))
}

/// No path returns within such a history: returns are tested in `bursts.rs`.
fn config(mode: Mode, seed: u64) -> Config {
    Config {
        mode,
        dwell_ns: DWELL,
        hold_ns: HOLD,
        hold_most_ns: HOLD_MOST,
        return_ns: 1 << 50,
        idle_gap_ns: IDLE,
        silent_probes: SILENT as u8,
        limits: Limits::default(),
        flows: 64,
        seed,
    }
}

fn paths(ranks: &[(u16, bool)]) -> Vec<Path> {
    let path = |(number, (rank, is_denied)): (usize, &(u16, bool))| Path {
        segments: vec![node(number)],
        nodes: vec![node(number)],
        rank: *rank,
        is_denied: *is_denied,
    };
    ranks.iter().enumerate().map(path).collect()
}

struct Run {
    steering: Steering,
    set: SetId,
    model: Model,
    now: u64,
}

impl Run {
    fn new(ranks: &[(u16, bool)], mode: Mode, seed: u64) -> Self {
        let mut steering = Steering::new(config(mode, seed));
        let set = steering.set_paths(Instant::ZERO, None, &paths(ranks)).unwrap();
        let path =
            |(rank, is_denied): &(u16, bool)| ModelPath { rank: *rank, is_denied: *is_denied, ..ModelPath::default() };
        let model = Model {
            paths: ranks.iter().map(path).collect(),
            flows: BTreeMap::new(),
            is_ordered: mode == Mode::Ordered,
        };
        Run { steering, set, model, now: 1 }
    }

    fn step(&mut self, step: Step) -> Result<Option<PathIndex>, String> {
        let now = Instant::from_ns(self.now);
        match step {
            Step::Pass(ns) => self.now += u64::from(ns),
            Step::Send { flow, begins } => {
                let boundary = if begins { Boundary::Message } else { Boundary::WithinMessage };
                let chosen = self.steering.choose(now, self.set, key(flow), boundary).ok_or("no path")?;
                self.model.send(self.now, flow, begins, chosen)?;
                return Ok(Some(chosen.path));
            }
            Step::Cnp(flow) => {
                self.steering.handle_signal(now, Subject::Flow(key(flow)), Signal::Cnp);
                self.model.congested(self.now, flow, None);
            }
            Step::FastCnp { flow, node: number } => {
                self.steering.handle_signal(
                    now,
                    Subject::Flow(key(flow)),
                    Signal::FastCnp { avoid: node(number.into()) },
                );
                self.model.congested(self.now, flow, Some(number.into()));
            }
            Step::Silent(path) => {
                let subject = Subject::Path(self.set, PathIndex(path.into()));
                self.steering.handle_signal(now, subject, Signal::ProbeSilent);
                if let Some(path) = self.model.paths.get_mut(usize::from(path)) {
                    path.unanswered += 1;
                    if path.unanswered >= SILENT {
                        path.observed.push((self.now, Observed::Dead));
                    }
                }
            }
            Step::Answered(path) => {
                let subject = Subject::Path(self.set, PathIndex(path.into()));
                self.steering.handle_signal(now, subject, Signal::ProbeAnswered);
                if let Some(path) = self.model.paths.get_mut(usize::from(path)) {
                    path.unanswered = 0;
                    path.observed.push((self.now, Observed::Answered));
                }
            }
        }
        Ok(None)
    }
}

fn ranks() -> impl Strategy<Value = Vec<(u16, bool)>> {
    let path = (0..3_u16, prop::bool::weighted(0.15));
    prop::collection::vec(path, 1..5).prop_filter("a path", |paths| paths.iter().any(|(_, is_denied)| !is_denied))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// D83, D84, D85: whatever the signals and their order, each packet takes a path that the model allows, a denied
    /// one never, and the same history with the same seed takes the same paths.
    #[test]
    fn every_choice_is_one_that_the_model_allows(
        ranks in ranks(),
        is_ordered: bool,
        seed: u64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mode = if is_ordered { Mode::Ordered } else { Mode::Fast };
        let (mut run, mut again) = (Run::new(&ranks, mode, seed), Run::new(&ranks, mode, seed));
        for (index, step) in steps.iter().enumerate() {
            let chosen = run.step(*step).map_err(|error| TestCaseError::fail(format!("step {index}: {error}")))?;
            if let Some(path) = chosen {
                prop_assert!(!ranks[path.index()].1, "a denied path");
            }
            prop_assert_eq!(chosen, again.step(*step).unwrap_or(None));
        }
        let counters = run.steering.counters();
        prop_assert_eq!(counters.moves_by(Cause::Return), 0);
    }
}
