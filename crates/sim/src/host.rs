//! A host: an RC endpoint behind one port, and the program that uses it.

use crate::invariants::Response;
use crate::network::Station;
use crate::pieces::pieces_of;
use crate::program::{Intake, Outgoing};
use crate::replica::Replica;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_rc::{
    Access, Completion, ConfigError, Endpoint, EndpointConfig, MemoryKey, QueuePairConfig, QueuePairCounters, Status,
};
use srdma_wire::icrc::Computation;
use srdma_wire::{
    Aeth, AethView, Bth, BthView, EtherType, Ethernet, EthernetView, Instant, Ipv6, Ipv6View, MacAddress, Opcode, Qpn,
    Udp, UdpView, View,
};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// The only port of a host.
pub const HOST_PORT: PortId = PortId(0);

/// Octets that fit a small chunk behind its headroom: responses, not data.
const SMALL_FRAME_OCTETS: usize = 128;

/// Attachment of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its MAC address. It takes frames to this one only.
    pub mac: MacAddress,
    /// The MAC address of what is at the other end of its link.
    pub gateway: MacAddress,
}

/// A host: an endpoint, and a program that receives data, sends data, or relays them.
///
/// Its memory keeps all received data, octet by octet, so it is the model for runs that check data. The servers of
/// `fabric-sim` are the model for load: one page of memory for thousands of hosts, a NIC with programs, PFC, and jobs.
pub struct Host {
    endpoint: Endpoint<Replica>,
    mac: MacAddress,
    ethernet: EthernetView,
    packet: Vec<u8>,
    outgoing: Vec<Outgoing>,
    intakes: Vec<Intake>,
    /// No receive is posted.
    is_starving: bool,
    failure: Option<(Qpn, Status)>,
    responses: Option<Vec<Response>>,
    completions: Option<Vec<Completion>>,
    misdelivered: u64,
}

impl Host {
    /// A host without queue pairs.
    pub fn new(config: &HostConfig) -> Self {
        Self::with_endpoint(config, EndpointConfig::new(config.address))
    }

    /// A host without queue pairs whose endpoint is like this.
    pub fn with_endpoint(config: &HostConfig, endpoint: EndpointConfig) -> Self {
        let ethernet = Ethernet { destination: config.gateway, source: config.mac, ethertype: EtherType::IPV6 };
        Host {
            endpoint: Endpoint::new(endpoint),
            mac: config.mac,
            ethernet: ethernet.emit(),
            packet: Vec::new(),
            outgoing: Vec::new(),
            intakes: Vec::new(),
            is_starving: false,
            failure: None,
            responses: None,
            completions: None,
            misdelivered: 0,
        }
    }

    /// Adds a queue pair.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub fn add_queue_pair(&mut self, config: QueuePairConfig) -> Result<(), ConfigError> {
        self.endpoint.add_queue_pair(config)?;
        self.packet.resize(EthernetView::LEN + self.endpoint.max_packet_octets(), 0);
        self.packet[..EthernetView::LEN].copy_from_slice(self.ethernet.as_bytes());
        Ok(())
    }

    /// Adds a memory region, which peers may write to from `base_address` on.
    pub fn add_region(&mut self, replica: Replica, base_address: u64, key_tag: u8) -> MemoryKey {
        self.endpoint.register_memory(replica, base_address, Access::REMOTE_WRITE, key_tag)
    }

    /// Has a memory region hold something else, of the same length.
    pub fn replace_region(&mut self, key: MemoryKey, replica: Replica) {
        if let Some(region) = self.endpoint.memory_mut(key) {
            *region = replica;
        }
    }

    /// Has the program send: at once what is there, the rest as it is received.
    pub fn send(&mut self, outgoing: Outgoing) {
        self.outgoing.push(outgoing);
    }

    /// Has the program receive messages that use up posted receives.
    pub fn take_in(&mut self, intake: Intake) {
        self.intakes.push(intake);
    }

    /// Has the program post no receive, or again those that are due.
    pub fn starve(&mut self, is_starving: bool) {
        self.is_starving = is_starving;
        self.post_receives();
    }

    /// Has the program send no further message by a queue pair, or go on (D30).
    pub fn pause(&mut self, qpn: Qpn, is_paused: bool) {
        if let Some(outgoing) = self.outgoing.iter_mut().find(|outgoing| outgoing.qpn() == qpn) {
            outgoing.pause(is_paused);
        }
        self.post_outgoing();
    }

    /// Has a queue pair refuse every request from now on, as a peer whose device has failed.
    pub fn refuse(&mut self, qpn: Qpn) {
        self.endpoint.refuse(qpn);
    }

    /// Makes the host keep every undamaged response that arrives, whether its endpoint accepts it or not.
    pub fn observe_responses(&mut self) {
        self.responses = Some(Vec::new());
    }

    /// Has the host remember how work requests and receives end.
    pub fn observe_completions(&mut self) {
        self.completions = Some(Vec::new());
    }

    /// Requests that have ended since the last call.
    pub fn take_completions(&mut self) -> impl Iterator<Item = Completion> {
        self.completions.iter_mut().flat_map(|completions| completions.drain(..))
    }

    /// The responses that arrived since the last call.
    pub fn take_responses(&mut self) -> impl Iterator<Item = Response> {
        self.responses.iter_mut().flat_map(|responses| responses.drain(..))
    }

    /// Whether responses or completions wait to be taken.
    pub fn has_news(&self) -> bool {
        self.responses.as_ref().is_some_and(|responses| !responses.is_empty())
            || self.completions.as_ref().is_some_and(|completions| !completions.is_empty())
    }

    /// Starts the program: posts what can be posted.
    pub fn start(&mut self) {
        self.post_receives();
        self.post_outgoing();
    }

    /// A memory region.
    pub fn region(&self, key: MemoryKey) -> Option<&Replica> {
        self.endpoint.memory(key)
    }

    /// Counters of a queue pair.
    pub fn counters(&self, qpn: Qpn) -> Option<&QueuePairCounters> {
        self.endpoint.counters(qpn)
    }

    /// Streams that the program sends.
    pub fn outgoing(&self) -> &[Outgoing] {
        &self.outgoing
    }

    /// The first queue pair that failed, and how.
    pub fn failure(&self) -> Option<(Qpn, Status)> {
        self.failure
    }

    /// The next CNP: all that a host sends whose data are paused.
    pub fn dequeue_cnp(&mut self, now: Instant, pool: &mut Pool) -> Option<Frame> {
        let packet_len = self.endpoint.poll_cnp(now, &mut self.packet[EthernetView::LEN..])?;
        self.frame(packet_len, pool)
    }

    fn frame(&self, packet_len: usize, pool: &mut Pool) -> Option<Frame> {
        let octets = &self.packet[..EthernetView::LEN + packet_len];
        if octets.len() <= SMALL_FRAME_OCTETS { Frame::small(octets, pool) } else { Frame::from_octets(octets, pool) }
    }

    /// Packets that the endpoint refused, and frames for other MAC addresses.
    pub fn refused(&self) -> u64 {
        self.endpoint.drops().total() + self.misdelivered
    }

    /// The program: takes what has completed, and posts what can go out now.
    fn work(&mut self, now: Instant) {
        while let Some(completion) = self.endpoint.poll_completion() {
            if let Some(completions) = &mut self.completions {
                completions.push(completion);
            }
            if completion.status != Status::Success {
                self.failure.get_or_insert((completion.qpn, completion.status));
                continue;
            }
            if let Some(outgoing) = self.outgoing.iter_mut().find(|outgoing| outgoing.qpn() == completion.qpn) {
                outgoing.complete(&completion, now);
                outgoing.post(&mut self.endpoint, self.intakes.first().map(Intake::received_octets));
            } else if let Some(intake) = self.intakes.iter_mut().find(|intake| intake.qpn() == completion.qpn) {
                intake.complete(&completion);
                self.post_receives();
                self.post_outgoing();
            }
        }
    }

    fn post_receives(&mut self) {
        if !self.is_starving {
            for intake in &mut self.intakes {
                intake.post(&mut self.endpoint);
            }
        }
    }

    /// A host that takes in and sends is a relay.
    fn post_outgoing(&mut self) {
        let received_octets = self.intakes.first().map(Intake::received_octets);
        for outgoing in &mut self.outgoing {
            outgoing.post(&mut self.endpoint, received_octets);
        }
    }

    fn take_frame(&mut self, now: Instant, frame: &Frame, pool: &Pool) {
        let (mut pieces, count) = pieces_of(frame, pool);
        match EthernetView::split(pieces[0]) {
            Ok((ethernet, packet)) if ethernet.destination == self.mac && ethernet.ethertype() == EtherType::IPV6 => {
                pieces[0] = packet;
                if let Some(responses) = &mut self.responses {
                    responses.extend(response_of(packet));
                }
                // A refusal is counted by the endpoint.
                let _ = self.endpoint.receive(now, &pieces[..count]);
            }
            Ok(_) | Err(_) => self.misdelivered += 1,
        }
    }
}

/// The response in a packet, read without the endpoint's help.
fn response_of(packet: &[u8]) -> Option<Response> {
    let (bth, rest) = Bth::parse(packet.get(Ipv6::LEN + Udp::LEN..)?).ok()?;
    if bth.opcode != Opcode::ACKNOWLEDGE {
        return None;
    }
    let (aeth, icrc) = Aeth::parse(rest).ok()?;
    let (ipv6, rest) = Ipv6View::split(packet).ok()?;
    let (udp, rest) = UdpView::split(rest).ok()?;
    let (bth_view, rest) = BthView::split(rest).ok()?;
    let mut computation = Computation::begin(ipv6, 0, udp, bth_view);
    computation.update(rest.get(..AethView::LEN)?);
    let is_whole = icrc.get(..4)? == computation.finish().0;
    is_whole.then_some(Response { qpn: bth.dest_qpn, psn: bth.psn, syndrome: aeth.syndrome })
}

impl Element for Host {
    fn receive(&mut self, now: Instant, _port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        for frame in frames.drain(..) {
            self.take_frame(now, &frame, pool);
            frame.release(pool);
        }
        self.work(now);
    }

    fn tick(&mut self, now: Instant, _pool: &mut Pool) {
        self.endpoint.tick(now);
        self.work(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.endpoint.next_deadline()
    }

    fn dequeue(&mut self, now: Instant, _port: PortId, pool: &mut Pool) -> Option<Frame> {
        let packet_len = self.endpoint.poll_transmit(now, &mut self.packet[EthernetView::LEN..])?;
        self.frame(packet_len, pool)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        if self.endpoint.may_transmit() {
            wake.push(HOST_PORT);
        }
    }
}

impl Station for Host {
    fn wants_driver_layout(&self) -> bool {
        false
    }
}

const _: () = assert!(EthernetView::LEN + Ipv6::LEN + Udp::LEN + Bth::LEN + AethView::LEN + 4 <= SMALL_FRAME_OCTETS);
