//! Pauses that a PE has received from congested nodes, and the priorities that it pauses for them (D61, D62).
//!
//! ```text
//!            PAUSE                        RESUME
//!  Unknown ─────────▶ Paused ────────────────────────▶ Resumed
//!     ▲                │ ▲ └─┐ PAUSE: hold time begins  │ │
//!     │                │ └───┘ again                    │ │ PAUSE ─▶ Paused
//!     └────────────────┴────────────────────────────────┘ the hold time is over
//! ```
//!
//! There is one such state for each congested node and class. A notification whose sequence number is not later than
//! the last one's is ignored until the hold time is over and the state is unknown: the sequence of a restarted node
//! starts again.
//!
//! A priority of a port is paused while any node pauses it for any class, but not for longer than the watchdog allows:
//! then the watchdog releases it until all of these pauses have ended.

use super::config::{BackpressureConfig, PriorityMapping};
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
    /// A PAUSE was received.
    Paused { sequence: u32, until: Instant },
    /// A RESUME was received; its sequence number is remembered.
    Resumed { sequence: u32, until: Instant },
}

impl State {
    /// The state after a notification that is not old; `until` is the end of a pause that begins now.
    fn after(self, ask: Ask, sequence: u32, until: Instant) -> Self {
        match (self, ask) {
            (State::Unknown | State::Paused { .. } | State::Resumed { .. }, Ask::Pause) => {
                State::Paused { sequence, until }
            }
            (State::Unknown, Ask::Resume) => State::Unknown,
            (State::Paused { until, .. } | State::Resumed { until, .. }, Ask::Resume) => {
                State::Resumed { sequence, until }
            }
        }
    }

    /// The last sequence number, and the time until which it is kept.
    fn known(self) -> Option<(u32, Instant)> {
        match self {
            State::Unknown => None,
            State::Paused { sequence, until } | State::Resumed { sequence, until } => Some((sequence, until)),
        }
    }

    fn is_paused(self) -> bool {
        matches!(self, State::Paused { .. })
    }
}

#[derive(Clone, Debug)]
struct PortPriority {
    port: PortId,
    priority: usize,
    /// Pauses in effect for it: congested nodes times their classes.
    requests: u32,
    /// The watchdog has released it.
    is_released: bool,
}

/// The pauses received by a PE. The configuration bounds their number.
#[derive(Debug)]
pub(crate) struct ReceivedPauses {
    watchdog: Duration,
    greatest_hold: Duration,
    /// Each class with the port priorities that it maps to.
    mappings: Vec<(u8, Vec<usize>)>,
    port_priorities: Vec<PortPriority>,
    /// By congested node, then by mapping.
    states: Vec<State>,
    /// Ends of hold times, by the number of the state; behind them the watchdogs of the port priorities.
    timers: Timers,
    /// Pauses that ended by their hold time.
    pub(crate) expired: u64,
    /// Port priorities that the watchdog has released.
    pub(crate) watchdog_releases: u64,
}

/// The effect of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Time until which its origin must stay in the table.
    pub(crate) until: Option<Instant>,
    /// Reason why no port is paused for it, although its state is kept.
    pub(crate) effect: Result<(), DropReason>,
}

impl ReceivedPauses {
    pub(crate) fn new(config: &BackpressureConfig) -> Self {
        let mut port_priorities: Vec<PortPriority> = Vec::new();
        let mut mappings = Vec::new();
        for PriorityMapping { traffic_class, ports, priority } in &config.priorities {
            let mut of_class = Vec::new();
            for port in ports {
                let priority = usize::from(*priority);
                let known = port_priorities
                    .iter()
                    .position(|port_priority| port_priority.port == *port && port_priority.priority == priority);
                let port_priority = known.unwrap_or(port_priorities.len());
                if known.is_none() {
                    port_priorities.push(PortPriority { port: *port, priority, requests: 0, is_released: false });
                }
                if !of_class.contains(&port_priority) {
                    of_class.push(port_priority);
                }
            }
            mappings.push((*traffic_class, of_class));
        }
        ReceivedPauses {
            watchdog: config.watchdog,
            greatest_hold: config.greatest_hold,
            states: vec![State::Unknown; mappings.len() * usize::from(config.origins)],
            mappings,
            port_priorities,
            timers: Timers::default(),
            expired: 0,
            watchdog_releases: 0,
        }
    }

    /// Processes a notification of the congested node at a place. `pause` pauses or resumes a priority of a port, and
    /// returns whether it can.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        origin: usize,
        notification: &Notification,
        mut pause: impl FnMut(PortId, usize, bool) -> bool,
    ) -> Result<Received, DropReason> {
        let Notification { ask, traffic_class, sequence, hold_us, .. } = *notification;
        let mapping = self.mappings.iter().position(|(class, _)| *class == traffic_class);
        let mapping = mapping.ok_or(DropReason::BackpressureUnmapped)?;
        if ask == Ask::Pause && hold_us == 0 {
            return Err(DropReason::BackpressureNoHold);
        }
        let number = origin * self.mappings.len() + mapping;
        let before = *self.states.get(number).ok_or(DropReason::BackpressureTooManyOrigins)?;
        if before.known().is_some_and(|(last, _)| sequence.wrapping_sub(last) as i32 <= 0) {
            return Err(DropReason::BackpressureStale);
        }
        let until = now + Duration::from_micros(hold_us.into()).min(self.greatest_hold);
        let state = before.after(ask, sequence, until);
        self.states[number] = state;
        let until = state.known().map(|(_, until)| until);
        self.timers.arm(number as u32, until);
        let effect = match (before.is_paused(), state.is_paused()) {
            (false, true) => self.pause(now, mapping, &mut pause),
            (true, true) => self.keep_paused(mapping, &mut pause),
            (true, false) => {
                self.release(mapping, &mut pause);
                Ok(())
            }
            (false, false) => Ok(()),
        };
        Ok(Received { until, effect })
    }

    /// Ends hold times, and pauses that the watchdog does not allow any longer.
    pub(crate) fn tick(&mut self, now: Instant, mut pause: impl FnMut(PortId, usize, bool) -> bool) {
        while let Some(number) = self.timers.take_due(now) {
            let number = number as usize;
            match number.checked_sub(self.states.len()) {
                None => {
                    let before = std::mem::take(&mut self.states[number]);
                    if before.is_paused() {
                        self.expired += 1;
                        self.release(number % self.mappings.len(), &mut pause);
                    }
                }
                Some(port_priority) => {
                    let port_priority = &mut self.port_priorities[port_priority];
                    port_priority.is_released = true;
                    self.watchdog_releases += 1;
                    pause(port_priority.port, port_priority.priority, false);
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Resumes all port priorities.
    pub(crate) fn resume_all(&self, mut pause: impl FnMut(PortId, usize, bool) -> bool) {
        for port_priority in self.port_priorities.iter().filter(|port_priority| port_priority.requests > 0) {
            pause(port_priority.port, port_priority.priority, false);
        }
    }

    /// The pauses in effect: the place of the congested node, the class, and the end of the hold time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u8, Instant)> {
        self.states.iter().enumerate().filter_map(|(number, state)| match state {
            State::Paused { until, .. } => {
                let (class, _) = self.mappings[number % self.mappings.len()];
                Some((number / self.mappings.len(), class, *until))
            }
            State::Unknown | State::Resumed { .. } => None,
        })
    }

    /// One more pause for the port priorities of a mapping.
    fn pause(
        &mut self,
        now: Instant,
        mapping: usize,
        pause: &mut impl FnMut(PortId, usize, bool) -> bool,
    ) -> Result<(), DropReason> {
        for index in &self.mappings[mapping].1 {
            let port_priority = &mut self.port_priorities[*index];
            port_priority.requests += 1;
            if port_priority.requests == 1 {
                self.timers.arm((self.states.len() + index) as u32, Some(now + self.watchdog));
            }
        }
        self.keep_paused(mapping, pause)
    }

    /// Pauses the port priorities of a mapping again: a port may have lost its classes in the meantime.
    fn keep_paused(
        &self,
        mapping: usize,
        pause: &mut impl FnMut(PortId, usize, bool) -> bool,
    ) -> Result<(), DropReason> {
        let (mut is_any_free, mut is_any_paused) = (false, false);
        for port_priority in self.mappings[mapping]
            .1
            .iter()
            .map(|index| &self.port_priorities[*index])
            .filter(|port_priority| !port_priority.is_released)
        {
            is_any_free = true;
            is_any_paused |= pause(port_priority.port, port_priority.priority, true);
        }
        match (is_any_free, is_any_paused) {
            (_, true) => Ok(()),
            (true, false) => Err(DropReason::BackpressureUnmapped),
            (false, false) => Err(DropReason::BackpressureStorm),
        }
    }

    /// One pause less for the port priorities of a mapping.
    fn release(&mut self, mapping: usize, pause: &mut impl FnMut(PortId, usize, bool) -> bool) {
        for index in &self.mappings[mapping].1 {
            let port_priority = &mut self.port_priorities[*index];
            port_priority.requests -= 1;
            if port_priority.requests == 0 {
                port_priority.is_released = false;
                self.timers.arm((self.states.len() + index) as u32, None);
                pause(port_priority.port, port_priority.priority, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
