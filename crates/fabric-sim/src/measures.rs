//! Measures that tables and reports compare between variants.

use crate::results::Summary;
use crate::{FabricResults, VariantResult};
use srdma_report::{Better, Spread, Unit};

/// A measure of a run.
pub(super) struct Measure {
    pub(super) name: &'static str,
    /// Its meaning, in a sentence.
    pub(super) meaning: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// Its value; `None` where not applicable.
    pub(super) of: fn(&VariantResult) -> Option<f64>,
}

impl Measure {
    const fn new(
        name: &'static str,
        meaning: &'static str,
        unit: Unit,
        better: Better,
        of: fn(&VariantResult) -> Option<f64>,
    ) -> Self {
        Measure { name, meaning, unit, better, of }
    }

    /// Minimum, median and maximum over the seeds of a variant.
    pub(super) fn spread(&self, results: &FabricResults, variant: &str) -> Option<Spread> {
        let values: Vec<f64> = results.of_variant(variant).filter_map(|run| (self.of)(run)).collect();
        Spread::of(&values)
    }
}

const fn summary(run: &VariantResult) -> &Summary {
    &run.summary
}

/// All measures, in the order of tables and reports.
pub(super) const MEASURES: &[Measure] = &[
    Measure::new(
        "iteration, median",
        "from the start of a job's collectives to their last octet",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).iteration_p50_ns,
    ),
    Measure::new("iteration, longest", "the longest of all iterations", Unit::Nanoseconds, Better::Lower, |run| {
        summary(run).iteration_longest_ns
    }),
    Measure::new(
        "iteration relative to ideal",
        "median relative to the minimum busy time of the busiest NIC's link",
        Unit::Times,
        Better::Lower,
        |run| summary(run).iteration_over_ideal,
    ),
    Measure::new(
        "slowest flow",
        "lowest rate between two NICs of a job while data were outstanding",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).slowest_bits_per_s,
    ),
    Measure::new(
        "busiest link",
        "busy time of the busiest link between switches relative to the busiest NIC link",
        Unit::Times,
        Better::Lower,
        |run| summary(run).busiest_link,
    ),
    Measure::new(
        "busiest link relative to mean",
        "the same relative to the mean of all used links between switches",
        Unit::Times,
        Better::Lower,
        |run| summary(run).link_over_mean,
    ),
    Measure::new(
        "recovery",
        "from the first failure to the end of the last iteration that took 10 % longer than the median before",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).recovery_ns,
    ),
    Measure::new(
        "out of order",
        "NAKs of receivers because of reordering or loss",
        Unit::Count,
        Better::Lower,
        |run| summary(run).out_of_order.map(|naks| naks as f64),
    ),
    Measure::new(
        "path changes",
        "by steering NICs, for data and acknowledgements",
        Unit::Count,
        Better::Neither,
        |run| summary(run).path_changes.map(|changes| changes as f64),
    ),
    Measure::new("lost on failed links", "frames", Unit::Count, Better::Lower, |run| {
        summary(run).lost_on_links.map(|lost| lost as f64)
    }),
    Measure::new(
        "short flows, slowdown p99",
        "99 % of short background flows stay below",
        Unit::Times,
        Better::Lower,
        |run| summary(run).short_slowdown_p99,
    ),
    Measure::new(
        "short flows, slowdown median",
        "half of the short background flows stay below",
        Unit::Times,
        Better::Lower,
        |run| summary(run).short_slowdown_p50,
    ),
    Measure::new(
        "other flows, slowdown p99",
        "the same for the longer background flows",
        Unit::Times,
        Better::Lower,
        |run| summary(run).long_slowdown_p99,
    ),
    Measure::new(
        "other flows, slowdown median",
        "half of the longer background flows stay below",
        Unit::Times,
        Better::Lower,
        |run| summary(run).long_slowdown_p50,
    ),
    Measure::new(
        "incast completion, median",
        "from the start of a burst to its last octet",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).incast_completion_p50_ns,
    ),
    Measure::new(
        "victim's rate",
        "rate of the stream that does not cause the congestion",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).victim_bits_per_s,
    ),
    Measure::new(
        "victim retains",
        "of its rate in the control run without incasts",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).victim_retained.map(|kept| kept * 100.0),
    ),
    Measure::new("victim's share", "of its max-min fair rate", Unit::Percent, Better::Higher, |run| {
        summary(run).victim_share.map(|share| share * 100.0)
    }),
    Measure::new(
        "group's rate",
        "rate of the slowest receiver of the multicast group",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).group_bits_per_s,
    ),
    Measure::new(
        "group retains",
        "of its rate in the control run without incasts",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).group_retained.map(|kept| kept * 100.0),
    ),
    Measure::new(
        "group's share",
        "of its max-min fair rate on the links of its tree",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).group_share.map(|share| share * 100.0),
    ),
    Measure::new(
        "broadcast completion",
        "from the first octet to the last receiver's acknowledgement of the last one",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).broadcast_ns,
    ),
    Measure::new(
        "broadcast relative to size by rate",
        "the same relative to the size by the rate of the source's link",
        Unit::Times,
        Better::Lower,
        |run| summary(run).broadcast_over_transmission,
    ),
    Measure::new("peak queue", "maximum queue length at a switch port", Unit::Octets, Better::Lower, |run| {
        Some(summary(run).peak_queue_octets as f64)
    }),
    Measure::new("PAUSE frames", "sent by switches", Unit::Count, Better::Lower, |run| {
        Some(summary(run).pauses as f64)
    }),
    Measure::new("time paused", "sum over all switch ports", Unit::Nanoseconds, Better::Lower, |run| {
        Some(run.ports.iter().map(|port| port.paused_ns as f64).sum())
    }),
    Measure::new(
        "notification delay, median",
        "from a sender's first packet in the congested queue to its change of rate",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).notification_p50_ns,
    ),
    Measure::new(
        "notification delay, p99",
        "99 % of the senders stay below",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).notification_p99_ns,
    ),
    Measure::new(
        "delay above return path, p99",
        "excess over propagation and serialisation on idle links",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).notification_excess_p99_ns,
    ),
    Measure::new("retransmitted packets", "because of loss", Unit::Count, Better::Lower, |run| {
        Some(summary(run).retransmitted as f64)
    }),
    Measure::new("packets dropped", "by switches, queue full", Unit::Count, Better::Lower, |run| {
        Some(run.totals.dropped as f64)
    }),
    Measure::new("packets marked", "with Congestion Experienced", Unit::Count, Better::Neither, |run| {
        Some(run.totals.marked as f64)
    }),
    Measure::new("CNPs", "received by senders, from receivers", Unit::Count, Better::Neither, |run| {
        Some(run.totals.cnps as f64)
    }),
    Measure::new("Fast CNPs", "received by senders, from switches", Unit::Count, Better::Neither, |run| {
        Some(run.totals.fast_cnps as f64)
    }),
    Measure::new("flows unfinished", "at the end of the run", Unit::Count, Better::Lower, |run| {
        Some(summary(run).unfinished as f64)
    }),
    Measure::new("data delivered", "payload written to memory of receivers", Unit::Octets, Better::Neither, |run| {
        Some(run.totals.octets_delivered as f64)
    }),
];

/// The measures with a non-zero value for any variant.
pub(super) fn present(results: &FabricResults) -> impl Iterator<Item = &'static Measure> {
    MEASURES.iter().filter(|measure| results.runs.iter().any(|run| (measure.of)(run).is_some_and(|value| value != 0.0)))
}
