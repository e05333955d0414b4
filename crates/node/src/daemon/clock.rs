//! The time of the data threads.

use srdma_wire::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// Time that never goes back, and counts from 1970, as the times in traces do (RFC 9197 section 5.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: std::time::Instant,
    origin: Instant,
}

impl Clock {
    /// A clock that is right now.
    pub(super) fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: std::time::Instant::now(), origin: Instant::ZERO + since_1970 }
    }

    /// The present time.
    pub(super) fn now(self) -> Instant {
        self.at(std::time::Instant::now())
    }

    /// The time at a moment of the system's monotonic clock.
    pub(super) fn at(self, moment: std::time::Instant) -> Instant {
        self.origin + moment.duration_since(self.start)
    }
}
