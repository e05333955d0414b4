//! Metrics of steering: paths and counters. Flows come and go; they are in the status.

use super::{Labels, Out, seconds};
use crate::daemon::{PathSnapshot, Snapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// Label of the paths of a destination: its first prefix.
fn all(snapshot: &Snapshot) -> Vec<(&str, &PathSnapshot)> {
    let destinations = snapshot.steering.iter().flat_map(|steering| &steering.destinations);
    destinations
        .flat_map(|destination| {
            let prefix = destination.prefixes.first().map_or("", String::as_str);
            destination.paths.iter().map(move |path| (prefix, path))
        })
        .collect()
}

pub(super) fn steering(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let paths = all(snapshot);
    values(out, &paths, "srdma_steering_path_usable", "Whether flows may take the path: 1 or 0", |path| {
        u64::from(matches!(path.state.as_str(), "good" | "unknown"))
    })?;
    counters(out, &paths, "srdma_steering_path_bad", "Times that the path was assumed bad", |path| path.times_bad)?;
    counters(out, &paths, "srdma_steering_path_flows", "Flows assigned to the path", |path| path.flows_assigned)?;
    let timed = paths.iter().filter_map(|(prefix, path)| Some((of(prefix, path), seconds(path.round_trip_ns?))));
    let help = "Round-trip time measured by probes";
    out.gauges("srdma_steering_path_round_trip", help, Some(Unit::Seconds), timed)?;
    let steering = || snapshot.steering.iter();
    let signals =
        steering().flat_map(|steering| &steering.signals).map(|(kind, count)| ([("kind", kind.as_str())], *count));
    out.counters("srdma_steering_signals", "Signals received", None, signals)?;
    let moves =
        steering().flat_map(|steering| &steering.moves).map(|(cause, count)| ([("cause", cause.as_str())], *count));
    out.counters("srdma_steering_moves", "Flows moved", None, moves)?;
    let events =
        steering().flat_map(|steering| &steering.counters).map(|(event, count)| ([("event", event.as_str())], *count));
    out.counters("srdma_steering_events", "Other events of steering", None, events)
}

fn of<'s>(prefix: &'s str, path: &'s PathSnapshot) -> Labels<'s, 2> {
    [("prefix", prefix), ("path", path.destination.as_str())]
}

fn values(
    out: &mut Out<'_>,
    paths: &[(&str, &PathSnapshot)],
    name: &str,
    help: &str,
    value: fn(&PathSnapshot) -> u64,
) -> fmt::Result {
    out.gauges(name, help, None, paths.iter().map(|(prefix, path)| (of(prefix, path), value(path))))
}

fn counters(
    out: &mut Out<'_>,
    paths: &[(&str, &PathSnapshot)],
    name: &str,
    help: &str,
    value: fn(&PathSnapshot) -> u64,
) -> fmt::Result {
    out.counters(name, help, None, paths.iter().map(|(prefix, path)| (of(prefix, path), value(path))))
}
