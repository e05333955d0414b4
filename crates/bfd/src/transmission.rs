//! Times at which a session sends (RFC 5880 section 6.8.7). Three kinds of packets:
//!
//! * periodic ones, an interval after the last packet that was no Final;
//! * early ones, when the content is another than that of the last packet;
//! * Finals, one for each Poll. They do not delay periodic packets, which are the ones that carry Polls.
//!
//! Early packets and Finals are out of turn: there are at least 10 ms between two of them. So stale packets of a bad
//! link, or an attacker's, do not make two sessions answer each other without end.

use crate::config::LEAST_INTERVAL_US;
use crate::control::Control;
use crate::timers::Jitter;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_US;

const GAP_NS: u64 = LEAST_INTERVAL_US as u64 * NS_PER_US;

/// A kind of packet that is due. Of those due at one time, the first goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Periodic,
    Final,
    Early,
}

/// What was sent, and what is to be.
#[derive(Clone, Debug)]
pub(crate) struct Transmission {
    /// When the first packet is due.
    start: Instant,
    is_final_due: bool,
    /// Time of the last packet that was no Final, and the jitter of the interval that follows.
    ordinary: Option<(Instant, Jitter)>,
    out_of_turn: Option<Instant>,
    /// Content of the last packet.
    content: Option<Control>,
}

impl Transmission {
    /// Nothing was sent; the first packet is due at once.
    pub(crate) fn new(now: Instant) -> Self {
        Transmission { start: now, is_final_due: false, ordinary: None, out_of_turn: None, content: None }
    }

    /// A Poll was received.
    pub(crate) fn polled(&mut self) {
        self.is_final_due = true;
    }

    /// Time of the next packet of `content`, which has neither Poll nor Final, at this interval; it may have passed.
    pub(crate) fn next(&self, content: &Control, interval_ns: Option<u64>) -> Option<(Instant, Kind)> {
        let periodic_at = interval_ns.map(|interval_ns| match self.ordinary {
            None => self.start,
            Some((at, jitter)) => at.after_ns(jitter.shorten(interval_ns)),
        });
        let free_at = self.out_of_turn.map_or(self.start, |at| at.after_ns(GAP_NS));
        let is_other = self.content.is_none_or(|last| last != *content);
        let due = [
            periodic_at.map(|at| (at, Kind::Periodic)),
            self.is_final_due.then_some((free_at, Kind::Final)),
            is_other.then_some((free_at, Kind::Early)),
        ];
        due.into_iter().flatten().min()
    }

    /// A packet of `content` is sent.
    pub(crate) fn sent(&mut self, now: Instant, kind: Kind, content: Control, jitter: Jitter) {
        self.content = Some(content);
        match kind {
            Kind::Periodic => self.ordinary = Some((now, jitter)),
            Kind::Early => (self.ordinary, self.out_of_turn) = (Some((now, jitter)), Some(now)),
            Kind::Final => (self.is_final_due, self.out_of_turn) = (false, Some(now)),
        }
    }
}
