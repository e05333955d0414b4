//! A node with a few ports, and IPv6 packets in and out of it.
#![allow(unreachable_pub)]

pub mod group;

use srdma_dataplane::{Command, NextHop, Node, NodeConfig, PortConfig, RouteAction, TableId};
use srdma_frame::{Element, Frame, HEADROOM, Pool, PortId, Segment};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::net::Ipv6Addr;

/// The MAC address of a node's port.
pub fn port_mac(port: u16) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, port as u8])
}

/// The address of the neighbour at a port.
pub fn neighbour(port: u16) -> Ipv6Addr {
    format!("fe80::{:x}", port + 1).parse().unwrap()
}

/// The neighbour at a port as a next hop.
pub fn next_hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: neighbour(port) }
}

/// An address by its text.
pub fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A prefix by its text; of all bits where that has no length.
pub fn prefix(text: &str) -> Prefix {
    let (text, len) = text.split_once('/').unwrap_or((text, "128"));
    Prefix::new(address(text), len.parse().unwrap()).unwrap()
}

/// An IPv6 packet with the DSCP of a class, CS0 to CS7.
pub fn ipv6(source: &str, destination: &str, class: u8, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | class << 1, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(address(source).octets());
    packet.extend(address(destination).octets());
    packet.extend(payload);
    packet
}

/// The EtherType of a packet, by its version.
pub fn ethertype(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xDD] }
}

/// A node under test.
pub struct Bench {
    pub node: Node,
    pub pool: Pool,
    pub now: Instant,
    ports: u16,
}

impl Bench {
    /// The next frame of a port.
    pub fn give_out(&mut self, port: PortId) -> Option<Vec<u8>> {
        let frame = self.node.dequeue(self.now, port, &mut self.pool)?;
        let octets = frame.to_vec(&self.pool);
        frame.release(&mut self.pool);
        Some(octets)
    }

    /// A node with so many ports, a neighbour at each.
    pub fn new(loopback: &str, ports: u16) -> Self {
        Self::with(loopback, ports, |_| ())
    }

    /// The same, with other settings.
    pub fn with(loopback: &str, ports: u16, change: impl FnOnce(&mut NodeConfig)) -> Self {
        let port = |port| PortConfig {
            name: format!("p{port}"),
            mac: port_mac(port),
            addresses: Vec::new(),
            link_mtu: 4608,
            queue_limit_octets: 1 << 20,
            ..PortConfig::default()
        };
        let mut config = NodeConfig::new(loopback.parse().unwrap(), (0..ports).map(port).collect());
        change(&mut config);
        let mut bench = Bench { node: Node::new(config), pool: Pool::new(4096), now: Instant::ZERO, ports };
        for port in 0..ports {
            let mac = MacAddress([2, 0, 0, 0, 1, port as u8]);
            bench.apply(Command::AddNeighbour { next_hop: next_hop(port), mac });
        }
        bench
    }

    /// Carries out a command that must succeed.
    pub fn apply(&mut self, command: Command) {
        self.node.apply(command).unwrap();
    }

    /// Adds a route by the neighbour at a port.
    pub fn route(&mut self, text: &str, port: u16) {
        let action = RouteAction::Via(vec![next_hop(port)]);
        self.apply(Command::AddRoute { table: TableId(0), prefix: prefix(text), action });
    }

    /// Gives an IPv6 or IPv4 packet to a port; returns what leaves, port by port, Ethernet headers checked and taken off.
    pub fn send(&mut self, port: u16, packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
        self.give_in(port, packet);
        self.drain()
    }

    /// Gives an IPv6 or IPv4 packet to a port. What leaves stays in its queue.
    pub fn give_in(&mut self, port: u16, packet: &[u8]) {
        let mut frame = port_mac(port).0.to_vec();
        if packet[0] >> 4 == 6 && packet.get(24) == Some(&0xFF) {
            frame = vec![0x33, 0x33, packet[36], packet[37], packet[38], packet[39]];
        }
        frame.extend([2, 0, 0, 0, 1, port as u8]);
        frame.extend(ethertype(packet));
        frame.extend(packet);
        let frame = Frame::from_octets(&frame, &mut self.pool).unwrap();
        self.give_in_frame(port, frame);
    }

    fn give_in_frame(&mut self, port: u16, frame: Frame) {
        let mut frames = vec![frame];
        self.node.receive(self.now, PortId(port), &mut frames, &mut self.pool);
        assert!(frames.is_empty());
    }

    /// Gives a frame to a port; returns what leaves.
    pub fn receive(&mut self, port: u16, frame: Frame) -> Vec<(u16, Vec<u8>)> {
        self.give_in_frame(port, frame);
        self.drain()
    }

    /// Gives an IPv6 packet to the port of a node that may keep it; returns the number of frames that leave.
    pub fn keep(&mut self, port: u16, packet: &[u8]) -> usize {
        let mut octets = port_mac(port).0.to_vec();
        octets.extend([2, 0, 0, 0, 1, port as u8, 0x86, 0xDD]);
        octets.extend(packet);
        let mut frames = vec![Frame::from_octets(&octets, &mut self.pool).unwrap()];
        self.node.receive(self.now, PortId(port), &mut frames, &mut self.pool);
        self.leaving()
    }

    /// The number of frames that leave.
    pub fn leaving(&mut self) -> usize {
        let ports = (0..self.ports).map(PortId);
        ports.map(|port| std::iter::from_fn(|| self.give_out(port)).count()).sum()
    }

    /// Queued frames, except PFC frames.
    pub fn drain(&mut self) -> Vec<(u16, Vec<u8>)> {
        let mut sent = Vec::new();
        for port in 0..self.ports {
            while let Some(frame) = self.node.dequeue(self.now, PortId(port), &mut self.pool) {
                let octets = frame.to_vec(&self.pool);
                frame.release(&mut self.pool);
                if octets[12..14] == [0x88, 0x08] {
                    assert_eq!((octets.len(), &octets[6..12]), (60, &port_mac(port).0[..]));
                    continue;
                }
                assert_eq!(octets[6..14], [&port_mac(port).0[..], &ethertype(&octets[14..])].concat());
                if octets[14] >> 4 == 4 || octets[14 + 24] != 0xFF {
                    assert_eq!(octets[..6], [2, 0, 0, 0, 1, port as u8]);
                }
                sent.push((port, octets[14..].to_vec()));
            }
        }
        assert_eq!(self.pool.in_use(), 0, "every chunk comes back");
        sent
    }

    /// The drops of a port, by name.
    pub fn drops(&self, port: u16) -> Vec<(&'static str, u64)> {
        let counters = self.node.port_counters(PortId(port)).unwrap();
        counters.drops.iter().map(|(reason, count)| (reason.name(), count)).collect()
    }
}

/// A frame whose first segment ends after `cut` octets.
pub fn frame_in_two(octets: &[u8], cut: usize, pool: &mut Pool) -> Frame {
    let mut segment = |octets: &[u8]| {
        let chunk = pool.allocate_large().unwrap();
        pool.octets_mut(chunk)[HEADROOM..HEADROOM + octets.len()].copy_from_slice(octets);
        Segment::new(chunk, HEADROOM, octets.len())
    };
    let mut frame = Frame::of_segment(segment(&octets[..cut]));
    assert!(frame.append(segment(&octets[cut..])));
    frame
}

/// The IPv6 packets of a golden capture.
pub fn golden(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../../testdata/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(file)).unwrap();
    reader.map(|packet| packet.unwrap().octets[14..].to_vec()).collect()
}
