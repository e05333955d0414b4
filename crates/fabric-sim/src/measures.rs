//! What is compared between variants, for the table on the terminal and for the report.

use crate::results::Summary;
use crate::{FabricResults, VariantResult};
use srdma_report::{Better, Spread, Unit};

/// A measure of a run.
pub(super) struct Measure {
    /// What it is called.
    pub(super) name: &'static str,
    /// What that means, in a sentence.
    pub(super) meaning: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// Its value; `None` where there was nothing of the kind.
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

    /// Least, median and greatest over the seeds of a variant.
    pub(super) fn spread(&self, results: &FabricResults, variant: &str) -> Option<Spread> {
        let values: Vec<f64> = results.of_variant(variant).filter_map(|run| (self.of)(run)).collect();
        Spread::of(&values)
    }
}

const fn summary(run: &VariantResult) -> &Summary {
    &run.summary
}

/// All measures, in the order in which they are shown.
pub(super) const MEASURES: &[Measure] = &[
    Measure::new(
        "iteration, median",
        "from the beginning of a job's collectives to their last octet",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).iteration_p50_ns,
    ),
    Measure::new("iteration, longest", "the worst of all iterations", Unit::Nanoseconds, Better::Lower, |run| {
        summary(run).iteration_longest_ns
    }),
    Measure::new(
        "iteration, by the ideal",
        "the median by the time for which the busiest NIC's link is needed at least",
        Unit::Times,
        Better::Lower,
        |run| summary(run).iteration_over_ideal,
    ),
    Measure::new(
        "slowest flow",
        "of all that NICs of jobs send each other, while they had anything to send",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).slowest_bits_per_s,
    ),
    Measure::new(
        "busiest link",
        "how long the busiest link between switches was in use, by the busiest link of a NIC",
        Unit::Times,
        Better::Lower,
        |run| summary(run).busiest_link,
    ),
    Measure::new(
        "busiest link, by the mean",
        "the same by the mean of all links between switches that carried anything",
        Unit::Times,
        Better::Lower,
        |run| summary(run).link_over_mean,
    ),
    Measure::new(
        "recovery",
        "from the first failure to the end of the last iteration that took a tenth longer than usual",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).recovery_ns,
    ),
    Measure::new(
        "out of order",
        "negative acknowledgements of receivers that got a packet before another one",
        Unit::Count,
        Better::Lower,
        |run| summary(run).out_of_order.map(|naks| naks as f64),
    ),
    Measure::new(
        "changes of path",
        "by NICs that steer, data and acknowledgements together",
        Unit::Count,
        Better::Neither,
        |run| summary(run).path_changes.map(|changes| changes as f64),
    ),
    Measure::new("lost on cut links", "frames that were sent there", Unit::Count, Better::Lower, |run| {
        summary(run).lost_on_links.map(|lost| lost as f64)
    }),
    Measure::new(
        "short flows, slowdown p99",
        "time taken over time alone; 99 of 100 short background flows stay below",
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
        "from the beginning of a burst from many senders to its last octet",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).incast_completion_p50_ns,
    ),
    Measure::new(
        "victim's rate",
        "what the stream that is not to blame for the congestion got",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).victim_bits_per_s,
    ),
    Measure::new(
        "victim keeps",
        "of what it gets when the bursts are left out, all else being the same",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).victim_retained.map(|kept| kept * 100.0),
    ),
    Measure::new("victim's share", "of the rate that would be fair", Unit::Percent, Better::Higher, |run| {
        summary(run).victim_share.map(|share| share * 100.0)
    }),
    Measure::new(
        "group's rate",
        "what the slowest receiver of the multicast group got",
        Unit::BitsPerSecond,
        Better::Higher,
        |run| summary(run).group_bits_per_s,
    ),
    Measure::new(
        "group keeps",
        "of what it gets when the bursts are left out, all else being the same",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).group_retained.map(|kept| kept * 100.0),
    ),
    Measure::new(
        "group's share",
        "of the rate that would be fair on all links of its tree",
        Unit::Percent,
        Better::Higher,
        |run| summary(run).group_share.map(|share| share * 100.0),
    ),
    Measure::new(
        "peak queue",
        "the most that ever waited at one port of a switch",
        Unit::Octets,
        Better::Lower,
        |run| Some(summary(run).peak_queue_octets as f64),
    ),
    Measure::new("PAUSE frames", "how often a switch told a neighbour to stop", Unit::Count, Better::Lower, |run| {
        Some(summary(run).pauses as f64)
    }),
    Measure::new("time paused", "of all ports of switches together", Unit::Nanoseconds, Better::Lower, |run| {
        Some(run.ports.iter().map(|port| port.paused_ns as f64).sum())
    }),
    Measure::new(
        "notification delay, median",
        "from a sender's first packet that met the queue to the change of its rate",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).notification_p50_ns,
    ),
    Measure::new("notification delay, p99", "99 of 100 senders knew sooner", Unit::Nanoseconds, Better::Lower, |run| {
        summary(run).notification_p99_ns
    }),
    Measure::new(
        "delay beyond the way back, p99",
        "the part of it that is not propagation and serialisation on idle links",
        Unit::Nanoseconds,
        Better::Lower,
        |run| summary(run).notification_excess_p99_ns,
    ),
    Measure::new("packets sent again", "lost, or behind one that was", Unit::Count, Better::Lower, |run| {
        Some(summary(run).retransmitted as f64)
    }),
    Measure::new("packets dropped", "by switches, for want of room", Unit::Count, Better::Lower, |run| {
        Some(run.totals.dropped as f64)
    }),
    Measure::new("packets marked", "with Congestion Experienced", Unit::Count, Better::Neither, |run| {
        Some(run.totals.marked as f64)
    }),
    Measure::new("CNPs", "that senders got from receivers", Unit::Count, Better::Neither, |run| {
        Some(run.totals.cnps as f64)
    }),
    Measure::new("Fast CNPs", "that senders got from switches", Unit::Count, Better::Neither, |run| {
        Some(run.totals.fast_cnps as f64)
    }),
    Measure::new("flows unfinished", "when the run ended", Unit::Count, Better::Lower, |run| {
        Some(summary(run).unfinished as f64)
    }),
    Measure::new("data delivered", "payload that receivers put into memory", Unit::Octets, Better::Neither, |run| {
        Some(run.totals.octets_delivered as f64)
    }),
];

/// The measures of which some variant has a value that is not zero.
pub(super) fn present(results: &FabricResults) -> impl Iterator<Item = &'static Measure> {
    MEASURES.iter().filter(|measure| results.runs.iter().any(|run| (measure.of)(run).is_some_and(|value| value != 0.0)))
}
