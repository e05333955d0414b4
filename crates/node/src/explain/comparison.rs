//! Responses that a node really sent, compared with those that the rules give for the same packets.

use super::event::{Difference, Response};
use serde::Serialize;
use srdma_wire::{Instant, Psn};
use std::collections::VecDeque;
use std::time::Duration;

/// Bound on the time between a captured response and that of the rules. A node needs some time, and captures of several
/// ports do not agree to the microsecond on the order.
pub(super) const TOLERANCE: Duration = Duration::from_millis(1);

/// Numbers of responses that equal those of the rules, and that do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Responses of the node that the captures have.
    pub captured: u64,
    /// Those that the rules give as well.
    pub as_the_rules: u64,
    /// Those that the rules do not give, though they are true.
    pub not_by_the_rules: u64,
    /// Those that confirm more than all branches have confirmed.
    pub untrue: u64,
    /// Responses of the rules that the captures lack.
    pub missing: u64,
    /// Responses that cannot be judged, because a branch was unknown: the captures begin in mid-flow.
    pub not_judged: u64,
}

/// Pairs captured responses with those of the rules.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    captured: VecDeque<Captured>,
    expected: VecDeque<(Instant, Response)>,
    pub(super) counts: Compared,
}

#[derive(Clone, Copy, Debug)]
struct Captured {
    time: Instant,
    response: Response,
}

/// A difference that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) time: Instant,
    pub(super) response: Response,
    pub(super) difference: Difference,
}

impl Comparison {
    /// The rules give a response.
    pub(super) fn expect(&mut self, time: Instant, response: Response) {
        match self.captured.iter().position(|captured| captured.response == response) {
            Some(position) => {
                self.captured.remove(position);
                self.counts.as_the_rules += 1;
            }
            None => self.expected.push_back((time, response)),
        }
    }

    /// A captured response of the node.
    pub(super) fn capture(&mut self, time: Instant, response: Response) {
        self.counts.captured += 1;
        match self.expected.iter().position(|(_, expected)| *expected == response) {
            Some(position) => {
                self.expected.remove(position);
                self.counts.as_the_rules += 1;
            }
            None => self.captured.push_back(Captured { time, response }),
        }
    }

    /// Collects responses without a partner within the tolerance. `minimum` is `None` while a branch is unknown.
    pub(super) fn expire(&mut self, now: Instant, minimum: Option<Psn>, found: &mut Vec<Found>) {
        let is_over = |time: Instant| time + TOLERANCE < now;
        while let Some((time, response)) = self.expected.front().copied().filter(|(time, _)| is_over(*time)) {
            self.expected.pop_front();
            self.counts.missing += 1;
            found.push(Found { time, response, difference: Difference::Missing });
        }
        while let Some(captured) = self.captured.pop_front_if(|captured| is_over(captured.time)) {
            self.judge(captured, minimum, found);
        }
    }

    /// The captures end: captured responses find no partner any more. A response of the rules may have one that was
    /// not captured.
    pub(super) fn end(&mut self, minimum: Option<Psn>, found: &mut Vec<Found>) {
        while let Some(captured) = self.captured.pop_front() {
            self.judge(captured, minimum, found);
        }
    }

    fn judge(&mut self, captured: Captured, minimum: Option<Psn>, found: &mut Vec<Found>) {
        let Captured { time, response } = captured;
        let (count, difference) = match minimum {
            None => {
                self.counts.not_judged += 1;
                return;
            }
            Some(minimum) if response.next().is_after(minimum) => (&mut self.counts.untrue, Difference::Untrue),
            Some(_) => (&mut self.counts.not_by_the_rules, Difference::NotByTheRules),
        };
        *count += 1;
        found.push(Found { time, response, difference });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::event::SyndromeKind;

    fn ack(psn: u32) -> Response {
        Response { syndrome: SyndromeKind::Ack, psn, code: None }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    /// Captures of two ports may disagree on the order, within the tolerance.
    #[test]
    fn either_order_is_accepted() {
        let mut comparison = Comparison::default();
        let mut found = Vec::new();
        comparison.capture(at(1), ack(7));
        comparison.expect(at(2), ack(7));
        comparison.expect(at(3), ack(8));
        comparison.capture(at(4), ack(8));
        comparison.expire(at(100), Some(Psn::new(9)), &mut found);
        assert_eq!((found.len(), comparison.counts.as_the_rules, comparison.counts.captured), (0, 2, 2));
    }

    /// A true response that the rules do not give, a false one, and a missing one are three differences.
    #[test]
    fn differences_are_classified() {
        let mut comparison = Comparison::default();
        let mut found = Vec::new();
        comparison.capture(at(1), ack(6));
        comparison.capture(at(1), ack(9));
        comparison.expect(at(2), ack(8));
        comparison.expire(at(2), Some(Psn::new(9)), &mut found);
        assert_eq!(found, []);
        comparison.expire(at(50), Some(Psn::new(9)), &mut found);
        let differences: Vec<_> = found.iter().map(|found| (found.response.psn, found.difference)).collect();
        let expected = [(8, Difference::Missing), (6, Difference::NotByTheRules), (9, Difference::Untrue)];
        assert_eq!(differences, expected);
        comparison.capture(at(60), ack(3));
        comparison.expire(at(100), None, &mut found);
        assert_eq!((found.len(), comparison.counts.not_judged), (3, 1));
        comparison.capture(at(100), ack(7));
        comparison.expect(at(100), ack(8));
        comparison.end(Some(Psn::new(9)), &mut found);
        assert_eq!((found.len(), comparison.counts.not_by_the_rules, comparison.counts.missing), (4, 2, 1));
    }
}
