//! Congestion in a snapshot: the traffic classes of its ports, pauses, traces, Fast CNP and backpressure.

use crate::process::TrafficReport;
use serde::{Deserialize, Serialize};
use srdma_dataplane::{CLASSES, IoamCounters, Node};
use srdma_frame::PortId;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A traffic class of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ClassSnapshot {
    pub class: u8,
    pub waiting_octets: u64,
    /// The most octets that ever waited.
    pub peak_octets: u64,
    /// Frames that left in it.
    pub sent: TrafficReport,
    /// Frames that were marked CE on entering it.
    pub marks: u64,
    /// Frames that found no room in it and were cut instead (D88).
    #[serde(default)]
    pub trimmed: u64,
    /// Frames of it that were dropped, by reason: at this egress, or beyond the headroom of this ingress.
    pub drops: BTreeMap<String, u64>,
    /// Priority flow control in both directions.
    pub pfc: PfcSnapshot,
}

/// Priority flow control of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PfcSnapshot {
    /// The neighbour has paused the class.
    pub is_paused: bool,
    /// Whether the neighbour is paused by this node.
    pub is_pausing: bool,
    /// Pauses sent to the neighbour, refreshes included.
    pub pauses_sent: u64,
    /// Resumes sent to the neighbour.
    pub resumes_sent: u64,
    /// Pauses received from the neighbour.
    pub pauses_received: u64,
    /// Of these, those that were not honoured, for a storm.
    pub pauses_ignored: u64,
    /// Resumes received from the neighbour.
    pub resumes_received: u64,
    /// Number of storms that the watchdog has found.
    pub storms: u64,
    /// Time paused so far in nanoseconds, without a pause that still lasts.
    pub paused_ns: u64,
}

/// Backpressure across a WAN (CN-4.1-1, CN-4.1-2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackpressureSnapshot {
    /// Counters, by the names of docs/wan.md.
    pub counters: BTreeMap<String, u64>,
    /// Pauses in effect that this node has received, each with the congested node.
    pub received: Vec<PauseSnapshot>,
    /// Pauses in effect that this node has sent, each with the END.C of the ingress PE.
    pub sent: Vec<PauseSnapshot>,
}

/// A pause of a traffic class.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseSnapshot {
    /// The congested node, or the END.C.
    pub address: Ipv6Addr,
    pub traffic_class: u8,
}

/// The classes of a port; none when it has one queue.
pub(super) fn classes(node: &Node, port: PortId) -> Vec<ClassSnapshot> {
    (0..CLASSES).filter_map(|class| of_class(node, port, class)).collect()
}

fn of_class(node: &Node, port: PortId, class: usize) -> Option<ClassSnapshot> {
    let counters = node.class_counters(port, class)?;
    let is_in = |classes: u8| classes >> class & 1 == 1;
    let drops = [
        ("queue_full", counters.full_drops),
        ("headroom_exceeded", counters.headroom_drops),
        ("pause_storm", counters.storm_drops),
    ];
    let received = counters.received;
    Some(ClassSnapshot {
        class: class as u8,
        waiting_octets: node.class_octets(port, class)? as u64,
        peak_octets: counters.peak_octets as u64,
        sent: counters.sent.into(),
        marks: counters.marks,
        trimmed: counters.trimmed,
        drops: drops.map(|(reason, count)| (reason.to_owned(), count)).into(),
        pfc: PfcSnapshot {
            is_paused: is_in(node.paused_classes(port)),
            is_pausing: is_in(node.pausing_classes(port)),
            pauses_sent: counters.pauses_sent,
            resumes_sent: counters.resumes_sent,
            pauses_received: received.pauses,
            pauses_ignored: received.ignored,
            resumes_received: received.resumes,
            storms: received.storms,
            paused_ns: received.paused_ns,
        },
    })
}

/// Counters of Fast CNP, while it is on.
pub(super) fn fast_cnp(node: &Node) -> Option<BTreeMap<String, u64>> {
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    node.uses_fast_cnp().then(|| node.fast_cnp_counters().iter().map(named).collect())
}

/// State of backpressure, while it is on.
pub(super) fn backpressure(node: &Node) -> Option<BackpressureSnapshot> {
    node.backpressure()?;
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    let received = node
        .received_pauses()
        .map(|pause| PauseSnapshot { address: pause.congested, traffic_class: pause.traffic_class });
    let sent = node.sent_pauses().map(|(address, traffic_class)| PauseSnapshot { address, traffic_class });
    Some(BackpressureSnapshot {
        counters: node.backpressure_counters().iter().map(named).collect(),
        received: received.collect(),
        sent: sent.collect(),
    })
}

/// Counters of the traces that the node met.
pub(super) fn traces(node: &Node) -> BTreeMap<String, u64> {
    let IoamCounters { written, overflown, malformed } = node.ioam_counters();
    let counters = [("written", written), ("overflown", overflown), ("malformed", malformed)];
    counters.map(|(outcome, count)| (outcome.to_owned(), count)).into()
}
