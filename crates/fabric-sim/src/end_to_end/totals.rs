//! Totals over a run: durations of pauses, and counters of nodes across restarts.

use crate::server::DATA_CLASS;
use srdma_dataplane::{BackpressureCounters, FastCnpCounters, GroupCounters, Node};
use srdma_frame::PortId;
use srdma_group::GroupId;
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// Total duration of pauses: those that END.C requests at the ingress PE.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HoldTracker {
    /// Accepted pauses of the PE at the last update.
    taken: u64,
    /// Time at which the last pause was taken that still lasts.
    asked: Option<Instant>,
    /// The longest time from a pause that was taken to its end, or to the next one.
    pub(super) longest_ns: u64,
}

impl HoldTracker {
    /// Looks at the PE.
    pub(super) fn look(&mut self, pe: &Node, now: Instant) {
        let taken = pe.backpressure_counters().pauses_received;
        if let Some(asked) = self.asked {
            self.longest_ns = self.longest_ns.max(now.as_ns() - asked.as_ns());
        }
        if taken != self.taken {
            (self.taken, self.asked) = (taken, Some(now));
        }
        if pe.received_pauses().next().is_none() {
            self.asked = None;
        }
    }

    /// The PE has forgotten everything.
    pub(super) fn forget(&mut self) {
        (self.taken, self.asked) = (0, None);
    }
}

/// Total time for which a port was paused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PauseTracker {
    since: Option<Instant>,
    pub(super) total_ns: u64,
}

impl PauseTracker {
    /// Looks at the port's node.
    pub(super) fn look(&mut self, node: Option<&Node>, port: PortId, now: Instant) {
        let is_paused = node.is_some_and(|node| node.paused_classes(port) >> DATA_CLASS & 1 == 1);
        match (self.since, is_paused) {
            (None, true) => self.since = Some(now),
            (Some(since), false) => {
                self.total_ns += now.as_ns() - since.as_ns();
                self.since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
}

/// Counters of nodes, across restarts.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeTotals {
    /// END.C, sent and taken.
    pub(super) notifications: BackpressureCounters,
    /// Fast CNPs that went out by END.E.
    pub(super) fast_cnps_by_end_e: u64,
    /// Data that came to the headend, and what went up from it.
    pub(super) headend: GroupCounters,
    /// Frames of the data's class that found no room, by the switch's name; only switches where any did.
    pub(super) dropped: BTreeMap<String, u64>,
}

impl NodeTotals {
    /// Adds the counters of a node that goes down or at the end of the run; of a headend also those of the group.
    pub(super) fn add(&mut self, name: &str, node: &Node, ports: usize, group: Option<GroupId>) {
        let of_node = node.backpressure_counters();
        let FastCnpCounters { sent_by_end_e, .. } = node.fast_cnp_counters();
        self.fast_cnps_by_end_e += sent_by_end_e;
        let sum = &mut self.notifications;
        sum.pauses_sent += of_node.pauses_sent;
        sum.refreshes_sent += of_node.refreshes_sent;
        sum.resumes_sent += of_node.resumes_sent;
        sum.pauses_received += of_node.pauses_received;
        sum.resumes_received += of_node.resumes_received;
        sum.expired += of_node.expired;
        sum.watchdog_releases += of_node.watchdog_releases;
        if let Some(counters) = group.and_then(|group| node.group_counters(group)) {
            let sum = &mut self.headend;
            sum.data_packets += counters.data_packets;
            sum.copies += counters.copies;
            sum.acks_sent += counters.acks_sent;
            sum.naks_sent += counters.naks_sent;
            sum.cnps_sent += counters.cnps_sent;
        }
        let ports = (0..ports).map(|port| PortId(port as u16));
        let classes = ports.filter_map(|port| node.class_counters(port, DATA_CLASS));
        let dropped = classes.map(|class| class.full_drops + class.headroom_drops + class.storm_drops).sum::<u64>();
        if dropped > 0 {
            *self.dropped.entry(name.to_owned()).or_default() += dropped;
        }
    }
}
