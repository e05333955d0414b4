//! A fabric in virtual time: it follows the ids in the octets of a probe, over links that fail, flap and lose packets.
//! Ids are computed from the table of docs/placement.md.

use srdma_fabric::{HostId, LinkId, NodeId, SwitchId, Topology};
use srdma_random::{Probability, Stream};
use std::collections::BTreeMap;

/// Time over one link, in nanoseconds.
const LINK_NS: u64 = 700;

pub(crate) struct Network<'t> {
    topology: &'t Topology,
    nic: HostId,
    address: [u8; 16],
    ids: BTreeMap<u16, SwitchId>,
    /// For each link the times at which it goes down, and up again.
    down: Vec<Vec<(u64, u64)>>,
    loss: Vec<Probability>,
    random: Stream,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It returns to the NIC at this time, without its outer headers.
    Returns(u64, Vec<u8>),
    /// It is lost on this link.
    Lost(LinkId),
}

impl<'t> Network<'t> {
    pub(crate) fn new(topology: &'t Topology, nic: HostId, address: [u8; 16], seed: u64) -> Self {
        let id = |(index, switch): (usize, &srdma_fabric::Switch)| {
            let first = [0, 0x4800, 0x9000, 0xD000][usize::from(switch.tier) - 1];
            (switch.usid.unwrap_or(first + switch.number), SwitchId(index as u32))
        };
        let links = topology.links().len();
        Network {
            topology,
            nic,
            address,
            ids: topology.switches().iter().enumerate().map(id).collect(),
            down: vec![Vec::new(); links],
            loss: vec![Probability::ZERO; links],
            random: Stream::new(seed, "network"),
        }
    }

    /// A link is down from one time to another.
    pub(crate) fn fail(&mut self, link: LinkId, from_ns: u64, to_ns: u64) {
        self.down[link.index()].push((from_ns, to_ns));
    }

    pub(crate) fn lose(&mut self, link: LinkId, probability: f64) {
        self.loss[link.index()] = Probability::new(probability).unwrap();
    }

    /// Whether a link is down at some time from one time to another.
    pub(crate) fn is_down_within(&self, link: LinkId, from_ns: u64, to_ns: u64) -> bool {
        self.down[link.index()].iter().any(|(from, to)| *from <= to_ns && from_ns < *to)
    }

    /// Whether a link is down from one time to another without a break.
    pub(crate) fn is_down_throughout(&self, link: LinkId, from_ns: u64, to_ns: u64) -> bool {
        self.down[link.index()].iter().any(|(from, to)| *from <= from_ns && to_ns < *to)
    }

    pub(crate) fn is_lossless(&self, link: LinkId) -> bool {
        self.loss[link.index()] == Probability::ZERO
    }

    /// Carries a packet of the NIC.
    pub(crate) fn carry(&mut self, now_ns: u64, packet: &[u8]) -> Fate {
        let (ids, inner) = program(packet);
        assert_eq!(inner[24..40], self.address, "the probe is addressed to the NIC");
        let mut ids = ids.into_iter().peekable();
        let mut time = now_ns;
        // The NIC sends to the switch that is named first.
        let mut at = NodeId::Switch(self.ids[ids.peek().expect("a program")]);
        let first = self.link_between(NodeId::Host(self.nic), at);
        if let Some(lost) = self.cross(&mut time, first) {
            return Fate::Lost(lost);
        }
        loop {
            let NodeId::Switch(switch) = at else { panic!("{at:?} has to follow ids") };
            let own = ids.next().expect("an id");
            assert_eq!(self.ids.get(&own), Some(&switch), "{own:#x} is not at {}", self.topology.name(at));
            let link = match ids.peek() {
                // Decapsulated: to the NIC, which is attached here.
                None => self.link_between(at, NodeId::Host(self.nic)),
                Some(0xE000..=0xE3FF) => {
                    let port = ids.next().unwrap() - 0xE000;
                    self.topology.ports(at).iter().find(|own| own.port == port).expect("the port").link
                }
                Some(next) => self.link_between(at, NodeId::Switch(self.ids[next])),
            };
            if let Some(lost) = self.cross(&mut time, link) {
                return Fate::Lost(lost);
            }
            let ends = self.topology.links()[link.index()].ends;
            at = if ends[0].node == at { ends[1].node } else { ends[0].node };
            if at == NodeId::Host(self.nic) {
                assert_eq!(ids.next(), None, "it is at its end");
                return Fate::Returns(time, inner);
            }
        }
    }

    fn cross(&mut self, time: &mut u64, link: LinkId) -> Option<LinkId> {
        let is_lost = self.random.happens(self.loss[link.index()]) || self.is_down_within(link, *time, *time);
        *time += LINK_NS;
        is_lost.then_some(link)
    }

    fn link_between(&self, from: NodeId, to: NodeId) -> LinkId {
        let links: Vec<LinkId> =
            self.topology.ports(from).iter().filter(|port| port.peer.node == to).map(|port| port.link).collect();
        assert_eq!(links.len(), 1, "{} to {} is no step of a path", self.topology.name(from), self.topology.name(to));
        links[0]
    }
}

/// The ids of a packet's destination and SRH, in their order, and the packet in it.
fn program(packet: &[u8]) -> (Vec<u16>, Vec<u8>) {
    assert_eq!(packet[0] >> 4, 6);
    assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40);
    let mut containers = vec![&packet[24..40]];
    let inner = match packet[6] {
        41 => 40,
        43 => {
            let srh = &packet[40..];
            let segments = usize::from(srh[4]) + 1;
            assert_eq!((srh[0], srh[2], usize::from(srh[3]), usize::from(srh[1])), (41, 4, segments, 2 * segments));
            containers.extend((0..segments).rev().map(|index| &srh[8 + 16 * index..24 + 16 * index]));
            40 + 8 + 16 * segments
        }
        other => panic!("next header {other}"),
    };
    let mut ids = Vec::new();
    for container in containers {
        assert_eq!(container[..4], [0x5F, 0, 0, 0]);
        let words = container[4..].chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
        ids.extend(words.take_while(|id| *id != 0));
    }
    (ids, packet[inner..].to_vec())
}
