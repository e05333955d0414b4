//! The paths to one destination.

use crate::chance;
use crate::config::Config;
use crate::path::{Event, Path, State, Why};
use crate::signal::Cause;
use crate::steering::PathIndex;
use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// Paths that one destination may have.
pub const MAX_PATHS: usize = 64;

/// Of the flows on a path, one in so many moves when the path itself, not a flow, is found to be congested: were all to
/// move, the next path would be.
const SHARE: u64 = 4;
/// Reason for which there is no such set of paths.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// None, or none but denied ones.
    #[error("a destination needs at least one path that is not denied")]
    NoPath,
    #[error("{0} paths to one destination, there may be {MAX_PATHS}")]
    TooMany(usize),
}

/// A path, for status and metrics.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathReport<'s> {
    pub path: &'s Path,
    pub state: State,
    /// Number of times that it was assumed bad.
    pub times_bad: u64,
    /// Flows that have been put on it.
    pub flows_taken: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    path: Path,
    state: State,
    /// Probes in a row without an answer.
    silent: u8,
    /// Times that it was assumed bad, since it was last usable for long.
    strikes: u8,
    /// Since when it is usable; of no meaning while it is not.
    usable_since: Instant,
    /// Number of times that the path itself was found to be congested, and why last.
    rounds: u32,
    rounds_cause: Cause,
    times_bad: u64,
    flows_taken: u64,
}

impl Entry {
    fn new(now: Instant, path: &Path) -> Self {
        let state = if path.is_denied { State::Denied } else { State::Unknown { since: now } };
        let path = path.clone();
        Entry {
            path,
            state,
            silent: 0,
            strikes: 0,
            usable_since: now,
            rounds: 0,
            rounds_cause: Cause::CeRatio,
            times_bad: 0,
            flows_taken: 0,
        }
    }
}

/// The paths to one destination.
#[derive(Clone, Debug)]
pub(crate) struct PathSet {
    entries: Vec<Entry>,
    /// Raised with every change that may concern a flow.
    pub(crate) version: u32,
    /// When time alone changes something next.
    pub(crate) changes_at: Instant,
    /// A probe has been answered: paths of which nothing is known are not thought to be good.
    is_probed: bool,
}

/// What a flow that reconsiders its path finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It can stay.
    Stay,
    /// It must leave its path.
    Leave(Cause),
    /// Its path is congested, and it belongs to the share that moves.
    Share(Cause),
}

impl PathSet {
    pub(crate) fn new(now: Instant, paths: &[Path]) -> Result<Self, PathError> {
        if paths.len() > MAX_PATHS {
            return Err(PathError::TooMany(paths.len()));
        }
        if paths.iter().all(|path| path.is_denied) {
            return Err(PathError::NoPath);
        }
        let entries = paths.iter().map(|path| Entry::new(now, path)).collect();
        Ok(PathSet { entries, version: 0, changes_at: Instant::NEVER, is_probed: false })
    }

    /// The same set with other paths. The state of those that stay is kept.
    pub(crate) fn replaced(&self, now: Instant, paths: &[Path]) -> Result<Self, PathError> {
        let mut set = PathSet::new(now, paths)?;
        set.version = self.version.wrapping_add(1);
        set.is_probed = self.is_probed;
        for entry in &mut set.entries {
            let before = self.entries.iter().find(|before| before.path.segments == entry.path.segments);
            if let Some(before) = before {
                let path = entry.path.clone();
                let state = match (path.is_denied, before.state) {
                    (true, _) => State::Denied,
                    (false, State::Denied) => State::Unknown { since: now },
                    (false, state) => state,
                };
                *entry = Entry { path, state, ..before.clone() };
            }
        }
        set.reckon();
        Ok(set)
    }

    /// Where each path of this set stands in another.
    pub(crate) fn place_in(&self, other: &PathSet, path: PathIndex) -> Option<PathIndex> {
        let segments = &self.entries.get(path.index())?.path.segments;
        let position = other.entries.iter().position(|entry| entry.path.segments == *segments)?;
        Some(PathIndex(position as u16))
    }

    pub(crate) fn reports(&self, now: Instant) -> impl Iterator<Item = PathReport<'_>> {
        self.entries.iter().map(move |entry| PathReport {
            path: &entry.path,
            state: entry.state.after(now, Event::Time, 0),
            times_bad: entry.times_bad,
            flows_taken: entry.flows_taken,
        })
    }

    /// Whether a path passes a node.
    pub(crate) fn passes(&self, path: PathIndex, node: Ipv6Addr) -> bool {
        self.entries.get(path.index()).is_some_and(|entry| entry.path.nodes.contains(&node))
    }

    /// A probe of a path was not answered; whether the path is taken for dead now.
    pub(crate) fn silent(&mut self, config: &Config, now: Instant, path: PathIndex) -> bool {
        let Some(entry) = self.entries.get_mut(path.index()) else { return false };
        entry.silent = entry.silent.saturating_add(1);
        let is_dead = entry.silent >= config.silent_probes;
        if is_dead {
            self.happen(config, now, path, Event::Silent);
        }
        is_dead
    }

    /// A probe of a path was answered.
    pub(crate) fn answered(&mut self, config: &Config, now: Instant, path: PathIndex) {
        if let Some(entry) = self.entries.get_mut(path.index()) {
            entry.silent = 0;
            self.is_probed = true;
            self.happen(config, now, path, Event::Answered);
        }
    }

    /// A path is congested, as one of its flows has found.
    pub(crate) fn congested(&mut self, config: &Config, now: Instant, path: PathIndex) {
        self.happen(config, now, path, Event::Congested);
    }

    /// Every path by way of a node is.
    pub(crate) fn congested_at(&mut self, config: &Config, now: Instant, node: Ipv6Addr) {
        for index in 0..self.entries.len() {
            let path = PathIndex(index as u16);
            if self.passes(path, node) {
                self.happen(config, now, path, Event::Congested);
            }
        }
    }

    /// A path is congested, as it was found to be by itself.
    pub(crate) fn congested_itself(&mut self, config: &Config, now: Instant, path: PathIndex, cause: Cause) {
        self.happen(config, now, path, Event::Congested);
        if let Some(entry) = self.entries.get_mut(path.index()) {
            (entry.rounds, entry.rounds_cause) = (entry.rounds.wrapping_add(1), cause);
            self.version = self.version.wrapping_add(1);
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, config: &Config, now: Instant) {
        if now >= self.changes_at {
            for index in 0..self.entries.len() {
                self.happen(config, now, PathIndex(index as u16), Event::Time);
            }
        }
    }

    fn happen(&mut self, config: &Config, now: Instant, path: PathIndex, event: Event) {
        let Some(entry) = self.entries.get_mut(path.index()) else { return };
        let before = entry.state;
        let strikes = match before.is_usable() {
            // What was usable for long starts anew.
            true if now.since(entry.usable_since).as_nanos() >= u128::from(config.hold_most_ns) => 1,
            true => entry.strikes.saturating_add(1),
            false => entry.strikes.max(1),
        };
        let doubled = config.hold_ns.saturating_mul(1 << u32::from(strikes - 1).min(40));
        entry.state = before.after(now, event, doubled.min(config.hold_most_ns.max(config.hold_ns)));
        match (before.is_usable(), entry.state.is_usable()) {
            (true, false) => {
                entry.strikes = strikes;
                entry.times_bad += 1;
            }
            (false, true) => entry.usable_since = entry.state.since().unwrap_or(now),
            (true, true) | (false, false) => {}
        }
        let changed = before.badness() != entry.state.badness() || before.name() != entry.state.name();
        if changed {
            self.version = self.version.wrapping_add(1);
        }
        self.reckon();
    }

    fn reckon(&mut self) {
        self.changes_at = self.entries.iter().map(|entry| entry.state.changes_at()).min().unwrap_or(Instant::NEVER);
    }

    /// What a flow on a path finds that reconsiders it. `seen` is the number of congestion rounds at its last packet;
    /// it gets how many there were.
    pub(crate) fn look(&self, seed: u64, key: u64, path: PathIndex, seen: &mut u32) -> Finding {
        let Some(entry) = self.entries.get(path.index()) else { return Finding::Leave(Cause::Denied) };
        let is_new = std::mem::replace(seen, entry.rounds) != entry.rounds;
        match entry.state {
            State::Denied => Finding::Leave(Cause::Denied),
            State::AssumedBad { why: Why::Silent { .. }, .. } => Finding::Leave(Cause::Silence),
            State::Unknown { .. } | State::Good { .. } | State::AssumedBad { why: Why::Congested, .. } => {
                let is_chosen = is_new && chance::draw(seed, key, entry.rounds.into()).is_multiple_of(SHARE);
                if is_chosen { Finding::Share(entry.rounds_cause) } else { Finding::Stay }
            }
        }
    }

    pub(crate) fn rounds(&self, path: PathIndex) -> u32 {
        self.entries.get(path.index()).map_or(0, |entry| entry.rounds)
    }

    /// The least bad path, of those the best ranked, of those one by chance: for a flow that begins.
    pub(crate) fn first(&mut self, drawn: u64) -> Option<PathIndex> {
        self.take(drawn, |_, entry| entry.state.badness().map(|badness| (badness, entry.path.rank)))
    }

    /// A path for a flow that leaves another: a usable one; where that carries nothing, a congested one is better, and
    /// where it is denied, any.
    pub(crate) fn another(&mut self, drawn: u64, from: PathIndex) -> Option<PathIndex> {
        let limit = match self.entries.get(from.index()).map(|entry| entry.state.badness()) {
            Some(None) | None => 2,
            Some(Some(2)) => 1,
            Some(Some(_)) => 0,
        };
        self.take(drawn, |path, entry| {
            let badness = entry.state.badness().filter(|badness| *badness <= limit)?;
            (path != from).then_some((badness, entry.path.rank))
        })
    }

    /// A better ranked path for a flow that comes back, if one was good for long enough.
    pub(crate) fn home(&mut self, config: &Config, now: Instant, key: u64, from: PathIndex) -> Option<PathIndex> {
        let (rank, is_probed) = (self.rank(from), self.is_probed);
        let patience_ns = patience_ns(config, key);
        let drawn = chance::draw(config.seed, key, u64::from(self.version));
        self.take(drawn, |_, entry| {
            let since = good_since(&entry.state, is_probed).filter(|_| entry.path.rank < rank)?;
            (since.after_ns(patience_ns) <= now).then_some((0, entry.path.rank))
        })
    }

    /// Time at which a flow may come back to a better ranked path than its own.
    pub(crate) fn home_at(&self, config: &Config, key: u64, from: PathIndex) -> Instant {
        let rank = self.rank(from);
        let better = self.entries.iter().filter(|entry| entry.path.rank < rank);
        let since = better.filter_map(|entry| good_since(&entry.state, self.is_probed)).min();
        since.map_or(Instant::NEVER, |since| since.after_ns(patience_ns(config, key)))
    }

    fn rank(&self, path: PathIndex) -> u16 {
        self.entries.get(path.index()).map_or(u16::MAX, |entry| entry.path.rank)
    }

    /// One of the paths that `order` puts first; paths without an order are left out.
    fn take(&mut self, drawn: u64, order: impl Fn(PathIndex, &Entry) -> Option<(u8, u16)>) -> Option<PathIndex> {
        let places = || self.entries.iter().enumerate().map(|(index, entry)| (PathIndex(index as u16), entry));
        let ordered = || places().filter_map(|(path, entry)| Some((order(path, entry)?, path)));
        let best = ordered().map(|(order, _)| order).min()?;
        let equals = || ordered().filter(|(order, _)| *order == best);
        let chosen = chance::below(drawn, equals().count() as u64) as usize;
        let (_, path) = equals().nth(chosen)?;
        self.entries[path.index()].flows_taken += 1;
        Some(path)
    }
}

/// Each flow comes back after a while of its own, so that they do not all do at once.
fn patience_ns(config: &Config, key: u64) -> u64 {
    let jitter = chance::below(chance::draw(config.seed, key, u64::MAX), config.return_ns);
    config.return_ns.saturating_add(jitter)
}

/// Since when a path is good enough to come back to. Without probes, a path without signals is good.
fn good_since(state: &State, is_probed: bool) -> Option<Instant> {
    match state {
        State::Good { since } => Some(*since),
        State::Unknown { since } if !is_probed => Some(*since),
        State::Unknown { .. } | State::AssumedBad { .. } | State::Denied => None,
    }
}
