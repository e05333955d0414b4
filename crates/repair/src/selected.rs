//! Packets selected to be sent again to one branch, beside those in order: what a child has requested, or one packet
//! that brings about a response.

use srdma_wire::Psn;

/// Runs of PSNs, a few at most: a branch that has more outstanding requests repeats them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Selected {
    runs: [Option<Run>; Selected::MOST],
}

/// A run of PSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    psn: Psn,
    count: u32,
    /// Each requests an acknowledgement, whether the source's packet did or not.
    ack_request: bool,
}

impl Selected {
    const MOST: usize = 4;

    /// Adds a run; returns whether there was room, or it was selected already.
    pub(crate) fn add(&mut self, psn: Psn, count: u32, ack_request: bool) -> bool {
        let run = Run { psn, count, ack_request };
        if self.runs.contains(&Some(run)) {
            return true;
        }
        match self.runs.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(run);
                true
            }
            None => false,
        }
    }

    /// Takes the next PSN, and whether it is to request an acknowledgement.
    pub(crate) fn next(&mut self) -> Option<(Psn, bool)> {
        let run = self.runs[0]?;
        if run.count > 1 {
            self.runs[0] = Some(Run { psn: run.psn.next(), count: run.count - 1, ..run });
        } else {
            self.runs[0] = None;
            self.runs.rotate_left(1);
        }
        Some((run.psn, run.ack_request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_in_order_and_are_few() {
        let mut selected = Selected::default();
        assert_eq!(selected.next(), None);
        assert!(selected.add(Psn::new(0xFF_FFFF), 2, false));
        assert!(selected.add(Psn::new(7), 1, true));
        assert!(selected.add(Psn::new(7), 1, true), "the same again");
        assert!(selected.add(Psn::new(8), 1, false) && selected.add(Psn::new(9), 1, false));
        assert!(!selected.add(Psn::new(10), 1, false));
        let taken: Vec<_> = std::iter::from_fn(|| selected.next()).map(|(psn, ack)| (psn.get(), ack)).collect();
        assert_eq!(taken, [(0xFF_FFFF, false), (0, false), (7, true), (8, false), (9, false)]);
        assert_eq!(selected.next(), None);
    }
}
