//! The endpoint: one host address with its queue pairs and memory regions.

use crate::completion::{Completion, DeregisterError, LocalRange, PostError, Receive, WorkRequest};
use crate::config::{ConfigError, EndpointConfig, MAX_MESSAGE_OCTETS, QueuePairConfig};
use crate::counters::{DropReason, Drops, QueuePairCounters};
use crate::fast_cnp::{CongestionEvent, FastCnpCounters, FastCnps, Notice, Peers};
use crate::inbound::Inbound;
use crate::incast::Incasts;
use crate::memory::{Access, Memory, MemoryKey, Regions};
use crate::outbound::packet_octets;
use crate::queue_pair::{Host, QueuePair, QueuePairState};
use crate::rate::pacing::Permit;
use crate::rate::{Origin, RateControl, RateLimits};
use crate::schedule::{Deadlines, Turns};
use srdma_wire::fast_cnp::{FastCnp, OptionTypes};
use srdma_wire::ioam::Trace;
use srdma_wire::rocev2::Extended;
use srdma_wire::units::MBIT_PER_S;
use srdma_wire::{Instant, Qpn};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A software RoCEv2 endpoint.
///
/// It does no I/O: received packets are passed to [`receive`](Self::receive) and packets to send are fetched with
/// [`poll_transmit`](Self::poll_transmit), whenever the caller's link has room; the caller passes the time.
#[derive(Debug)]
pub struct Endpoint<M = Vec<u8>> {
    config: EndpointConfig,
    queue_pairs: Vec<QueuePair>,
    /// Number of `queue_pairs` that were removed.
    vacant: usize,
    slots: HashMap<u32, usize, BuildHasherDefault<QpnHasher>>,
    peers: Peers,
    fast_cnps: Option<FastCnps>,
    incasts: Option<Incasts>,
    regions: Regions<M>,
    completions: VecDeque<Completion>,
    drops: Drops,
    responding: Turns,
    requesting: Turns,
    deadlines: Deadlines,
    max_packet_octets: usize,
    /// The latest time passed by the caller.
    now: Instant,
}

impl<M: Memory> Endpoint<M> {
    /// An endpoint without queue pairs or memory.
    pub fn new(config: EndpointConfig) -> Self {
        Endpoint {
            fast_cnps: config.fast_cnp.as_ref().map(FastCnps::new),
            incasts: config.cnp_pace_ns.map(Incasts::new),
            peers: Peers::default(),
            config,
            queue_pairs: Vec::new(),
            vacant: 0,
            slots: HashMap::default(),
            regions: Regions::new(),
            completions: VecDeque::new(),
            drops: Drops::new(),
            responding: Turns::default(),
            requesting: Turns::default(),
            deadlines: Deadlines::new(),
            max_packet_octets: packet_octets(0),
            now: Instant::ZERO,
        }
    }

    /// Adds a queue pair, connected to its peer.
    pub fn add_queue_pair(&mut self, config: QueuePairConfig) -> Result<(), ConfigError> {
        if self.slots.contains_key(&config.qpn.get()) {
            return Err(ConfigError::Exists(config.qpn));
        }
        let (qpn, remote_address, remote_qpn) = (config.qpn, config.remote_address, config.remote_qpn);
        let queue_pair = QueuePair::new(&self.config, config)?;
        if self.vacant > self.queue_pairs.len() / 2 {
            self.close_ranks();
        }
        self.queue_pairs.push(queue_pair);
        let slot = self.queue_pairs.len() - 1;
        self.slots.insert(qpn.get(), slot);
        self.responding.reserve(slot);
        self.requesting.reserve(slot);
        self.deadlines.reserve(slot);
        self.peers.insert(remote_address, remote_qpn, slot);
        self.max_packet_octets = self.max_packet_octets.max(self.queue_pairs[slot].max_packet_octets());
        Ok(())
    }

    /// Removes a queue pair and returns its counters; `None` for an unknown number. Its posted work is never completed,
    /// and packets for it are refused.
    pub fn remove_queue_pair(&mut self, qpn: Qpn) -> Option<QueuePairCounters> {
        let slot = self.slots.remove(&qpn.get())?;
        self.responding.remove(slot);
        self.requesting.remove(slot);
        self.deadlines.set(slot, None);
        let Endpoint { slots, queue_pairs, peers, .. } = self;
        let peer = |slot: usize| (queue_pairs[slot].config.remote_address, queue_pairs[slot].config.remote_qpn);
        let (remote_address, remote_qpn) = peer(slot);
        peers.remove(remote_address, remote_qpn, slots.values().copied().filter(|other| peer(*other) == peer(slot)));
        self.vacant += 1;
        Some(*self.queue_pairs[slot].counters())
    }

    fn is_there(&self, slot: usize) -> bool {
        self.slots.get(&self.queue_pairs[slot].config.qpn.get()) == Some(&slot)
    }

    /// Moves queue pairs to the places of removed ones before them. Their order stays, as it decides between those that
    /// are due at the same time.
    fn close_ranks(&mut self) {
        let left: Vec<usize> = (0..self.queue_pairs.len()).filter(|slot| self.is_there(*slot)).collect();
        let place_of = |slot: usize| left.binary_search(&slot).ok();
        self.responding.renumber(left.len(), place_of);
        self.requesting.renumber(left.len(), place_of);
        self.deadlines.renumber(&left);
        self.peers.renumber(place_of);
        self.slots.values_mut().for_each(|slot| *slot = place_of(*slot).unwrap_or(*slot));
        let mut slot = 0..;
        self.queue_pairs.retain(|_| slot.next().and_then(place_of).is_some());
        self.vacant = 0;
    }

    /// Number of queue pairs.
    pub fn queue_pairs(&self) -> usize {
        self.slots.len()
    }

    /// Replaces the rate control of a queue pair, whatever its configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unknown`].
    pub fn set_rate_control(&mut self, qpn: Qpn, control: Box<dyn RateControl>) -> Result<(), ConfigError> {
        let slot = *self.slots.get(&qpn.get()).ok_or(ConfigError::Unknown(qpn))?;
        self.queue_pairs[slot].set_rate_control(control, self.config.link_overhead_octets);
        self.reschedule(slot);
        Ok(())
    }

    /// The rate limits of a queue pair at `now`; `None` if it has no rate control, or does not exist.
    pub fn rate_limits(&mut self, now: Instant, qpn: Qpn) -> Option<RateLimits> {
        self.now = self.now.max(now);
        let slot = *self.slots.get(&qpn.get())?;
        let limits = self.queue_pairs[slot].limits(now)?;
        self.reschedule(slot);
        Some(limits)
    }

    /// Adds a memory region, that peers see from `base_address` on. Its key ends in `key_tag`; the rest is an index,
    /// which a later region has again once this one is deregistered.
    pub fn register_memory(&mut self, memory: M, base_address: u64, access: Access, key_tag: u8) -> MemoryKey {
        self.regions.register(memory, base_address, access, key_tag)
    }

    /// Removes a memory region and returns its memory: nothing reads or writes it from now on. The packets that follow
    /// of a WRITE to it are refused; a queue pair that still has to answer a READ of it fails.
    ///
    /// # Errors
    ///
    /// If there is no such region, or posted work that is not completed uses it.
    pub fn deregister_memory(&mut self, key: MemoryKey) -> Result<M, DeregisterError> {
        let mut queue_pairs = self.slots.values().map(|slot| &self.queue_pairs[*slot]);
        if let Some(queue_pair) = queue_pairs.find(|queue_pair| queue_pair.uses(key)) {
            return Err(DeregisterError::InUse { key, qpn: queue_pair.config.qpn });
        }
        let memory = self.regions.deregister(key).ok_or(DeregisterError::Unknown(key))?;
        let mut slots: Vec<usize> = self.slots.values().copied().collect();
        slots.sort_unstable();
        for slot in slots {
            let host = Host { now: self.now, regions: &mut self.regions, completions: &mut self.completions };
            if self.queue_pairs[slot].revoke(host, key) {
                self.reschedule(slot);
            }
        }
        Ok(memory)
    }

    /// A region's memory.
    pub fn memory(&self, key: MemoryKey) -> Option<&M> {
        self.regions.get(key)
    }

    /// A region's memory. It must keep the length that it was registered with.
    pub fn memory_mut(&mut self, key: MemoryKey) -> Option<&mut M> {
        self.regions.get_mut(key)
    }

    /// Posts a work request.
    pub fn post_send(&mut self, qpn: Qpn, request: WorkRequest) -> Result<(), PostError> {
        let slot = self.ready_slot(qpn)?;
        self.check_range(qpn, &request.local)?;
        let queue_pair = &mut self.queue_pairs[slot];
        let depth = queue_pair.config.send_queue_depth;
        if queue_pair.requester.posted() >= depth {
            return Err(PostError::QueueFull { qpn, depth });
        }
        queue_pair.requester.post(request);
        self.reschedule(slot);
        Ok(())
    }

    /// Posts a receive.
    pub fn post_receive(&mut self, qpn: Qpn, receive: Receive) -> Result<(), PostError> {
        let slot = self.ready_slot(qpn)?;
        self.check_range(qpn, &receive.local)?;
        let queue_pair = &mut self.queue_pairs[slot];
        let depth = queue_pair.config.receive_queue_depth;
        if queue_pair.responder.posted() >= depth {
            return Err(PostError::QueueFull { qpn, depth });
        }
        queue_pair.responder.post(receive);
        Ok(())
    }

    /// From now on a queue pair refuses the request that it expects, with a NAK for a remote operational error, and so
    /// fails: like an endpoint whose device or memory has failed. Without effect for an unknown queue pair.
    pub fn refuse(&mut self, qpn: Qpn) {
        if let Some(slot) = self.slots.get(&qpn.get()) {
            self.queue_pairs[*slot].responder.refuse();
        }
    }

    /// Sends the peer a CNP, when its turn comes.
    pub fn send_cnp(&mut self, qpn: Qpn) -> Result<(), PostError> {
        let slot = self.ready_slot(qpn)?;
        self.queue_pairs[slot].queue_cnp();
        self.reschedule(slot);
        Ok(())
    }

    /// Takes an IPv6 packet, without link-layer header, in pieces: all headers lie in the first; payload and ICRC may
    /// be cut anywhere. Octets behind the IPv6 payload length are ignored.
    ///
    /// A refused packet is counted under its reason, and leaves no trace but, where the protocol demands it, a NAK.
    pub fn receive(&mut self, now: Instant, packet: &[&[u8]]) -> Result<(), DropReason> {
        self.now = self.now.max(now);
        let outcome = self.accept(now, packet);
        if let Err(reason) = outcome {
            self.drops.count(reason);
        }
        outcome
    }

    fn accept(&mut self, now: Instant, packet: &[&[u8]]) -> Result<(), DropReason> {
        let packet = Inbound::parse(packet)?;
        if packet.headers.ipv6.destination() != self.config.address {
            return Err(DropReason::NotOurAddress);
        }
        let option_types = self.fast_cnps.as_ref().map_or_else(OptionTypes::default, |it| it.config.option_types);
        let extensions = packet.extensions(option_types)?;
        if let Some(fast_cnp) = extensions.fast_cnp {
            return self.accept_fast_cnp(now, &packet, fast_cnp);
        }
        let slot = *self.slots.get(&packet.headers.bth.dest_qpn().get()).ok_or(DropReason::UnknownQueuePair)?;
        let queue_pair = &mut self.queue_pairs[slot];
        if packet.headers.ipv6.source() != queue_pair.config.remote_address {
            return Err(DropReason::UnexpectedSource);
        }
        if !pkeys_match(packet.headers.bth.pkey(), self.config.pkey) {
            return Err(DropReason::PartitionKey);
        }
        if queue_pair.state == QueuePairState::Error {
            return Err(DropReason::QueuePairInError);
        }
        if !packet.udp_checksum_is_good() {
            return Err(DropReason::BadUdpChecksum);
        }
        if packet.is_trimmed() {
            return self.accept_trimmed(now, slot, &packet);
        }
        if self.config.verify_icrc && !packet.icrc_is_good() {
            return Err(DropReason::BadIcrc);
        }
        if let Some(trace) = extensions.trace {
            queue_pair.on_trace(now, trace, packet.headers.udp.source_port());
        }
        if let Some(incasts) = &mut self.incasts {
            queue_pair.count_congested(now, incasts, &packet);
        }
        let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
        let outcome = queue_pair.receive(host, &packet);
        self.reschedule(slot);
        outcome
    }

    /// A packet of a queue pair's peer has lost its payload on the way (D88).
    fn accept_trimmed(&mut self, now: Instant, slot: usize, packet: &Inbound<'_>) -> Result<(), DropReason> {
        if !self.config.answers_trimmed {
            return Err(DropReason::BadIcrc);
        }
        let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
        self.queue_pairs[slot].on_trimmed(host, packet.headers.bth.psn());
        self.reschedule(slot);
        Err(DropReason::Trimmed)
    }

    /// Processes a Fast CNP whose option is well formed: source, flow, rate, and only then its ICRC, so that a
    /// flood costs little.
    fn accept_fast_cnp(&mut self, now: Instant, packet: &Inbound<'_>, fast_cnp: FastCnp<'_>) -> Result<(), DropReason> {
        let fast_cnps = self.fast_cnps.as_mut().ok_or(DropReason::FastCnpDisabled)?;
        let source = packet.headers.ipv6.source();
        if !fast_cnps.accepts(source) {
            return Err(DropReason::FastCnpSource);
        }
        if !pkeys_match(packet.headers.bth.pkey(), self.config.pkey) {
            return Err(DropReason::PartitionKey);
        }
        let slot = self.peers.find(fast_cnp.original_destination, packet.headers.bth.dest_qpn());
        let slot = slot.ok_or(DropReason::UnknownQueuePair)?;
        let queue_pair = &mut self.queue_pairs[slot];
        if queue_pair.state == QueuePairState::Error {
            return Err(DropReason::QueuePairInError);
        }
        let trace = fast_cnp.trace.map(Trace::parse).transpose().map_err(|_| DropReason::FastCnpTrace)?;
        if trace.is_some_and(|trace| trace.nodes().any(|node| node.is_err())) {
            return Err(DropReason::FastCnpTrace);
        }
        queue_pair.may_take_fast_cnp(now)?;
        if !packet.udp_checksum_is_good() {
            return Err(DropReason::BadUdpChecksum);
        }
        if self.config.verify_icrc && !packet.icrc_is_good() {
            return Err(DropReason::BadIcrc);
        }
        let origin = if fast_cnp.is_from_switch(source) { Origin::Switch(source) } else { Origin::Receiver };
        // Only the congested switch knows a rate.
        let rate_mbit_per_s = match (origin, packet.headers.extended) {
            (Origin::Switch(_), Extended::Cnp(cnp)) => cnp.rate_mbit_per_s(),
            (Origin::Switch(_) | Origin::Receiver, _) => None,
        };
        let rate_bits_per_s = rate_mbit_per_s.map(|rate| u64::from(rate) * MBIT_PER_S);
        let notice = Notice { origin, trace, rate_bits_per_s };
        queue_pair.on_fast_cnp(now, notice, fast_cnps.config.min_interval_ns);
        fast_cnps.counters.with_trace += u64::from(trace.is_some());
        match origin {
            Origin::Switch(switch) => {
                fast_cnps.counters.from_switches += 1;
                fast_cnps.push(CongestionEvent { at: now, qpn: queue_pair.config.qpn, switch });
            }
            Origin::Receiver => fast_cnps.counters.from_receivers += 1,
        }
        self.reschedule(slot);
        Ok(())
    }

    /// The oldest unread event of congestion, for path selection (FC-4-8).
    pub fn poll_congestion(&mut self) -> Option<CongestionEvent> {
        self.fast_cnps.as_mut()?.pop()
    }

    /// Counters of Fast CNPs; all zero while the endpoint accepts none.
    pub fn fast_cnp_counters(&self) -> FastCnpCounters {
        self.fast_cnps.as_ref().map(|fast_cnps| fast_cnps.counters).unwrap_or_default()
    }

    /// Octets that a buffer for [`poll_transmit`](Self::poll_transmit) must hold.
    pub fn max_packet_octets(&self) -> usize {
        self.max_packet_octets
    }

    /// Writes the next packet to send, from the IPv6 header to the ICRC, and returns its length; `None` when there is
    /// nothing to send now. Call it when the wire has room for a packet.
    ///
    /// Queue pairs take turns, those with responses first.
    ///
    /// # Panics
    ///
    /// If `into` is shorter than [`max_packet_octets`](Self::max_packet_octets).
    pub fn poll_transmit(&mut self, now: Instant, into: &mut [u8]) -> Option<usize> {
        assert!(
            into.len() >= self.max_packet_octets,
            "the buffer must hold {} octets, it holds {}",
            self.max_packet_octets,
            into.len()
        );
        self.now = self.now.max(now);
        while let Some(slot) = self.responding.pop() {
            let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
            if let Some(written) = self.queue_pairs[slot].transmit_response(host, into) {
                self.reschedule(slot);
                return Some(written);
            }
        }
        while let Some(slot) = self.requesting.pop() {
            let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
            if let Some(written) = self.queue_pairs[slot].transmit_request(host, into) {
                self.reschedule(slot);
                return Some(written);
            }
        }
        None
    }

    /// Writes the next CNP to send, as [`poll_transmit`](Self::poll_transmit) would, and nothing else: for a port on
    /// which data and acknowledgements are paused, but not the class of CNPs.
    ///
    /// # Panics
    ///
    /// If `into` is shorter than [`max_packet_octets`](Self::max_packet_octets).
    pub fn poll_cnp(&mut self, now: Instant, into: &mut [u8]) -> Option<usize> {
        self.now = self.now.max(now);
        let slot = self.responding.waiting().find(|slot| self.queue_pairs[*slot].has_cnp())?;
        let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
        let written = self.queue_pairs[slot].transmit_response(host, into)?;
        self.reschedule(slot);
        Some(written)
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) is worth calling: false when it would return `None`.
    pub fn may_transmit(&self) -> bool {
        !self.responding.is_empty() || !self.requesting.is_empty()
    }

    /// When to call [`tick`](Self::tick), if nothing happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// Handles timers that have expired at `now`.
    pub fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some(slot) = self.deadlines.due(now) {
            let host = Host { now, regions: &mut self.regions, completions: &mut self.completions };
            self.queue_pairs[slot].tick(host);
            self.reschedule(slot);
        }
    }

    /// The oldest completion not yet fetched.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// State of a queue pair; `None` for an unknown number.
    pub fn state(&self, qpn: Qpn) -> Option<QueuePairState> {
        self.queue_pair(qpn).map(|queue_pair| queue_pair.state)
    }

    /// Counters of a queue pair.
    pub fn counters(&self, qpn: Qpn) -> Option<&QueuePairCounters> {
        self.queue_pair(qpn).map(QueuePair::counters)
    }

    /// Packets refused, by reason.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    fn queue_pair(&self, qpn: Qpn) -> Option<&QueuePair> {
        self.slots.get(&qpn.get()).map(|slot| &self.queue_pairs[*slot])
    }

    fn ready_slot(&self, qpn: Qpn) -> Result<usize, PostError> {
        let slot = *self.slots.get(&qpn.get()).ok_or(PostError::UnknownQueuePair(qpn))?;
        match self.queue_pairs[slot].state {
            QueuePairState::Ready => Ok(slot),
            QueuePairState::Error => Err(PostError::InError(qpn)),
        }
    }

    fn check_range(&self, qpn: Qpn, local: &LocalRange) -> Result<(), PostError> {
        if local.length_octets > MAX_MESSAGE_OCTETS {
            return Err(PostError::TooLong { qpn, found: local.length_octets });
        }
        if !self.regions.is_inside(local.key, local.offset, local.length_octets) {
            return Err(PostError::OutsideRegion { qpn, local: *local });
        }
        Ok(())
    }

    /// Something happened to a queue pair: gives it its turns and its deadline.
    fn reschedule(&mut self, slot: usize) {
        let queue_pair = &self.queue_pairs[slot];
        let mut deadline = queue_pair.requester.deadline();
        if queue_pair.is_unpaced() {
            if queue_pair.responder.can_transmit() || queue_pair.has_cnp() {
                self.responding.push(slot);
            }
            if queue_pair.requester.can_transmit() {
                self.requesting.push(slot);
            }
            self.deadlines.set(slot, deadline);
            return;
        }
        let permits = [queue_pair.response_permit(self.now), queue_pair.request_permit(self.now)];
        for (permit, turns) in permits.into_iter().zip([&mut self.responding, &mut self.requesting]) {
            let paced = match permit {
                None => continue,
                Some(Permit::Now) => {
                    turns.push(slot);
                    continue;
                }
                Some(Permit::At(due)) => Some(due),
                Some(Permit::Acknowledged(until)) => until,
            };
            deadline = deadline.into_iter().chain(paced).min();
        }
        self.deadlines.set(slot, deadline);
    }
}

/// Two keys match in their low 15 bits, when at least one is that of a full member (IBTA volume 1, section 10.9.3).
fn pkeys_match(a: u16, b: u16) -> bool {
    let is_same = a & 0x7FFF == b & 0x7FFF;
    is_same && a & 0x7FFF != 0 && (a | b) & 0x8000 != 0
}

/// Spreads QPNs over a table. The host chooses its QPNs, so that collisions cannot be provoked.
#[derive(Default)]
struct QpnHasher(u64);

impl Hasher for QpnHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u32(u32::from(*octet));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
