//! What reports compare, out of everything that was measured.

use super::fair;
use super::flows::PlannedFlow;
use super::results::{FlowKind, FlowResult, NotificationResult, PortResult, Summary, Totals, percentile};
use super::scenario::Scenario;
use std::collections::BTreeMap;

/// Octets of a full packet's frame on the wire beside its payload: Ethernet with preamble, FCS and gap, IPv6, UDP, BTH,
/// ICRC.
const OVERHEAD_OCTETS: f64 = (14 + 24 + 40 + 8 + 12 + 4) as f64;

/// What a summary is made of.
pub(super) struct Measured<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) planned: &'a [PlannedFlow],
    pub(super) flows: &'a [FlowResult],
    /// The positions of the links that each flow's data take; empty without streams.
    pub(super) routes: &'a [Vec<usize>],
    /// Octets that each flow had delivered when no further flow began.
    pub(super) delivered: &'a [u64],
    /// The same without the incasts, if that was tried.
    pub(super) spared: Option<&'a [u64]>,
    pub(super) ports: &'a [PortResult],
    pub(super) notifications: &'a [NotificationResult],
    pub(super) totals: Totals,
}

impl Measured<'_> {
    pub(super) fn summary(&self) -> Summary {
        let short_octets = self.scenario.measures.short_flow_octets.get();
        let slowdown = |is_wanted: &dyn Fn(&FlowResult) -> bool, share| {
            let of_kind = self.flows.iter().filter(|flow| flow.kind == FlowKind::Background && is_wanted(flow));
            percentile(&mut of_kind.filter_map(|flow| flow.slowdown).collect::<Vec<f64>>(), share)
        };
        let short = |flow: &FlowResult| flow.size_octets <= short_octets;
        let long = |flow: &FlowResult| flow.size_octets > short_octets;
        let (victim_share, victim_keeps, victim_bits_per_s) = self.victims();
        let mut delays: Vec<f64> = Vec::new();
        let mut excesses: Vec<f64> = Vec::new();
        for notification in self.notifications {
            if let Some(changed_ns) = notification.changed_ns {
                let delay_ns = changed_ns.saturating_sub(notification.met_ns);
                delays.push(delay_ns as f64);
                excesses.push(delay_ns as f64 - notification.way_back_ns as f64);
            }
        }
        let endless = |flow: &FlowResult| matches!(flow.kind, FlowKind::Stream | FlowKind::Multicast);
        Summary {
            short_slowdown_p50: slowdown(&short, 0.5),
            short_slowdown_p99: slowdown(&short, 0.99),
            long_slowdown_p50: slowdown(&long, 0.5),
            long_slowdown_p99: slowdown(&long, 0.99),
            incast_completion_p50_ns: percentile(&mut self.bursts(), 0.5),
            peak_queue_octets: self.ports.iter().map(|port| port.peak_octets).max().unwrap_or(0),
            pauses: self.totals.pauses,
            victim_share,
            victim_keeps,
            victim_bits_per_s,
            notification_p50_ns: percentile(&mut delays, 0.5),
            notification_p99_ns: percentile(&mut delays, 0.99),
            notification_excess_p99_ns: percentile(&mut excesses, 0.99),
            unfinished: self.flows.iter().filter(|flow| flow.finished_ns.is_none() && !endless(flow)).count() as u64,
            retransmitted: self.totals.retransmitted,
        }
    }

    /// How long each burst took that was delivered whole.
    fn bursts(&self) -> Vec<f64> {
        let mut ends: BTreeMap<usize, Option<u64>> = BTreeMap::new();
        for (planned, flow) in self.planned.iter().zip(self.flows) {
            if let Some(burst) = planned.burst {
                let took = flow.finished_ns.map(|finished| finished - flow.started_ns);
                let longest = ends.entry(burst).or_insert(Some(0));
                *longest = longest.zip(took).map(|(longest, took)| longest.max(took));
            }
        }
        ends.into_values().flatten().map(|took| took as f64).collect()
    }

    /// The least share of its fair rate that a stream got, the least that one kept, and the least rate.
    fn victims(&self) -> (Option<f64>, Option<f64>, Option<f64>) {
        let is_stream = |number: &usize| self.planned[*number].kind == FlowKind::Stream;
        let streams: Vec<usize> = (0..self.flows.len()).filter(is_stream).collect();
        if streams.is_empty() {
            return (None, None, None);
        }
        let mtu = f64::from(self.scenario.hosts.path_mtu().octets());
        let links = self.scenario.topology.links().iter();
        let octets_per_ns: Vec<f64> = links
            .map(|link| link.rate_bits_per_s as f64 / 8e9 * mtu / (mtu + OVERHEAD_OCTETS))
            .flat_map(|octets_per_ns| [octets_per_ns; 2])
            .collect();
        let end_ns = self.scenario.measures.duration_us.get() * 1000;
        let fair = fair::delivered(self.planned, self.routes, &octets_per_ns, end_ns);
        let delivered = |number: &usize| self.delivered[*number] as f64;
        let share = |number: &usize| delivered(number) / fair[*number].max(1.0);
        let keeps = |number: &usize| Some(delivered(number) / (self.spared?[*number] as f64).max(1.0));
        let rate = |number: &usize| {
            let time_ns = end_ns.saturating_sub(self.planned[*number].start_ns).max(1);
            delivered(number) * 8e9 / time_ns as f64
        };
        (
            streams.iter().map(share).reduce(f64::min),
            streams.iter().filter_map(keeps).reduce(f64::min),
            streams.iter().map(rate).reduce(f64::min),
        )
    }
}
