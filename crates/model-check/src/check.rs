//! Running the checker, and its result.

use crate::bounds::Bounds;
use crate::model::{COMPLETION, PROGRESS, SAFETY, Tree};
use crate::shape::Shape;
use crate::state::Action;
use indicatif::ProgressBar;
use stateright::{Checker, HasDiscoveries, Model};
use std::time::{Duration, Instant};

/// Interval of progress updates.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The order of exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Breadth-first: counterexamples are the shortest.
    Shortest,
    /// Depth-first: little memory.
    Deepest,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Distinct states.
    pub states: usize,
    /// Steps of the longest path.
    pub depth: usize,
    /// Distinct states of the machine of a node.
    pub machines: usize,
    /// Duration of the check.
    pub took: Duration,
    /// Whether all states were explored.
    pub complete: bool,
    /// Whether some state completes all packets.
    pub completed: bool,
    /// The violation.
    pub failure: Option<Failure>,
}

/// A violated property with its counterexample.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct Failure {
    pub property: &'static str,
    /// The events, in order.
    pub path: Vec<Action>,
}

/// Explores all states of a tree within bounds, until a property is violated, or `most_states` are reached.
pub fn check(shape: &Shape, bounds: &Bounds, order: Order, threads: usize, most_states: Option<usize>) -> Finding {
    let begin = Instant::now();
    let mut builder =
        Tree::new(shape, bounds.clone()).checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if let Some(most) = most_states {
        builder = builder.target_state_count(most);
    }
    match order {
        Order::Shortest => finding(&watched(builder.spawn_bfs()), begin, most_states),
        Order::Deepest => finding(&watched(builder.spawn_dfs()), begin, most_states),
    }
}

/// Waits for a checker, with its progress on a terminal.
fn watched<C: Checker<Tree>>(mut checker: C) -> C {
    let progress = ProgressBar::new_spinner();
    for handle in checker.handles() {
        while !handle.is_finished() {
            std::thread::sleep(LOOK_EVERY);
            progress.set_message(format!("{} states", checker.unique_state_count()));
            progress.tick();
        }
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
    progress.finish_and_clear();
    checker
}

/// The shortest counterexample of a violation: the check is repeated with ever fewer steps.
pub fn shortest(shape: &Shape, bounds: &Bounds, found: Failure) -> Failure {
    let mut least = found;
    loop {
        // A path of n steps has n + 1 states; paths of the same length are excluded.
        let builder = Tree::new(shape, bounds.clone()).checker().finish_when(HasDiscoveries::AnyFailures);
        let checker = builder.target_max_depth(least.path.len() + 1).spawn_bfs().join();
        match finding(&checker, Instant::now(), None).failure {
            Some(shorter) => least = shorter,
            None => return least,
        }
    }
}

fn finding(checker: &impl Checker<Tree>, begin: Instant, most_states: Option<usize>) -> Finding {
    let mut discoveries = checker.discoveries();
    let completed = discoveries.remove(COMPLETION).is_some();
    let failure = [SAFETY, PROGRESS].into_iter().find_map(|property| {
        let path = discoveries.remove(property)?;
        Some(Failure { property, path: path.into_actions() })
    });
    Finding {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        machines: checker.model().machines(),
        took: begin.elapsed(),
        complete: failure.is_none() && most_states.is_none_or(|most| checker.state_count() < most),
        completed,
        failure,
    }
}
