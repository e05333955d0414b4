//! Number of transmissions of each PSN that is not confirmed yet.

use srdma_wire::{Instant, Psn};
use std::collections::VecDeque;

/// Transmissions of one PSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) times: u64,
    pub(super) first: Instant,
    pub(super) second: Instant,
    pub(super) last: Instant,
}

/// The data from the minimum on.
#[derive(Debug, Default)]
pub(super) struct Sends {
    base: Option<Psn>,
    sent: VecDeque<Sent>,
}

/// Data further above the minimum are not counted: no source has so many on their way, and a forged PSN costs no
/// memory.
const MOST: usize = 1 << 16;

impl Sends {
    /// Counts data.
    pub(super) fn send(&mut self, now: Instant, psn: Psn) {
        let base = *self.base.get_or_insert(psn);
        let Ok(position) = usize::try_from(psn.distance_from(base)) else {
            return;
        };
        if position >= MOST {
            return;
        }
        if self.sent.len() <= position {
            self.sent.resize(position + 1, Sent::default());
        }
        let sent = &mut self.sent[position];
        sent.times += 1;
        match sent.times {
            1 => sent.first = now,
            2 => sent.second = now,
            _ => {}
        }
        sent.last = now;
    }

    /// Everything before the minimum is confirmed.
    pub(super) fn confirm(&mut self, minimum: Psn) {
        let base = *self.base.get_or_insert(minimum);
        let confirmed = usize::try_from(minimum.distance_from(base)).unwrap_or(0);
        if confirmed > 0 {
            self.sent.drain(..confirmed.min(self.sent.len()));
            self.base = Some(minimum);
        }
    }

    /// Number of transmissions of a PSN.
    pub(super) fn of(&self, psn: Psn) -> Sent {
        let position = self.base.and_then(|base| usize::try_from(psn.distance_from(base)).ok());
        position.and_then(|position| self.sent.get(position)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Across the wrap of the PSN (D16).
    #[test]
    fn data_are_counted_until_they_are_confirmed() {
        let mut sends = Sends::default();
        for (ns, psn) in [(1, 0xFF_FFFE), (2, 0xFF_FFFF), (3, 0), (4, 0xFF_FFFF), (5, 0), (6, 0)] {
            sends.send(Instant::from_ns(ns), Psn::new(psn));
        }
        sends.confirm(Psn::new(0));
        let sent = sends.of(Psn::new(0));
        assert_eq!([sent.times, sent.first.as_ns(), sent.second.as_ns(), sent.last.as_ns()], [3, 3, 5, 6]);
        assert_eq!(sends.of(Psn::new(0xFF_FFFF)), Sent::default());
        assert_eq!(sends.of(Psn::new(9)), Sent::default());
        sends.send(Instant::from_ns(7), Psn::new(0x40_0000));
        assert_eq!(sends.sent.len(), 1, "a forged PSN costs no memory");
    }
}
