//! The links of a packet: each switch selects one of several equal-cost paths.

use super::build::{ADDRESSES, Fabric};
use srdma_dataplane::equal_path;
use srdma_fabric::{HostId, LinkId, NextHops, NodeId, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_rc::QueuePairConfig;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{Bth, Ipv6, NextHeader, Opcode, Psn, Qpn, Udp};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Offsets of the headers after Ethernet, and of their end.
const IPV6: usize = 14;
const UDP: usize = IPV6 + 40;
const BTH: usize = UDP + 8;
const END: usize = BTH + 12;

/// Upper bound of the links of a shortest path.
const MOST_LEGS: usize = 64;

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leg {
    pub(super) link: LinkId,
    /// Whether it is used from its second end to its first.
    pub(super) backwards: bool,
}

impl Leg {
    /// The leg out of a node's port.
    pub(super) fn out_of(topology: &Topology, node: NodeId, port: PortId) -> Option<Self> {
        let link = topology.port(node, port.0)?.link;
        let first = topology.links()[link.index()].ends[0];
        Some(Leg { link, backwards: (first.node, first.port) != (node, port.0) })
    }

    /// Its position among all links in both directions.
    pub(super) fn index(self) -> usize {
        2 * self.link.index() + usize::from(self.backwards)
    }
}

/// The headers that switches hash, with Ethernet left blank.
pub(super) struct Heading([u8; END]);

impl Heading {
    /// The headers of data of a queue pair.
    pub(super) fn of_data(topology: &Topology, from: HostId, queue_pair: &QueuePairConfig) -> Self {
        let next_header = if queue_pair.trace.is_some() { NextHeader::HOP_BY_HOP } else { NextHeader::UDP };
        Self::new(
            ADDRESSES.host(topology, from),
            queue_pair.remote_address,
            queue_pair.effective_flow_label(),
            next_header,
            queue_pair.source_port(),
            queue_pair.remote_qpn,
        )
    }

    /// The headers of a Fast CNP from a switch (D44).
    pub(super) fn of_fast_cnp(topology: &Topology, from: SwitchId, to: HostId, data: &QueuePairConfig) -> Self {
        Self::new(
            ADDRESSES.loopback(topology, from),
            ADDRESSES.host(topology, to),
            0,
            NextHeader::DESTINATION_OPTIONS,
            data.source_port(),
            data.remote_qpn,
        )
    }

    fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        flow_label: u32,
        next_header: NextHeader,
        source_port: u16,
        dest_qpn: Qpn,
    ) -> Self {
        let (traffic_class, hop_limit) = (0, 64);
        let payload_length = (END - UDP) as u16;
        let ipv6 = Ipv6 { traffic_class, flow_label, payload_length, next_header, hop_limit, source, destination };
        let udp = Udp { source_port, destination_port: ROCEV2_PORT, length: payload_length, checksum: 0 };
        let bth = Bth::new(Opcode::WRITE_MIDDLE, dest_qpn, Psn::new(0));
        let mut octets = [0; END];
        octets[IPV6..UDP].copy_from_slice(ipv6.emit().as_bytes());
        octets[UDP..BTH].copy_from_slice(udp.emit().as_bytes());
        octets[BTH..].copy_from_slice(bth.emit().as_bytes());
        Heading(octets)
    }

    /// The links between two hosts, by the hash of the switches.
    pub(super) fn hashed(&self, topology: &Topology, next_hops: &NextHops, [from, to]: [HostId; 2]) -> Vec<Leg> {
        let mut legs = Vec::new();
        let mut at = NodeId::Host(from);
        while at != NodeId::Host(to) {
            let port = match at {
                NodeId::Host(_) => topology.ports(at).first().map(|port| port.port),
                NodeId::Switch(switch) => {
                    let ports = next_hops.toward(switch, to);
                    let chosen = equal_path(&self.0, ADDRESSES.loopback(topology, switch), ports.len());
                    ports.get(chosen).copied()
                }
            };
            let Some(port) = port.and_then(|port| topology.port(at, port)) else { break };
            legs.extend(Leg::out_of(topology, at, PortId(port.port)));
            at = port.peer.node;
        }
        legs
    }

    /// Links from a node to a host, by the routes of its switches.
    pub(super) fn legs(&self, topology: &Topology, fabric: &Fabric, from: NodeId, to: HostId) -> Vec<Leg> {
        let mut legs = Vec::new();
        let mut at = from;
        while at != NodeId::Host(to) && legs.len() < MOST_LEGS {
            let port = match at {
                NodeId::Host(_) => topology.ports(at).first().map(|port| PortId(port.port)),
                NodeId::Switch(switch) => fabric.switch(switch).and_then(|node| node.port_toward(&self.0)),
            };
            let Some(port) = port else { break };
            let (Some(leg), Some(next)) = (Leg::out_of(topology, at, port), topology.port(at, port.0)) else { break };
            legs.push(leg);
            at = next.peer.node;
        }
        legs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Switches hash the headers at these offsets.
    #[test]
    fn a_heading_has_its_headers_in_place() {
        let (one, other) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        let qpn = Qpn::new(0x12_3456).expect("a QPN");
        let Heading(octets) = Heading::new(one, other, 0xABCDE, NextHeader::UDP, 0xC123, qpn);
        assert_eq!(octets[IPV6..IPV6 + 4], [0x60, 0x0A, 0xBC, 0xDE]);
        assert_eq!((octets[IPV6 + 6], &octets[IPV6 + 8..IPV6 + 24]), (17, &one.octets()[..]));
        assert_eq!(octets[UDP..UDP + 4], [0xC1, 0x23, 0x12, 0xB7]);
        assert_eq!(octets[BTH + 5..BTH + 8], [0x12, 0x34, 0x56]);
    }
}
