//! What `srdma map` prints, and the file of the deny list.

use serde::Serialize;
use srdma_fabric::{NodeId, Topology};
use srdma_mapper::{Change, Counters, MappedPath, Mapper, Paths};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv6Addr;

/// A change of the deny list.
#[derive(Serialize)]
pub(super) struct Event {
    /// `denied` or `allowed`.
    event: &'static str,
    /// Since the start.
    at_ns: u64,
    /// The switches, from the NIC on.
    path: Vec<String>,
}

impl Event {
    pub(super) fn new(paths: &Paths, change: &Change) -> Self {
        let event = if change.is_denied { "denied" } else { "allowed" };
        Event { event, at_ns: change.at.as_ns(), path: paths.path(change.path).switches.clone() }
    }

    pub(super) fn text(&self) -> String {
        format!("{:>9.3} s  {:<7}  {}", self.at_ns as f64 / 1e9, self.event, self.path.join(" "))
    }
}

/// The deny list.
#[derive(Serialize)]
pub(super) struct DenyList {
    /// The NIC whose paths they are.
    nic: String,
    /// Links that have failed, by name.
    failed_links: Vec<String>,
    denied: Vec<DeniedPath>,
    /// For each NIC with excluded paths the values that steering excludes.
    excluded: BTreeMap<String, Vec<u32>>,
}

/// A denied path.
#[derive(Serialize)]
pub(super) struct DeniedPath {
    /// The switches, from the NIC on.
    path: Vec<String>,
    /// The outer destination address of its probes.
    probe: Ipv6Addr,
}

impl DenyList {
    pub(super) fn new(nic: &str, topology: &Topology, paths: &Paths, mapper: &Mapper) -> Self {
        let is_denied = |path| mapper.is_denied(path);
        let failed = paths.failed_links(is_denied);
        let mut excluded = BTreeMap::new();
        for to in topology.host_ids() {
            // The NIC itself has no paths to itself.
            let Ok(values) = paths.excluded(to, is_denied) else { continue };
            let values: Vec<u32> = values.iter().filter(|(_, is)| *is).map(|(value, _)| value.0).collect();
            if !values.is_empty() {
                excluded.insert(topology.name(NodeId::Host(to)).to_owned(), values);
            }
        }
        DenyList {
            nic: nic.to_owned(),
            failed_links: failed.into_iter().map(|link| topology.link_name(link)).collect(),
            denied: denied(paths, mapper),
            excluded,
        }
    }
}

/// The denied paths that end where a path of the NIC may.
fn denied(paths: &Paths, mapper: &Mapper) -> Vec<DeniedPath> {
    let is_denied = |(index, path): &(usize, &MappedPath)| path.is_whole && mapper.is_denied(*index);
    let path =
        |(_, path): (usize, &MappedPath)| DeniedPath { path: path.switches.clone(), probe: path.program.destination };
    paths.iter().enumerate().filter(is_denied).map(path).collect()
}

/// The state at the end.
#[derive(Serialize)]
pub(super) struct Report {
    /// Number of paths that are probed, those to switches on the way included.
    paths: usize,
    failed_links: Vec<String>,
    pub(super) denied: Vec<DeniedPath>,
    counters: PrintedCounters,
    /// Median time there and back of the last probes, in nanoseconds.
    round_trip_ns: Option<u64>,
}

#[derive(Serialize)]
struct PrintedCounters {
    probes_sent: u64,
    probes_returned: u64,
    probes_lost: u64,
    probes_late: u64,
    probes_foreign: u64,
    /// The kernel did not take them; they count as sent and lost as well.
    probes_not_sent: u64,
    denied: u64,
    allowed: u64,
}

impl Report {
    pub(super) fn new(topology: &Topology, paths: &Paths, mapper: &Mapper, not_sent: u64) -> Self {
        let Counters { probes_sent, probes_returned, probes_lost, probes_late, probes_foreign, .. } =
            *mapper.counters();
        let Counters { denied: times, allowed, .. } = *mapper.counters();
        let mut times_ns: Vec<u64> = mapper.reports().filter_map(|path| path.round_trip_ns).collect();
        times_ns.sort_unstable();
        let failed = paths.failed_links(|path| mapper.is_denied(path));
        Report {
            paths: paths.len(),
            failed_links: failed.into_iter().map(|link| topology.link_name(link)).collect(),
            denied: denied(paths, mapper),
            counters: PrintedCounters {
                probes_sent,
                probes_returned,
                probes_lost,
                probes_late,
                probes_foreign,
                probes_not_sent: not_sent,
                denied: times,
                allowed,
            },
            round_trip_ns: times_ns.get(times_ns.len() / 2).copied(),
        }
    }

    pub(super) fn text(&self) -> String {
        let Report { paths, failed_links, denied, counters, round_trip_ns } = self;
        let PrintedCounters { probes_sent, probes_returned, probes_lost, .. } = counters;
        let mut text = format!("{paths} paths, {probes_sent} probes, {probes_returned} returned, {probes_lost} lost\n");
        if let Some(ns) = round_trip_ns {
            let _ = writeln!(text, "round trip    {:.1} µs (median)", *ns as f64 / 1e3);
        }
        let _ = writeln!(text, "denied        {} paths", denied.len());
        for path in denied {
            let _ = writeln!(text, "  {}", path.path.join(" "));
        }
        if !failed_links.is_empty() {
            let _ = writeln!(text, "failed links  {}", failed_links.join(", "));
        }
        text
    }
}
