//! Processing of frames, and the frames for it.

use super::link::{GENERATOR, IN, MTU, OUT};
use crate::packets::{self, AFTER_IPV6, ETHERNET};
use crate::routes::BLOCK;
use anyhow::{Context, ensure};
use srdma_dataplane::{
    Command, EncapsMode, Flavors, NextHop, Node, NodeConfig, PortConfig, RouteAction, SidBehavior, TableId,
};
use srdma_frame::PortId;
use srdma_group::{Branch, GroupEntry, GroupId, NodeIndex, NodeRole, Parent, Policy, Receiver};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Icrc, Ipv6, MacAddress, Prefix, Psn, Qpn};
use std::fmt;
use std::net::Ipv6Addr;

/// Processing of each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Its MAC addresses are swapped.
    Reflect,
    /// IPv6 forwarding.
    Ipv6,
    /// End of RFC 8986.
    End,
    /// End with NEXT-CSID.
    MicroN,
    /// End.DT6 without an SRH.
    EndDt6,
    /// H.Encaps.Red with two segments.
    EncapsReduced,
    /// End.MT with so many receivers.
    EndMt(u16),
}

pub(super) const SID: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x100);
pub(super) const SID_OF_END_DT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0xd6);
/// Segments of H.Encaps.Red.
pub(super) const SEGMENTS: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0xe, 0, 0, 0, 1, 1), Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1)];
pub(super) const NEXT_HOP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xc, 1, 0, 0, 0, 1);

const AFTER_END: u128 = 0x2001_0db8_000e << 80;
const STEERED: u128 = 0x2001_0db8_00dd << 80;
pub(super) const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PARENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1);
const DESIGNATED_QPN: Qpn = Qpn::new(0x00_0100).expect("a queue pair number has 24 bits");
const FIRST_QPN: u32 = 0x01_0000;
const GROUP: GroupId = GroupId(1);
/// Octets that H.Encaps.Red pushes: an IPv6 header, and an SRH of one segment.
const PUSHED: usize = Ipv6::LEN + 24;
/// Offsets in a frame and in a RoCEv2 packet.
const HOP_LIMIT: usize = ETHERNET + 7;
const DESTINATION: usize = ETHERNET + 24;
const PSN: usize = Ipv6::LEN + 8 + 9;

/// The SID of uN.
pub(super) fn sid_of_micro_n() -> Prefix {
    prefix(BLOCK | 0x0100 << 80, 48)
}

/// Next segments of End and uN.
pub(super) fn next_segments() -> [Prefix; 2] {
    [prefix(BLOCK | 0x0200 << 80, 48), prefix(AFTER_END, 64)]
}

/// Packets that H.Encaps.Red encapsulates.
pub(super) fn steered() -> Prefix {
    prefix(STEERED, 64)
}

fn prefix(address: u128, len: u8) -> Prefix {
    Prefix::new(Ipv6Addr::from_bits(address), len).expect("a length of at most 128")
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Reflect => f.write_str("bare reflector"),
            Work::Ipv6 => f.write_str("IPv6"),
            Work::End => f.write_str("End"),
            Work::MicroN => f.write_str("uN"),
            Work::EndDt6 => f.write_str("End.DT6"),
            Work::EncapsReduced => f.write_str("H.Encaps.Red"),
            Work::EndMt(receivers) => write!(f, "End.MT x{receivers}"),
        }
    }
}

impl Work {
    /// Frames that leave for each that comes in.
    pub(super) fn copies(self) -> usize {
        match self {
            Work::EndMt(receivers) => receivers.into(),
            Work::Reflect | Work::Ipv6 | Work::End | Work::MicroN | Work::EndDt6 | Work::EncapsReduced => 1,
        }
    }

    /// The length nearest to `octets` that its frames can have.
    pub(super) fn frame_octets(self, octets: usize) -> usize {
        match self {
            Work::Reflect | Work::Ipv6 | Work::MicroN | Work::EncapsReduced => octets,
            Work::EndDt6 => octets.max(AFTER_IPV6 + Ipv6::LEN),
            Work::End => octets.max(AFTER_IPV6 + 24 + Ipv6::LEN),
            Work::EndMt(receivers) => {
                let overhead = packets::multicast_overhead(&lists(receivers));
                overhead + (octets.saturating_sub(overhead) / 4 * 4)
            }
        }
    }

    /// The length of what leaves for a frame of `octets`.
    pub(super) fn copy_octets(self, octets: usize) -> usize {
        match self {
            Work::Reflect | Work::Ipv6 | Work::End | Work::MicroN => octets,
            Work::EndDt6 => octets - Ipv6::LEN,
            Work::EncapsReduced => octets + PUSHED,
            Work::EndMt(receivers) => octets - Ipv6::LEN - 24 - lists(receivers).len(),
        }
    }

    /// So many different frames of a [length](Work::frame_octets).
    pub(super) fn frames(self, octets: usize, count: usize) -> anyhow::Result<Vec<Vec<u8>>> {
        (0..count).map(|number| self.frame(octets, number)).collect()
    }

    fn frame(self, octets: usize, number: usize) -> anyhow::Result<Vec<u8>> {
        let mut frame = match self {
            // An outer header with a payload that is not inspected.
            Work::Reflect | Work::MicroN => {
                let segments = BLOCK | 0x0100 << 80 | 0x0200 << 64;
                packets::unencapsulated(IN.0, segments.into(), octets)
            }
            Work::Ipv6 => packets::unencapsulated(IN.0, (AFTER_END | number as u128).into(), octets),
            Work::EncapsReduced => packets::unencapsulated(IN.0, (STEERED | number as u128).into(), octets),
            Work::EndDt6 => packets::without_srh(IN.0, SID_OF_END_DT6, (AFTER_END | number as u128).into(), octets),
            Work::End => {
                let next = (AFTER_END | number as u128).into();
                packets::with_srh(IN.0, SID, (next, 1), LOOPBACK, octets)
            }
            Work::EndMt(receivers) => {
                let tlvs = lists(receivers);
                let payload = octets - packets::multicast_overhead(&tlvs);
                let mut frame = packets::multicast(IN.0, SID, (PROXY, DESIGNATED_QPN), &tlvs, Psn::new(0), payload);
                let inner = &mut frame[AFTER_IPV6 + 24 + tlvs.len()..];
                inner[PSN..PSN + 3].copy_from_slice(&Psn::new(number as u32).to_octets());
                let icrc = Packet::parse(inner, inner.len())?.icrc([])?.computed;
                let end = inner.len() - Icrc::LEN;
                inner[end..].copy_from_slice(&icrc.0);
                frame
            }
        };
        frame[6..12].copy_from_slice(&GENERATOR.0);
        ensure!(frame.len() == octets, "a frame of {} octets, not {octets}", frame.len());
        Ok(frame)
    }

    /// A node that does the work; none reflects.
    pub(super) fn node(self) -> anyhow::Result<Option<Box<Node>>> {
        let mut node = Node::new(NodeConfig::new(LOOPBACK, vec![port("in", IN), port("out", OUT)]));
        let sid = match self {
            Work::Reflect => return Ok(None),
            Work::Ipv6 | Work::EncapsReduced => None,
            Work::End => Some((Prefix::host(SID), SidBehavior::End(Flavors::default()))),
            Work::MicroN => Some((sid_of_micro_n(), SidBehavior::End(Flavors::MICRO))),
            Work::EndDt6 => Some((Prefix::host(SID_OF_END_DT6), SidBehavior::EndDt6(TableId(0)))),
            Work::EndMt(_) => Some((Prefix::host(SID), SidBehavior::EndMt { require_hmac: false })),
        };
        neighbour(&mut node, NEXT_HOP)?;
        for prefix in next_segments() {
            let next_hop = NextHop { port: PortId(1), address: NEXT_HOP };
            node.apply(Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Via(vec![next_hop]) })?;
        }
        if let Work::EndMt(receivers) = self {
            neighbour(&mut node, PARENT)?;
            for (address, _) in receivers_of(receivers) {
                neighbour(&mut node, address)?;
            }
            node.apply(Command::AddGroup(Box::new(entry(receivers))))?;
        }
        if let Some((prefix, behavior)) = sid {
            node.apply(Command::AddSid { prefix, behavior })?;
        }
        if self == Work::EncapsReduced {
            let (segments, mode) = (SEGMENTS.to_vec(), EncapsMode::Reduced);
            let action = RouteAction::Encaps { segments, mode, hmac_key_id: None };
            node.apply(Command::AddRoute { table: TableId(0), prefix: steered(), action })?;
        }
        Ok(Some(Box::new(node)))
    }

    /// Checks the frame that comes back: a benchmark of damaged packets would be of no use.
    pub(super) fn check(self, sent: &[u8], returned: &[Vec<u8>]) -> anyhow::Result<()> {
        ensure!(returned.len() == self.copies(), "{} frames came back, not {}", returned.len(), self.copies());
        let mut expected = sent.to_vec();
        expected[..6].copy_from_slice(&GENERATOR.0);
        expected[6..12].copy_from_slice(&OUT.0);
        match self {
            Work::Reflect => expected[6..12].copy_from_slice(&IN.0),
            Work::Ipv6 => expected[HOP_LIMIT] -= 1,
            Work::EndDt6 => {
                expected.drain(ETHERNET..AFTER_IPV6);
                expected[HOP_LIMIT] -= 1;
            }
            Work::EncapsReduced => return check_encapsulated(&expected, &returned[0]),
            Work::End => {
                expected[HOP_LIMIT] -= 1;
                expected[AFTER_IPV6 + 3] = 0;
                expected.copy_within(AFTER_IPV6 + 8..AFTER_IPV6 + 24, DESTINATION);
            }
            Work::MicroN => {
                expected[HOP_LIMIT] -= 1;
                expected.copy_within(DESTINATION + 6..DESTINATION + 16, DESTINATION + 4);
                expected[DESTINATION + 14..DESTINATION + 16].fill(0);
            }
            Work::EndMt(receivers) => return check_copies(receivers, sent, returned),
        }
        ensure!(returned[0] == expected, "{:02x?} came back, not {expected:02x?}", returned[0]);
        Ok(())
    }
}

/// The kernel decrements the outer hop limit, a node the inner one; both choose flow label and hop limit of the outer
/// header themselves.
fn check_encapsulated(expected: &[u8], returned: &[u8]) -> anyhow::Result<()> {
    ensure!(returned.len() == expected.len() + PUSHED, "{} octets came back", returned.len());
    let (outer, inner) = returned.split_at(ETHERNET + PUSHED);
    let ethernet = &expected[..ETHERNET];
    ensure!(outer.starts_with(ethernet), "{outer:02x?} came back, not {ethernet:02x?} in front");
    let [first, last] = SEGMENTS.map(|segment| segment.octets());
    ensure!(outer[DESTINATION..AFTER_IPV6] == first, "the first segment is missing in {outer:02x?}");
    ensure!(outer[AFTER_IPV6 + 8..] == last, "the last segment is missing in {outer:02x?}");
    let mut inner = inner.to_vec();
    inner[HOP_LIMIT - ETHERNET] = expected[HOP_LIMIT];
    ensure!(inner == expected[ETHERNET..], "{inner:02x?} came back, not {:02x?}", &expected[ETHERNET..]);
    Ok(())
}

fn check_copies(receivers: u16, sent: &[u8], returned: &[Vec<u8>]) -> anyhow::Result<()> {
    let octets = Work::EndMt(receivers).copy_octets(sent.len());
    for ((address, qpn), copy) in receivers_of(receivers).zip(returned) {
        let packet = Packet::parse(&copy[ETHERNET..], copy.len() - ETHERNET)?;
        ensure!(packet.icrc([])?.is_good(), "a wrong ICRC in the copy to {address}");
        let found = (packet.ipv6.destination(), packet.bth.dest_qpn(), copy.len());
        let expected = (address, qpn, octets);
        ensure!(found == expected, "a copy came back as {found:?}, not {expected:?}");
    }
    Ok(())
}

fn port(name: &str, mac: MacAddress) -> PortConfig {
    PortConfig { name: name.to_owned(), mac, link_mtu: MTU, queue_limit_octets: usize::MAX, ..PortConfig::default() }
}

fn neighbour(node: &mut Node, address: Ipv6Addr) -> anyhow::Result<()> {
    let next_hop = NextHop { port: PortId(1), address };
    node.apply(Command::AddNeighbour { next_hop, mac: GENERATOR }).context("a neighbour")
}

fn receivers_of(receivers: u16) -> impl Iterator<Item = (Ipv6Addr, Qpn)> {
    let qpn = |number: u16| Qpn::new(FIRST_QPN + u32::from(number)).expect("a queue pair number has 24 bits");
    (1..=receivers).map(move |number| (Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, number), qpn(number)))
}

/// The End.MT TLV.
fn lists(receivers: u16) -> Vec<u8> {
    packets::end_mt_tlv(LOOPBACK, &receivers_of(receivers).collect::<Vec<_>>())
}

/// An edge's entry of a group.
fn entry(receivers: u16) -> GroupEntry {
    let of_part = |(address, qpn)| Receiver::new(address, qpn, NodeIndex(0));
    GroupEntry {
        id: GROUP,
        epoch: 0,
        renewed: 0,
        proxy: PROXY,
        designated_qpn: DESIGNATED_QPN,
        initial_psn: Psn::new(0),
        role: NodeRole::Edge,
        sid: SID,
        parent: Parent::Node { loopback: PARENT, sid: None },
        branches: receivers_of(receivers).map(|(responder, _)| Branch::new(responder)).collect(),
        downstream: Vec::new(),
        receivers: receivers_of(receivers).map(of_part).collect(),
        region: None,
        headend: None,
        repair: None,
        policy: Policy::default(),
        more_regions: Vec::new(),
    }
}
