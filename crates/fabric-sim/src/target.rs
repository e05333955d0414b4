//! Targets for broadcasts.

use crate::results::FlowResult;
use crate::{FabricResults, VariantResult};
use srdma_report::units::{count, grouped, time};
use std::fmt;

/// A broadcast with a target, in one run.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    run: &'a VariantResult,
    flow: &'a FlowResult,
    /// Time until all receivers have acknowledged the last octet, at most, in nanoseconds.
    limit_ns: u64,
}

impl FabricResults {
    /// The targets of all runs.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        self.runs.iter().flat_map(|run| {
            run.flows.iter().filter_map(move |flow| Some(Target { run, flow, limit_ns: flow.limit_ns? }))
        })
    }

    /// Those that were missed.
    pub fn missed_targets(&self) -> impl Iterator<Item = Target<'_>> {
        self.targets().filter(|target| !target.is_met())
    }
}

impl Target<'_> {
    /// Whether the broadcast has completed in time, and every octet that was written is the one that was sent.
    pub fn is_met(&self) -> bool {
        let in_time = self.flow.completion_ns().is_some_and(|time_ns| time_ns <= self.limit_ns);
        in_time && self.run.totals.octets_differing == 0 && self.run.totals.lost_by_simulator == 0
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { run, flow, limit_ns } = self;
        let to = count(flow.receivers.unwrap_or(1) as u64, "receiver");
        let completion = flow.completion_ns().map_or("not completed".to_owned(), time);
        write!(
            f,
            "target of {}, variant {}, seed {}: {} octets to {to} in {completion}, at most {}: {}",
            flow.destination,
            run.variant,
            run.seed,
            grouped(flow.size_octets),
            time(*limit_ns),
            if self.is_met() { "met" } else { "MISSED" }
        )?;
        match run.totals.octets_differing {
            0 => Ok(()),
            differing => write!(f, ", {} octets differ", grouped(differing)),
        }
    }
}
