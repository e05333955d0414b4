//! All states of the commit protocol's model.

use super::action::{CommitAction, Kind};
use super::bounds::CommitBounds;
use super::checks::{COMMIT_NAMED, COMMIT_NAMES, COMMIT_PROGRESS};
use super::world::{Model, World};
use crate::check::Order;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct CommitFinding {
    /// Distinct states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Steps of the longest path on which a state was found.
    pub depth: u32,
    /// States in which the group is at rest.
    pub goals: usize,
    /// Events that have happened.
    pub events: BTreeSet<CommitAction>,
    /// Duration of the exploration.
    pub took: Duration,
    /// Whether all states were explored.
    pub complete: bool,
    /// The violation.
    pub failure: Option<CommitFailure>,
}

/// A violated property with its counterexample.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct CommitFailure {
    pub property: &'static str,
    pub text: String,
    /// The events, in order.
    pub path: Vec<CommitAction>,
}

/// The states found so far, by number.
#[derive(Default)]
struct Graph {
    numbers: HashMap<u64, u32>,
    /// The state from which each was found first, and the event.
    found_by: Vec<Option<(u32, CommitAction)>>,
    depth: Vec<u32>,
    /// Steps without faults, from and to.
    progress: Vec<(u32, u32)>,
    goals: Vec<u32>,
}

impl Graph {
    /// The number of a state, and whether it is new.
    fn number(&mut self, fingerprint: u64, from: Option<(u32, CommitAction)>) -> (u32, bool) {
        let next = self.found_by.len() as u32;
        let number = *self.numbers.entry(fingerprint).or_insert(next);
        if number == next {
            self.depth.push(from.map_or(0, |(from, _)| self.depth[from as usize] + 1));
            self.found_by.push(from);
        }
        (number, number == next)
    }

    fn path(&self, to: u32) -> Vec<CommitAction> {
        let mut path = Vec::new();
        let mut next = to;
        while let Some((from, action)) = self.found_by[next as usize] {
            path.push(action);
            next = from;
        }
        path.reverse();
        path
    }

    fn failure(&self, at: u32, property: &'static str, text: String) -> CommitFailure {
        CommitFailure { property, text, path: self.path(at) }
    }

    /// The first state from which no goal is reached without faults.
    fn stuck(&self) -> Option<u32> {
        let states = self.found_by.len();
        let mut before = vec![Vec::new(); states];
        for (from, to) in &self.progress {
            before[*to as usize].push(*from);
        }
        let mut reaches = vec![false; states];
        let mut next = self.goals.clone();
        while let Some(state) = next.pop() {
            if !std::mem::replace(&mut reaches[state as usize], true) {
                next.extend(&before[state as usize]);
            }
        }
        let stuck = (0..states).filter(|state| !reaches[*state]).min_by_key(|state| self.depth[*state])?;
        Some(stuck as u32)
    }
}

/// Explores all states within bounds, until a property is violated, or `most_states` are found.
///
/// # Errors
///
/// The first state cannot be reached.
pub fn check_commit(bounds: CommitBounds, order: Order, most_states: Option<usize>) -> Result<CommitFinding, String> {
    let begin = Instant::now();
    let model = Model::new(bounds)?;
    let mut graph = Graph::default();
    let mut finding = CommitFinding {
        states: 0,
        steps: 0,
        depth: 0,
        goals: 0,
        events: BTreeSet::new(),
        took: Duration::ZERO,
        complete: false,
        failure: None,
    };
    let mut waiting = VecDeque::from([(0, model.initial.clone())]);
    graph.number(model.initial.fingerprint(), None);
    while let Some((number, world)) = match order {
        Order::Shortest => waiting.pop_front(),
        Order::Deepest => waiting.pop_back(),
    } {
        if most_states.is_some_and(|most| graph.found_by.len() >= most) {
            break;
        }
        finding.failure = expand(&model, &mut graph, &mut finding, &mut waiting, number, &world).err();
        if finding.failure.is_some() {
            break;
        }
        finding.complete = waiting.is_empty();
    }
    if finding.complete
        && let Some(stuck) = graph.stuck()
    {
        finding.failure = Some(graph.failure(stuck, COMMIT_PROGRESS, "no further event leads to rest".to_owned()));
    }
    finding.states = graph.found_by.len();
    finding.depth = graph.depth.iter().copied().max().unwrap_or(0);
    finding.goals = graph.goals.len();
    finding.took = begin.elapsed();
    Ok(finding)
}

/// Finds the states that follow a state.
fn expand(
    model: &Model,
    graph: &mut Graph,
    finding: &mut CommitFinding,
    waiting: &mut VecDeque<(u32, World)>,
    number: u32,
    world: &World,
) -> Result<(), CommitFailure> {
    let (mut may_progress, mut may_heal) = (false, false);
    for action in model.actions(world) {
        let next = model.after(world, action).map_err(|text| {
            let mut failure = graph.failure(number, COMMIT_NAMES, text);
            failure.path.push(action);
            failure
        })?;
        let (to, is_new) = graph.number(next.fingerprint(), Some((number, action)));
        if to == number {
            continue;
        }
        finding.steps += 1;
        finding.events.insert(action);
        match model.kind(world, action) {
            Kind::Progress => may_progress = true,
            Kind::Heal => may_heal = true,
            Kind::Fault => {}
        }
        if model.kind(world, action) != Kind::Fault {
            graph.progress.push((number, to));
        }
        if is_new {
            next.check(model).map_err(|(property, text)| graph.failure(to, property, text))?;
            waiting.push_back((to, next));
        }
    }
    if !may_progress {
        world.check_named().map_err(|text| graph.failure(number, COMMIT_NAMED, text))?;
        if !may_heal && world.is_goal(model) {
            graph.goals.push(number);
        }
    }
    Ok(())
}
