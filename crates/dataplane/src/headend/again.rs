//! Retransmitted requests of a host (D83): after a change of path because of reordering, otherwise because of loss.

use super::flow::Request;
use srdma_wire::{Instant, Psn};

/// A PSN this far behind the newest is of another life of the queue pair.
const WINDOW: i32 = 1 << 22;

/// State of a flow's requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    /// The PSN behind the newest request; `None` before the first.
    next: Option<Psn>,
    /// A host that goes back until then does so because the flow has moved.
    moved_until: Instant,
    /// The last request was one that is sent again; and whether the flow had moved when the host went back.
    behind: Option<bool>,
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    New,
    /// Sent again, because the flow has moved.
    AfterMove,
    /// Sent again.
    Again {
        goes_back: bool,
    },
}

impl Requests {
    /// The flow has moved; retransmissions until then are attributed to the move.
    pub(super) fn moved(&mut self, until: Instant) {
        self.moved_until = until;
    }

    /// A request is sent.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, request: Request) -> Kind {
        let next = self.next.unwrap_or(request.psn);
        let ahead = request.psn.distance_from(next);
        if !(-WINDOW..0).contains(&ahead) {
            self.next = Some(request.psn.next());
            self.behind = None;
            return Kind::New;
        }
        let goes_back = self.behind.is_none();
        let after_move = *self.behind.get_or_insert(now < self.moved_until);
        if after_move { Kind::AfterMove } else { Kind::Again { goes_back } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D83: the wrap, a READ that takes several numbers, a host that goes back, and a queue pair that is reset.
    #[test]
    fn retransmitted_packets_are_distinguished_from_new_ones() {
        let mut requests = Requests::default();
        let mut send = |ns, psn| requests.send(Instant::from_ns(ns), Request { psn: Psn::new(psn), asks: false });
        assert_eq!([send(0, 0xFF_FFFE), send(1, 0xFF_FFFF), send(2, 0), send(3, 5)], [Kind::New; 4]);
        assert_eq!(send(4, 0xFF_FFFF), Kind::Again { goes_back: true });
        assert_eq!([send(5, 0), send(6, 5)], [Kind::Again { goes_back: false }; 2]);
        assert_eq!([send(7, 6), send(8, 0x40_0007)], [Kind::New; 2]);
        assert_eq!(send(9, 0x40_0007), Kind::Again { goes_back: true });
        assert_eq!(send(9, 5), Kind::New, "too far back to be the same queue pair");
    }

    #[test]
    fn retransmissions_after_a_move_are_attributed_to_it() {
        let mut requests = Requests::default();
        let mut at = |ns, psn, moved: bool| {
            if moved {
                requests.moved(Instant::from_ns(ns + 100));
            }
            requests.send(Instant::from_ns(ns), Request { psn: Psn::new(psn), asks: false })
        };
        assert_eq!([at(0, 1, false), at(10, 2, true), at(20, 1, false)], [Kind::New, Kind::New, Kind::AfterMove]);
        assert_eq!(at(110, 2, false), Kind::AfterMove, "the host went back in time");
        assert_eq!([at(120, 3, false), at(130, 2, false)], [Kind::New, Kind::Again { goes_back: true }]);
        assert_eq!(at(140, 1, true), Kind::Again { goes_back: false }, "this is why it moves");
    }
}
