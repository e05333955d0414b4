//! A node configured for a case, and its input frames.

use super::cases::{SMALL, Work};
use super::packets::{self, AFTER_IPV6, ETHERNET, HOP_LIMIT};
use super::routes::{self, BLOCK, Numbers};
use anyhow::{Context, ensure};
use srdma_dataplane::{
    Command, EncapsMode, Flavors, NextHop, Node, NodeConfig, PortConfig, RouteAction, SidBehavior, TableId, Worker,
};
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::{Branch, Downstream, GroupEntry, GroupId, NodeIndex, NodeRole, Parent, Policy, Receiver};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Icrc, Ipv6, MacAddress, Prefix, Psn, Qpn};
use std::net::Ipv6Addr;

/// The port that frames come in at.
pub(super) const INGRESS: PortId = PortId(0);

/// Ports that frames leave by: 1 to this.
pub(super) const EGRESS_PORTS: u16 = 11;

/// Neighbours behind these ports, the first ones at a port each: next hops of routes, and receivers.
const NEIGHBOURS: u16 = 64;

/// Frames are sent to this MAC address: that of the port they come in at.
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0];

const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub(super) const SID: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x100);
/// Prefix that uN and uA match: the block, and a compressed SID of 16 bits.
const COMPRESSED_SID: u128 = BLOCK | 0x0100 << 80;
/// Destination of an encapsulation policy.
const STEERED: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xaa, 0, 0, 0, 0, 0, 0);
pub(super) const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1);
pub(super) const GROUP: GroupId = GroupId(1);
const LINK_MTU: u16 = 9000;

/// A node and its traffic.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) node: Node,
    work: Work,
    template: Vec<u8>,
    varying: Varying,
    prefixes: Vec<Prefix>,
}

/// Differences from frame to frame.
#[derive(Debug)]
enum Varying {
    /// An address in the frame, so that look-ups do not repeat.
    Address { offset: usize, addresses: Vec<Ipv6Addr> },
    /// The PSN, and with it the ICRC, of the RoCEv2 packet at this offset.
    Psn { offset: usize },
}

/// A frame that must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) port: PortId,
    pub(super) octets: usize,
    pub(super) destination: Ipv6Addr,
    pub(super) hop_limit: u8,
    /// The destination queue pair of the outermost packet, if that is RoCEv2.
    pub(super) qpn: Option<Qpn>,
}

impl Fixture {
    /// A node for `work` with so many routes, and `frames` different frames of about `frame_octets` (or [`SMALL`]).
    pub(super) fn new(work: Work, frame_octets: usize, routes: usize, frames: usize) -> anyhow::Result<Self> {
        let mut numbers = Numbers(routes as u64);
        let prefixes = routes::prefixes(routes, &mut numbers);
        let mut fixture = Fixture {
            node: node(&prefixes)?,
            work,
            template: Vec::new(),
            varying: Varying::Psn { offset: 0 },
            prefixes,
        };
        match work {
            Work::Replicate(copies) => fixture.replicate(copies, frame_octets)?,
            Work::EndMt(receivers) => fixture.end_mt(receivers, frame_octets)?,
            Work::Ipv6
            | Work::End
            | Work::EndX
            | Work::MicroN
            | Work::MicroA
            | Work::EndDt6
            | Work::Encaps
            | Work::EncapsReduced => fixture.unicast(frame_octets, frames, &mut numbers)?,
        }
        Ok(fixture)
    }

    /// Octets of each frame that comes in.
    pub(super) fn frame_octets(&self) -> usize {
        self.template.len()
    }

    /// The frame of this number, as a driver hands it over.
    pub(super) fn frame(&mut self, number: usize, pool: &mut Pool) -> anyhow::Result<Frame> {
        match &self.varying {
            Varying::Address { offset, addresses } => {
                let address = addresses[number % addresses.len()];
                self.template[*offset..offset + 16].copy_from_slice(&address.octets());
            }
            Varying::Psn { offset } => {
                let inner = &mut self.template[*offset..];
                inner[PSN..PSN + 3].copy_from_slice(&Psn::new(number as u32).to_octets());
                let icrc = icrc_of(inner)?;
                let end = inner.len() - Icrc::LEN;
                inner[end..].copy_from_slice(&icrc.0);
            }
        }
        Frame::from_octets(&self.template, pool).context("the pool is exhausted")
    }

    /// Expected output for the frame that was made last.
    pub(super) fn expected(&self) -> anyhow::Result<Vec<Expected>> {
        let frame = &self.template;
        let octets = frame.len();
        let address_at = |offset: usize| Ipv6Addr::from(*frame[offset..].first_chunk::<16>().expect("headers"));
        let (destination, hop_limit, octets) = match self.work {
            Work::Replicate(_) | Work::EndMt(_) => return Ok(self.expected_copies()),
            Work::Ipv6 => (address_at(DESTINATION), HOP_LIMIT - 1, octets),
            Work::End => (address_at(AFTER_IPV6 + 8), HOP_LIMIT - 1, octets),
            Work::EndX => (address_at(AFTER_IPV6 + 8), HOP_LIMIT - 1, octets),
            Work::MicroN | Work::MicroA => (shifted(address_at(DESTINATION)), HOP_LIMIT - 1, octets),
            Work::EndDt6 => {
                let removed = Ipv6::LEN + ONE_SEGMENT;
                (address_at(DESTINATION + removed), HOP_LIMIT - 1, octets - removed)
            }
            Work::Encaps => (self.first_segment(), HOP_LIMIT, octets + Ipv6::LEN + 8 + 2 * 16),
            Work::EncapsReduced => (self.first_segment(), HOP_LIMIT, octets + Ipv6::LEN + 8 + 16),
        };
        let port = match self.work {
            Work::EndX | Work::MicroA => PortId(1),
            _ => port_of_route(routes::longest(&self.prefixes, destination).context("an address without a route")?),
        };
        Ok(vec![Expected { port, octets, destination, hop_limit, qpn: None }])
    }

    fn expected_copies(&self) -> Vec<Expected> {
        let octets = self.template.len();
        match self.work {
            Work::Replicate(copies) => (1..=copies as u16)
                .map(|port| {
                    let destination = neighbour(port);
                    Expected { port: port_of(port), octets, destination, hop_limit: HOP_LIMIT - 1, qpn: None }
                })
                .collect(),
            _ => {
                let Varying::Psn { offset } = self.varying else {
                    return Vec::new();
                };
                let octets = octets - (offset - ETHERNET);
                let copies = if let Work::EndMt(receivers) = self.work { receivers } else { 0 };
                (1..=copies as u16)
                    .map(|port| Expected {
                        port: port_of(port),
                        octets,
                        destination: neighbour(port),
                        hop_limit: HOP_LIMIT - 1,
                        qpn: Some(receiver_qpn(port)),
                    })
                    .collect()
            }
        }
    }

    fn first_segment(&self) -> Ipv6Addr {
        self.prefixes[0].address()
    }

    fn unicast(&mut self, frame_octets: usize, frames: usize, numbers: &mut Numbers) -> anyhow::Result<()> {
        let (small, behavior) = match self.work {
            Work::End => (192, Some(SidBehavior::End(Flavors::default()))),
            Work::EndX => (192, Some(SidBehavior::EndX(Flavors::default(), next_hop(1)))),
            Work::MicroN => (192, Some(SidBehavior::End(Flavors::MICRO))),
            Work::MicroA => (192, Some(SidBehavior::EndX(Flavors::MICRO, next_hop(1)))),
            Work::EndDt6 => (192, Some(SidBehavior::EndDt6(TableId(0)))),
            _ => (128, None),
        };
        let len = if frame_octets == SMALL { small } else { frame_octets };
        let compressed = matches!(self.work, Work::MicroN | Work::MicroA);
        if let Some(behavior) = behavior {
            let prefix = if compressed { Prefix::new(COMPRESSED_SID.into(), 48) } else { Some(Prefix::host(SID)) };
            self.node.apply(Command::AddSid { prefix: prefix.context("a SID's prefix")?, behavior })?;
        }
        if let Work::Encaps | Work::EncapsReduced = self.work {
            let mode = if self.work == Work::Encaps { EncapsMode::Encaps } else { EncapsMode::Reduced };
            let action = RouteAction::Encaps { segments: vec![self.first_segment(), SID], mode, hmac_key_id: None };
            let prefix = Prefix::new(STEERED, 32).context("a policy's prefix")?;
            self.node.apply(Command::AddRoute { table: TableId(0), prefix, action })?;
        }
        let some = self.prefixes[0].address();
        let (template, offset) = match self.work {
            Work::End | Work::EndX => (packets::with_srh(MAC, SID, (some, 1), some, len), AFTER_IPV6 + 8),
            Work::MicroN | Work::MicroA => (packets::without_srh(MAC, some, some, len), DESTINATION),
            Work::EndDt6 => {
                (packets::with_srh(MAC, SID, (SID, 0), some, len), AFTER_IPV6 + ONE_SEGMENT + DESTINATION - ETHERNET)
            }
            _ => (packets::unencapsulated(MAC, some, len), DESTINATION),
        };
        self.template = template;
        let addresses = (0..frames).map(|_| self.some_address(numbers)).collect();
        self.varying = Varying::Address { offset, addresses };
        Ok(())
    }

    /// An address that the case can look up, from a route drawn at random.
    fn some_address(&self, numbers: &mut Numbers) -> Ipv6Addr {
        match self.work {
            Work::Encaps | Work::EncapsReduced => (u128::from(STEERED) | u128::from(numbers.next()) << 20).into(),
            Work::MicroN | Work::MicroA => loop {
                let route = self.prefixes[numbers.below(self.prefixes.len())];
                let address = u128::from(routes::address_in(route, numbers));
                if address >> 96 == BLOCK >> 96 && route.prefix_len() <= 112 {
                    let argument = address << 32 >> 48;
                    return (COMPRESSED_SID | argument).into();
                }
            },
            _ => routes::address_in(self.prefixes[numbers.below(self.prefixes.len())], numbers),
        }
    }

    fn replicate(&mut self, copies: usize, frame_octets: usize) -> anyhow::Result<()> {
        let downstream = (1..=copies as u16).map(|port| Downstream::Sid(neighbour(port))).collect();
        let branches = (1..=copies as u16).map(|port| Branch::new(neighbour(port))).collect();
        let entry = GroupEntry { role: NodeRole::Transit, downstream, branches, receivers: Vec::new(), ..entry() };
        self.node.apply(Command::AddGroup(Box::new(entry)))?;
        self.node.apply(Command::AddSid { prefix: Prefix::host(SID), behavior: SidBehavior::EndReplicate(GROUP) })?;
        self.multicast(&[], frame_octets)
    }

    /// Lists are in the packet where they fit the frame, else provisioned.
    fn end_mt(&mut self, receivers: usize, frame_octets: usize) -> anyhow::Result<()> {
        let ports = 1..=receivers as u16;
        let list: Vec<(Ipv6Addr, Qpn)> = ports.clone().map(|port| (neighbour(port), receiver_qpn(port))).collect();
        let of_part = list.iter().map(|&(address, qpn)| Receiver::new(address, qpn, NodeIndex(0)));
        let branches = ports.map(|port| Branch::new(neighbour(port))).collect();
        let entry = GroupEntry { receivers: of_part.collect(), branches, ..entry() };
        self.node.apply(Command::AddGroup(Box::new(entry)))?;
        let behavior = SidBehavior::EndMt { require_hmac: false };
        self.node.apply(Command::AddSid { prefix: Prefix::host(SID), behavior })?;
        let tlvs = if receivers <= MOST_LISTED { packets::end_mt_tlv(LOOPBACK, &list) } else { Vec::new() };
        let fits = packets::multicast_overhead(&tlvs) <= multicast_len(frame_octets);
        self.multicast(if fits { &tlvs } else { &[] }, frame_octets)
    }

    fn multicast(&mut self, tlvs: &[u8], frame_octets: usize) -> anyhow::Result<()> {
        let overhead = packets::multicast_overhead(tlvs);
        let room = multicast_len(frame_octets).checked_sub(overhead);
        let payload = room.context("a frame too short for its headers")? / 4 * 4;
        self.template = packets::multicast(MAC, SID, (PROXY, DESIGNATED_QPN), tlvs, Psn::new(0), payload);
        self.varying = Varying::Psn { offset: AFTER_IPV6 + 8 + 16 + tlvs.len() };
        Ok(())
    }
}

/// Receivers that fit a TLV.
const MOST_LISTED: usize = 11;
const DESTINATION: usize = ETHERNET + 24;
/// Octets of an SRH with one segment.
const ONE_SEGMENT: usize = 8 + 16;
/// Offset of the PSN in a RoCEv2 packet.
const PSN: usize = Ipv6::LEN + 8 + 9;

pub(super) const DESIGNATED_QPN: Qpn = qpn(0x00_0100);

const fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("a queue pair number has 24 bits")
}

pub(super) fn receiver_qpn(port: u16) -> Qpn {
    qpn(0x01_0000 + port as u32)
}

fn multicast_len(frame_octets: usize) -> usize {
    if frame_octets == SMALL { 192 } else { frame_octets }
}

/// Destination after uN and uA.
fn shifted(destination: Ipv6Addr) -> Ipv6Addr {
    let octets = destination.octets();
    let mut after = [0; 16];
    after[..4].copy_from_slice(&octets[..4]);
    after[4..14].copy_from_slice(&octets[6..]);
    after.into()
}

pub(super) fn icrc_of(packet: &[u8]) -> anyhow::Result<Icrc> {
    Ok(Packet::parse(packet, packet.len())?.icrc([])?.computed)
}

/// A neighbour by its number, from 1 on: next hop of routes, downstream node or receiver.
pub(super) fn neighbour(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xc, number, 0, 0, 0, 1)
}

fn next_hop(neighbour: u16) -> NextHop {
    NextHop { port: port_of(neighbour), address: self::neighbour(neighbour) }
}

/// The port of a neighbour.
fn port_of(neighbour: u16) -> PortId {
    PortId(1 + (neighbour - 1) % EGRESS_PORTS)
}

/// The port that the route at a position leaves by.
fn port_of_route(position: usize) -> PortId {
    PortId(1 + (position % usize::from(EGRESS_PORTS)) as u16)
}

pub(super) fn node(prefixes: &[Prefix]) -> anyhow::Result<Node> {
    worker(prefixes, Worker::ALONE)
}

/// The same as a worker of a node.
pub(super) fn worker(prefixes: &[Prefix], worker: Worker) -> anyhow::Result<Node> {
    let ports = (0..=EGRESS_PORTS).map(|port| PortConfig {
        name: format!("port{port}"),
        mac: MacAddress([MAC[0], 0, 0, 0, 0, port as u8]),
        addresses: Vec::new(),
        link_mtu: LINK_MTU,
        queue_limit_octets: usize::MAX,
        ..PortConfig::default()
    });
    let mut node = Node::new(NodeConfig { worker, ..NodeConfig::new(LOOPBACK, ports.collect()) });
    for number in 1..=NEIGHBOURS {
        let mac = MacAddress([2, 0, 0, 0, 1, port_of(number).0 as u8]);
        node.apply(Command::AddNeighbour { next_hop: next_hop(number), mac })?;
    }
    for (position, prefix) in prefixes.iter().enumerate() {
        let action = RouteAction::Via(vec![next_hop(port_of_route(position).0)]);
        node.apply(Command::AddRoute { table: TableId(0), prefix: *prefix, action })?;
    }
    ensure!(node.config().ports.len() == usize::from(EGRESS_PORTS) + 1, "a port is missing");
    Ok(node)
}

/// An edge's entry of the group, without receivers.
pub(super) fn entry() -> GroupEntry {
    GroupEntry {
        id: GROUP,
        epoch: 0,
        renewed: 0,
        proxy: PROXY,
        designated_qpn: DESIGNATED_QPN,
        initial_psn: Psn::new(0),
        role: NodeRole::Edge,
        sid: SID,
        parent: Parent::Node { loopback: neighbour(EGRESS_PORTS), sid: None },
        branches: Vec::new(),
        downstream: Vec::new(),
        receivers: Vec::new(),
        region: None,
        headend: None,
        repair: None,
        policy: Policy::default(),
        more_regions: Vec::new(),
    }
}
