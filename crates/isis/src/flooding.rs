//! LSPs that one circuit has to send and to acknowledge, or on a LAN to request (ISO 10589 section 7.3.15, RFC 9681).
//!
//! The flag SRM of an LSP, "send it by this circuit until it is acknowledged", is its being in `waiting` or `sent`;
//! SSN, "send an acknowledgement", its being in `to_acknowledge`. On a fresh adjacency thousands of LSPs may wait; of
//! these a window is sent, and the next when acknowledgements come (RFC 9681 section 6.2). On a LAN nothing is
//! acknowledged: LSPs are sent once, a few in an interval, and what was lost is requested by who lacks it in a CSNP.

use crate::id::LspId;
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};
use std::collections::{BTreeMap, BTreeSet};

/// LSPs that may be sent and not yet acknowledged.
const WINDOW: usize = 60;

/// LSPs that are acknowledged at once, without a wait for more of them (RFC 9681: LSPs per PSNP).
const ACKNOWLEDGE_AT: usize = 15;

/// Time after which an LSP is sent again, if no acknowledgement comes, in nanoseconds (ISO 10589: 5 s).
pub(crate) const SEND_AGAIN_NS: u64 = 5 * NS_PER_S;

/// Time that an acknowledgement waits for further ones, in nanoseconds.
const GATHER_NS: u64 = 100 * NS_PER_MS;

/// LSPs that are sent to a LAN together, and the time until the next ones, in nanoseconds (RFC 9681 section 4: LSP
/// burst size and LSP transmission interval).
const BURST: usize = 10;
const BURST_INTERVAL_NS: u64 = 33 * NS_PER_MS;

/// The state of one circuit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flooding {
    /// Of a LAN: time at which the next LSPs may be sent.
    burst_at: Option<Instant>,
    waiting: BTreeSet<LspId>,
    /// When each is sent again.
    sent: BTreeMap<LspId, Instant>,
    /// The same by time.
    again: BTreeSet<(Instant, LspId)>,
    to_acknowledge: BTreeSet<LspId>,
    /// Time at which the first of these came.
    acknowledge_since: Option<Instant>,
}

impl Flooding {
    /// State of a LAN.
    pub(crate) fn of_lan() -> Self {
        Flooding { burst_at: Some(Instant::ZERO), ..Flooding::default() }
    }

    /// Sets SRM.
    pub(crate) fn send(&mut self, id: LspId) {
        self.forget_sent(id);
        self.waiting.insert(id);
    }

    /// Clears SRM.
    pub(crate) fn need_not_send(&mut self, id: LspId) {
        self.forget_sent(id);
        self.waiting.remove(&id);
    }

    /// Sets SSN. There are at most `limit`.
    pub(crate) fn acknowledge(&mut self, now: Instant, id: LspId, limit: usize) {
        if self.to_acknowledge.len() < limit {
            self.to_acknowledge.insert(id);
            self.acknowledge_since.get_or_insert(now);
        }
    }

    /// Clears SSN.
    pub(crate) fn need_not_acknowledge(&mut self, id: LspId) {
        self.to_acknowledge.remove(&id);
        if self.to_acknowledge.is_empty() {
            self.acknowledge_since = None;
        }
    }

    /// Whether there may be something to send.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Takes the LSPs to send now: queued ones, up to the window, and those without acknowledgement for too long. They
    /// are sent again after `again_ns`.
    pub(crate) fn take_due(&mut self, now: Instant, again_ns: u64) -> Vec<LspId> {
        if let Some(burst_at) = &mut self.burst_at {
            return take_burst(&mut self.waiting, burst_at, now);
        }
        let mut due = Vec::new();
        while let Some(&(at, id)) = self.again.first()
            && at <= now
        {
            self.forget_sent(id);
            due.push(id);
        }
        let room = WINDOW.saturating_sub(self.sent.len() + due.len());
        for _ in 0..room {
            due.extend(self.waiting.pop_first());
        }
        let again_at = now.after_ns(again_ns);
        for id in &due {
            self.sent.insert(*id, again_at);
            self.again.insert((again_at, *id));
        }
        due
    }

    /// Takes the acknowledgements to send now; none while waiting may gather more.
    pub(crate) fn take_acknowledgements(&mut self, now: Instant) -> Vec<LspId> {
        let is_due = self.acknowledge_since.is_some_and(|since| since.after_ns(GATHER_NS) <= now);
        if !is_due && self.to_acknowledge.len() < ACKNOWLEDGE_AT {
            return Vec::new();
        }
        self.acknowledge_since = None;
        std::mem::take(&mut self.to_acknowledge).into_iter().collect()
    }

    /// When there is something to do next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let waiting = match self.burst_at {
            _ if self.waiting.is_empty() => None,
            Some(burst_at) => Some(burst_at),
            None => (self.sent.len() < WINDOW).then_some(Instant::ZERO),
        };
        let at_once = (self.to_acknowledge.len() >= ACKNOWLEDGE_AT).then_some(Instant::ZERO);
        let again = self.again.first().map(|(at, _)| *at);
        let acknowledge = self.acknowledge_since.map(|since| since.after_ns(GATHER_NS));
        [waiting, at_once, again, acknowledge].into_iter().flatten().min()
    }

    fn forget_sent(&mut self, id: LspId) {
        if let Some(at) = self.sent.remove(&id) {
            self.again.remove(&(at, id));
        }
    }
}

/// Takes the LSPs that a LAN is sent now.
fn take_burst(waiting: &mut BTreeSet<LspId>, burst_at: &mut Instant, now: Instant) -> Vec<LspId> {
    if now < *burst_at || waiting.is_empty() {
        return Vec::new();
    }
    *burst_at = now.after_ns(BURST_INTERVAL_NS);
    std::iter::from_fn(|| waiting.pop_first()).take(BURST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{NodeId, SystemId};

    fn id(number: u8) -> LspId {
        LspId { node: NodeId::of(SystemId([0, 0, 0, 0, 0, 1])), fragment: number }
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::from_ns(ms * NS_PER_MS)
    }

    #[test]
    fn a_window_is_sent_and_the_rest_on_acknowledgements() {
        let mut flooding = Flooding::default();
        (0..100).for_each(|number| flooding.send(id(number)));
        assert_eq!(flooding.take_due(at_ms(0), SEND_AGAIN_NS).len(), 60);
        assert_eq!(flooding.take_due(at_ms(1), SEND_AGAIN_NS).len(), 0);
        (0..10).for_each(|number| flooding.need_not_send(id(number)));
        assert_eq!(flooding.next_deadline(), Some(Instant::ZERO));
        assert_eq!(flooding.take_due(at_ms(2), SEND_AGAIN_NS), (60..70).map(id).collect::<Vec<_>>());
    }

    #[test]
    fn a_lan_is_sent_a_few_in_an_interval_and_each_once() {
        let mut flooding = Flooding::of_lan();
        (0..15).for_each(|number| flooding.send(id(number)));
        assert_eq!(flooding.take_due(at_ms(100), SEND_AGAIN_NS), (0..10).map(id).collect::<Vec<_>>());
        assert_eq!(flooding.next_deadline(), Some(at_ms(133)));
        assert_eq!(flooding.take_due(at_ms(132), SEND_AGAIN_NS), []);
        // Another system has sent it.
        flooding.need_not_send(id(12));
        assert_eq!(flooding.take_due(at_ms(133), SEND_AGAIN_NS), [10, 11, 13, 14].map(id));
        assert_eq!(flooding.next_deadline(), None);
    }

    #[test]
    fn unacknowledged_lsps_are_retransmitted() {
        let mut flooding = Flooding::default();
        flooding.send(id(1));
        assert_eq!(flooding.take_due(at_ms(0), SEND_AGAIN_NS), [id(1)]);
        assert_eq!(flooding.next_deadline(), Some(at_ms(5000)));
        assert_eq!(flooding.take_due(at_ms(5000), SEND_AGAIN_NS), [id(1)]);
        flooding.need_not_send(id(1));
        assert_eq!(flooding.next_deadline(), None);
    }

    #[test]
    fn acknowledgements_are_gathered() {
        let mut flooding = Flooding::default();
        flooding.acknowledge(at_ms(0), id(1), 100);
        assert_eq!(flooding.take_acknowledgements(at_ms(99)), []);
        assert_eq!(flooding.take_acknowledgements(at_ms(100)), [id(1)]);
        (0..15).for_each(|number| flooding.acknowledge(at_ms(200), id(number), 100));
        assert_eq!(flooding.take_acknowledgements(at_ms(200)).len(), 15);
        (0..15).for_each(|number| flooding.acknowledge(at_ms(300), id(number), 3));
        assert_eq!(flooding.take_acknowledgements(at_ms(400)).len(), 3, "no more than the limit");
    }
}
