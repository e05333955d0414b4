//! A source and receivers in virtual time, with a node between them that does what a group does: copies with the
//! receivers' addresses, keys and queue pairs, and the responses aggregated by `srdma-aggregation`. Links lose,
//! duplicate and delay.

use crate::current::Piece;
use crate::memory::{HostMemory, Region};
use crate::provider::Registrar;
use crate::provider::udp::{EndpointReceiver, EndpointSource, ReceiverMemory};
use crate::publisher::{Publisher, PublisherConfig, PublisherEvent};
use crate::subscriber::{Subscriber, SubscriberEvent};
use crate::{DigestKind, SlotRegions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_aggregation::{Acknowledgements, BranchIndex, Response, Rules, Start, UpstreamResponse};
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_rc::{Endpoint, EndpointConfig, Habits, MemoryKey, QueuePairConfig, RemoteAddress};
use srdma_wire::rocev2::{Extended, Packet, PacketValue};
use srdma_wire::{Bth, Instant, Ipv6, NextHeader, Opcode, PathMtu, Psn, Qpn, Reth};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0xf);
const DESIGNATED: u32 = 0xD00000;
const SOURCE_QPN: u32 = 0x50;
const PATH_MTU: PathMtu = PathMtu::Octets256;
const GROUP_BASE: u64 = 0x10_0000;
const GROUP_RKEY: u32 = 0x1234;
/// Close to the wrap, so that PSNs wrap in most runs.
const FIRST_PSN: Psn = Psn::new(0xFF_FF80);
const WINDOW: u32 = 32;
pub(super) const SLOW_AFTER: Duration = Duration::from_millis(50);

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

/// Probabilities, each from 0 to 1, per packet and link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) loss: f64,
    pub(super) duplicate: f64,
    pub(super) delay: f64,
}

/// A packet that arrives.
enum Event {
    Node { from: Option<usize>, octets: Vec<u8> },
    Source(Vec<u8>),
    Receiver(usize, Vec<u8>),
}

/// The orders of a controller, as the test gives them.
pub(super) struct Control {
    pub(super) state: SessionState,
    pub(super) progress: StreamProgress,
}

impl SourceControl for Control {
    fn update(&mut self, progress: StreamProgress) -> SessionState {
        self.progress = progress;
        match self.state {
            SessionState::Draining if progress.is_drained => SessionState::Paused,
            state => state,
        }
    }
}

pub(super) struct Source {
    pub(super) endpoint: Endpoint<HostMemory>,
    config: PublisherConfig,
    pub(super) publisher: Publisher,
    pub(super) control: Control,
    pub(super) events: Vec<(Instant, PublisherEvent)>,
    pub(super) has_crashed: bool,
    /// It crashes when so many packets have left it.
    pub(super) crashes_after: Option<u64>,
}

/// The queue of the source.
pub(super) fn source_queue(endpoint: &mut Endpoint<HostMemory>) -> EndpointSource<'_> {
    EndpointSource { endpoint, qpn: qpn(SOURCE_QPN) }
}

pub(super) struct Receiver {
    pub(super) endpoint: Endpoint<HostMemory>,
    pub(super) subscriber: Subscriber,
    address: Ipv6Addr,
    qpn: Qpn,
    memory: ReceiverMemory,
    /// It has been added to the group.
    branch: bool,
    /// Its link is cut.
    pub(super) is_cut: bool,
}

/// Code of the test at the receivers: gets their events, and returns the time of its next call, if nothing happens
/// before.
pub(super) type Application<'a> =
    dyn FnMut(Instant, &mut [Receiver], Vec<(usize, SubscriberEvent)>) -> Option<Instant> + 'a;

pub(super) struct Network {
    pub(super) now: Instant,
    pub(super) source: Source,
    pub(super) receivers: Vec<Receiver>,
    pub(super) faults: Faults,
    node: Acknowledgements,
    rng: Pcg64Mcg,
    events: BTreeMap<(Instant, u64), Event>,
    events_made: u64,
    pub(super) packets_of_source: u64,
}

impl Network {
    pub(super) fn new(seed: u64, slots: impl Into<SlotRegions>, receivers: usize, faults: Faults) -> Self {
        Self::with_digest(seed, slots, receivers, faults, DigestKind::Sha256)
    }

    pub(super) fn with_digest(
        seed: u64,
        slots: impl Into<SlotRegions>,
        receivers: usize,
        faults: Faults,
        digest: DigestKind,
    ) -> Self {
        Self::with_current(seed, slots, receivers, faults, digest, false)
    }

    /// The same with a source that keeps the version that was published last.
    pub(super) fn with_current(
        seed: u64,
        slots: impl Into<SlotRegions>,
        receivers: usize,
        faults: Faults,
        digest: DigestKind,
        keeps_current: bool,
    ) -> Self {
        let slots = slots.into();
        let config = PublisherConfig {
            path_mtu: PATH_MTU,
            window_packets: WINDOW,
            message_octets: 2000,
            regions: (0..slots.count() as u32).map(group_region).collect(),
            slots: slots.clone(),
            digest,
            slow_after: SLOW_AFTER,
            keeps_current,
            gives_up_after: None,
        };
        let publisher = Publisher::new(config.clone(), Registrar::Host);
        let mut endpoint = Endpoint::new(EndpointConfig::new(SOURCE));
        endpoint.add_queue_pair(queue_pair(qpn(SOURCE_QPN), FIRST_PSN)).expect("a good configuration");
        let control = Control { state: SessionState::Sending, progress: StreamProgress::default() };
        let source = Source {
            endpoint,
            config,
            publisher,
            control,
            events: Vec::new(),
            has_crashed: false,
            crashes_after: None,
        };
        let mut network = Network {
            now: Instant::ZERO,
            source,
            receivers: Vec::new(),
            faults,
            node: Acknowledgements::new(&Rules::default(), receivers as u16, Start::Committed(FIRST_PSN)),
            rng: Pcg64Mcg::seed_from_u64(seed),
            events: BTreeMap::new(),
            events_made: 0,
            packets_of_source: 0,
        };
        let memory = || slots.each().map(|slots| region(slots.region_octets().expect("in range") as usize)).collect();
        (0..receivers).for_each(|_| network.add_receiver(memory(), FIRST_PSN));
        network
    }

    /// The source gives up without a response for this time.
    pub(super) fn gives_up_after(&mut self, after: Duration) {
        let config = PublisherConfig { gives_up_after: Some(after), ..self.source.config.clone() };
        self.source.publisher = Publisher::new(config, Registrar::Host);
    }

    fn add_receiver(&mut self, regions: Vec<Region>, psn: Psn) {
        let index = self.receivers.len() as u16;
        let address = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, index + 1);
        let own = qpn(0x60 + u32::from(index));
        let base = |region: usize| 0x7000_0000 + (u64::from(index) << 24) + ((region as u64) << 20);
        let mut endpoint = Endpoint::new(EndpointConfig::new(address));
        let subscriber = Subscriber::new(regions.iter().map(|region| region.length_octets() as u64).collect());
        let slots = regions.into_iter().map(Region::into_slots).collect();
        let memory = ReceiverMemory::register(&mut endpoint, slots, |region| (base(region), 0x40 + index as u8));
        endpoint.add_queue_pair(queue_pair(own, psn)).expect("a good configuration");
        self.receivers.push(Receiver { endpoint, subscriber, address, qpn: own, memory, branch: true, is_cut: false });
    }

    /// Another receiver takes the place of one that has died, from the source's next PSN on, as a group's next epoch
    /// does while the source is paused (D30).
    pub(super) fn replace_receiver(&mut self, index: usize, regions: Vec<Region>) {
        let begun = self.source.control.progress.begun_packets as u32;
        let psn = FIRST_PSN.plus(begun);
        let address = self.receivers[index].address;
        let tail = self.receivers.split_off(index + 1);
        self.receivers.pop();
        self.add_receiver(regions, psn);
        assert_eq!(self.receivers[index].address, address);
        self.receivers.extend(tail);
        self.node = Acknowledgements::new(&Rules::default(), self.receivers.len() as u16, Start::Committed(psn));
        self.events.retain(|_, event| !matches!(event, Event::Node { from: Some(_), .. }));
    }

    /// A receiver has other memory from the start.
    pub(super) fn replace_memory(&mut self, index: usize, regions: Vec<Region>) {
        let tail = self.receivers.split_off(index + 1);
        self.receivers.pop();
        self.add_receiver(regions, FIRST_PSN);
        self.receivers.extend(tail);
    }

    /// The receiver's program has ended: its queue pair and its memory are gone, and what comes is lost.
    pub(super) fn end_receiver(&mut self, index: usize) {
        let receiver = &mut self.receivers[index];
        receiver.endpoint = Endpoint::new(EndpointConfig::new(receiver.address));
        receiver.branch = false;
    }

    /// The receiver's host is gone, and its branch evicted.
    pub(super) fn evict(&mut self, index: usize) {
        self.receivers[index].branch = false;
        let mut upstream = Vec::new();
        self.node.remove_branch(BranchIndex(index as u16), &mut upstream);
        self.send_up(&upstream);
    }

    fn schedule(&mut self, event: Event) {
        if self.rng.random_bool(self.faults.loss) {
            return;
        }
        let late_ns = if self.rng.random_bool(self.faults.delay) { self.rng.random_range(0..30_000) } else { 0 };
        self.events_made += 1;
        self.events.insert((self.now.after_ns(2_000 + late_ns), self.events_made), event);
    }

    fn transmit(&mut self) {
        let mut buffer = vec![0; 4096 + 200];
        while !self.source.has_crashed
            && let Some(length) = self.source.endpoint.poll_transmit(self.now, &mut buffer)
        {
            self.packets_of_source += 1;
            self.source.has_crashed = self.source.crashes_after == Some(self.packets_of_source);
            let copies = if self.rng.random_bool(self.faults.duplicate) { 2 } else { 1 };
            for _ in 0..copies {
                self.schedule(Event::Node { from: None, octets: buffer[..length].to_vec() });
            }
        }
        for index in 0..self.receivers.len() {
            while self.receivers[index].branch
                && !self.receivers[index].is_cut
                && let Some(length) = self.receivers[index].endpoint.poll_transmit(self.now, &mut buffer)
            {
                self.schedule(Event::Node { from: Some(index), octets: buffer[..length].to_vec() });
            }
        }
    }

    /// A packet at the node: data go to all receivers, responses to the aggregation.
    fn at_node(&mut self, from: Option<usize>, octets: &[u8]) {
        let packet = Packet::parse(octets, octets.len()).expect("RoCEv2");
        let mut upstream = Vec::new();
        match from {
            None => {
                self.node.data(self.now, packet.bth.psn(), packet.bth.ack_request(), &mut upstream);
                let value: PacketValue<'_> = packet.value().expect("whole");
                for index in 0..self.receivers.len() {
                    let receiver = &self.receivers[index];
                    if receiver.branch && !receiver.is_cut {
                        let copy = receiver.copy(&value, packet.extended.reth().map(|reth| reth.value()));
                        self.schedule(Event::Receiver(index, copy));
                    }
                }
            }
            Some(index) => {
                let aeth = packet.extended.aeth().expect("a response").value();
                let response = Response::from_aeth(packet.bth.psn(), aeth).expect("a syndrome");
                // A refusal is not an error here: duplicates make them.
                let _ = self.node.response(self.now, BranchIndex(index as u16), response, &mut upstream);
            }
        }
        self.send_up(&upstream);
    }

    fn send_up(&mut self, responses: &[UpstreamResponse]) {
        for response in responses {
            let ipv6 = Ipv6 {
                traffic_class: 0,
                flow_label: 0,
                payload_length: 0,
                next_header: NextHeader::UDP,
                hop_limit: 64,
                source: PROXY,
                destination: SOURCE,
            };
            let bth = Bth::new(Opcode::ACKNOWLEDGE, qpn(SOURCE_QPN), response.response.psn);
            let aeth = response.response.aeth().emit();
            let extended = Extended::Aeth(&aeth);
            let value = PacketValue { ipv6, source_port: 50_000, bth, extended, payload: &[] };
            self.schedule(Event::Source(emit(&value)));
        }
    }

    fn deliver(&mut self, event: Event) {
        let now = self.now;
        // Refusals are not errors here: the links make them.
        let _ = match event {
            Event::Node { from, octets } => {
                self.at_node(from, &octets);
                Ok(())
            }
            Event::Source(octets) => self.source.endpoint.receive(now, &[&octets]),
            Event::Receiver(index, octets) => self.receivers[index].endpoint.receive(now, &[&octets]),
        };
    }

    /// Runs until a time, or until nothing more can happen.
    pub(super) fn run_until(&mut self, end: Instant, application: &mut Application<'_>) {
        let mut wanted_at = None;
        let mut calls_at_once = 0;
        loop {
            for receiver in &mut self.receivers {
                receiver.endpoint.tick(self.now);
                receiver.work();
            }
            let mut events = Vec::new();
            for (index, receiver) in self.receivers.iter_mut().enumerate() {
                events.extend(std::iter::from_fn(|| receiver.subscriber.poll_event()).map(|event| (index, event)));
            }
            wanted_at = application(self.now, &mut self.receivers, events).or(wanted_at.filter(|at| *at > self.now));
            for receiver in &mut self.receivers {
                receiver.work();
            }
            self.work_at_source();
            let mut upstream = Vec::new();
            self.node.tick(self.now, &mut upstream);
            self.send_up(&upstream);
            self.transmit();
            let Some(next) = self.next_time(wanted_at).filter(|next| *next <= end) else {
                self.now = self.now.max(end);
                return;
            };
            calls_at_once = if next > self.now { 0 } else { calls_at_once + 1 };
            assert!(calls_at_once < 10_000, "a deadline that has passed stays");
            self.now = self.now.max(next);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.deliver(event);
            }
        }
    }

    fn work_at_source(&mut self) {
        let Source { endpoint, publisher, control, events, has_crashed, config: _, crashes_after: _ } =
            &mut self.source;
        if *has_crashed {
            return;
        }
        endpoint.tick(self.now);
        publisher.work(self.now, &mut source_queue(endpoint), control);
        events.extend(std::iter::from_fn(|| publisher.poll_event()).map(|event| (self.now, event)));
    }

    fn next_time(&self, wanted_at: Option<Instant>) -> Option<Instant> {
        let source = (!self.source.has_crashed)
            .then(|| [self.source.endpoint.next_deadline(), self.source.publisher.next_deadline()])
            .into_iter()
            .flatten();
        let of_receiver =
            |receiver: &Receiver| [receiver.endpoint.next_deadline(), receiver.subscriber.next_deadline(self.now)];
        let receivers = self.receivers.iter().flat_map(of_receiver);
        let node = Some(self.node.next_deadline()).flatten();
        let packets = self.events.keys().next().map(|(at, _)| *at);
        source.chain(receivers).chain([node, packets, wanted_at]).flatten().min()
    }
}

impl Receiver {
    /// Passes on a part of the version that comes by unicast.
    pub(super) fn take_piece(&mut self, piece: Piece) -> bool {
        self.work();
        let Receiver { endpoint, subscriber, qpn, memory, .. } = self;
        subscriber.take_piece(&mut EndpointReceiver { endpoint, qpn: *qpn, memory }, piece)
    }

    fn work(&mut self) {
        let Receiver { endpoint, subscriber, qpn, memory, .. } = self;
        subscriber.work(&mut EndpointReceiver { endpoint, qpn: *qpn, memory });
    }

    /// The packet as an edge forwards it.
    fn copy(&self, value: &PacketValue<'_>, reth: Option<Reth>) -> Vec<u8> {
        let mut bth = value.bth;
        bth.dest_qpn = self.qpn;
        let ipv6 = Ipv6 { source: PROXY, destination: self.address, ..value.ipv6 };
        let Some(reth) = reth else { return emit(&PacketValue { ipv6, bth, ..*value }) };
        let region = reth.rkey.checked_sub(GROUP_RKEY).expect("a key of the group");
        let (base, rkey) = self.memory.regions()[region as usize];
        let virtual_address = reth.virtual_address - group_region(region).virtual_address + base;
        let reth = Reth { virtual_address, rkey: rkey.0, ..reth }.emit();
        emit(&PacketValue { ipv6, bth, extended: Extended::Reth(&reth), ..*value })
    }
}

/// A region as the source writes to it.
fn group_region(region: u32) -> RemoteAddress {
    RemoteAddress { virtual_address: GROUP_BASE + 8 * u64::from(region), rkey: MemoryKey(GROUP_RKEY + region) }
}

pub(super) fn region(octets: usize) -> Region {
    Region::new(octets).expect("memory")
}

fn emit(value: &PacketValue<'_>) -> Vec<u8> {
    let mut octets = vec![0; value.len_octets()];
    value.emit(&mut octets).expect("headers fit the opcode");
    octets
}

fn queue_pair(own: Qpn, psn: Psn) -> QueuePairConfig {
    QueuePairConfig {
        sq_psn: psn,
        rq_psn: psn,
        path_mtu: PATH_MTU,
        ack_timeout: 8,
        habits: Habits {
            max_outstanding_psns: WINDOW,
            ack_request_interval: WINDOW / 4,
            retry_count_7_is_unlimited: true,
            ..Habits::strict()
        },
        ..QueuePairConfig::new(own, PROXY, qpn(DESIGNATED))
    }
}
