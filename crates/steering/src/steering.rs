//! The path sets and flows of a NIC.
//!
//! ```text
//!              first packet: the best ranked path that is not bad, among equals by chance
//!                  │
//!                  ▼          signal: congestion, after its dwell time · its path is silent · a better path was good
//!   ┌────────── on a path ──────────────────────────────────────────────────────────────┐  for long
//!   │              ▲                                                                     ▼
//!   │              │    fast: next packet · ordered: next message or idle gap         wanted: to move
//!   │              └───────────────────────────────────────────────────────────────────────┘
//!   │                   to a path that is not bad; if there is none, it stays
//!   └─ quiet for longer than others: forgotten
//! ```

use crate::chance;
use crate::config::{Config, Mode};
use crate::counters::Counters;
use crate::flows::{Flow, FlowKey, FlowReport, Flows};
use crate::path::Path;
use crate::set::{Finding, PathError, PathReport, PathSet};
use crate::signal::{Cause, Meaning, Signal};
use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// A set of paths to one destination, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

/// A path of a set, by its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathIndex(pub u16);

impl PathIndex {
    /// As an index into the set's paths.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where in its flow a packet stands (D83).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// It begins a message.
    Message,
    /// It belongs to the message before, or its message is unknown.
    Inside,
}

/// What a packet is sent by.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub path: PathIndex,
    /// The flow's place in the table.
    pub place: usize,
    /// The flow was not known before.
    pub is_new: bool,
    /// It has just moved, for this cause.
    pub moved: Option<Cause>,
}

/// The subject of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A flow, and the path that it takes now.
    Flow(FlowKey),
    /// A path, with all of its flows.
    Path(SetId, PathIndex),
}

/// What came of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing is wrong, or not yet.
    Noted,
    /// The path is assumed bad; the flow moves as soon as its mode lets it.
    Moves,
    /// The path, or others, are assumed bad; the flow stays, for it takes none of them.
    Elsewhere,
    /// The flow has moved only just: the signal is still about the path before.
    TooEarly,
    /// No such flow or set.
    Unknown,
}

/// All of a NIC's path sets and flows (D84).
#[derive(Debug)]
pub struct Steering {
    config: Config,
    sets: Vec<Option<PathSet>>,
    flows: Flows,
    counters: Counters,
}

impl Steering {
    /// Nothing known yet.
    pub fn new(config: Config) -> Self {
        let flows = Flows::new(config.flows);
        Steering { config, sets: Vec::new(), flows, counters: Counters::default() }
    }

    /// How it steers.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Steers otherwise from now on. The number of flows stays as it was.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = Config { flows: self.config.flows, ..config };
    }

    /// Adds the paths to a destination, or replaces those of a set: the state of paths that stay, and flows on
    /// them, stay. Of paths with the same segments the first counts.
    ///
    /// # Errors
    ///
    /// If there is no path to take, or too many. Nothing has changed then.
    pub fn set_paths(&mut self, now: Instant, set: Option<SetId>, paths: &[Path]) -> Result<SetId, PathError> {
        let Some((id, before)) = set.and_then(|id| Some((id, self.sets.get(id.0 as usize)?.as_ref()?))) else {
            let new = PathSet::new(now, paths)?;
            let place = self.sets.iter().position(Option::is_none).unwrap_or(self.sets.len());
            if place == self.sets.len() {
                self.sets.push(None);
            }
            self.sets[place] = Some(new);
            return Ok(SetId(place as u32));
        };
        let after = before.replaced(now, paths)?;
        for flow in self.flows.iter_mut().filter(|flow| flow.set == id) {
            match before.place_in(&after, flow.path) {
                Some(path) => flow.path = path,
                None => *flow = Flow::default(),
            }
        }
        self.sets[id.0 as usize] = Some(after);
        Ok(id)
    }

    /// Forgets a set and its flows.
    pub fn remove_set(&mut self, set: SetId) {
        if let Some(place) = self.sets.get_mut(set.0 as usize) {
            *place = None;
            self.flows.iter_mut().filter(|flow| flow.set == set).for_each(|flow| *flow = Flow::default());
        }
    }

    /// The path for the next packet of a flow; `None` when there is no such set.
    #[inline]
    pub fn choose(&mut self, now: Instant, set: SetId, key: FlowKey, boundary: Boundary) -> Option<Choice> {
        let known = self.sets.get(set.0 as usize)?.as_ref()?;
        if let Some(place) = self.flows.find(key) {
            let flow = self.flows.at(place);
            if flow.set == set {
                let is_settled = flow.wanted.is_none() && flow.version == known.version && now < flow.reconsiders_at;
                if is_settled && now < known.changes_at {
                    flow.last = now;
                    return Some(Choice { path: flow.path, place, is_new: false, moved: None });
                }
                return self.reconsider(now, place, boundary);
            }
        }
        self.begin(now, set, key)
    }

    /// Applies a signal.
    pub fn hear(&mut self, now: Instant, about: About, signal: Signal) -> Heard {
        self.counters.signals[signal.kind()] += 1;
        let (set, path, place) = match about {
            About::Path(set, path) => (set, path, None),
            About::Flow(key) => match self.flows.find(key) {
                Some(place) => {
                    let flow = self.flows.at(place);
                    (flow.set, flow.path, Some(place))
                }
                None => {
                    self.counters.unknown_flow += 1;
                    return Heard::Unknown;
                }
            },
        };
        let meaning = match (self.config.limits.judge(signal), place) {
            (Meaning::Lost, Some(place)) => self.lost(now, place),
            (Meaning::Lost, None) => Meaning::Congested(Cause::Loss, None),
            (meaning, _) => meaning,
        };
        let Some(known) = self.sets.get_mut(set.0 as usize).and_then(Option::as_mut) else { return Heard::Unknown };
        known.advance(&self.config, now);
        match (meaning, place) {
            (Meaning::Fine | Meaning::Lost, _) => Heard::Noted,
            (Meaning::Answered, _) => {
                known.answered(&self.config, now, path);
                Heard::Noted
            }
            (Meaning::Silent, _) => {
                if known.silent(&self.config, now, path) {
                    Heard::Moves
                } else {
                    Heard::Noted
                }
            }
            (Meaning::Congested(_, Some(node)), None) => {
                known.congested_at(&self.config, now, node);
                Heard::Elsewhere
            }
            (Meaning::Congested(cause, None), None) => {
                known.congested_itself(&self.config, now, path, cause);
                Heard::Elsewhere
            }
            (Meaning::Congested(cause, node), Some(place)) => self.congested(now, place, cause, node),
        }
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The sets there are.
    pub fn sets(&self) -> impl Iterator<Item = SetId> {
        self.sets.iter().enumerate().filter(|(_, set)| set.is_some()).map(|(place, _)| SetId(place as u32))
    }

    /// The paths of a set, as they are at this time; none when there is no such set.
    pub fn paths(&self, now: Instant, set: SetId) -> impl Iterator<Item = PathReport<'_>> {
        let known = self.sets.get(set.0 as usize).and_then(Option::as_ref);
        known.into_iter().flat_map(move |known| known.reports(now))
    }

    /// The flows that are remembered.
    pub fn flows(&self) -> impl Iterator<Item = FlowReport> {
        self.flows.iter().map(|(place, flow)| FlowReport {
            key: FlowKey::new(flow.key),
            set: flow.set,
            path: flow.path,
            moves: flow.moves,
            last: flow.last,
            place,
        })
    }

    /// Number of flows that there is room for.
    pub fn flow_places(&self) -> usize {
        self.flows.places()
    }

    /// A flow that is not known takes the best path.
    fn begin(&mut self, now: Instant, set: SetId, key: FlowKey) -> Option<Choice> {
        let known = self.sets.get_mut(set.0 as usize)?.as_mut()?;
        known.advance(&self.config, now);
        let path = known.first(chance::draw(self.config.seed, key.get(), 0))?;
        let (place, evicts) = match self.flows.find(key) {
            Some(place) => (place, false),
            None => self.flows.vacancy(key),
        };
        self.counters.flows_begun += 1;
        self.counters.flows_evicted += u64::from(evicts);
        *self.flows.at(place) = Flow {
            key: key.get(),
            last: now,
            set,
            path,
            version: known.version,
            rounds: known.rounds(path),
            reconsiders_at: known.home_at(&self.config, key.get(), path),
            ..Flow::default()
        };
        Some(Choice { path, place, is_new: true, moved: None })
    }

    /// Something has happened since the flow's last packet, or it is to move.
    #[cold]
    fn reconsider(&mut self, now: Instant, place: usize, boundary: Boundary) -> Option<Choice> {
        let Steering { config, sets, flows, counters } = self;
        let flow = flows.at(place);
        let set = sets.get_mut(flow.set.0 as usize)?.as_mut()?;
        set.advance(config, now);
        if flow.version != set.version {
            flow.version = set.version;
            match set.look(config.seed, flow.key, flow.path, &mut flow.rounds) {
                Finding::Leave(cause) => flow.wanted = Some(cause),
                Finding::Share(cause) if now >= flow.dwells_until && flow.wanted.is_none() => {
                    flow.wanted = Some(cause);
                }
                Finding::Share(_) | Finding::Stay => {}
            }
            flow.reconsiders_at = set.home_at(config, flow.key, flow.path).max(flow.dwells_until);
        }
        if flow.wanted.is_none() && now >= flow.reconsiders_at {
            flow.wanted = Some(Cause::Return);
        }
        let is_idle = now.since(flow.last).as_nanos() >= u128::from(config.idle_gap_ns);
        flow.last = now;
        let may_move = match (config.mode, boundary) {
            (Mode::Fast, Boundary::Message | Boundary::Inside) | (Mode::Ordered, Boundary::Message) => true,
            // What carries nothing puts nothing in order.
            (Mode::Ordered, Boundary::Inside) => is_idle || matches!(flow.wanted, Some(Cause::Silence)),
        };
        let moved = flow.wanted.filter(|_| may_move).and_then(|cause| step(config, now, flow, set, cause, counters));
        Some(Choice { path: flow.path, place, is_new: false, moved })
    }

    fn lost(&mut self, now: Instant, place: usize) -> Meaning {
        let limits = &self.config.limits;
        let flow = self.flows.at(place);
        if now < flow.dwells_until {
            // A move puts packets out of order, which looks like loss.
            return Meaning::Congested(Cause::Loss, None);
        }
        if now.since(flow.losses_since).as_nanos() > u128::from(limits.loss_window_ns) {
            (flow.losses, flow.losses_since) = (0, now);
        }
        flow.losses = flow.losses.saturating_add(1);
        if flow.losses < limits.losses { Meaning::Lost } else { Meaning::Congested(Cause::Loss, None) }
    }

    fn congested(&mut self, now: Instant, place: usize, cause: Cause, node: Option<Ipv6Addr>) -> Heard {
        let Steering { config, sets, flows, counters } = self;
        let flow = flows.at(place);
        let Some(set) = sets.get_mut(flow.set.0 as usize).and_then(Option::as_mut) else { return Heard::Unknown };
        if let Some(node) = node {
            set.congested_at(config, now, node);
            if !set.passes(flow.path, node) {
                counters.elsewhere += 1;
                return Heard::Elsewhere;
            }
        }
        if now < flow.dwells_until {
            counters.too_early += 1;
            return Heard::TooEarly;
        }
        if node.is_none() {
            set.congested(config, now, flow.path);
        }
        flow.losses = 0;
        let must = flow.wanted.filter(|cause| matches!(cause, Cause::Silence | Cause::Denied));
        flow.wanted = Some(must.unwrap_or(cause));
        Heard::Moves
    }
}

/// Moves a flow, if there is a better path.
fn step(
    config: &Config,
    now: Instant,
    flow: &mut Flow,
    set: &mut PathSet,
    cause: Cause,
    counters: &mut Counters,
) -> Option<Cause> {
    flow.wanted = None;
    let drawn = chance::draw(config.seed, flow.key, u64::from(flow.moves) + 1);
    let path = match cause {
        Cause::Return => set.home(config, now, flow.key, flow.path),
        Cause::Cnp
        | Cause::FastCnp
        | Cause::CeRatio
        | Cause::OneWayLatency
        | Cause::TwoWayLatency
        | Cause::Trimmed
        | Cause::Loss
        | Cause::Silence
        | Cause::Denied => set.another(drawn, flow.path),
    };
    let Some(path) = path else {
        counters.nowhere += u64::from(cause != Cause::Return);
        flow.reconsiders_at = set.home_at(config, flow.key, flow.path).max(now.after_ns(config.dwell_ns));
        return None;
    };
    counters.moves[cause as usize] += 1;
    flow.path = path;
    flow.moves = flow.moves.saturating_add(1);
    flow.rounds = set.rounds(path);
    flow.dwells_until = now.after_ns(config.dwell_ns);
    flow.reconsiders_at = set.home_at(config, flow.key, path).max(flow.dwells_until);
    Some(cause)
}
