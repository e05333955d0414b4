//! Removal of the queue pairs of completed flows, so that memory grows with concurrent flows rather than with all
//! flows.
//!
//! They remain for some time after the end, so that packets in flight, such as a CNP, still reach them.

use super::run::Run;
use super::server::Server;
use srdma_rc::QueuePairCounters;
use srdma_wire::Instant;
use std::collections::VecDeque;

/// Time between the end of a flow and the removal of its queue pairs, in nanoseconds: some hundred round trips.
const LINGER_NS: u64 = 2_000_000;

/// Counters of the queue pairs of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueuePairTotals {
    /// Packets sent, including retransmissions.
    pub(super) sent: u64,
    /// Retransmitted packets.
    pub(super) retransmitted: u64,
    /// Payload octets sent, including retransmissions.
    pub(super) octets_sent: u64,
    /// Acknowledged packets.
    pub(super) acknowledged: u64,
    /// CNPs received by the sender.
    pub(super) cnps: u64,
    /// Payload octets delivered to the receiver; the minimum of several.
    pub(super) delivered_octets: u64,
}

impl QueuePairTotals {
    pub(super) fn of(sender: &QueuePairCounters, delivered_octets: u64) -> Self {
        QueuePairTotals {
            sent: sender.packets_sent,
            retransmitted: sender.packets_retransmitted,
            octets_sent: sender.payload_octets_sent,
            acknowledged: sender.packets_acknowledged,
            cnps: sender.cnps_received,
            delivered_octets,
        }
    }
}

/// Flows whose queue pairs are removed or scheduled for removal. Those of multicast groups stay.
#[derive(Debug)]
pub(super) struct Teardown {
    /// Completed flows, in the order of the removal of their queue pairs, with its time.
    leaving: VecDeque<(Instant, usize)>,
    /// By flow number: counters of removed queue pairs.
    gone: Vec<Option<QueuePairTotals>>,
}

impl Teardown {
    /// No completed flows.
    pub(super) fn new(flows: usize) -> Self {
        Teardown { leaving: VecDeque::new(), gone: vec![None; flows] }
    }

    /// Schedules the removal for a flow that has ended by `now`, which does not decrease.
    pub(super) fn schedule(&mut self, flow: usize, now: Instant) {
        self.leaving.push_back((now.after_ns(LINGER_NS), flow));
    }

    /// The next flow that is due.
    fn due(&mut self, now: Instant) -> Option<usize> {
        self.leaving.pop_front_if(|(at, _)| *at <= now).map(|(_, flow)| flow)
    }
}

impl Run<'_> {
    /// Counters of a flow's queue pairs; zero if it has not begun.
    pub(super) fn totals_of(&self, number: usize) -> QueuePairTotals {
        if let Some(totals_of) = self.teardown.gone[number] {
            return totals_of;
        }
        let (flow, qpn) = (&self.flows[number], self.qpn(number));
        let counters = |host| self.fabric.server(host).and_then(|server| server.endpoint().counters(qpn));
        let receivers = flow.receivers.iter().copied().chain([flow.to]).filter_map(counters);
        let delivered_octets = receivers.map(|counters| counters.payload_octets_received).min().unwrap_or(0);
        counters(flow.from).map(|sender| QueuePairTotals::of(sender, delivered_octets)).unwrap_or_default()
    }

    /// Removes the queue pairs of flows that ended long enough ago.
    pub(super) fn close(&mut self, now: Instant) {
        while let Some(number) = self.teardown.due(now) {
            let totals_of = self.totals_of(number);
            self.teardown.gone[number] = Some(totals_of);
            let qpn = self.qpn(number);
            for host in [self.flows[number].from, self.flows[number].to] {
                self.fabric.with_server(host, |server: &mut Server| server.disconnect(qpn));
            }
            if let Some(place) = self.sampled.iter().position(|flow| flow.qpn == qpn) {
                let flow = self.sampled.swap_remove(place);
                self.sampler.keep(&flow, totals_of.delivered_octets);
            }
        }
    }
}
