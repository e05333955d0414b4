//! A path, and its state.
//!
//! ```text
//!            answered                         congested, silent: for the hold time, doubled each time
//!   Unknown ─────────► Good ────────────────────────────────┐
//!      │  ▲                                                 ▼
//!      │  └──────────────── hold time over ─────────── AssumedBad, congested
//!      │                                                    │ silent
//!      │    congested, silent                               ▼
//!      └──────────────────────────────────────────────► AssumedBad, silent
//!   Good ◄── answered, and hold time over ──────────────────────┘
//!
//!   Denied: by the scheduler that ranked the paths; signals have no effect
//! ```
//!
//! Probes travel in a class of their own, so that a reply shows that a path forwards packets, not that it is free of
//! congestion: it ends silence, but not congestion.

use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// A path to a destination, from the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Segments: the outer destination address, then further ones if there are any (PP-4-4).
    pub segments: Vec<Ipv6Addr>,
    /// Addresses of the nodes on the path, as Fast CNPs have them.
    pub nodes: Vec<Ipv6Addr>,
    /// The lower the better; flows return to better ones. Among equals the choice is random.
    pub rank: u16,
    /// The path must not be used.
    pub is_denied: bool,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known, or no longer. The path may be used.
    Unknown {
        /// Start of the state.
        since: Instant,
    },
    /// The path forwards packets.
    Good {
        /// Start of the state.
        since: Instant,
    },
    /// The path is not used while there is another.
    AssumedBad {
        /// End of the period, unless a signal comes before.
        until: Instant,
        cause: BadCause,
    },
    /// The path is never used.
    Denied,
}

/// Cause for which a path is assumed bad.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCause {
    Congested,
    /// The path does not forward packets.
    Silent {
        /// A probe was answered since the last one without a reply.
        answered: bool,
    },
}

/// Event of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Congestion was reported.
    Congested,
    /// Probes were not answered.
    Silent,
    /// A probe was answered.
    Answered,
    /// Time has passed.
    Time,
}

impl State {
    /// Its name as metrics and JSON write it.
    pub const fn name(&self) -> &'static str {
        match self {
            State::Unknown { .. } => "unknown",
            State::Good { .. } => "good",
            State::AssumedBad { cause: BadCause::Congested, .. } => "congested",
            State::AssumedBad { cause: BadCause::Silent { .. }, .. } => "silent",
            State::Denied => "denied",
        }
    }

    /// Whether flows may use the path if they have a choice.
    pub const fn is_usable(&self) -> bool {
        match self {
            State::Unknown { .. } | State::Good { .. } => true,
            State::AssumedBad { .. } | State::Denied => false,
        }
    }

    /// Badness: 0 usable, 1 congested, 2 silent; `None`: never used.
    pub(crate) const fn badness(&self) -> Option<u8> {
        match self {
            State::Unknown { .. } | State::Good { .. } => Some(0),
            State::AssumedBad { cause: BadCause::Congested, .. } => Some(1),
            State::AssumedBad { cause: BadCause::Silent { .. }, .. } => Some(2),
            State::Denied => None,
        }
    }

    /// The state after an event; `hold_ns` is the time for which a path is then assumed bad.
    pub(crate) fn after(self, now: Instant, event: Event, hold_ns: u64) -> State {
        use State::{AssumedBad, Denied, Good, Unknown};
        let until = now.after_ns(hold_ns);
        let bad = |cause| AssumedBad { until, cause };
        match (self, event) {
            (Unknown { .. } | Good { .. }, Event::Congested) => bad(BadCause::Congested),
            (Unknown { .. } | Good { .. }, Event::Silent) => bad(BadCause::Silent { answered: false }),
            (Unknown { .. }, Event::Answered) => Good { since: now },
            (Good { since }, Event::Answered | Event::Time) => Good { since },
            (Unknown { since }, Event::Time) => Unknown { since },
            (AssumedBad { cause: BadCause::Congested, .. }, Event::Congested) => bad(BadCause::Congested),
            (AssumedBad { cause: BadCause::Congested, .. }, Event::Silent) => bad(BadCause::Silent { answered: false }),
            (AssumedBad { until, cause: BadCause::Congested }, Event::Answered | Event::Time) if now < until => self,
            (AssumedBad { cause: BadCause::Congested, .. }, Event::Answered) => Good { since: now },
            // The period ended then, whenever the state is read.
            (AssumedBad { until, cause: BadCause::Congested }, Event::Time) => Unknown { since: until },
            (AssumedBad { cause: BadCause::Silent { .. }, .. }, Event::Congested) => self,
            (AssumedBad { cause: BadCause::Silent { .. }, .. }, Event::Silent) => {
                bad(BadCause::Silent { answered: false })
            }
            (AssumedBad { until, cause: BadCause::Silent { .. } }, Event::Answered) if now < until => {
                AssumedBad { until, cause: BadCause::Silent { answered: true } }
            }
            (AssumedBad { cause: BadCause::Silent { .. }, .. }, Event::Answered) => Good { since: now },
            (AssumedBad { until, cause: BadCause::Silent { answered: true } }, Event::Time) if now >= until => {
                Good { since: until }
            }
            (AssumedBad { cause: BadCause::Silent { .. }, .. }, Event::Time) => self,
            (Denied, Event::Congested | Event::Silent | Event::Answered | Event::Time) => Denied,
        }
    }

    /// Start of the state, if the path is usable.
    pub(crate) const fn since(&self) -> Option<Instant> {
        match self {
            State::Unknown { since } | State::Good { since } => Some(*since),
            State::AssumedBad { .. } | State::Denied => None,
        }
    }

    /// Time of the next change without a signal.
    pub(crate) fn changes_at(&self) -> Instant {
        match self {
            State::AssumedBad { until, cause: BadCause::Congested | BadCause::Silent { answered: true } } => *until,
            State::AssumedBad { cause: BadCause::Silent { answered: false }, .. } => Instant::NEVER,
            State::Unknown { .. } | State::Good { .. } | State::Denied => Instant::NEVER,
        }
    }
}
