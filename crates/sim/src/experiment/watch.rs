//! When a flow's first packet meets a queue above the threshold: seen at the switch, before it enters.

use super::server::DATA_CLASS;
use srdma_dataplane::{Frame, Node, Pool, PortId};
use srdma_wire::{Instant, NextHeader, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Where the IPv6 header begins in a frame, and what follows it.
const IPV6: usize = 14;
const AFTER_IPV6: usize = IPV6 + 40;

/// Octets of the UDP header.
const UDP: usize = 8;

/// A queue of a switch that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    /// The only host behind the port.
    receiver: [u8; 16],
    port: PortId,
    threshold_octets: usize,
    met: BTreeMap<Qpn, Instant>,
}

impl Watch {
    /// Watches the queue at a port toward a host.
    pub(super) fn new(receiver: Ipv6Addr, port: PortId, threshold_octets: usize) -> Self {
        Watch { receiver: receiver.octets(), port, threshold_octets, met: BTreeMap::new() }
    }

    /// The port.
    pub(super) fn port(&self) -> PortId {
        self.port
    }

    /// When the first data packet to each queue pair of the receiver met the queue above the threshold.
    pub(super) fn met(&self) -> &BTreeMap<Qpn, Instant> {
        &self.met
    }

    /// Looks at frames that the switch is about to take.
    pub(super) fn look(&mut self, now: Instant, frames: &[Frame], node: &Node, pool: &Pool) {
        let waiting = node.class_octets(self.port, DATA_CLASS).unwrap_or(0);
        if waiting < self.threshold_octets {
            return;
        }
        for frame in frames.iter().filter(|frame| !frame.body().is_empty()) {
            let head = frame.head(pool);
            if head.get(IPV6 + 24..AFTER_IPV6) == Some(&self.receiver[..])
                && let Some(qpn) = dest_qpn(head)
            {
                self.met.entry(qpn).or_insert(now);
            }
        }
    }
}

/// The queue pair that a RoCEv2 packet is for, behind a Hop-by-Hop header if there is one.
fn dest_qpn(head: &[u8]) -> Option<Qpn> {
    let trace = if *head.get(IPV6 + 6)? == NextHeader::HOP_BY_HOP.0 {
        8 * (1 + usize::from(*head.get(AFTER_IPV6 + 1)?))
    } else {
        0
    };
    let [_, _, _, _, _, a, b, c] = *head.get(AFTER_IPV6 + trace + UDP..)?.first_chunk::<8>()?;
    Some(Qpn::from_octets([a, b, c]))
}
