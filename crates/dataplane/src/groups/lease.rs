//! Lease under which a node acknowledges for a controller's groups (D122).
//!
//! ```text
//!            Until(end)                  now ≥ end
//!   Off ──────────────────► held ──────────────────► over: nothing is sent for these groups
//!    ▲                      ▲  │ ▲                     │
//!    │ Off                  │  └─┘ Until(later)        │ Until(later)
//!    └──────────────────────┴──────────────────────────┘
//! ```
//!
//! Its end is compared with the time of each packet and each timer: nothing else has to happen for it to end.

use srdma_wire::Instant;

/// The lease of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// The controller has given none: its groups are not limited.
    #[default]
    Off,
    /// It ends then.
    Until(Instant),
}

impl Lease {
    /// Whether it has ended.
    pub fn is_over(self, now: Instant) -> bool {
        match self {
            Lease::Off => false,
            Lease::Until(end) => now >= end,
        }
    }
}
