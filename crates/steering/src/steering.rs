//! The path sets and flows of a NIC.
//!
//! ```text
//!              first packet: a path of the best rank that is not bad, chosen at random among equals
//!                  │
//!                  ▼          congestion, after the dwell time · path silent · better path good for some time
//!   ┌────────── on a path ──────────────────────────────────────────────────────────────┐
//!   │              ▲                                                                    ▼
//!   │              │    fast: next packet · ordered: next message or idle gap      move pending
//!   │              └────────────────────────────────────────────────────────────────────┘
//!   │                   to a path that is not bad; without one the flow stays
//!   └─ least recently used: evicted
//! ```

use crate::config::{Config, Mode};
use crate::counters::Counters;
use crate::flows::{Flow, FlowKey, FlowReport, Flows};
use crate::path::Path;
use crate::random;
use crate::set::{Assessment, PathError, PathReport, PathSet};
use crate::signal::{Cause, Interpretation, Signal};
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

/// Position of a packet in the messages of its flow (D83).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The first packet of a message.
    Message,
    /// Another packet of a message, or an unknown position.
    WithinMessage,
}

/// The path of a packet.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub path: PathIndex,
    /// The flow's index in the table.
    pub place: usize,
    /// The flow was not in the table.
    pub is_new: bool,
    /// Cause of a move with this packet.
    pub moved: Option<Cause>,
}

/// The subject of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A flow, and its current path.
    Flow(FlowKey),
    /// A path, with all its flows.
    Path(SetId, PathIndex),
}

/// Effect of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalEffect {
    /// No flow moves.
    None,
    /// The path is assumed bad; the flow moves as soon as its mode permits, or a path has become silent.
    FlowMoves,
    /// Paths are assumed bad, but not that of the flow.
    OtherPaths,
    /// Ignored in the flow's dwell time: the signal concerns its previous path.
    WithinDwellTime,
    /// There is no such flow or set.
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
    /// No sets and no flows.
    pub fn new(config: Config) -> Self {
        let flows = Flows::new(config.flows);
        Steering { config, sets: Vec::new(), flows, counters: Counters::default() }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Replaces the configuration, except the number of flows.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = Config { flows: self.config.flows, ..config };
    }

    /// Adds the paths to a destination, or replaces those of a set: paths that remain keep their state and their flows.
    /// Of paths with the same segments the first one applies.
    ///
    /// # Errors
    ///
    /// There is no permitted path, or there are too many. Nothing has changed then.
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
            match before.index_in(&after, flow.path) {
                Some(path) => flow.path = path,
                None => *flow = Flow::default(),
            }
        }
        self.sets[id.0 as usize] = Some(after);
        Ok(id)
    }

    /// Removes a set and its flows.
    pub fn remove_set(&mut self, set: SetId) {
        if let Some(place) = self.sets.get_mut(set.0 as usize) {
            *place = None;
            self.flows.iter_mut().filter(|flow| flow.set == set).for_each(|flow| *flow = Flow::default());
        }
    }

    /// Removes a set to whose destinations another leads now: its flows stay on their paths, as far as that has them.
    pub fn replace_set(&mut self, set: SetId, by: SetId) {
        let known = |set: SetId| self.sets.get(set.0 as usize)?.as_ref();
        if let (Some(before), Some(after)) = (known(set), known(by)) {
            for flow in self.flows.iter_mut().filter(|flow| flow.set == set) {
                let Some(path) = before.index_in(after, flow.path) else { continue };
                // Another version than the set's: the next packet assesses the path.
                let version = after.version.wrapping_sub(1);
                *flow = Flow { set: by, path, version, path_reports: after.path_reports(path), ..*flow };
            }
        }
        self.remove_set(set);
    }

    /// The path of the next packet of a flow; `None` if there is no such set.
    #[inline]
    pub fn choose(&mut self, now: Instant, set: SetId, key: FlowKey, boundary: Boundary) -> Option<Choice> {
        let known = self.sets.get(set.0 as usize)?.as_ref()?;
        if let Some(place) = self.flows.find(key) {
            let flow = self.flows.at(place);
            if flow.set == set {
                let is_settled =
                    flow.pending_move.is_none() && flow.version == known.version && now < flow.reconsiders_at;
                if is_settled && now < known.changes_at {
                    flow.last = now;
                    return Some(Choice { path: flow.path, place, is_new: false, moved: None });
                }
                return self.reconsider(now, place, boundary);
            }
        }
        self.start(now, set, key)
    }

    /// Applies a signal.
    pub fn handle_signal(&mut self, now: Instant, subject: Subject, signal: Signal) -> SignalEffect {
        self.counters.signals[signal.kind()] += 1;
        let (set, path, place) = match subject {
            Subject::Path(set, path) => (set, path, None),
            Subject::Flow(key) => match self.flows.find(key) {
                Some(place) => {
                    let flow = self.flows.at(place);
                    (flow.set, flow.path, Some(place))
                }
                None => {
                    self.counters.unknown_flow += 1;
                    return SignalEffect::Unknown;
                }
            },
        };
        let interpretation = match (self.config.limits.interpret(signal), place) {
            (Interpretation::Lost, Some(place)) => self.lost(now, place),
            (Interpretation::Lost, None) => Interpretation::Congested(Cause::Loss, None),
            (interpretation, _) => interpretation,
        };
        let Some(known) = self.sets.get_mut(set.0 as usize).and_then(Option::as_mut) else {
            return SignalEffect::Unknown;
        };
        known.advance(&self.config, now);
        match (interpretation, place) {
            (Interpretation::Good | Interpretation::Lost, _) => SignalEffect::None,
            (Interpretation::Answered, _) => {
                known.answered(&self.config, now, path);
                SignalEffect::None
            }
            (Interpretation::Silent, _) => {
                if known.silent(&self.config, now, path) {
                    SignalEffect::FlowMoves
                } else {
                    SignalEffect::None
                }
            }
            (Interpretation::Congested(_, Some(node)), None) => {
                known.congested_at(&self.config, now, node);
                SignalEffect::OtherPaths
            }
            (Interpretation::Congested(cause, None), None) => {
                known.path_congested(&self.config, now, path, cause);
                SignalEffect::OtherPaths
            }
            (Interpretation::Congested(cause, node), Some(place)) => self.congested(now, place, cause, node),
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// All sets.
    pub fn sets(&self) -> impl Iterator<Item = SetId> {
        self.sets.iter().enumerate().filter(|(_, set)| set.is_some()).map(|(place, _)| SetId(place as u32))
    }

    /// The paths of a set at a time; none if there is no such set.
    pub fn paths(&self, now: Instant, set: SetId) -> impl Iterator<Item = PathReport<'_>> {
        let known = self.sets.get(set.0 as usize).and_then(Option::as_ref);
        known.into_iter().flat_map(move |known| known.reports(now))
    }

    /// All flows in the table.
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

    /// Size of the flow table.
    pub fn flow_capacity(&self) -> usize {
        self.flows.capacity()
    }

    /// Adds a flow, on the best path.
    fn start(&mut self, now: Instant, set: SetId, key: FlowKey) -> Option<Choice> {
        let known = self.sets.get_mut(set.0 as usize)?.as_mut()?;
        known.advance(&self.config, now);
        let path = known.first(random::draw(self.config.seed, key.get(), 0))?;
        let (place, evicts) = match self.flows.find(key) {
            Some(place) => (place, false),
            None => self.flows.slot_for(key),
        };
        self.counters.flows_started += 1;
        self.counters.flows_evicted += u64::from(evicts);
        *self.flows.at(place) = Flow {
            key: key.get(),
            last: now,
            set,
            path,
            version: known.version,
            path_reports: known.path_reports(path),
            reconsiders_at: known.return_at(&self.config, key.get(), path),
            ..Flow::default()
        };
        Some(Choice { path, place, is_new: true, moved: None })
    }

    /// Handles a change since the flow's last packet, or a pending move.
    #[cold]
    fn reconsider(&mut self, now: Instant, place: usize, boundary: Boundary) -> Option<Choice> {
        let Steering { config, sets, flows, counters } = self;
        let flow = flows.at(place);
        let set = sets.get_mut(flow.set.0 as usize)?.as_mut()?;
        set.advance(config, now);
        if flow.version != set.version {
            flow.version = set.version;
            match set.assess(config.seed, flow.key, flow.path, &mut flow.path_reports) {
                Assessment::Leave(cause) => flow.pending_move = Some(cause),
                Assessment::Share(cause) if now >= flow.dwells_until && flow.pending_move.is_none() => {
                    flow.pending_move = Some(cause);
                }
                Assessment::Share(_) | Assessment::Stay => {}
            }
            flow.reconsiders_at = set.return_at(config, flow.key, flow.path).max(flow.dwells_until);
        }
        if flow.pending_move.is_none() && now >= flow.reconsiders_at {
            flow.pending_move = Some(Cause::Return);
        }
        let is_idle = now.since(flow.last).as_nanos() >= u128::from(config.idle_gap_ns);
        flow.last = now;
        let may_move = match (config.mode, boundary) {
            (Mode::Fast, Boundary::Message | Boundary::WithinMessage) | (Mode::Ordered, Boundary::Message) => true,
            // A silent path delivers nothing that could be reordered.
            (Mode::Ordered, Boundary::WithinMessage) => is_idle || matches!(flow.pending_move, Some(Cause::Silence)),
        };
        let moved =
            flow.pending_move.filter(|_| may_move).and_then(|cause| move_flow(config, now, flow, set, cause, counters));
        Some(Choice { path: flow.path, place, is_new: false, moved })
    }

    fn lost(&mut self, now: Instant, place: usize) -> Interpretation {
        let limits = &self.config.limits;
        let flow = self.flows.at(place);
        if now < flow.dwells_until {
            // A move reorders packets, which looks like loss.
            return Interpretation::Congested(Cause::Loss, None);
        }
        if now.since(flow.losses_since).as_nanos() > u128::from(limits.loss_window_ns) {
            (flow.losses, flow.losses_since) = (0, now);
        }
        flow.losses = flow.losses.saturating_add(1);
        if flow.losses < limits.losses { Interpretation::Lost } else { Interpretation::Congested(Cause::Loss, None) }
    }

    fn congested(&mut self, now: Instant, place: usize, cause: Cause, node: Option<Ipv6Addr>) -> SignalEffect {
        let Steering { config, sets, flows, counters } = self;
        let flow = flows.at(place);
        let Some(set) = sets.get_mut(flow.set.0 as usize).and_then(Option::as_mut) else {
            return SignalEffect::Unknown;
        };
        if let Some(node) = node {
            set.congested_at(config, now, node);
            if !set.passes(flow.path, node) {
                counters.not_on_path += 1;
                return SignalEffect::OtherPaths;
            }
        }
        if now < flow.dwells_until {
            counters.within_dwell_time += 1;
            return SignalEffect::WithinDwellTime;
        }
        if node.is_none() {
            set.congested(config, now, flow.path);
        }
        flow.losses = 0;
        let must = flow.pending_move.filter(|cause| matches!(cause, Cause::Silence | Cause::Denied));
        flow.pending_move = Some(must.unwrap_or(cause));
        SignalEffect::FlowMoves
    }
}

/// Moves a flow if there is a suitable path.
fn move_flow(
    config: &Config,
    now: Instant,
    flow: &mut Flow,
    set: &mut PathSet,
    cause: Cause,
    counters: &mut Counters,
) -> Option<Cause> {
    flow.pending_move = None;
    let drawn = random::draw(config.seed, flow.key, u64::from(flow.moves) + 1);
    let path = match cause {
        Cause::Return => set.path_to_return_to(config, now, flow.key, flow.path),
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
        counters.no_alternative += u64::from(cause != Cause::Return);
        flow.reconsiders_at = set.return_at(config, flow.key, flow.path).max(now.after_ns(config.dwell_ns));
        return None;
    };
    counters.moves[cause as usize] += 1;
    flow.path = path;
    flow.moves = flow.moves.saturating_add(1);
    flow.path_reports = set.path_reports(path);
    flow.dwells_until = now.after_ns(config.dwell_ns);
    flow.reconsiders_at = set.return_at(config, flow.key, path).max(flow.dwells_until);
    Some(cause)
}
