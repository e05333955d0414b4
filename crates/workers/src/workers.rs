//! Workers in virtual time, as one element.

use srdma_dataplane::{DropReason, Handover, Node};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_random::Stream;
use srdma_wire::Instant;
use srdma_wire::ethernet::EtherType;
use std::collections::VecDeque;
use std::time::Duration;

/// The longest time that a packet takes from one worker to another: that of a few batches.
pub const LONGEST_HANDOVER: Duration = Duration::from_micros(20);

/// A node of several workers. A flow always arrives at the same worker, which one is random: from the seed.
#[derive(Debug)]
pub struct Workers {
    nodes: Vec<Node>,
    /// From each worker to each: packets with the time at which they arrive.
    ways: Vec<VecDeque<(Instant, Handover)>>,
    /// Which worker a flow arrives at.
    distribution: u64,
    delays: Stream,
    /// The worker that sends next at each port.
    turns: Vec<usize>,
    /// Packets that were handed over.
    handed_over: u64,
    /// Kept for their memory.
    batches: Vec<Vec<Frame>>,
    packets: Vec<Handover>,
}

impl Workers {
    /// The workers of a node: all of [`Worker::all`](srdma_dataplane::Worker::all), in their order.
    pub fn new(nodes: Vec<Node>, seed: u64) -> Self {
        let mut delays = Stream::new(seed, "workers");
        let distribution = delays.below(u64::MAX);
        let count = nodes.len();
        Workers {
            nodes,
            ways: (0..count * count).map(|_| VecDeque::new()).collect(),
            distribution,
            delays,
            turns: Vec::new(),
            handed_over: 0,
            batches: (0..count).map(|_| Vec::new()).collect(),
            packets: Vec::new(),
        }
    }

    /// The workers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The workers, to be changed alike.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Packets that workers have handed over to others.
    pub fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Lets all packets that are on the way between workers arrive now.
    pub fn settle(&mut self, now: Instant, pool: &mut Pool) {
        self.pass(now);
        while self.ways.iter().any(|way| !way.is_empty()) {
            self.arrive(Instant::NEVER, now, pool);
            self.pass(now);
        }
    }

    /// Releases the packets of all retransmission buffers.
    pub fn drop_kept(&mut self, pool: &mut Pool) {
        self.nodes.iter_mut().for_each(|node| node.drop_kept(pool));
    }

    /// Releases the frames that wait at ports, are kept for repair, or are on the way between workers: the node ends.
    pub fn release_frames(&mut self, pool: &mut Pool) {
        for (_, handover) in self.ways.iter_mut().flat_map(|way| way.drain(..)) {
            handover.frame.release(pool);
        }
        self.nodes.iter_mut().for_each(|node| node.release_frames(pool));
    }

    /// The worker at which a frame arrives: as a NIC, by a hash of the addresses.
    fn worker_of(&self, frame: &Frame, pool: &Pool) -> usize {
        let mut mixed = self.distribution;
        for octets in addresses(frame.head(pool)).unwrap_or_default().chunks(8) {
            let mut word = [0; 8];
            word[..octets.len()].copy_from_slice(octets);
            mixed = (mixed ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
        ((u128::from(mixed) * self.nodes.len() as u128) >> 64) as usize
    }

    /// Puts what the workers have for each other on its way.
    fn pass(&mut self, now: Instant) {
        let count = self.nodes.len();
        for from in 0..count {
            self.nodes[from].take_handovers(&mut self.packets);
            self.handed_over += self.packets.len() as u64;
            for handover in self.packets.drain(..) {
                let way = &mut self.ways[from * count + handover.to];
                let delay = Duration::from_nanos(self.delays.below(LONGEST_HANDOVER.as_nanos() as u64));
                // Those on the same way stay in their order.
                let arrives = way.back().map_or(Instant::ZERO, |(last, _)| *last).max(now + delay);
                way.push_back((arrives, handover));
            }
        }
    }

    /// Gives the workers what arrives by `until`.
    fn arrive(&mut self, until: Instant, now: Instant, pool: &mut Pool) {
        for way in &mut self.ways {
            while way.front().is_some_and(|(arrives, _)| *arrives <= until) {
                let Some((_, Handover { to, note, frame })) = way.pop_front() else { break };
                // As from another pool.
                match frame.across_wire(pool) {
                    Some(frame) => self.nodes[to].take_over(now, &note, frame, pool),
                    None => self.nodes[to].drop_handover(&note, DropReason::NoBuffer),
                }
            }
        }
        self.follow_bfd();
    }

    /// The other workers follow the sessions of the first.
    fn follow_bfd(&mut self) {
        if !self.nodes[0].has_bfd() {
            return;
        }
        if let [first, others @ ..] = &mut self.nodes[..] {
            for (peer, event) in first.take_bfd_events() {
                others.iter_mut().for_each(|node| node.follow_bfd(peer, event));
            }
        }
    }
}

impl Element for Workers {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        for frame in frames.drain(..) {
            let worker = self.worker_of(&frame, pool);
            self.batches[worker].push(frame);
        }
        for (node, batch) in self.nodes.iter_mut().zip(&mut self.batches) {
            node.receive(now, port, batch, pool);
        }
        self.pass(now);
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        self.arrive(now, now, pool);
        for node in &mut self.nodes {
            node.tick(now, pool);
        }
        self.pass(now);
        self.follow_bfd();
    }

    fn next_deadline(&self) -> Option<Instant> {
        let arrivals = self.ways.iter().filter_map(|way| way.front()).map(|(arrives, _)| *arrives);
        self.nodes.iter().filter_map(Node::next_deadline).chain(arrivals).min()
    }

    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        if self.turns.len() <= port.index() {
            self.turns.resize(port.index() + 1, 0);
        }
        for _ in 0..self.nodes.len() {
            let turn = (self.turns[port.index()] + 1) % self.nodes.len();
            self.turns[port.index()] = turn;
            if let Some(frame) = self.nodes[turn].dequeue(now, port, pool) {
                return Some(frame);
            }
        }
        None
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        for node in &mut self.nodes {
            node.take_ready(wake);
        }
    }
}

/// Source and destination of a frame's IPv4 or IPv6 packet, behind its VLAN tags.
fn addresses(frame: &[u8]) -> Option<&[u8]> {
    let mut rest = frame.get(12..)?;
    loop {
        let (ethertype, packet) = rest.split_first_chunk()?;
        match EtherType(u16::from_be_bytes(*ethertype)) {
            EtherType::VLAN => rest = packet.get(2..)?,
            EtherType::IPV4 => return packet.get(12..20),
            EtherType::IPV6 => return packet.get(8..40),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::addresses;

    #[test]
    fn addresses_are_those_of_the_packet() {
        let packet: Vec<u8> = (0..60).collect();
        let frame = |tags: &[u8]| [&[0; 12], tags, &packet].concat();
        assert_eq!(addresses(&frame(&[0x08, 0x00])), Some(&packet[12..20]));
        assert_eq!(addresses(&frame(&[0x86, 0xDD])), Some(&packet[8..40]));
        assert_eq!(addresses(&frame(&[0x81, 0x00, 0, 100, 0x86, 0xDD])), Some(&packet[8..40]));
        assert_eq!(addresses(&frame(&[0x81, 0x00, 0, 100, 0x81, 0x00, 0, 200, 0x08, 0x00])), Some(&packet[12..20]));
        assert_eq!(addresses(&frame(&[0x88, 0x08])), None);
        assert_eq!(addresses(&frame(&[0x86, 0xDD])[..53]), None);
        assert_eq!(addresses(&[0; 13]), None);
    }
}
