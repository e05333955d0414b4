//! Which rank becomes the owner, without I/O (D201).
//!
//! ```text
//!                lock was free
//!   ┌► TryLock ────────────────► (it is the owner: it joins, and listens)
//!   │     │ lock is taken
//!   │     ▼         attached
//!   │  Connect ────────────────► (it is attached)
//!   │     │ no owner listens, or it has ended before it answered
//!   │     ▼
//!   └── Wait ──────────────────► GiveUp, when time is up
//! ```
//!
//! The lock alone decides: the socket may be one that a dead owner has left.

use srdma_wire::Instant;
use std::time::Duration;

/// Interval for looking for an owner.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Time in which a rank has to find or to become the owner: more than the join of another one takes.
pub(super) const ENTER_TIMEOUT: Duration = Duration::from_secs(90);

/// What a rank does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    TryLock,
    Connect,
    Wait(Duration),
    GiveUp,
}

/// What came of a step that has not ended the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Another rank has the lock.
    Locked,
    /// No owner listens, or it has not answered.
    NoOwner,
    /// The time of a wait has passed.
    Waited,
}

/// The search of a rank for an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Election {
    step: Step,
    until: Instant,
}

impl Election {
    pub(super) fn new(now: Instant) -> Self {
        Election { step: Step::TryLock, until: now + ENTER_TIMEOUT }
    }

    pub(super) fn step(&self) -> Step {
        self.step
    }

    /// A step has ended neither as owner nor attached.
    pub(super) fn found(&mut self, now: Instant, found: Found) {
        self.step = match found {
            Found::Locked => Step::Connect,
            Found::NoOwner if now >= self.until => Step::GiveUp,
            Found::NoOwner => Step::Wait(LOOK_INTERVAL),
            Found::Waited => Step::TryLock,
        };
    }
}

#[cfg(test)]
mod tests;
