//! Groups: the edge N1 below the headend N6, others of any shape, and packets for them, octet by octet.

pub use super::address;
use super::{Bench, next_hop};
use srdma_dataplane::{Command, NodeConfig, RouteAction, SidBehavior, TableId};
use srdma_group::*;
use srdma_testkit::{checksums, multicast};
use srdma_wire::{PathMtu, Prefix, Psn, Qpn};
use std::net::Ipv6Addr;

pub const HEADEND: &str = "2001:db8:6::1";
pub const EDGE: &str = "2001:db8:a::1";
pub const SID: &str = "5f00:0:1:e000::";
pub const PROXY: &str = "2001:db8:ff::100";
pub const SOURCE: &str = "2001:db8:1::1";

/// First address of the group's region, its key and its length.
pub const BASE: u64 = 0x7f00_0000_0000;
pub const RKEY: u32 = 0x1234;
pub const REGION_OCTETS: u64 = 1 << 20;

/// The edge that scapy's packets are for: receivers 2001:db8:2::/64 behind port 1.
pub fn edge(require_hmac: bool) -> Bench {
    edge_with(require_hmac, |_| ())
}

/// The same, with other settings.
pub fn edge_with(require_hmac: bool, change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let mut bench = Bench::with(EDGE, 2, change);
    let prefix = Prefix::host(address(SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac } });
    let prefix = Prefix::new(address("2001:db8:2::"), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(1)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    bench
}

/// A receiver of the model's, 2001:db8:2::`host`.
pub fn receiver(host: u16, qpn: u32, region: Option<(u64, u32)>) -> multicast::Receiver {
    multicast::Receiver { address: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, host), qpn, region, psn_offset: 0 }
}

/// The edge's entry of a group with a region, whose receivers have theirs.
pub fn provisioned(receivers: &[multicast::Receiver]) -> GroupEntry {
    entry(receivers, Some(REGION))
}

/// The edge's entry of a group.
pub fn entry(receivers: &[multicast::Receiver], region: Option<SourceRegion>) -> GroupEntry {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let receivers = receivers.iter().map(|receiver| member(receiver, 1)).collect();
    let policy = Policy { lists: ListMode::Provisioned, ..prompt() };
    Group::new(Record { region, policy, ..record(&nodes, receivers) }).unwrap().at(NodeIndex(1)).unwrap()
}

/// A receiver of the model's as a member of a group, below the node at a position.
pub fn member(receiver: &multicast::Receiver, edge: usize) -> Receiver {
    Receiver {
        region: receiver.region.map(|(base, rkey)| ReceiverRegion { base, rkey }),
        psn_offset: PsnOffset::new(receiver.psn_offset).unwrap(),
        ..Receiver::new(receiver.address, Qpn::new(receiver.qpn).unwrap(), NodeIndex(edge))
    }
}

/// The default policy, but for the first CNP of a window, which goes at once: most tests do not wait for its end.
pub fn prompt() -> Policy {
    Policy { cnp_mode: CnpMode::Leading, ..Policy::default() }
}

/// A group without a region over these nodes (name, loopback, SID, position of the parent): those with receivers are
/// edges, or bud nodes.
pub fn record(nodes: &[(&str, &str, &str, Option<usize>)], receivers: Vec<Receiver>) -> Record {
    let has_receivers = |position| receivers.iter().any(|receiver| receiver.edge == NodeIndex(position));
    let has_nodes = |position| nodes.iter().any(|(.., parent)| *parent == Some(position));
    let node = |(position, (name, loopback, sid, parent)): (usize, &(&str, &str, &str, Option<usize>))| TreeNode {
        name: (*name).into(),
        loopback: address(loopback),
        sid: address(sid),
        parent: parent.map(NodeIndex),
        parent_sid: None,
        role: NodeRole::of(has_receivers(position), parent.is_none() || has_nodes(position)),
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: true,
    };
    Record {
        id: GroupId(1),
        epoch: 1,
        proxy: address(PROXY),
        designated_qpn: Qpn::new(0xABCD).unwrap(),
        initial_psn: Psn::new(100),
        path_mtu: PathMtu::Octets4096,
        link_mtu: 4608,
        source: Source { address: address(SOURCE), qpn: Qpn::new(0x77).unwrap() },
        region: None,
        tree: Tree::new(nodes.iter().enumerate().map(node).collect()).unwrap(),
        receivers,
        policy: prompt(),
        more_regions: Vec::new(),
    }
}

/// The region that WRITEs of the source address.
pub const REGION: SourceRegion = SourceRegion { base: BASE, length: REGION_OCTETS, rkey: RKEY };

/// A request of the source's, padded to four octets; `offset` is where in the region a WRITE begins.
pub fn inner(opcode: u8, offset: u64, payload: &[u8], with_checksum: bool) -> Vec<u8> {
    let mut extended = Vec::new();
    if matches!(opcode, 0x06 | 0x0A | 0x0B) {
        extended.extend((BASE + offset).to_be_bytes());
        extended.extend(RKEY.to_be_bytes());
        extended.extend((payload.len() as u32).to_be_bytes());
    }
    if matches!(opcode, 0x03 | 0x05 | 0x09 | 0x0B | 0x16 | 0x17) {
        extended.extend([1, 2, 3, 4]);
    }
    let pad = payload.len().wrapping_neg() % 4;
    extended.extend(payload);
    extended.extend(vec![0; pad]);
    request(opcode, pad as u8, &extended, with_checksum)
}

/// A request of the source: BTH with this opcode and pad count, the rest, and a valid ICRC; optionally a valid UDP
/// checksum.
pub fn request(opcode: u8, pad: u8, rest: &[u8], with_checksum: bool) -> Vec<u8> {
    let udp_len = (8 + 12 + rest.len() + 4) as u16;
    let mut packet = vec![0x62, 0x10, 0x12, 0x34];
    packet.extend(udp_len.to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(address(SOURCE).octets());
    packet.extend(address(PROXY).octets());
    packet.extend([0xD0, 0x01, 0x12, 0xB7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend([opcode, pad << 4, 0xFF, 0xFF, 0, 0, 0xAB, 0xCD, 0x80, 0, 0, 100]);
    packet.extend(rest);
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    if with_checksum {
        let checksum = checksums::udp(&packet);
        packet[46..48].copy_from_slice(&checksum.to_be_bytes());
    }
    packet
}

/// A response of a branch to the Designated QPN: opcode, PSN below 256, and what follows the BTH.
pub fn response(opcode: u8, responder: &str, psn: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = request(opcode, 0, rest, false);
    packet[8..24].copy_from_slice(&address(responder).octets());
    packet[59] = psn;
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// The headend's outer headers without TLVs: the edge's list is provisioned.
pub fn encapsulated(inner: &[u8]) -> Vec<u8> {
    with_tlvs(inner, &[])
}

/// The headend's outer headers: an SRH in the reduced form with these TLVs, each a multiple of eight octets.
pub fn with_tlvs(inner: &[u8], tlvs: &[&[u8]]) -> Vec<u8> {
    let tlvs = tlvs.concat();
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((inner.len() + 24 + tlvs.len()) as u16).to_be_bytes());
    packet.extend([43, 64]);
    packet.extend(address(HEADEND).octets());
    packet.extend(address(SID).octets());
    packet.extend([41, (2 + tlvs.len() / 8) as u8, 4, 1, 0, 0, 0, 0]);
    packet.extend(address(PROXY).octets());
    packet.extend(tlvs);
    packet.extend(inner);
    packet
}

/// An End.MT TLV (the multicast draft, section 7.2), and PadN.
pub fn end_mt_tlv(edge: &str, receivers: &[multicast::Receiver]) -> Vec<u8> {
    let entry = |receiver: &multicast::Receiver| {
        [&receiver.address.octets()[..], &receiver.qpn.to_be_bytes()[1..], &[0]].concat()
    };
    edge_list(124, edge, &receivers.iter().map(entry).collect::<Vec<_>>())
}

/// An MR TLV (D27) with these regions, and PadN.
pub fn mr_tlv(edge: &str, regions: &[(u64, u32)]) -> Vec<u8> {
    let entry = |(base, rkey): &(u64, u32)| [&base.to_be_bytes()[..], &rkey.to_be_bytes()].concat();
    edge_list(125, edge, &regions.iter().map(entry).collect::<Vec<_>>())
}

fn edge_list(kind: u8, edge: &str, entries: &[Vec<u8>]) -> Vec<u8> {
    let value_len = 22 + entries.concat().len();
    let mut tlv = vec![kind, value_len as u8, 0, 0];
    tlv.extend(address(edge).octets());
    tlv.extend([entries.len() as u8, 0, 0, 0]);
    tlv.extend(entries.concat());
    if tlv.len() % 8 != 0 {
        tlv.extend([4, 2, 0, 0]);
    }
    tlv
}

/// The model's copies of an inner packet, at port 1.
pub fn copies(inner: &[u8], receivers: &[multicast::Receiver]) -> Vec<(u16, Vec<u8>)> {
    receivers.iter().map(|receiver| (1, multicast::copy_for(inner, receiver, BASE))).collect()
}
