//! A server: an RC endpoint behind one port, with as many queue pairs as it has flows.
//!
//! It is one of two host models. [`srdma_sim::host::Host`] keeps a copy of the received data in memory, octet by octet,
//! with its SHA-256: right for a few dozen receivers of one stream, and used here by end-to-end runs (`group_host`).
//! Thousands of servers with tens of thousands of flows cannot afford that, so the memory of a server repeats one page
//! that all frames share, and received octets are compared with it. Around the endpoint both have the same NIC (`nic`),
//! and both use the endpoint of crate `rc` unchanged.

use super::message_flow::{MessageFlow, Rest};
use super::nic::{Nic, Outer};
use super::page_memory::{PageMemory, SharedPage};
use super::parallel::locked;
use super::rank::{Rank, RankContext, Sent};
use super::tasks::{First, SharedTask};
use srdma_dataplane::Pauses;
use srdma_dataplane::headend::HeadendError;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_rc::{
    Access, Completion, ConfigError, Endpoint, EndpointConfig, LocalRange, MemoryKey, Operation, PostError,
    QueuePairConfig, RateLimits, RemoteAddress, Status, WorkRequest,
};
use srdma_sim::network::SimElement;
use srdma_sim::slices::{slices_of, with_headers_in_front};
use srdma_wire::rocev2::Packet;
use srdma_wire::{EtherType, Ethernet, EthernetView, Instant, MacAddress, Opcode, Pfc, Qpn, View};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};
use zerocopy::IntoBytes;

/// The only port of a server.
pub(super) const SERVER_PORT: PortId = PortId(0);

/// Virtual address of every region.
pub(super) const BASE_ADDRESS: u64 = 0x1000_0000;

/// Length of the regions: no message is longer.
pub(super) const REGION_OCTETS: u64 = 1 << 30;

const KEY_TAG: u8 = 0x5A;

/// Messages of a stream that are posted in advance, so that the queue never runs empty.
const MESSAGES_AHEAD: usize = 4;

/// The traffic class of data and acknowledgements: the only one that is paused.
pub(super) const DATA_CLASS: usize = 3;

/// The DSCP of data and acknowledgements.
pub(super) const DATA_DSCP: u8 = 26;

/// The payload of longer packets is shared.
const SHORT_PACKET_OCTETS: usize = 256;

/// Scratch memory that all servers of a partition share: its thread alone locks it, so it never waits.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Buffer for a packet before it is put into chunks.
    packet: Vec<u8>,
    page: SharedPage,
}

impl Scratch {
    /// Scratch memory with this page.
    pub(super) fn new(page: SharedPage) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Scratch { packet: Vec::new(), page }))
    }
}

/// A completed flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) flow: usize,
    /// Time at which its last octet was acknowledged.
    pub(super) at: Instant,
    /// Whether it failed.
    pub(super) failed: bool,
}

/// A congestion notification received by a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// The queue pair.
    pub(super) qpn: Qpn,
    pub(super) at: Instant,
    /// Source address of the CNP.
    pub(super) by: Ipv6Addr,
    /// Octets of its frame.
    pub(super) octets: usize,
    /// Whether it reduced the rate: a CNP directly after another, or at the minimum rate, does not.
    /// nothing.
    pub(super) slows: bool,
}

pub(super) struct Server {
    endpoint: Endpoint<PageMemory>,
    mac: MacAddress,
    ethernet: EthernetView,
    scratch: Arc<Mutex<Scratch>>,
    region: MemoryKey,
    of_messages: Vec<MessageFlow>,
    ended: Vec<Ended>,
    notices: Vec<Notice>,
    part: Rank,
    nic: Nic,
    mtu_octets: u64,
    pauses: Pauses,
    misdelivered: u64,
    dropped_for_memory: u64,
}

impl Server {
    /// A server without queue pairs, whose frames go to `gateway` by a link of this rate.
    pub(super) fn new(
        config: EndpointConfig,
        mac: MacAddress,
        gateway: MacAddress,
        rate_bits_per_s: u64,
        memory: PageMemory,
        scratch: Arc<Mutex<Scratch>>,
    ) -> Self {
        let address = config.address;
        let mut endpoint = Endpoint::new(config);
        let memory_period = memory.period_octets();
        let region = endpoint.register_memory(memory, BASE_ADDRESS, Access::REMOTE_WRITE, KEY_TAG);
        let ethernet = Ethernet { destination: gateway, source: mac, ethertype: EtherType::IPV6 }.emit();
        Server {
            endpoint,
            mac,
            ethernet,
            scratch,
            region,
            of_messages: Vec::new(),
            ended: Vec::new(),
            notices: Vec::new(),
            part: Rank::default(),
            nic: Nic::new(address),
            mtu_octets: memory_period,
            pauses: Pauses::new(rate_bits_per_s, 1 << DATA_CLASS, None),
            misdelivered: 0,
            dropped_for_memory: 0,
        }
    }

    /// Adds a queue pair.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn connect(&mut self, config: QueuePairConfig) -> Result<(), ConfigError> {
        self.endpoint.add_queue_pair(config)?;
        let mut scratch = locked(&self.scratch);
        let needed = EthernetView::LEN + self.endpoint.max_packet_octets();
        if scratch.packet.len() < needed {
            scratch.packet.resize(needed, 0);
        }
        Ok(())
    }

    /// Removes a queue pair.
    pub(super) fn disconnect(&mut self, qpn: Qpn) {
        self.endpoint.remove_queue_pair(qpn);
    }

    /// Begins a flow of `size_octets` on a queue pair.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin(&mut self, flow: usize, qpn: Qpn, size_octets: u32) -> Result<(), PostError> {
        self.endpoint.post_send(qpn, write(flow, self.region, size_octets, None))
    }

    /// Begins an endless flow on a queue pair, in messages of `message_octets`.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin_endless(&mut self, flow: usize, qpn: Qpn, message_octets: u32) -> Result<(), PostError> {
        self.begin_flow(MessageFlow::new(flow, qpn, message_octets, Rest::Endless))
    }

    /// Begins a flow of so many octets on a queue pair, in messages of `message_octets`.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin_messages(
        &mut self,
        flow: usize,
        qpn: Qpn,
        octets: u64,
        message_octets: u32,
    ) -> Result<(), PostError> {
        let rest = Rest::Octets { to_post: octets, outstanding: 0 };
        self.begin_flow(MessageFlow::new(flow, qpn, message_octets, rest))
    }

    fn begin_flow(&mut self, mut flow: MessageFlow) -> Result<(), PostError> {
        for _ in 0..MESSAGES_AHEAD {
            flow.post(&mut self.endpoint, self.region)?;
        }
        self.of_messages.push(flow);
        Ok(())
    }

    /// Stops posting messages of endless flows.
    pub(super) fn finish_endless(&mut self) {
        self.of_messages.retain(|flow| !flow.is_endless());
    }

    /// Enables steering at its NIC, with this probe interval and this seed.
    pub(super) fn steer(&mut self, probe_interval_ns: u64, seed: u64) {
        self.nic.steer(probe_interval_ns, seed);
    }

    /// Adds outer headers to all packets to a queue pair of a peer.
    ///
    /// # Errors
    ///
    /// Those of the headend.
    pub(super) fn encapsulate(&mut self, peer: Ipv6Addr, qpn: Qpn, outer: Outer) -> Result<(), HeadendError> {
        self.nic.encapsulate(peer, qpn, outer)
    }

    /// Number of path changes of its flows.
    pub(super) fn moves(&self) -> u64 {
        self.nic.moves()
    }

    /// Adds a channel as receiver.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn receive_channel(&mut self, channel: usize, task: SharedTask, lanes: &[Qpn]) -> Result<(), PostError> {
        self.with_rank(Instant::ZERO, |part, context| part.add_incoming(channel, task, lanes, context))
    }

    /// Adds a channel as sender.
    pub(super) fn send_channel(&mut self, channel: usize, task: SharedTask, lanes: &[Qpn]) {
        self.part.add_outgoing(channel, task, lanes);
    }

    /// Begins an iteration of a task, or a collective of it.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin_iteration(&mut self, task: &SharedTask, first: &First, now: Instant) -> Result<(), PostError> {
        self.with_rank(now, |part, context| part.begin(task, first, context))
    }

    /// Counts octets of messages to a channel that were skipped, and the time for them.
    pub(super) fn skip(&mut self, channel: usize, octets: u64) {
        self.part.skip(channel, octets);
    }

    /// Counters of each channel of this sender, by its number.
    pub(super) fn sent(&self) -> impl Iterator<Item = (usize, Sent)> {
        self.part.sent()
    }

    fn with_rank<R>(&mut self, now: Instant, action: impl FnOnce(&mut Rank, &mut RankContext<'_>) -> R) -> R {
        let Server { endpoint, part, region, mtu_octets, .. } = self;
        action(part, &mut RankContext { endpoint, region: *region, mtu_octets: *mtu_octets, now })
    }

    /// Flows completed since the last call.
    pub(super) fn take_ended(&mut self) -> impl Iterator<Item = Ended> {
        self.ended.drain(..)
    }

    /// Congestion notifications since the last call.
    pub(super) fn take_notices(&mut self) -> impl Iterator<Item = Notice> {
        self.notices.drain(..)
    }

    /// Nanoseconds in completed pauses of its data class.
    pub(super) fn paused_ns(&self) -> u64 {
        self.pauses.counters(DATA_CLASS).map_or(0, |counters| counters.paused_ns)
    }

    /// The endpoint.
    pub(super) fn endpoint(&self) -> &Endpoint<PageMemory> {
        &self.endpoint
    }

    /// The key of the memory that peers write to: the same at all servers.
    pub(super) fn region(&self) -> MemoryKey {
        self.region
    }

    /// The memory that peers write to.
    pub(super) fn memory(&self) -> Option<&PageMemory> {
        self.endpoint.memory(self.region)
    }

    /// Frames for another destination, or without an IPv6 packet.
    pub(super) fn misdelivered(&self) -> u64 {
        self.misdelivered
    }

    /// Packets dropped because the pool had no free chunk.
    pub(super) fn dropped_for_memory(&self) -> u64 {
        self.dropped_for_memory
    }

    fn work(&mut self, now: Instant) {
        while let Some(completion) = self.endpoint.poll_completion() {
            self.on_completion(&completion, now);
        }
    }

    fn on_completion(&mut self, completion: &Completion, now: Instant) {
        if self.part.has(completion.qpn) {
            // A failed queue pair rejects the message: the iteration does not end.
            let _ = self.with_rank(now, |part, context| part.on_completion(completion, context));
            return;
        }
        let flow = completion.wr_id as usize;
        let failed = completion.status != Status::Success;
        let ends = match self.of_messages.iter_mut().find(|of_messages| of_messages.number() == flow) {
            Some(of_messages) => of_messages.on_completion(failed, &mut self.endpoint, self.region),
            None => true,
        };
        if ends {
            self.ended.push(Ended { flow, at: now, failed });
        }
    }

    fn take_frame(&mut self, now: Instant, frame: &Frame, pool: &Pool) {
        let (mut slices, count) = slices_of(frame, pool);
        match EthernetView::split(slices[0]) {
            Ok((ethernet, packet)) if ethernet.destination == self.mac && ethernet.ethertype() == EtherType::IPV6 => {
                slices[0] = packet;
                let notice =
                    if count <= 2 && packet.len() <= SHORT_PACKET_OCTETS { notice_of(packet, now) } else { None };
                let limits = notice.and_then(|notice| self.endpoint.rate_limits(now, notice.qpn));
                // The endpoint counts its drops.
                let outcome = self.endpoint.receive(now, &slices[..count]);
                if let (Ok(()), Some(notice), Some(before)) = (outcome, notice, limits)
                    && let Some(after) = self.endpoint.rate_limits(now, notice.qpn)
                {
                    self.notices.push(Notice { slows: is_slower(after, before), ..notice });
                }
            }
            Ok((ethernet, octets)) if ethernet.ethertype() == EtherType::MAC_CONTROL => match Pfc::parse(octets) {
                Ok(pfc) => self.pauses.receive(now, &pfc),
                Err(_) => self.misdelivered += 1,
            },
            Ok(_) | Err(_) => self.misdelivered += 1,
        }
    }
}

/// Origin and queue pair of a CNP or Fast CNP; both queue pairs of a connection have the same number.
fn notice_of(packet: &[u8], now: Instant) -> Option<Notice> {
    let octets = EthernetView::LEN + packet.len();
    let packet = Packet::parse(packet, packet.len()).ok()?;
    let (qpn, by) = (packet.bth.dest_qpn(), packet.ipv6.source());
    (packet.bth.opcode() == Opcode::CNP).then_some(Notice { qpn, at: now, by, octets, slows: false })
}

/// Whether the rate or the window was reduced.
fn is_slower(after: RateLimits, before: RateLimits) -> bool {
    let is_less = |after: Option<u64>, before: Option<u64>| after.unwrap_or(u64::MAX) < before.unwrap_or(u64::MAX);
    is_less(after.rate_bits_per_s, before.rate_bits_per_s) || is_less(after.window_octets, before.window_octets)
}

/// A WRITE of a flow's octets, at the same offset of both regions.
pub(super) fn write(flow: usize, region: MemoryKey, length_octets: u32, immediate: Option<[u8; 4]>) -> WorkRequest {
    let remote = RemoteAddress { virtual_address: BASE_ADDRESS, rkey: region };
    WorkRequest {
        wr_id: flow as u64,
        operation: Operation::Write { remote, immediate },
        local: LocalRange { key: region, offset: 0, length_octets },
        signalled: true,
    }
}

impl Element for Server {
    fn receive(&mut self, now: Instant, _port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        for frame in frames.drain(..) {
            let Some(frame) = with_headers_in_front(frame, pool) else { continue };
            if !self.nic.takes(now, &frame, pool) {
                self.take_frame(now, &frame, pool);
            }
            frame.release(pool);
        }
        self.work(now);
    }

    fn tick(&mut self, now: Instant, _pool: &mut Pool) {
        self.pauses.paused(now);
        self.nic.tick(now);
        self.endpoint.tick(now);
        // A failed queue pair rejects the message: the iteration does not end.
        let _ = self.with_rank(now, |part, context| part.tick(context));
        self.work(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let others = [self.pauses.next_deadline(), self.nic.next_deadline(), self.part.next_deadline()];
        self.endpoint.next_deadline().into_iter().chain(others.into_iter().flatten()).min()
    }

    fn dequeue(&mut self, now: Instant, _port: PortId, pool: &mut Pool) -> Option<Frame> {
        if let Some(probe) = self.nic.poll_probe(now, &self.ethernet, pool) {
            return Some(probe);
        }
        if !self.endpoint.may_transmit() {
            return None;
        }
        let scratch = &mut *locked(&self.scratch);
        let into = &mut scratch.packet[EthernetView::LEN..];
        let packet_len = if self.pauses.paused(now) >> DATA_CLASS & 1 == 0 {
            self.endpoint.poll_transmit(now, into)?
        } else {
            self.endpoint.poll_cnp(now, into)?
        };
        scratch.packet[..EthernetView::LEN].copy_from_slice(self.ethernet.as_bytes());
        let octets = &scratch.packet[..EthernetView::LEN + packet_len];
        let frame = if packet_len <= SHORT_PACKET_OCTETS {
            Frame::small(octets, pool)
        } else {
            match Packet::parse(&octets[EthernetView::LEN..], packet_len) {
                Ok(packet) => {
                    let range = packet.payload_range();
                    let payload = EthernetView::LEN + range.start..EthernetView::LEN + range.end;
                    scratch.page.frame(octets, payload, pool)
                }
                Err(_) => Frame::from_octets(octets, pool),
            }
        };
        self.dropped_for_memory += u64::from(frame.is_none());
        let mut frame = frame?;
        self.nic.outgoing(now, &mut frame, &self.ethernet, pool);
        Some(frame)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        if self.endpoint.may_transmit() || self.nic.has_probe() {
            wake.push(SERVER_PORT);
        }
    }
}

impl SimElement for Server {
    fn wants_driver_layout(&self) -> bool {
        false
    }
}
