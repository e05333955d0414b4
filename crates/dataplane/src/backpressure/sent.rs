//! Pauses that a congested node has sent, and the queues that they were sent for (D67).
//!
//! ```text
//!           a packet of the PE finds more than XOFF / PAUSE
//!   Free ──────────────────────────────────────────────────▶ Paused ─┐ refresh / PAUSE
//!    ▲                                                        │  ▲───┘
//!    └────────────────────────────────────────────────────────┘
//!           no queue that it was paused for is above XON / RESUME
//! ```
//!
//! One such state for each ingress PE and class. Several queues of one class, at different ports, may be the reason;
//! whether a queue is one is its [`Phase`]. The number of queues and PEs of the node bounds the memory; packets do not
//! add to it.

use super::phase::Phase;
use crate::egress::{BackpressureThresholds, CLASSES};
use crate::timers::Timers;
use srdma_frame::PortId;
use srdma_wire::Instant;

/// A queue, and the PEs that were paused for it: bit n of word m is PE 64 m + n.
#[derive(Debug)]
struct Queue {
    port: PortId,
    class: usize,
    phase: Phase,
    paused: Vec<u64>,
}

/// The pauses that were sent.
#[derive(Debug, Default)]
pub(crate) struct SentPauses {
    queues: Vec<Queue>,
    /// For how many queues each PE was paused, by class.
    reasons: Vec<[u32; CLASSES]>,
    /// When each pause is sent again: the number is that of the PE times the classes, and the class.
    refreshes: Timers,
    /// Sequence number of the last notification.
    sequence: Option<u32>,
}

impl SentPauses {
    /// Changes the set of PEs: `number` returns the new number of a PE. The pause of a PE that is unknown now expires;
    /// all others are soon sent again.
    pub(crate) fn renumber(&mut self, pes: usize, number: impl Fn(usize) -> Option<usize>) {
        let before = std::mem::take(self);
        self.sequence = before.sequence;
        self.reasons = vec![[0; CLASSES]; pes];
        for queue in &before.queues {
            for pe in queue.pes().filter_map(&number) {
                self.xoff(Instant::ZERO, pe, queue.port, queue.class);
            }
            if let Some(place) = self.queues.iter().position(|same| same.is(queue.port, queue.class)) {
                self.queues[place].phase = queue.phase;
            }
        }
    }

    /// Updates the depth of a queue. Returns whether it is a reason for a pause.
    pub(crate) fn update(
        &mut self,
        port: PortId,
        class: usize,
        octets: usize,
        thresholds: BackpressureThresholds,
    ) -> bool {
        let place = self.place(port, class);
        let phase = &mut self.queues[place].phase;
        *phase = phase.after(octets, thresholds);
        phase.asks()
    }

    /// A queue has no thresholds any more.
    pub(crate) fn clear(&mut self, port: PortId, class: usize) {
        let place = self.place(port, class);
        self.queues[place].phase = Phase::Idle;
    }

    /// The place of a queue, added if need be.
    fn place(&mut self, port: PortId, class: usize) -> usize {
        let words = self.reasons.len().div_ceil(64);
        self.queues.iter().position(|queue| queue.is(port, class)).unwrap_or_else(|| {
            self.queues.push(Queue { port, class, phase: Phase::default(), paused: vec![0; words] });
            self.queues.len() - 1
        })
    }

    /// A packet of a PE enters a queue above XOFF. Returns whether a PAUSE is due now; it is repeated at
    /// `refresh_at`.
    pub(crate) fn xoff(&mut self, refresh_at: Instant, pe: usize, port: PortId, class: usize) -> bool {
        if pe >= self.reasons.len() || class >= CLASSES {
            return false;
        }
        let place = self.place(port, class);
        let reasons = &mut self.reasons[pe][class];
        let Some(word) = self.queues[place].paused.get_mut(pe / 64) else { return false };
        if *word >> (pe % 64) & 1 == 1 {
            return false;
        }
        *word |= 1 << (pe % 64);
        *reasons += 1;
        let is_first = *reasons == 1;
        if is_first {
            self.refreshes.arm((pe * CLASSES + class) as u32, Some(refresh_at));
        }
        is_first
    }

    /// Whether the depth of a queue matters: a pause was sent for it, or must not be sent yet.
    pub(crate) fn is_watched(&self, port: PortId, class: usize) -> bool {
        self.queues.iter().any(|queue| queue.is(port, class) && queue.phase != Phase::Idle)
    }

    /// A queue is down at XON: adds the PEs to `resumed` that get a RESUME of its class.
    pub(crate) fn xon(&mut self, port: PortId, class: usize, resumed: &mut Vec<usize>) {
        let Some(place) = self.queues.iter().position(|queue| queue.is(port, class)) else { return };
        for word in 0..self.queues[place].paused.len() {
            while self.queues[place].paused[word] != 0 {
                let pe = word * 64 + self.queues[place].paused[word].trailing_zeros() as usize;
                if self.resume_one(pe, place) {
                    resumed.push(pe);
                }
            }
        }
    }

    /// A PE is no longer paused for a queue; returns whether it gets a RESUME.
    fn resume_one(&mut self, pe: usize, place: usize) -> bool {
        let queue = &mut self.queues[place];
        queue.paused[pe / 64] &= !(1 << (pe % 64));
        let reasons = &mut self.reasons[pe][queue.class];
        *reasons -= 1;
        if *reasons == 0 {
            self.refreshes.arm((pe * CLASSES + queue.class) as u32, None);
        }
        *reasons == 0
    }

    /// A PAUSE could not be sent: the next packet of the PE is a reason again.
    pub(crate) fn forget(&mut self, pe: usize, class: usize) {
        for place in 0..self.queues.len() {
            if self.queues[place].class == class && self.queues[place].has(pe) {
                self.resume_one(pe, place);
            }
        }
    }

    /// A PE and class whose refresh is due; its timer is disarmed.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(usize, usize)> {
        let number = self.refreshes.take_due(now)? as usize;
        Some((number / CLASSES, number % CLASSES))
    }

    /// The fullest of the queues that a PE was paused for, by the `fullness` of each. Those without one are a reason no
    /// more.
    pub(crate) fn review(
        &mut self,
        pe: usize,
        class: usize,
        fullness: impl Fn(PortId) -> Option<u8>,
    ) -> Option<(PortId, u8)> {
        let mut fullest = None;
        for place in 0..self.queues.len() {
            let queue = &self.queues[place];
            if queue.class != class || !queue.has(pe) {
                continue;
            }
            match fullness(queue.port) {
                Some(level) if fullest.is_none_or(|(_, most)| most < level) => fullest = Some((queue.port, level)),
                Some(_) => {}
                None => {
                    self.resume_one(pe, place);
                }
            }
        }
        fullest
    }

    /// The PAUSE is sent again at this time.
    pub(crate) fn refresh_at(&mut self, pe: usize, class: usize, at: Instant) {
        self.refreshes.arm((pe * CLASSES + class) as u32, Some(at));
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.refreshes.next()
    }

    /// The sequence number of a notification now: the clock in microseconds, but later than the last one (D62).
    pub(crate) fn next_sequence(&mut self, now: Instant) -> u32 {
        let clock = (now.as_ns() / 1000) as u32;
        let sequence = match self.sequence {
            Some(last) if clock.wrapping_sub(last) as i32 <= 0 => last.wrapping_add(1),
            Some(_) | None => clock,
        };
        self.sequence = Some(sequence);
        sequence
    }

    /// The pauses in effect: PE and class.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let of_pe = |(pe, reasons): (usize, &[u32; CLASSES])| {
            let reasons = *reasons;
            (0..CLASSES).filter(move |class| reasons[*class] > 0).map(move |class| (pe, class))
        };
        self.reasons.iter().enumerate().flat_map(of_pe)
    }
}

impl Queue {
    fn is(&self, port: PortId, class: usize) -> bool {
        self.port == port && self.class == class
    }

    fn has(&self, pe: usize) -> bool {
        self.paused.get(pe / 64).is_some_and(|word| word >> (pe % 64) & 1 == 1)
    }

    fn pes(&self) -> impl Iterator<Item = usize> {
        let bits = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        self.paused.iter().enumerate().flat_map(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PortId = PortId(0);
    const B: PortId = PortId(9);

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    fn sent() -> SentPauses {
        let mut sent = SentPauses::default();
        sent.renumber(100, |_| None);
        sent
    }

    fn is_xoff(sent: &SentPauses, port: PortId, class: usize) -> bool {
        sent.queues.iter().any(|queue| queue.is(port, class) && queue.pes().count() > 0)
    }

    fn resumed(sent: &mut SentPauses, port: PortId, class: usize) -> Vec<usize> {
        let mut resumed = Vec::new();
        sent.xon(port, class, &mut resumed);
        resumed
    }

    /// A PE is paused once, and resumed when the last queue of the class is down; classes are independent.
    #[test]
    fn several_queues_are_one_reason() {
        let mut sent = sent();
        assert!(sent.xoff(at(5), 70, A, 3) && !sent.xoff(at(6), 70, A, 3));
        assert!(!sent.xoff(at(6), 70, B, 3), "a PAUSE was sent for the other queue");
        assert!(sent.xoff(at(6), 70, A, 4) && sent.xoff(at(6), 2, A, 3));
        assert_eq!(sent.iter().collect::<Vec<_>>(), [(2, 3), (70, 3), (70, 4)]);
        assert_eq!(resumed(&mut sent, A, 3), [2]);
        assert_eq!((resumed(&mut sent, A, 3), is_xoff(&sent, A, 3), is_xoff(&sent, B, 3)), (vec![], false, true));
        assert_eq!(resumed(&mut sent, B, 3), [70]);
        assert_eq!(sent.next_deadline(), Some(at(6)), "of the other class");
        assert!(sent.xoff(at(14), 70, B, 3), "from the beginning");
    }

    /// A refresh reports the state at its time: that of the fullest queue, or none.
    #[test]
    fn a_refresh_reviews_the_queues() {
        let mut sent = sent();
        sent.xoff(at(5), 1, A, 3);
        sent.xoff(at(5), 1, B, 3);
        assert_eq!((sent.take_due(at(4)), sent.take_due(at(5)), sent.next_deadline()), (None, Some((1, 3)), None));
        assert_eq!(sent.review(1, 3, |port| Some(if port == B { 9 } else { 7 })), Some((B, 9)));
        assert_eq!(sent.review(1, 3, |port| (port == A).then_some(1)), Some((A, 1)));
        assert_eq!((is_xoff(&sent, B, 3), sent.review(1, 3, |_| None)), (false, None));
        assert_eq!(sent.iter().count(), 0);
    }

    /// The numbers of PEs change with the table of SIDs; their pauses do not.
    #[test]
    fn pes_are_renumbered() {
        let mut sent = sent();
        for pe in [5, 80, 99] {
            sent.xoff(at(5), pe, A, 3);
        }
        sent.renumber(2, |pe| [80, 5].iter().position(|old| *old == pe));
        assert_eq!(sent.iter().collect::<Vec<_>>(), [(0, 3), (1, 3)]);
        assert_eq!(sent.next_deadline(), Some(Instant::ZERO), "sent again at once");
        assert!(!sent.xoff(at(14), 2, A, 3), "there is no such PE");
    }

    /// D62: later with each notification, whatever the clock does, and round with it.
    #[test]
    fn sequence_numbers_rise() {
        let mut sent = sent();
        assert_eq!([at(7), at(7), at(7), at(9), at(11)].map(|now| sent.next_sequence(now)), [7, 8, 9, 10, 11]);
        let wrap = Instant::from_ns((u64::from(u32::MAX) + 3) * 1000);
        sent.sequence = Some(u32::MAX - 1);
        assert_eq!([wrap, wrap].map(|now| sent.next_sequence(now)), [2, 3]);
    }
}
