//! Lease of a node (D122): while its controller answers its reports, it acknowledges for the controller's groups.
//!
//! ```text
//!          a report was answered, its orders are executed        end ≤ now
//!   none ───────────────────────────────────────────────► held ───────────► over
//!    ▲                                                     ▲  │ ▲             │
//!    │ the same in a session without a lease               │  └─┘ the same    │ the same
//!    └─────────────────────────────────────────────────────┴──────────────────┘
//! ```
//!
//! It is counted from the sending of the answered report: the controller, which counts a node's silence from the
//! arrival, does not take the node for dead before the lease has ended. The orders of the response are executed before,
//! so that a node that returns has the entries that it should have.

use std::time::Duration;

/// The times of a lease, since any fixed moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Of the session; `None`: it has no lease.
    length: Option<Duration>,
    /// When the report on its way was sent.
    sent: Duration,
    end: Option<Duration>,
}

impl Lease {
    /// A session begins. What is left of the lease stays.
    pub(crate) fn begin(&mut self, length_ms: u32) {
        self.length = (length_ms > 0).then(|| Duration::from_millis(length_ms.into()));
    }

    /// A report is about to be sent.
    pub(crate) fn report(&mut self, now: Duration) {
        self.sent = now;
    }

    /// The report was answered, and the orders of the response are executed.
    pub(crate) fn answered(&mut self) {
        self.end = self.length.map(|length| self.sent + length);
    }

    pub(crate) fn end(&self) -> Option<Duration> {
        self.end
    }
}
