//! What congested nodes have asked a PE for, and what it pauses for them (D61, D62).
//!
//! ```text
//!            PAUSE                       RESUME
//!  Unknown ─────────▶ Held ──────────────────────────▶ Eased
//!     ▲                │ ▲ └─┐ PAUSE: lasts from now    │ │
//!     │                │ └───┘ on                       │ │ PAUSE ─▶ Held
//!     └────────────────┴────────────────────────────────┘ the hold time is over
//! ```
//!
//! That is of one congested node and class. A notification whose sequence number is not later than the last one's
//! changes nothing, until the hold time is over and nothing is known any more: who has restarted begins anew.
//!
//! A line, a priority of a port, is paused while any node holds it for any class; but not for longer than the watchdog
//! bears: then it is barred, until nobody has held it for a moment.

use super::config::{NotificationConfig, PriorityMapping};
use crate::drop::DropReason;
use crate::timers::Timers;
use srdma_frame::PortId;
use srdma_wire::Instant;
use srdma_wire::notification::{Ask, Notification};
use std::time::Duration;

/// One congested node and class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It has asked for a pause.
    Held { sequence: u32, until: Instant },
    /// It has taken it back; its sequence number is remembered.
    Eased { sequence: u32, until: Instant },
}

impl State {
    /// The state after a notification that is not old; `until` is when a pause of now would end.
    fn after(self, ask: Ask, sequence: u32, until: Instant) -> Self {
        match (self, ask) {
            (State::Unknown | State::Held { .. } | State::Eased { .. }, Ask::Pause) => State::Held { sequence, until },
            (State::Unknown, Ask::Resume) => State::Unknown,
            (State::Held { until, .. } | State::Eased { until, .. }, Ask::Resume) => State::Eased { sequence, until },
        }
    }

    /// The last sequence number, and until when it is known.
    fn known(self) -> Option<(u32, Instant)> {
        match self {
            State::Unknown => None,
            State::Held { sequence, until } | State::Eased { sequence, until } => Some((sequence, until)),
        }
    }

    fn is_held(self) -> bool {
        matches!(self, State::Held { .. })
    }
}

/// A priority of a port.
#[derive(Clone, Debug)]
struct Line {
    port: PortId,
    priority: usize,
    /// How many hold it: congested nodes times their classes.
    holders: u32,
    /// It was held for longer than the watchdog bears.
    is_barred: bool,
}

/// All of it. It is as large as the configuration says.
#[derive(Debug)]
pub(crate) struct Holds {
    watchdog: Duration,
    greatest_hold: Duration,
    /// Each class with the lines that it maps to.
    mappings: Vec<(u8, Vec<usize>)>,
    lines: Vec<Line>,
    /// By congested node, then by mapping.
    states: Vec<State>,
    /// Ends of holds, by the number of the state; and behind them the watchdogs of the lines.
    timers: Timers,
    /// Holds that ended by their time, and lines that were barred.
    pub(crate) expired: u64,
    pub(crate) barred: u64,
}

/// What a notification came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Until when its origin has to be known.
    pub(crate) until: Option<Instant>,
    /// Why no port is paused for it, although it is remembered.
    pub(crate) effect: Result<(), DropReason>,
}

impl Holds {
    pub(crate) fn new(config: &NotificationConfig) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let mut mappings = Vec::new();
        for PriorityMapping { traffic_class, ports, priority } in &config.priorities {
            let mut of_class = Vec::new();
            for port in ports {
                let priority = usize::from(*priority);
                let known = lines.iter().position(|line| line.port == *port && line.priority == priority);
                let line = known.unwrap_or(lines.len());
                if known.is_none() {
                    lines.push(Line { port: *port, priority, holders: 0, is_barred: false });
                }
                if !of_class.contains(&line) {
                    of_class.push(line);
                }
            }
            mappings.push((*traffic_class, of_class));
        }
        Holds {
            watchdog: config.watchdog,
            greatest_hold: config.greatest_hold,
            states: vec![State::Unknown; mappings.len() * usize::from(config.origins)],
            mappings,
            lines,
            timers: Timers::default(),
            expired: 0,
            barred: 0,
        }
    }

    /// Takes a notification of the congested node at a place. `pause` is told which lines to pause and which not, and
    /// says whether it can.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        origin: usize,
        notification: &Notification,
        mut pause: impl FnMut(PortId, usize, bool) -> bool,
    ) -> Result<Taken, DropReason> {
        let Notification { ask, traffic_class, sequence, hold_us, .. } = *notification;
        let mapping = self.mappings.iter().position(|(class, _)| *class == traffic_class);
        let mapping = mapping.ok_or(DropReason::NotificationUnmapped)?;
        if ask == Ask::Pause && hold_us == 0 {
            return Err(DropReason::NotificationNoHold);
        }
        let number = origin * self.mappings.len() + mapping;
        let before = *self.states.get(number).ok_or(DropReason::NotificationTooManyOrigins)?;
        if before.known().is_some_and(|(last, _)| sequence.wrapping_sub(last) as i32 <= 0) {
            return Err(DropReason::NotificationStale);
        }
        let until = now + Duration::from_micros(hold_us.into()).min(self.greatest_hold);
        let state = before.after(ask, sequence, until);
        self.states[number] = state;
        let until = state.known().map(|(_, until)| until);
        self.timers.arm(number as u32, until);
        let effect = match (before.is_held(), state.is_held()) {
            (false, true) => self.hold(now, mapping, &mut pause),
            (true, true) => self.hold_on(mapping, &mut pause),
            (true, false) => {
                self.release(mapping, &mut pause);
                Ok(())
            }
            (false, false) => Ok(()),
        };
        Ok(Taken { until, effect })
    }

    /// What ends by now: hold times, and pauses that have lasted for too long.
    pub(crate) fn tick(&mut self, now: Instant, mut pause: impl FnMut(PortId, usize, bool) -> bool) {
        while let Some(number) = self.timers.take_due(now) {
            let number = number as usize;
            match number.checked_sub(self.states.len()) {
                None => {
                    let before = std::mem::take(&mut self.states[number]);
                    if before.is_held() {
                        self.expired += 1;
                        self.release(number % self.mappings.len(), &mut pause);
                    }
                }
                Some(line) => {
                    let line = &mut self.lines[line];
                    line.is_barred = true;
                    self.barred += 1;
                    pause(line.port, line.priority, false);
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Lets all lines go.
    pub(crate) fn let_go(&self, mut pause: impl FnMut(PortId, usize, bool) -> bool) {
        for line in self.lines.iter().filter(|line| line.holders > 0) {
            pause(line.port, line.priority, false);
        }
    }

    /// What is held now: the place of the congested node, the class, and until when.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, u8, Instant)> {
        self.states.iter().enumerate().filter_map(|(number, state)| match state {
            State::Held { until, .. } => {
                let (class, _) = self.mappings[number % self.mappings.len()];
                Some((number / self.mappings.len(), class, *until))
            }
            State::Unknown | State::Eased { .. } => None,
        })
    }

    /// One more holds the lines of a mapping.
    fn hold(
        &mut self,
        now: Instant,
        mapping: usize,
        pause: &mut impl FnMut(PortId, usize, bool) -> bool,
    ) -> Result<(), DropReason> {
        for index in &self.mappings[mapping].1 {
            let line = &mut self.lines[*index];
            line.holders += 1;
            if line.holders == 1 {
                self.timers.arm((self.states.len() + index) as u32, Some(now + self.watchdog));
            }
        }
        self.hold_on(mapping, pause)
    }

    /// The lines of a mapping are held as before: said again, for a port may have lost its classes meanwhile.
    fn hold_on(&self, mapping: usize, pause: &mut impl FnMut(PortId, usize, bool) -> bool) -> Result<(), DropReason> {
        let (mut is_any_free, mut is_any_paused) = (false, false);
        for line in self.mappings[mapping].1.iter().map(|index| &self.lines[*index]).filter(|line| !line.is_barred) {
            is_any_free = true;
            is_any_paused |= pause(line.port, line.priority, true);
        }
        match (is_any_free, is_any_paused) {
            (_, true) => Ok(()),
            (true, false) => Err(DropReason::NotificationUnmapped),
            (false, false) => Err(DropReason::NotificationStorm),
        }
    }

    /// One less holds the lines of a mapping.
    fn release(&mut self, mapping: usize, pause: &mut impl FnMut(PortId, usize, bool) -> bool) {
        for index in &self.mappings[mapping].1 {
            let line = &mut self.lines[*index];
            line.holders -= 1;
            if line.holders == 0 {
                line.is_barred = false;
                self.timers.arm((self.states.len() + index) as u32, None);
                pause(line.port, line.priority, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
