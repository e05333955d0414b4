//! Running a search, and telling what it found.

use crate::bounds::Bounds;
use crate::model::{COMPLETION, PROGRESS, TRUTH, Tree};
use crate::shape::Shape;
use crate::state::Action;
use indicatif::ProgressBar;
use stateright::{Checker, HasDiscoveries, Model};
use std::time::{Duration, Instant};

/// How often progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// In which order states are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those with the fewest steps first: the way to a failure is as short as can be.
    Shortest,
    /// Deep ones first: little memory.
    Deepest,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Different states that were reached.
    pub states: usize,
    /// Steps of the longest way that was taken.
    pub depth: usize,
    /// States that one node was in.
    pub machines: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether all states were reached.
    pub complete: bool,
    /// The end of the source's work was reached somewhere.
    pub completed: bool,
    /// The property that does not hold, and the way there.
    pub failure: Option<Failure>,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The property.
    pub property: &'static str,
    /// What happened, in order.
    pub path: Vec<Action>,
}

/// Searches all that can happen in a tree within bounds, until something fails, everything is reached, or so many
/// states were reached.
pub fn search(shape: &Shape, bounds: &Bounds, order: Order, threads: usize, most_states: Option<usize>) -> Finding {
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

/// Waits for a checker, and says on a terminal how far it is.
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

/// The shortest way to a failure, from one that was found: searched anew with ever fewer steps.
pub fn shortest(shape: &Shape, bounds: &Bounds, found: Failure) -> Failure {
    let mut least = found;
    loop {
        // A way of so many steps has one state more; those that have as many are left out.
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
    let failure = [TRUTH, PROGRESS].into_iter().find_map(|property| {
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
