//! A message that is sent again until it is answered.

use crate::mad::Mad;
use srdma_wire::Instant;

/// A time of connection management: 4.096 µs times two to the power of a code.
pub(crate) const fn time_ns(code: u8) -> u64 {
    let code = if code > 31 { 31 } else { code };
    4096 << code
}

/// The longest time that a receipt prolongs: 69 s.
const LONGEST: u8 = 24;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) mad: Mad,
    interval_ns: u64,
    due: Instant,
    /// Times that are left.
    left: u8,
}

impl Retry {
    /// A message that was sent now.
    pub(crate) fn new(mad: Mad, now: Instant, interval_code: u8, times: u8) -> Self {
        let interval_ns = time_ns(interval_code);
        Retry { mad, interval_ns, due: now.after_ns(interval_ns), left: times }
    }

    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Time passes: `Some(true)` if the message is to be sent again now, `Some(false)` if it was sent often enough.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<bool> {
        if now < self.due {
            return None;
        }
        if self.left == 0 {
            return Some(false);
        }
        self.left -= 1;
        self.due = now.after_ns(self.interval_ns);
        Some(true)
    }

    /// A receipt: its sender needs time. Counts as one time, so that receipts do not prolong for ever.
    pub(crate) fn prolong(&mut self, now: Instant, service_timeout: u8) {
        if self.left > 0 {
            self.left -= 1;
            self.due = now.after_ns(time_ns(service_timeout.min(LONGEST)).saturating_add(self.interval_ns));
        }
    }
}
