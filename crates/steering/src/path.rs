//! A path, and its state.
//!
//! ```text
//!            answered                         congested, silent: for a while, twice as long each time
//!   Unknown ─────────► Good ────────────────────────────────┐
//!      │  ▲                                                 ▼
//!      │  └──────────────── the while is over ──────── AssumedBad, congested
//!      │                                                    │ silent
//!      │    congested, silent                               ▼
//!      └──────────────────────────────────────────────► AssumedBad, silent
//!   Good ◄── answered, and since then for a while not silent ───┘
//!
//!   Denied: by the scheduler that ranked the paths; no signal changes it
//! ```
//!
//! Probes travel in a class of their own, so that a reply shows that a path forwards packets, not that it is free of
//! congestion: it ends silence, but not congestion.

use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// A path to a destination, as the scheduler gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// What is put into the packet: the outer destination address, then further segments, if it takes any (PP-4-4).
    pub segments: Vec<Ipv6Addr>,
    /// Addresses of the nodes that it passes, by which Fast CNPs name them.
    pub nodes: Vec<Ipv6Addr>,
    /// The lower, the better; flows return to better ones. Among equals chance decides.
    pub rank: u16,
    /// It must not be taken.
    pub is_denied: bool,
}

/// The state of a path.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known, or nothing any more. It may be taken.
    Unknown {
        /// Since when.
        since: Instant,
    },
    /// It carries packets.
    Good {
        /// Since when.
        since: Instant,
    },
    /// It is not taken while there is another.
    AssumedBad {
        /// End of the period, unless a signal comes before.
        until: Instant,
        why: Why,
    },
    /// It is never taken.
    Denied,
}

/// Reason for which a path is assumed bad.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Congested,
    /// It carries nothing.
    Silent {
        /// It does again, since the last probe that has not come back.
        answered: bool,
    },
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Congestion was reported.
    Congested,
    /// Probes have not come back.
    Silent,
    /// A probe has come back.
    Answered,
    /// It is so late now.
    Time,
}

impl State {
    /// Its name as metrics and JSON write it.
    pub const fn name(&self) -> &'static str {
        match self {
            State::Unknown { .. } => "unknown",
            State::Good { .. } => "good",
            State::AssumedBad { why: Why::Congested, .. } => "congested",
            State::AssumedBad { why: Why::Silent { .. }, .. } => "silent",
            State::Denied => "denied",
        }
    }

    /// Whether flows that have a choice may take it.
    pub const fn is_usable(&self) -> bool {
        match self {
            State::Unknown { .. } | State::Good { .. } => true,
            State::AssumedBad { .. } | State::Denied => false,
        }
    }

    /// How bad it is: 0 usable, 1 congested, 2 silent; `None`: not to be taken at all.
    pub(crate) const fn badness(&self) -> Option<u8> {
        match self {
            State::Unknown { .. } | State::Good { .. } => Some(0),
            State::AssumedBad { why: Why::Congested, .. } => Some(1),
            State::AssumedBad { why: Why::Silent { .. }, .. } => Some(2),
            State::Denied => None,
        }
    }

    /// The state after an event; `hold_ns` is how long the path is assumed bad if it is now.
    pub(crate) fn after(self, now: Instant, event: Event, hold_ns: u64) -> State {
        use State::{AssumedBad, Denied, Good, Unknown};
        let until = now.after_ns(hold_ns);
        let bad = |why| AssumedBad { until, why };
        match (self, event) {
            (Unknown { .. } | Good { .. }, Event::Congested) => bad(Why::Congested),
            (Unknown { .. } | Good { .. }, Event::Silent) => bad(Why::Silent { answered: false }),
            (Unknown { .. }, Event::Answered) => Good { since: now },
            (Good { since }, Event::Answered | Event::Time) => Good { since },
            (Unknown { since }, Event::Time) => Unknown { since },
            (AssumedBad { why: Why::Congested, .. }, Event::Congested) => bad(Why::Congested),
            (AssumedBad { why: Why::Congested, .. }, Event::Silent) => bad(Why::Silent { answered: false }),
            (AssumedBad { until, why: Why::Congested }, Event::Answered | Event::Time) if now < until => self,
            (AssumedBad { why: Why::Congested, .. }, Event::Answered) => Good { since: now },
            // The period ended then, whenever the state is read.
            (AssumedBad { until, why: Why::Congested }, Event::Time) => Unknown { since: until },
            (AssumedBad { why: Why::Silent { .. }, .. }, Event::Congested) => self,
            (AssumedBad { why: Why::Silent { .. }, .. }, Event::Silent) => bad(Why::Silent { answered: false }),
            (AssumedBad { until, why: Why::Silent { .. } }, Event::Answered) if now < until => {
                AssumedBad { until, why: Why::Silent { answered: true } }
            }
            (AssumedBad { why: Why::Silent { .. }, .. }, Event::Answered) => Good { since: now },
            (AssumedBad { until, why: Why::Silent { answered: true } }, Event::Time) if now >= until => {
                Good { since: until }
            }
            (AssumedBad { why: Why::Silent { .. }, .. }, Event::Time) => self,
            (Denied, Event::Congested | Event::Silent | Event::Answered | Event::Time) => Denied,
        }
    }

    /// Since when it is as it is, while it is usable.
    pub(crate) const fn since(&self) -> Option<Instant> {
        match self {
            State::Unknown { since } | State::Good { since } => Some(*since),
            State::AssumedBad { .. } | State::Denied => None,
        }
    }

    /// When time alone changes it next.
    pub(crate) fn changes_at(&self) -> Instant {
        match self {
            State::AssumedBad { until, why: Why::Congested | Why::Silent { answered: true } } => *until,
            State::AssumedBad { why: Why::Silent { answered: false }, .. } => Instant::NEVER,
            State::Unknown { .. } | State::Good { .. } | State::Denied => Instant::NEVER,
        }
    }
}
