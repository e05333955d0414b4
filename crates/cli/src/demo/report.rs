//! The result of `srdma demo` as JSON.

use super::Run;
use serde::Serialize;
use srdma_sim::baseline::BaselineOutcome;
use srdma_sim::transfer::{LinkOutcome, ReceiverOutcome, SourceOutcome};
use std::collections::BTreeMap;
use std::time::Duration;

/// The result.
#[derive(Serialize)]
pub(super) struct Report {
    seed: u64,
    size_octets: u64,
    path_mtu: u32,
    link_mtu: u16,
    loss: f64,
    /// `null` if the source failed.
    completion_ns: Option<u64>,
    wall_ms: u64,
    /// Simulated packets, each counted at every hop.
    packet_hops: u64,
    invariant_violations: u64,
    source: Source,
    receivers: Vec<Receiver>,
    links: Vec<Link>,
    /// Octets on all links, both directions.
    link_octets: u64,
    /// What the nodes have repaired, all together, by counter.
    repair: BTreeMap<&'static str, u64>,
    compare: Vec<Comparison>,
}

impl Report {
    pub(super) fn new(run: &Run<'_>, wall: Duration) -> Self {
        let (scenario, outcome) = (run.scenario, run.outcome);
        Report {
            seed: scenario.seed,
            size_octets: run.size_octets,
            path_mtu: scenario.path_mtu.octets(),
            link_mtu: scenario.link_mtu,
            loss: run.loss,
            completion_ns: outcome.completion_ns,
            wall_ms: wall.as_millis() as u64,
            packet_hops: outcome.hops,
            invariant_violations: outcome.invariant_violations,
            source: Source::new(&outcome.source, run.size_octets),
            receivers: outcome.receivers.iter().map(Receiver::from).collect(),
            links: outcome.links.iter().map(Link::from).collect(),
            link_octets: outcome.links.iter().map(|link| link.down_octets + link.up_octets).sum(),
            repair: outcome.repair.iter().collect(),
            compare: run.compare.iter().map(Comparison::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct Source {
    sha256: String,
    egress_octets: u64,
    egress_ratio: f64,
    packets_sent: u64,
    packets_retransmitted: u64,
    acks_received: u64,
    naks_received: u64,
    cnps_received: u64,
    timeouts: u64,
}

#[derive(Serialize)]
struct Receiver {
    name: String,
    qpn: u32,
    octets: u64,
    sha256: String,
    acks_sent: u64,
    naks_sent: u64,
}

#[derive(Serialize)]
struct Link {
    name: String,
    down_octets: u64,
    up_octets: u64,
    lost_packets: u64,
}

#[derive(Serialize)]
struct Comparison {
    algorithm: &'static str,
    /// `null` if a host failed.
    completion_ns: Option<u64>,
    source_egress_octets: u64,
}

impl Source {
    fn new(source: &SourceOutcome, size_octets: u64) -> Self {
        Source {
            sha256: hex::encode(source.sha256),
            egress_octets: source.egress_octets,
            egress_ratio: source.egress_octets as f64 / size_octets as f64,
            packets_sent: source.packets_sent,
            packets_retransmitted: source.packets_retransmitted,
            acks_received: source.acks_received,
            naks_received: source.naks_received,
            cnps_received: source.cnps_received,
            timeouts: source.timeouts,
        }
    }
}

impl From<&ReceiverOutcome> for Receiver {
    fn from(receiver: &ReceiverOutcome) -> Self {
        Receiver {
            name: receiver.name.clone(),
            qpn: receiver.qpn.get(),
            octets: receiver.octets,
            sha256: hex::encode(receiver.sha256),
            acks_sent: receiver.acks_sent,
            naks_sent: receiver.naks_sent,
        }
    }
}

impl From<&LinkOutcome> for Link {
    fn from(link: &LinkOutcome) -> Self {
        Link {
            name: link.name.clone(),
            down_octets: link.down_octets,
            up_octets: link.up_octets,
            lost_packets: link.lost_packets,
        }
    }
}

impl From<&BaselineOutcome> for Comparison {
    fn from(baseline: &BaselineOutcome) -> Self {
        Comparison {
            algorithm: baseline.algorithm.name(),
            completion_ns: baseline.completion_ns,
            source_egress_octets: baseline.source_egress_octets,
        }
    }
}
