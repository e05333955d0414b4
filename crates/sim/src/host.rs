//! A host: an RC endpoint behind one port, and the program that uses it.

use crate::invariants::Response;
use crate::ipv4_host::{frame_in_ipv4, packet_in_ipv6};
use crate::network::SimElement;
use crate::program::{ReceiveStream, SendStream};
use crate::replica::Replica;
use crate::slices::{slices_of, with_headers_in_front};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_random::Stream;
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

/// The only port of most hosts.
pub const HOST_PORT: PortId = PortId(0);

/// The other port of a host that is attached to two nodes.
pub const SECOND_HOST_PORT: PortId = PortId(1);

/// Octets that fit a small chunk behind its headroom: responses, not data.
const SMALL_FRAME_OCTETS: usize = 128;

/// Attachment of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its address. With an IPv4-mapped one its packets are IPv4.
    pub address: Ipv6Addr,
    /// Its MAC address. It takes frames to this one only.
    pub mac: MacAddress,
    /// The MAC address of what is at the other end of its link.
    pub gateway: MacAddress,
}

/// A host: an endpoint, and a program that sends, receives or relays data.
///
/// There are two host models. This one keeps all received data, octet by octet, for runs that check data. `Server` of
/// `fabric-sim` is the model for load: one page of memory for thousands of hosts, a NIC with programs, PFC, and jobs.
pub struct Host {
    endpoint: Endpoint<Replica>,
    mac: MacAddress,
    /// Its packets are IPv4 on its link.
    is_ipv4: bool,
    ethernet: EthernetView,
    /// The port that it transmits by.
    port: PortId,
    /// The other port, and the Ethernet header there.
    other: Option<(PortId, EthernetView)>,
    /// Chooses a port each time that it receives; otherwise it transmits by the one at which it has received.
    spread: Option<Stream>,
    /// Its ports without a link.
    down: [bool; 2],
    packet: Vec<u8>,
    send_streams: Vec<SendStream>,
    receive_streams: Vec<ReceiveStream>,
    /// No receive is posted.
    is_not_ready: bool,
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
            is_ipv4: config.address.to_ipv4_mapped().is_some(),
            ethernet: ethernet.emit(),
            port: HOST_PORT,
            other: None,
            spread: None,
            down: [false; 2],
            packet: Vec::new(),
            send_streams: Vec::new(),
            receive_streams: Vec::new(),
            is_not_ready: false,
            failure: None,
            responses: None,
            completions: None,
            misdelivered: 0,
        }
    }

    /// Attaches the host by its second port as well. It transmits by the port at which it has received last, unless it
    /// [chooses one at random](Self::spread).
    pub fn attach_second(&mut self, gateway: MacAddress) {
        let ethernet = Ethernet { destination: gateway, source: self.mac, ethertype: EtherType::IPV6 };
        self.other = Some((SECOND_HOST_PORT, ethernet.emit()));
    }

    /// Chooses a port at random whenever it receives, among those with a link, and transmits by that.
    pub fn spread(&mut self, seed: u64) {
        self.spread = Some(Stream::new(seed, "host ports"));
    }

    /// A port has lost its link, or has one again.
    pub fn set_link(&mut self, port: PortId, is_up: bool) {
        if let Some(is_down) = self.down.get_mut(port.index()) {
            *is_down = !is_up;
        }
        if self.spread.is_some() {
            self.choose_port();
        }
    }

    fn choose_port(&mut self) {
        let Some(stream) = &mut self.spread else { return };
        let mut ports = [HOST_PORT, SECOND_HOST_PORT];
        ports.rotate_left(stream.below(2) as usize);
        let up = ports.into_iter().find(|port| !self.down[port.index()]);
        self.transmit_by(up.unwrap_or(HOST_PORT));
    }

    /// Transmits by a port from now on, if it has it.
    fn transmit_by(&mut self, port: PortId) {
        if let Some((other, ethernet)) = self.other.as_mut().filter(|(other, _)| *other == port) {
            std::mem::swap(&mut self.port, other);
            std::mem::swap(&mut self.ethernet, ethernet);
            if let Some(header) = self.packet.get_mut(..EthernetView::LEN) {
                header.copy_from_slice(self.ethernet.as_bytes());
            }
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

    /// Removes a queue pair and its stream to send.
    pub fn remove_queue_pair(&mut self, qpn: Qpn) {
        self.endpoint.remove_queue_pair(qpn);
        self.send_streams.retain(|stream| stream.qpn() != qpn);
    }

    /// Adds a memory region, which peers may write to from `base_address` on.
    pub fn add_region(&mut self, replica: Replica, base_address: u64, key_tag: u8) -> MemoryKey {
        self.endpoint.register_memory(replica, base_address, Access::REMOTE_WRITE, key_tag)
    }

    /// Replaces the content of a memory region; the length must be the same.
    pub fn replace_region(&mut self, key: MemoryKey, replica: Replica) {
        if let Some(region) = self.endpoint.memory_mut(key) {
            *region = replica;
        }
    }

    /// Adds a stream to send. A relay sends octets as they are received.
    pub fn add_send_stream(&mut self, stream: SendStream) {
        self.send_streams.push(stream);
    }

    /// Adds a stream whose messages consume posted receives.
    pub fn add_receive_stream(&mut self, stream: ReceiveStream) {
        self.receive_streams.push(stream);
    }

    /// Stops posting receives, or resumes.
    pub fn set_not_ready(&mut self, is_not_ready: bool) {
        self.is_not_ready = is_not_ready;
        self.post_receives();
    }

    /// Pauses the stream of a queue pair at the end of a message, or resumes it (D30).
    pub fn pause(&mut self, qpn: Qpn, is_paused: bool) {
        if let Some(stream) = self.send_streams.iter_mut().find(|stream| stream.qpn() == qpn) {
            stream.pause(is_paused);
        }
        self.post_sends();
    }

    /// Makes a queue pair reject every request from now on, like a failed device.
    pub fn refuse(&mut self, qpn: Qpn) {
        self.endpoint.refuse(qpn);
    }

    /// Keeps every intact response that arrives, whether its endpoint accepts it or not.
    pub fn observe_responses(&mut self) {
        self.responses = Some(Vec::new());
    }

    /// Keeps all completions.
    pub fn observe_completions(&mut self) {
        self.completions = Some(Vec::new());
    }

    /// Completions since the last call.
    pub fn take_completions(&mut self) -> impl Iterator<Item = Completion> {
        self.completions.iter_mut().flat_map(|completions| completions.drain(..))
    }

    /// Responses since the last call.
    pub fn take_responses(&mut self) -> impl Iterator<Item = Response> {
        self.responses.iter_mut().flat_map(|responses| responses.drain(..))
    }

    /// Whether there are responses or completions to take.
    pub fn has_responses_or_completions(&self) -> bool {
        self.responses.as_ref().is_some_and(|responses| !responses.is_empty())
            || self.completions.as_ref().is_some_and(|completions| !completions.is_empty())
    }

    /// Starts the program: posts what can be posted.
    pub fn start(&mut self) {
        self.post_receives();
        self.post_sends();
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
    pub fn send_streams(&self) -> &[SendStream] {
        &self.send_streams
    }

    /// The first queue pair that failed, and how.
    pub fn failure(&self) -> Option<(Qpn, Status)> {
        self.failure
    }

    /// The next CNP, the only packet that a host sends while its data are paused.
    pub fn dequeue_cnp(&mut self, now: Instant, pool: &mut Pool) -> Option<Frame> {
        let packet_len = self.endpoint.poll_cnp(now, &mut self.packet[EthernetView::LEN..])?;
        self.frame(packet_len, pool)
    }

    fn frame(&self, packet_len: usize, pool: &mut Pool) -> Option<Frame> {
        let octets = &self.packet[..EthernetView::LEN + packet_len];
        if self.is_ipv4 {
            return Frame::from_octets(&frame_in_ipv4(octets)?, pool);
        }
        if octets.len() <= SMALL_FRAME_OCTETS { Frame::small(octets, pool) } else { Frame::from_octets(octets, pool) }
    }

    /// Packets that the endpoint dropped, and frames for other MAC addresses.
    pub fn refused(&self) -> u64 {
        self.endpoint.drops().total() + self.misdelivered
    }

    /// Processes completions and posts work requests.
    fn run_program(&mut self, now: Instant) {
        while let Some(completion) = self.endpoint.poll_completion() {
            if let Some(completions) = &mut self.completions {
                completions.push(completion);
            }
            if completion.status != Status::Success {
                self.failure.get_or_insert((completion.qpn, completion.status));
                continue;
            }
            if let Some(stream) = self.send_streams.iter_mut().find(|stream| stream.qpn() == completion.qpn) {
                stream.complete(&completion, now);
                stream.post(&mut self.endpoint, self.receive_streams.first().map(ReceiveStream::received_octets));
            } else if let Some(stream) = self.receive_streams.iter_mut().find(|stream| stream.qpn() == completion.qpn) {
                stream.complete(&completion);
                self.post_receives();
                self.post_sends();
            }
        }
    }

    fn post_receives(&mut self) {
        if !self.is_not_ready {
            for stream in &mut self.receive_streams {
                stream.post(&mut self.endpoint);
            }
        }
    }

    /// A host that receives and sends is a relay.
    fn post_sends(&mut self) {
        let received_octets = self.receive_streams.first().map(ReceiveStream::received_octets);
        for stream in &mut self.send_streams {
            stream.post(&mut self.endpoint, received_octets);
        }
    }

    fn take_frame(&mut self, now: Instant, frame: &Frame, pool: &Pool) {
        let (mut slices, count) = slices_of(frame, pool);
        if self.is_ipv4 {
            return self.take_ipv4_frame(now, &slices[..count].concat());
        }
        match EthernetView::split(slices[0]) {
            Ok((ethernet, packet)) if ethernet.destination == self.mac && ethernet.ethertype() == EtherType::IPV6 => {
                slices[0] = packet;
                if let Some(responses) = &mut self.responses {
                    responses.extend(response_of(packet));
                }
                // The endpoint counts its drops.
                let _ = self.endpoint.receive(now, &slices[..count]);
            }
            Ok(_) | Err(_) => self.misdelivered += 1,
        }
    }
}

impl Host {
    fn take_ipv4_frame(&mut self, now: Instant, octets: &[u8]) {
        let packet = match EthernetView::split(octets) {
            Ok((ethernet, packet)) if ethernet.destination == self.mac && ethernet.ethertype() == EtherType::IPV4 => {
                packet_in_ipv6(packet)
            }
            Ok(_) | Err(_) => None,
        };
        let Some(packet) = packet else {
            self.misdelivered += 1;
            return;
        };
        if let Some(responses) = &mut self.responses {
            responses.extend(response_of(&packet));
        }
        let _ = self.endpoint.receive(now, &[&packet]);
    }
}

/// The response in a packet, parsed independently of the endpoint.
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
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self.spread {
            Some(_) => self.choose_port(),
            None => self.transmit_by(port),
        }
        for frame in frames.drain(..) {
            if let Some(frame) = with_headers_in_front(frame, pool) {
                self.take_frame(now, &frame, pool);
                frame.release(pool);
            }
        }
        self.run_program(now);
    }

    fn tick(&mut self, now: Instant, _pool: &mut Pool) {
        self.endpoint.tick(now);
        self.run_program(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.endpoint.next_deadline()
    }

    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        if port != self.port {
            return None;
        }
        let packet_len = self.endpoint.poll_transmit(now, &mut self.packet[EthernetView::LEN..])?;
        self.frame(packet_len, pool)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        if self.endpoint.may_transmit() {
            wake.push(self.port);
        }
    }
}

impl SimElement for Host {
    fn wants_driver_layout(&self) -> bool {
        false
    }
}

const _: () = assert!(EthernetView::LEN + Ipv6::LEN + Udp::LEN + Bth::LEN + AethView::LEN + 4 <= SMALL_FRAME_OCTETS);
