//! The measures that reports compare.

use super::fair_share;
use super::flows::PlannedFlow;
use super::results::{FlowKind, FlowResult, NotificationResult, PortResult, Summary, Totals, percentile};
use super::scenario::FabricScenario;
use std::collections::BTreeMap;

/// Octets of a full packet's frame on the wire beside its payload: Ethernet with preamble, FCS and gap, IPv6, UDP, BTH,
/// ICRC.
const OVERHEAD_OCTETS: f64 = (14 + 24 + 40 + 8 + 12 + 4) as f64;

/// Input of a summary.
pub(super) struct Measured<'a> {
    pub(super) scenario: &'a FabricScenario,
    pub(super) planned: &'a [PlannedFlow],
    pub(super) flows: &'a [FlowResult],
    /// The positions of the links that each flow's data take; empty without streams.
    pub(super) routes: &'a [Vec<usize>],
    /// Delivered octets of each flow at the end of the measurement.
    pub(super) delivered: &'a [u64],
    /// The same without the incasts, if that was tried.
    pub(super) control_delivered: Option<&'a [u64]>,
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
        let fair = self.fair();
        let victim = self.least(FlowKind::Stream, &fair);
        let group = self.least(FlowKind::Multicast, &fair);
        let mut delays: Vec<f64> = Vec::new();
        let mut excesses: Vec<f64> = Vec::new();
        for notification in self.notifications {
            if let Some(reacted_ns) = notification.reacted_ns {
                let delay_ns = reacted_ns.saturating_sub(notification.congested_ns);
                delays.push(delay_ns as f64);
                excesses.push(delay_ns as f64 - notification.return_path_ns as f64);
            }
        }
        let broadcasts = || self.flows.iter().filter(|flow| flow.kind == FlowKind::Broadcast);
        let over_transmission = |flow: &FlowResult| {
            Some(flow.completion_ns()? as f64 / flow.transmission_ns.filter(|time_ns| *time_ns > 0)? as f64)
        };
        let endless = |flow: &FlowResult| matches!(flow.kind, FlowKind::Stream | FlowKind::Multicast);
        Summary {
            short_slowdown_p50: slowdown(&short, 0.5),
            short_slowdown_p99: slowdown(&short, 0.99),
            long_slowdown_p50: slowdown(&long, 0.5),
            long_slowdown_p99: slowdown(&long, 0.99),
            incast_completion_p50_ns: percentile(&mut self.burst_durations(), 0.5),
            peak_queue_octets: self.ports.iter().map(|port| port.peak_octets).max().unwrap_or(0),
            pauses: self.totals.pauses,
            victim_share: victim.share,
            victim_retained: victim.control_run,
            victim_bits_per_s: victim.bits_per_s,
            group_share: group.share,
            group_retained: group.control_run,
            group_bits_per_s: group.bits_per_s,
            notification_p50_ns: percentile(&mut delays, 0.5),
            notification_p99_ns: percentile(&mut delays, 0.99),
            notification_excess_p99_ns: percentile(&mut excesses, 0.99),
            broadcast_ns: broadcasts().filter_map(FlowResult::completion_ns).max().map(|time_ns| time_ns as f64),
            broadcast_over_transmission: broadcasts().filter_map(over_transmission).reduce(f64::max),
            unfinished: self.flows.iter().filter(|flow| flow.finished_ns.is_none() && !endless(flow)).count() as u64,
            retransmitted: self.totals.retransmitted,
            // Measures of jobs are added with their results.
            ..Summary::default()
        }
    }

    /// Durations of completely delivered bursts.
    fn burst_durations(&self) -> Vec<f64> {
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

    /// Octets that each flow would have delivered at fair rates; empty without flows without end.
    fn fair(&self) -> Vec<f64> {
        if self.routes.is_empty() {
            return Vec::new();
        }
        let mtu = f64::from(self.scenario.hosts.path_mtu().octets());
        let links = self.scenario.topology.links().iter();
        let octets_per_ns: Vec<f64> = links
            .map(|link| link.rate_bits_per_s as f64 / 8e9 * mtu / (mtu + OVERHEAD_OCTETS))
            .flat_map(|octets_per_ns| [octets_per_ns; 2])
            .collect();
        fair_share::delivered(self.planned, self.routes, &octets_per_ns, self.end_ns())
    }

    fn end_ns(&self) -> u64 {
        self.scenario.measures.duration_us.get() * 1000
    }

    /// The least that flows without end of a kind got.
    fn least(&self, kind: FlowKind, fair: &[f64]) -> Least {
        let of_kind = || (0..self.flows.len()).filter(|number| self.planned[*number].kind == kind);
        let delivered = |number: usize| self.delivered[number] as f64;
        let control_run = |number: usize| Some(delivered(number) / (self.control_delivered?[number] as f64).max(1.0));
        let rate = |number: usize| {
            let time_ns = self.end_ns().saturating_sub(self.planned[number].start_ns).max(1);
            delivered(number) * 8e9 / time_ns as f64
        };
        Least {
            share: of_kind().map(|number| delivered(number) / fair[number].max(1.0)).reduce(f64::min),
            control_run: of_kind().filter_map(control_run).reduce(f64::min),
            bits_per_s: of_kind().map(rate).reduce(f64::min),
        }
    }
}

/// The least of some flows without end: of its fair rate, of its rate without the incasts, and its rate.
struct Least {
    share: Option<f64>,
    control_run: Option<f64>,
    bits_per_s: Option<f64>,
}
