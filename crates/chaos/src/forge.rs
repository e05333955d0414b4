//! Forged packets.

use crate::address;
use crate::outcome::{ForgeryOutcome, ViolationKind};
use crate::schedule::{Attacker, Claim, Forgery, Message, PATH_MTU_OCTETS, ResponseKind};
use crate::summary::message_name;
use crate::world::World;
use srdma_aggregation::Acknowledgements;
use srdma_dataplane::Node;
use srdma_frame::PortId;
use srdma_group::GroupId;
use srdma_sim::ipv4_host::frame_in_ipv4;
use srdma_sim::node_or_host::NodeOrHost;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::Computation;
use srdma_wire::tlv::{ReceiverView, TlvTypes, TlvWriter};
use srdma_wire::{
    Aeth, Bth, CnpView, EtherType, Ethernet, Ipv6, MacAddress, NextHeader, Opcode, Psn, Qpn, SrhValue, Syndrome, Udp,
};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Content of forged data.
const FORGED: u8 = 0xF0;

/// UDP source port of hosts' packets.
pub(crate) const HOST_SOURCE_PORT: u16 = 0xC000;

const ATTACKER_MAC: MacAddress = MacAddress([0x02, 0xBA, 0xD0, 0, 0, 0]);

impl World<'_> {
    /// Sends forged packets to a node and compares its aggregation state before and after each.
    pub(crate) fn forge(&mut self, forgery: &Forgery) {
        let Some((node, port)) = self.testbed.attacker_port(forgery.from) else {
            return;
        };
        if self.network.workers(self.testbed.nodes[node]).is_empty() {
            // The node is down.
            return;
        }
        let psn = self.flows[forgery.group].next_psn(&self.network);
        let psn = psn.plus(forgery.psn_offset.rem_euclid(1 << 24).unsigned_abs());
        let Some(packet) = self.forged_packet(forgery, psn) else {
            return;
        };
        let frame = self.frame_to(node, port, &packet);
        let (name, place) = (message_name(forgery.message), (self.testbed.nodes[node], port));
        let mut outcome = ForgeryOutcome::default();
        for _ in 0..forgery.copies {
            self.settle(node);
            let (drops, before) = (self.drops_at(node, port), self.aggregation_state(node));
            self.network.inject(place, &frame);
            self.settle(node);
            outcome.sent += 1;
            outcome.accepted += u64::from(self.aggregation_state(node) != before);
            let dropped = self
                .drops_at(node, port)
                .into_iter()
                .find(|(reason, count)| drops.get(reason).copied().unwrap_or(0) < *count);
            match dropped {
                Some((reason, _)) => *outcome.dropped.entry(reason).or_default() += 1,
                None => outcome.forwarded += 1,
            }
        }
        self.count(name, outcome.sent);
        if outcome.accepted > 0 {
            let text = format!("node {node} accepted {} of {} packets: {forgery:?}", outcome.accepted, outcome.sent);
            self.violation(ViolationKind::ForgeryAccepted, text);
        }
        self.outcome.forged.entry(name).or_default().merge(&outcome);
        self.observe(self.testbed.nodes[node]);
    }

    /// A packet in a frame to a node's port.
    pub(crate) fn frame_to(&self, node: usize, port: PortId, packet: &[u8]) -> Vec<u8> {
        let ethernet = Ethernet {
            destination: self.testbed.mac_of_port(node, port),
            source: ATTACKER_MAC,
            ethertype: EtherType::IPV6,
        };
        let frame = [ethernet.emit().as_bytes(), packet].concat();
        // A packet from one IPv4 host to another, or to its group, is IPv4.
        frame_in_ipv4(&frame).unwrap_or(frame)
    }

    /// A node's drops of packets received on a port.
    fn drops_at(&self, node: usize, port: PortId) -> BTreeMap<&'static str, u64> {
        let workers = self.network.workers(self.testbed.nodes[node]).iter();
        let counters = workers.filter_map(|worker| worker.port_counters(port));
        let mut drops = BTreeMap::new();
        for (reason, count) in counters.flat_map(|counters| counters.drops.iter()) {
            *drops.entry(reason.name()).or_default() += count;
        }
        drops
    }

    /// A node's aggregation state for each group.
    pub(crate) fn aggregation_state(&self, node: usize) -> Vec<(GroupId, Option<Acknowledgements>, Option<u64>)> {
        let state = |node: &Node, group| {
            let cnps = node.group_counters(group).map(|counters| counters.cnps_received + counters.cnps_sent);
            (group, node.acknowledgements(group).cloned(), cnps)
        };
        let workers = self.network.workers(self.testbed.nodes[node]).iter();
        workers.flat_map(|worker| worker.owned_groups().map(|group| state(worker, group))).collect()
    }

    /// Lets what is on the way between the workers of a node arrive.
    pub(crate) fn settle(&mut self, node: usize) {
        self.network.with(self.testbed.nodes[node], |element, now, pool| {
            if let NodeOrHost::Workers(workers) = element {
                workers.settle(now, pool);
            }
        });
    }

    fn claimed(&self, forgery: &Forgery) -> Ipv6Addr {
        match forgery.claims {
            Claim::Receiver(receiver) => self.testbed.receiver_address(receiver),
            Claim::Node(node) => address::node(node).loopback,
            Claim::Proxy => self.testbed.proxy(forgery.group),
            Claim::Source => self.testbed.source_address(self.flows[forgery.group].plan.source),
            Claim::External => match forgery.from {
                Attacker::External(node) => address::external_host(node),
                Attacker::Receiver(receiver) => self.testbed.receiver_address(receiver),
            },
        }
    }

    /// The packet from its IPv6 header on; `None` when the group has no members left.
    fn forged_packet(&mut self, forgery: &Forgery, psn: Psn) -> Option<Vec<u8>> {
        let (proxy, source) = (self.testbed.proxy(forgery.group), self.claimed(forgery));
        let designated = address::designated_qpn(forgery.group);
        match forgery.message {
            Message::Ack | Message::SequenceNak | Message::RnrNak | Message::FatalNak | Message::Cnp => {
                let psn = match forgery.claims {
                    Claim::Receiver(receiver) => self.psn_of_receiver(forgery.group, receiver, psn),
                    Claim::Node(_) | Claim::Proxy | Claim::Source | Claim::External => psn,
                };
                Some(response(&of_host(source, proxy), forgery.message.response()?, designated, psn))
            }
            Message::Data => {
                let (address, qpn, _) = self.random_member(forgery.group)?;
                let octets = [FORGED; PATH_MTU_OCTETS as usize];
                Some(packet(&of_host(source, address), data_header(qpn, psn), &octets))
            }
            Message::TamperedTlv => {
                let (address, qpn, edge) = self.random_member(forgery.group)?;
                let inside = self.testbed.source_address(self.flows[forgery.group].plan.source);
                let octets = [FORGED; PATH_MTU_OCTETS as usize];
                let inner = packet(&of_host(inside, proxy), data_header(designated, psn), &octets);
                encapsulated(source, edge, proxy, (address, qpn), &inner)
            }
        }
    }

    /// A random member of the group, and its edge.
    fn random_member(&mut self, group: usize) -> Option<(Ipv6Addr, Qpn, usize)> {
        let members = &self.flows[group].members;
        let member = members.get(self.rng.below(members.len() as u64) as usize)?;
        Some((self.testbed.receiver_address(member.receiver), member.qpn, self.testbed.edge_of(member.receiver)))
    }
}

fn data_header(qpn: Qpn, psn: Psn) -> Bth {
    Bth { ack_request: true, ..Bth::new(Opcode::SEND_MIDDLE, qpn, psn) }
}

/// Addresses of a packet.
pub(crate) struct PacketAddresses {
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    pub(crate) source_port: u16,
}

/// Addresses of a packet of a host.
fn of_host(source: Ipv6Addr, destination: Ipv6Addr) -> PacketAddresses {
    PacketAddresses { source, destination, source_port: HOST_SOURCE_PORT }
}

/// An ACK, NAK or CNP.
pub(crate) fn response(addresses: &PacketAddresses, kind: ResponseKind, qpn: Qpn, psn: Psn) -> Vec<u8> {
    let syndrome = match kind {
        ResponseKind::Ack => Syndrome::ACK,
        ResponseKind::SequenceNak => Syndrome::SEQUENCE_ERROR,
        ResponseKind::RnrNak => Syndrome::RnrNak(31),
        ResponseKind::FatalNak => Syndrome::REMOTE_OPERATIONAL_ERROR,
        ResponseKind::Cnp => {
            let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, qpn, Psn::new(0)) };
            return packet(addresses, bth, CnpView::with_count(0).as_bytes());
        }
    };
    let aeth = Aeth { syndrome, msn: 0 }.emit();
    packet(addresses, Bth::new(Opcode::ACKNOWLEDGE, qpn, psn), aeth.as_bytes())
}

/// A valid RoCEv2 packet.
fn packet(addresses: &PacketAddresses, bth: Bth, behind_bth: &[u8]) -> Vec<u8> {
    let PacketAddresses { source, destination, source_port } = *addresses;
    let udp_len = Udp::LEN + Bth::LEN + behind_bth.len() + 4;
    let ipv6 = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: udp_len as u16,
        next_header: NextHeader::UDP,
        hop_limit: 64,
        source,
        destination,
    };
    let udp = Udp { source_port, destination_port: ROCEV2_PORT, length: udp_len as u16, checksum: 0 };
    let (ipv6, udp, bth) = (ipv6.emit(), udp.emit(), bth.emit());
    let mut computation = Computation::begin(&ipv6, 0, &udp, &bth);
    computation.update(behind_bth);
    let icrc = computation.finish();
    [ipv6.as_bytes(), udp.as_bytes(), bth.as_bytes(), behind_bth, &icrc.0].concat()
}

/// A packet as a headend sends it to one edge, with a list of one receiver.
fn encapsulated(
    source: Ipv6Addr,
    edge: usize,
    proxy: Ipv6Addr,
    receiver: (Ipv6Addr, Qpn),
    inner: &[u8],
) -> Option<Vec<u8>> {
    let edge = address::node(edge);
    let mut tlvs = [0; 256];
    let mut writer = TlvWriter::new(&mut tlvs, TlvTypes::default());
    writer.end_mt(edge.loopback, &[ReceiverView::new(receiver.0, receiver.1)])?;
    let tlv_octets = writer.len();
    let mut srh = vec![0; SrhValue::len_octets(1, tlv_octets)?];
    let value = SrhValue { next_header: NextHeader::IPV6, segments_left: 1, flags: 0, tag: 0 };
    value.emit(&[proxy], &tlvs[..tlv_octets], &mut srh)?;
    let outer = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: (srh.len() + inner.len()) as u16,
        next_header: NextHeader::ROUTING,
        hop_limit: 64,
        source,
        destination: edge.end_mt,
    };
    Some([outer.emit().as_bytes(), &srh, inner].concat())
}
