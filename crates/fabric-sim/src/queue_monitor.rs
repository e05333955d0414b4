//! Detects the first packet of each flow that enters a queue above the threshold.

use super::server::DATA_CLASS;
use srdma_dataplane::Node;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::{Instant, NextHeader, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Offsets of the IPv6 header in a frame, and of its end.
const IPV6: usize = 14;
const AFTER_IPV6: usize = IPV6 + 40;

/// Octets of the UDP header.
const UDP: usize = 8;

/// A monitored queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonitoredQueue {
    pub(super) port: PortId,
    /// Threshold, in octets.
    pub(super) threshold_octets: usize,
}

/// Place and time of the first packet in a queue above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CongestionPoint {
    pub(super) port: PortId,
    pub(super) at: Instant,
}

/// Monitored queues of a switch: those towards a host, or those of tunnels.
#[derive(Debug)]
pub(super) struct QueueMonitor {
    /// Packets to other addresses are ignored.
    receiver: Option<[u8; 16]>,
    /// Octets of outer headers.
    outer_octets: usize,
    queues: Vec<MonitoredQueue>,
    congestion_points: BTreeMap<Qpn, CongestionPoint>,
}

impl QueueMonitor {
    /// Monitors queues at ports toward a host.
    pub(super) fn new(receiver: Ipv6Addr, queues: Vec<MonitoredQueue>) -> Self {
        QueueMonitor { receiver: Some(receiver.octets()), outer_octets: 0, queues, congestion_points: BTreeMap::new() }
    }

    /// Monitors queues for packets in a tunnel without an SRH.
    pub(super) fn for_tunnels(queues: Vec<MonitoredQueue>) -> Self {
        QueueMonitor { receiver: None, outer_octets: AFTER_IPV6 - IPV6, queues, congestion_points: BTreeMap::new() }
    }

    /// The congestion point of each queue pair.
    pub(super) fn congestion_points(&self) -> &BTreeMap<Qpn, CongestionPoint> {
        &self.congestion_points
    }

    /// Inspects frames before the switch receives them.
    pub(super) fn look(&mut self, now: Instant, frames: &[Frame], node: &Node, pool: &Pool) {
        let is_full =
            |queue: &MonitoredQueue| node.class_octets(queue.port, DATA_CLASS).unwrap_or(0) >= queue.threshold_octets;
        if !self.queues.iter().any(is_full) {
            return;
        }
        for frame in frames.iter().filter(|frame| !frame.body().is_empty()) {
            let head = frame.head(pool);
            let inner = head.get(self.outer_octets..).unwrap_or(&[]);
            let is_meant = |receiver: [u8; 16]| inner.get(IPV6 + 24..AFTER_IPV6) == Some(&receiver[..]);
            if self.receiver.is_none_or(is_meant)
                && let Some(qpn) = dest_qpn(inner)
                && !self.congestion_points.contains_key(&qpn)
                && let Some(port) = node.port_toward(head)
                && self.queues.iter().any(|queue| queue.port == port && is_full(queue))
            {
                self.congestion_points.insert(qpn, CongestionPoint { port, at: now });
            }
        }
    }
}

/// The destination queue pair of a RoCEv2 packet, after a Hop-by-Hop header if there is one.
pub(super) fn dest_qpn(head: &[u8]) -> Option<Qpn> {
    let trace = if *head.get(IPV6 + 6)? == NextHeader::HOP_BY_HOP.0 {
        8 * (1 + usize::from(*head.get(AFTER_IPV6 + 1)?))
    } else {
        0
    };
    let [_, _, _, _, _, a, b, c] = *head.get(AFTER_IPV6 + trace + UDP..)?.first_chunk::<8>()?;
    Some(Qpn::from_octets([a, b, c]))
}
