//! The state of a path.
//!
//! ```text
//!              lost, `deny_after` in a row
//!   Allowed ─────────────────────────────────► Denied
//!     │  ▲                                      │  │
//!     │  └──────────────────────────────────────┘  │ lost: the next interval is twice as long
//!     │       returned, enough in a row            ▼
//!     └ returned: no loss in a row               Denied
//! ```
//!
//! Enough are `allow_after`, twice as many for each denial within the flap window before.

use crate::config::Config;
use srdma_wire::Instant;

/// Doublings of the number of returned probes that a path needs, at most.
const MOST_DOUBLINGS: u32 = 3;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Packets may take it.
    Allowed {
        /// Probes lost in a row.
        lost: u32,
    },
    /// It is in the deny list.
    Denied {
        /// Probes returned in a row.
        returned: u32,
        /// Probes that must return in a row.
        needed: u32,
        /// Intervals between two probes.
        intervals: u64,
    },
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Returned,
    Lost,
}

/// When a path was denied, as far as its next denial depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Denials, each within the flap window after the one before.
    denials: u32,
    /// When it was allowed after the last one.
    allowed_at: Option<Instant>,
}

impl State {
    /// At the start.
    pub(crate) const START: State = State::Allowed { lost: 0 };

    /// Whether the path is in the deny list.
    pub const fn is_denied(&self) -> bool {
        match self {
            State::Allowed { .. } => false,
            State::Denied { .. } => true,
        }
    }

    /// The state after a probe.
    pub(crate) fn after(self, now: Instant, event: Event, history: &mut History, config: &Config) -> State {
        match (self, event) {
            (State::Allowed { .. }, Event::Returned) => State::Allowed { lost: 0 },
            (State::Allowed { lost }, Event::Lost) if lost + 1 < config.deny_after => State::Allowed { lost: lost + 1 },
            (State::Allowed { .. }, Event::Lost) => {
                let needed = history.deny(now, config);
                State::Denied { returned: 0, needed, intervals: 1 }
            }
            (State::Denied { returned, needed, .. }, Event::Returned) if returned + 1 < needed => {
                State::Denied { returned: returned + 1, needed, intervals: 1 }
            }
            (State::Denied { .. }, Event::Returned) => {
                history.allowed_at = Some(now);
                State::Allowed { lost: 0 }
            }
            (State::Denied { needed, intervals, .. }, Event::Lost) => {
                let intervals = intervals.saturating_mul(2).min(config.most_intervals);
                State::Denied { returned: 0, needed, intervals }
            }
        }
    }
}

impl History {
    /// Counts a denial; the number of returned probes that the path needs now.
    fn deny(&mut self, now: Instant, config: &Config) -> u32 {
        let is_flapping = |at: Instant| now.since(at).as_nanos() < u128::from(config.flap_window_ns);
        self.denials = if self.allowed_at.is_some_and(is_flapping) { self.denials.saturating_add(1) } else { 0 };
        config.allow_after.saturating_mul(1 << self.denials.min(MOST_DOUBLINGS))
    }
}
