//! The paths to one destination.

use crate::config::Config;
use crate::path::{BadCause, Event, Path, State};
use crate::random;
use crate::signal::Cause;
use crate::steering::PathIndex;
use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// Maximum number of paths to a destination.
pub const MAX_PATHS: usize = 64;

/// One in this many flows moves when congestion is reported for a path rather than for a flow: if all moved, the next
/// path would be congested.
const SHARE: u64 = 4;

/// Error in a set of paths.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// There is no path, or all are denied.
    #[error("a destination needs at least one path that is not denied")]
    NoPath,
    #[error("{0} paths to one destination, the maximum is {MAX_PATHS}")]
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
    /// Consecutive probes without a reply.
    silent: u8,
    /// Number of times that the path was assumed bad since it was last usable for `hold_most`.
    recent_times_bad: u8,
    /// Start of the current usable period; undefined otherwise.
    usable_since: Instant,
    /// Number of congestion reports of the path itself, and the cause of the last one.
    path_reports: u32,
    last_report_cause: Cause,
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
            recent_times_bad: 0,
            usable_since: now,
            path_reports: 0,
            last_report_cause: Cause::CeRatio,
            times_bad: 0,
            flows_taken: 0,
        }
    }
}

/// The paths to one destination.
#[derive(Clone, Debug)]
pub(crate) struct PathSet {
    entries: Vec<Entry>,
    /// Incremented with every change that may concern a flow.
    pub(crate) version: u32,
    /// Time of the next change without a signal.
    pub(crate) changes_at: Instant,
    /// A probe was answered: unknown paths are then not considered good.
    is_probed: bool,
}

/// Assessment of the path of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// The flow may stay.
    Stay,
    /// The flow must leave the path.
    Leave(Cause),
    /// The path is congested, and the flow belongs to the share that moves.
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

    /// The set with other paths. Paths that remain keep their state.
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
        set.update_changes_at();
        Ok(set)
    }

    /// Index of a path of this set in another.
    pub(crate) fn index_in(&self, other: &PathSet, path: PathIndex) -> Option<PathIndex> {
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

    /// A probe of a path was not answered; returns whether the path is considered silent.
    pub(crate) fn silent(&mut self, config: &Config, now: Instant, path: PathIndex) -> bool {
        let Some(entry) = self.entries.get_mut(path.index()) else { return false };
        entry.silent = entry.silent.saturating_add(1);
        let is_silent = entry.silent >= config.silent_probes;
        if is_silent {
            self.apply(config, now, path, Event::Silent);
        }
        is_silent
    }

    /// A probe of a path was answered.
    pub(crate) fn answered(&mut self, config: &Config, now: Instant, path: PathIndex) {
        if let Some(entry) = self.entries.get_mut(path.index()) {
            entry.silent = 0;
            self.is_probed = true;
            self.apply(config, now, path, Event::Answered);
        }
    }

    /// A flow of the path reported congestion.
    pub(crate) fn congested(&mut self, config: &Config, now: Instant, path: PathIndex) {
        self.apply(config, now, path, Event::Congested);
    }

    /// All paths through a node are congested.
    pub(crate) fn congested_at(&mut self, config: &Config, now: Instant, node: Ipv6Addr) {
        for index in 0..self.entries.len() {
            let path = PathIndex(index as u16);
            if self.passes(path, node) {
                self.apply(config, now, path, Event::Congested);
            }
        }
    }

    /// Congestion was reported for the path itself, not for a flow.
    pub(crate) fn path_congested(&mut self, config: &Config, now: Instant, path: PathIndex, cause: Cause) {
        self.apply(config, now, path, Event::Congested);
        if let Some(entry) = self.entries.get_mut(path.index()) {
            (entry.path_reports, entry.last_report_cause) = (entry.path_reports.wrapping_add(1), cause);
            self.version = self.version.wrapping_add(1);
        }
    }

    /// Applies changes by time.
    pub(crate) fn advance(&mut self, config: &Config, now: Instant) {
        if now >= self.changes_at {
            for index in 0..self.entries.len() {
                self.apply(config, now, PathIndex(index as u16), Event::Time);
            }
        }
    }

    fn apply(&mut self, config: &Config, now: Instant, path: PathIndex, event: Event) {
        let Some(entry) = self.entries.get_mut(path.index()) else { return };
        let before = entry.state;
        let recent_times_bad = match before.is_usable() {
            // After a long usable period the count restarts.
            true if now.since(entry.usable_since).as_nanos() >= u128::from(config.hold_most_ns) => 1,
            true => entry.recent_times_bad.saturating_add(1),
            false => entry.recent_times_bad.max(1),
        };
        let doubled = config.hold_ns.saturating_mul(1 << u32::from(recent_times_bad - 1).min(40));
        entry.state = before.after(now, event, doubled.min(config.hold_most_ns.max(config.hold_ns)));
        match (before.is_usable(), entry.state.is_usable()) {
            (true, false) => {
                entry.recent_times_bad = recent_times_bad;
                entry.times_bad += 1;
            }
            (false, true) => entry.usable_since = entry.state.since().unwrap_or(now),
            (true, true) | (false, false) => {}
        }
        let changed = before.badness() != entry.state.badness() || before.name() != entry.state.name();
        if changed {
            self.version = self.version.wrapping_add(1);
        }
        self.update_changes_at();
    }

    fn update_changes_at(&mut self) {
        self.changes_at = self.entries.iter().map(|entry| entry.state.changes_at()).min().unwrap_or(Instant::NEVER);
    }

    /// Assesses the path of a flow. `seen` is the number of congestion reports at the flow's last packet, and is
    /// updated.
    pub(crate) fn assess(&self, seed: u64, key: u64, path: PathIndex, seen: &mut u32) -> Assessment {
        let Some(entry) = self.entries.get(path.index()) else { return Assessment::Leave(Cause::Denied) };
        let is_new = std::mem::replace(seen, entry.path_reports) != entry.path_reports;
        match entry.state {
            State::Denied => Assessment::Leave(Cause::Denied),
            State::AssumedBad { cause: BadCause::Silent { .. }, .. } => Assessment::Leave(Cause::Silence),
            State::Unknown { .. } | State::Good { .. } | State::AssumedBad { cause: BadCause::Congested, .. } => {
                let moves = is_new && random::draw(seed, key, entry.path_reports.into()).is_multiple_of(SHARE);
                if moves { Assessment::Share(entry.last_report_cause) } else { Assessment::Stay }
            }
        }
    }

    pub(crate) fn path_reports(&self, path: PathIndex) -> u32 {
        self.entries.get(path.index()).map_or(0, |entry| entry.path_reports)
    }

    /// The path for a new flow: a random one of those with the least badness, then the best rank.
    pub(crate) fn first(&mut self, drawn: u64) -> Option<PathIndex> {
        self.take(drawn, |_, entry| entry.state.badness().map(|badness| (badness, entry.path.rank)))
    }

    /// A path for a flow that leaves another: a usable one; if the path is silent, also a congested one; if it is
    /// denied, any.
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

    /// A path of a better rank for a flow that returns, if one was good for long enough.
    pub(crate) fn path_to_return_to(
        &mut self,
        config: &Config,
        now: Instant,
        key: u64,
        from: PathIndex,
    ) -> Option<PathIndex> {
        let (rank, is_probed) = (self.rank(from), self.is_probed);
        let return_delay_ns = return_delay_ns(config, key);
        let drawn = random::draw(config.seed, key, u64::from(self.version));
        self.take(drawn, |_, entry| {
            let since = good_since(&entry.state, is_probed).filter(|_| entry.path.rank < rank)?;
            (since.after_ns(return_delay_ns) <= now).then_some((0, entry.path.rank))
        })
    }

    /// Time at which a flow may return to a path of a better rank.
    pub(crate) fn return_at(&self, config: &Config, key: u64, from: PathIndex) -> Instant {
        let rank = self.rank(from);
        let better = self.entries.iter().filter(|entry| entry.path.rank < rank);
        let since = better.filter_map(|entry| good_since(&entry.state, self.is_probed)).min();
        since.map_or(Instant::NEVER, |since| since.after_ns(return_delay_ns(config, key)))
    }

    fn rank(&self, path: PathIndex) -> u16 {
        self.entries.get(path.index()).map_or(u16::MAX, |entry| entry.path.rank)
    }

    /// A random one of the paths with the least `order`; paths without one are excluded.
    fn take(&mut self, drawn: u64, order: impl Fn(PathIndex, &Entry) -> Option<(u8, u16)>) -> Option<PathIndex> {
        let entries = || self.entries.iter().enumerate().map(|(index, entry)| (PathIndex(index as u16), entry));
        let ordered = || entries().filter_map(|(path, entry)| Some((order(path, entry)?, path)));
        let best = ordered().map(|(order, _)| order).min()?;
        let equals = || ordered().filter(|(order, _)| *order == best);
        let chosen = random::below(drawn, equals().count() as u64) as usize;
        let (_, path) = equals().nth(chosen)?;
        self.entries[path.index()].flows_taken += 1;
        Some(path)
    }
}

/// Return delay of a flow, with jitter so that flows do not return all at once.
fn return_delay_ns(config: &Config, key: u64) -> u64 {
    let jitter = random::below(random::draw(config.seed, key, u64::MAX), config.return_ns);
    config.return_ns.saturating_add(jitter)
}

/// Time since which a path is good enough to return to. Without probes, a path without signals is good.
fn good_since(state: &State, is_probed: bool) -> Option<Instant> {
    match state {
        State::Good { since } => Some(*since),
        State::Unknown { since } if !is_probed => Some(*since),
        State::Unknown { .. } | State::AssumedBad { .. } | State::Denied => None,
    }
}
