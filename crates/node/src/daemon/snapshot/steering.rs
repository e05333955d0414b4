//! Steering in a snapshot: the paths to each destination, the flows, and the counters (`docs/steering.md`).

use serde::{Deserialize, Serialize};
use srdma_dataplane::Node;
use srdma_dataplane::headend::{Headend, HeadendFlow, HeadendPathReport};
use srdma_steering::{Cause, SetId, Signal};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Flows that a snapshot has at most: those that sent last.
const MOST_FLOWS: usize = 256;

/// State of a node's steering over placed paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringSnapshot {
    /// Destinations that have paths.
    pub destinations: Vec<DestinationSnapshot>,
    /// The flows that sent last, the last one first.
    pub flows: Vec<FlowSnapshot>,
    /// Signals received, by kind.
    pub signals: BTreeMap<String, u64>,
    /// Flows that have moved, by cause.
    pub moves: BTreeMap<String, u64>,
    /// Everything else that is counted.
    pub counters: BTreeMap<String, u64>,
}

/// Destinations with the same paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationSnapshot {
    /// Their prefixes.
    pub prefixes: Vec<String>,
    /// Their paths, in the order of the configuration.
    pub paths: Vec<PathSnapshot>,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSnapshot {
    /// The outer destination address.
    pub destination: String,
    pub rank: u16,
    /// Presumed state of the path.
    pub state: String,
    /// Number of times that it was assumed bad.
    pub times_bad: u64,
    /// Number of flows that were assigned to it.
    pub flows_assigned: u64,
    /// Whether it is probed.
    pub is_probed: bool,
    /// Round-trip time measured by its probes, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// The path as a value of 32 bits, if its packets carry it.
    #[serde(default)]
    pub entropy: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FlowSnapshot {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// The outer destination address of its path.
    pub path: String,
    /// Number of times that it has moved.
    pub moves: u32,
}

/// State of a node's steering, if it has any.
pub(super) fn of(node: &Node) -> Option<SteeringSnapshot> {
    let headend = node.headend()?;
    let mut prefixes: BTreeMap<SetId, Vec<String>> = BTreeMap::new();
    for (_, prefix, set) in node.placed() {
        prefixes.entry(set).or_default().push(prefix.to_string());
    }
    Some(SteeringSnapshot::of(headend, prefixes))
}

impl SteeringSnapshot {
    /// State of a headend's steering to these destinations.
    pub fn of(headend: &Headend, mut prefixes: BTreeMap<SetId, Vec<String>>) -> Self {
        let destination = |set| {
            let mut prefixes = prefixes.remove(&set).unwrap_or_default();
            prefixes.sort();
            DestinationSnapshot {
                prefixes,
                paths: headend.paths(headend.latest(), set).map(|path| self::path(&path)).collect(),
            }
        };
        let mut flows: Vec<HeadendFlow> = headend.flows().collect();
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.report.last), flow.report.key));
        flows.truncate(MOST_FLOWS);
        let counted = headend.steering().counters();
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        SteeringSnapshot {
            destinations: headend.sets().map(destination).collect(),
            flows: flows.iter().map(|flow| self::flow(headend, flow)).collect(),
            signals: Signal::NAMES.into_iter().zip(counted.signals).map(named).collect(),
            moves: Cause::NAMES.into_iter().zip(counted.moves).map(named).collect(),
            counters: headend.counters().iter().chain(counted.others()).map(named).collect(),
        }
    }
}

fn path(found: &HeadendPathReport<'_>) -> PathSnapshot {
    let report = &found.report;
    PathSnapshot {
        destination: report.path.segments.first().map(Ipv6Addr::to_string).unwrap_or_default(),
        rank: report.path.rank,
        state: report.state.name().to_owned(),
        times_bad: report.times_bad,
        flows_assigned: report.flows_taken,
        is_probed: found.is_probed,
        round_trip_ns: found.round_trip_ns,
        entropy: found.entropy.map(|entropy| entropy.0),
    }
}

fn flow(headend: &Headend, flow: &HeadendFlow) -> FlowSnapshot {
    let report = &flow.report;
    let path = headend.paths(headend.latest(), report.set).nth(report.path.index());
    let path = path.and_then(|path| path.report.path.segments.first());
    FlowSnapshot {
        source: flow.source,
        destination: flow.destination,
        path: path.map(Ipv6Addr::to_string).unwrap_or_default(),
        moves: report.moves,
    }
}
