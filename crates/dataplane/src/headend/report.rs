//! Status of a headend: its paths and flows, for diagnosis.

use super::Headend;
use srdma_steering::{FlowReport, PathReport, SetId};
use srdma_wire::{Entropy, Instant};
use std::net::Ipv6Addr;

/// A path, and what its probes have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadendPathReport<'h> {
    /// Its state in steering.
    pub report: PathReport<'h>,
    /// Whether it is probed.
    pub is_probed: bool,
    /// The time there and back that probes have found, smoothed, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// Its value, if packets carry one.
    pub entropy: Option<Entropy>,
}

/// A flow, by its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadendFlow {
    /// Where it comes from.
    pub source: Ipv6Addr,
    /// Where it goes to.
    pub destination: Ipv6Addr,
    /// Its state in steering.
    pub report: FlowReport,
}

impl Headend {
    /// The sets of paths.
    pub fn sets(&self) -> impl Iterator<Item = SetId> {
        self.steering.sets()
    }

    /// The paths of a set, as they are at this time.
    pub fn paths(&self, now: Instant, set: SetId) -> impl Iterator<Item = HeadendPathReport<'_>> {
        let Headend { steering, sets, probes, .. } = self;
        let programs = sets.get(set.0 as usize).and_then(Option::as_ref);
        steering.paths(now, set).enumerate().map(move |(index, report)| {
            let session = programs.and_then(|programs| programs.sessions.get(index).copied().flatten());
            let entropy = programs.and_then(|programs| programs.entropies.get(index).copied().flatten());
            let round_trip_ns = session.and_then(|session| probes.as_ref()?.round_trip_ns(session));
            HeadendPathReport { report, is_probed: session.is_some(), round_trip_ns, entropy }
        })
    }

    /// The flows that are remembered.
    pub fn flows(&self) -> impl Iterator<Item = HeadendFlow> {
        self.steering.flows().filter_map(|report| {
            let state = self.flows.get(report.place)?;
            Some(HeadendFlow { source: state.source.into(), destination: state.destination.into(), report })
        })
    }
}
