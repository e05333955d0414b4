//! Time up to which all frames have been received (D109).

use srdma_wire::Instant;

/// Rounds in which every driver hands over what it can hold: 64 frames each, of rings with 4,096 places at most.
const ROUNDS: u32 = 64;

/// Follows the rounds of a data thread.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Beginning of the first of the present series of rounds that left frames behind.
    since: Instant,
    rounds: u32,
    until: Instant,
}

impl Received {
    /// A round that began at this time has received a batch of every port, and left none behind if `is_drained`.
    /// Returns a time: frames that arrived before have been received.
    pub(super) fn round(&mut self, began: Instant, is_drained: bool) -> Instant {
        if is_drained {
            (self.until, self.rounds) = (began, 0);
        } else {
            if self.rounds == 0 {
                self.since = began;
            }
            self.rounds += 1;
            if self.rounds == ROUNDS {
                (self.until, self.rounds) = (self.since, 0);
            }
        }
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn time_stands_still_while_frames_wait() {
        let mut received = Received::default();
        assert_eq!(received.round(at(10), true), at(10));
        assert_eq!(received.round(at(20), false), at(10));
        assert_eq!(received.round(at(30), false), at(10));
        assert_eq!(received.round(at(40), true), at(40));
    }

    /// Under permanent overload a failure is detected later, but it is.
    #[test]
    fn a_flood_does_not_hide_a_failure() {
        let mut received = Received::default();
        let until: Vec<u64> = (1..=200).map(|round| received.round(at(round), false).as_ns()).collect();
        assert_eq!((until[62], until[63], until[127], until[191]), (0, 1, 65, 129));
    }
}
