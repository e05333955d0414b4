//! One snapshot of the workers of a node.

use super::{DriverSnapshot, PortSnapshot, Snapshot};
use crate::process::TrafficReport;
use srdma_frame::PortId;
use std::collections::BTreeMap;

impl Snapshot {
    /// Adds the snapshot of another worker of the same node: counters are added, and its groups are new.
    /// `is_receiver`: that worker receives at a port where only one can.
    pub(in crate::daemon) fn add(&mut self, other: Snapshot, is_receiver: impl Fn(PortId) -> bool) {
        for ((index, port), of_other) in (0..).map(PortId).zip(&mut self.ports).zip(other.ports) {
            add_port(port, of_other, is_receiver(index));
        }
        for (sid, of_other) in self.sids.iter_mut().zip(other.sids) {
            add_traffic(&mut sid.processed, of_other.processed);
        }
        for (shared, of_other) in self.shared_hosts.iter_mut().zip(other.shared_hosts) {
            add_traffic(&mut shared.passed_on, of_other.passed_on);
            add_traffic(&mut shared.from_peer, of_other.from_peer);
        }
        // All workers have the same backups.
        for (backup, of_other) in self.backups.iter_mut().zip(other.backups) {
            add_traffic(&mut backup.sent, of_other.sent);
        }
        add_counts(&mut self.own_drops, other.own_drops);
        self.groups.extend(other.groups);
        self.groups.sort_by_key(|group| group.id);
        if let Some(of_other) = other.repair_memory {
            let memory = self.repair_memory.get_or_insert_default();
            memory.limit_octets += of_other.limit_octets;
            memory.reserved_octets += of_other.reserved_octets;
        }
        self.workers.extend(other.workers);
    }
}

fn add_port(port: &mut PortSnapshot, other: PortSnapshot, is_receiver: bool) {
    add_traffic(&mut port.received, other.received);
    add_traffic(&mut port.enqueued, other.enqueued);
    add_traffic(&mut port.sent, other.sent);
    add_counts(&mut port.drops, other.drops);
    let DriverSnapshot { received, sent, receive_overruns, too_long, send_errors } = other.statistics;
    port.statistics.received += received;
    port.statistics.sent += sent;
    port.statistics.receive_overruns += receive_overruns;
    port.statistics.too_long += too_long;
    port.statistics.send_errors += send_errors;
    if is_receiver {
        (port.driver, port.note) = (other.driver, other.note);
    }
}

fn add_traffic(traffic: &mut TrafficReport, other: TrafficReport) {
    traffic.frames += other.frames;
    traffic.octets += other.octets;
}

fn add_counts(counts: &mut BTreeMap<String, u64>, others: BTreeMap<String, u64>) {
    for (reason, count) in others {
        *counts.entry(reason).or_default() += count;
    }
}
