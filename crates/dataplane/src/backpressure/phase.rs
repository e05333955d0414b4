//! State of a queue with regard to its pause requests (D67).
//!
//! ```text
//!          above XOFF             above XON
//!   Idle ─────────────▶ Rising ─────────────▶ High ◀──┐
//!    ▲ ▲  at XOFF or below │                   │      │ above XON
//!    │ └───────────────────┘                   ▼ XON  │
//!    └──────────────────────────────────── Falling ───┘
//!              at XOFF or below
//! ```
//!
//! Usually XON is below XOFF, and only Idle and High occur. XON above XOFF is an early resume: resumed traffic
//! arrives when the queue becomes empty, so that the bottleneck does not idle. While the depth falls from XON
//! to XOFF, the queue is no reason.

use crate::egress::BackpressureThresholds;

/// Phase of a queue. `Rising` and `Falling` occur only with an early resume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No reason.
    #[default]
    Idle,
    /// A reason, and not above XON yet.
    Rising,
    /// A reason, until it is down at XON.
    High,
    /// It was down at XON, and is still above XOFF.
    Falling,
}

impl Phase {
    /// The phase at this depth.
    pub(crate) fn after(self, octets: usize, thresholds: BackpressureThresholds) -> Self {
        let BackpressureThresholds { xoff_octets, xon_octets } = thresholds;
        let (is_above_xoff, is_above_xon) = (octets > xoff_octets, octets > xon_octets);
        match self {
            Phase::Idle | Phase::Rising if is_above_xoff && is_above_xon => Phase::High,
            Phase::Idle | Phase::Rising if is_above_xoff => Phase::Rising,
            Phase::Idle | Phase::Rising => Phase::Idle,
            Phase::High | Phase::Falling if is_above_xon => Phase::High,
            Phase::High | Phase::Falling if is_above_xoff => Phase::Falling,
            Phase::High | Phase::Falling => Phase::Idle,
        }
    }

    /// Whether it is a reason.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Phase::Rising | Phase::High)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(xoff_octets: usize, xon_octets: usize, depths: &[usize]) -> Vec<bool> {
        let mut phase = Phase::Idle;
        let after = |depth: &usize| {
            phase = phase.after(*depth, BackpressureThresholds { xoff_octets, xon_octets });
            phase.asks()
        };
        depths.iter().map(after).collect()
    }

    #[test]
    fn usually_from_above_xoff_to_xon() {
        let depths = [10, 30, 31, 30, 11, 10, 29, 30, 31];
        assert_eq!(phases(30, 10, &depths), [false, false, true, true, true, false, false, false, true]);
    }

    /// A reason on the way up, none on the way down, and one again if it turns before XOFF.
    #[test]
    fn an_early_resume_is_sent_while_the_queue_shrinks() {
        let depths = [10, 11, 30, 31, 90, 31, 30, 15, 11, 10, 11];
        let asks = [false, true, true, true, true, true, false, false, false, false, true];
        assert_eq!(phases(10, 30, &depths), asks);
        assert_eq!(phases(10, 30, &[31, 30, 20, 31, 30]), [true, false, false, true, false]);
        assert_eq!(phases(10, 30, &[20, 10, 20]), [true, false, true], "it never came above XON");
    }
}
