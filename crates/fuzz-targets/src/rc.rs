//! An RC endpoint under arbitrary packets.

use crate::choices::Choices;
use srdma_rc::rate::{DcqcnParameters, HpccParameters, NsccParameters};
use srdma_rc::{
    Access, Endpoint, EndpointConfig, FastCnpConfig, Habits, LocalRange, MemoryKey, Operation, QueuePairConfig,
    RateAlgorithm, Receive, RemoteAddress, TraceRequest, WorkRequest,
};
use srdma_wire::fast_cnp::{FastCnpValue, OptionTypes};
use srdma_wire::ioam::{self, LinkLoad, NodeData, Trace, TraceHeader, TraceType};
use srdma_wire::rocev2::{Extended, Packet, PacketValue};
use srdma_wire::{
    Aeth, AtomicEth, Bth, CnpView, ImmDtView, Instant, Ipv6, NextHeader, Opcode, PathMtu, Prefix, Psn, Qpn, Reth,
    Syndrome,
};
use std::net::Ipv6Addr;

const OURS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
/// On the access list, as the peer is.
const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 7);
const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xdd, 0, 0, 0, 0, 1);
const NAMESPACE: u16 = 9;
const MAX_EVENTS: usize = 4;
const BASE: u64 = 0x1000;
const REGION_OCTETS: usize = 2048;

/// The opcodes that are given most.
const OPCODES: [u8; 24] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x11,
    0x11, 0x11, 0x81, 0x13, 0x14,
];

/// Steps of a script, at most.
const MAX_STEPS: usize = 12;

/// Packets that an endpoint may send in answer to one: all that is outstanding of three requests, and a READ.
const MOST_SENT: usize = 64;

/// Runs a script: packets from the peer, good ones and damaged, with traces and without, Fast CNPs from any address,
/// time that passes, requests that are posted.
///
/// A refused packet changes no memory; an accepted one changes at most as many octets as it carries. Memory without a
/// key is not changed. The packets that are sent have a valid ICRC, and their number is bounded. A rate control always
/// leaves some rate and some window, and only a Fast CNP from an address on the access list causes an event.
pub fn rc(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut rig = Rig::new(&mut choices);
    for _ in 0..MAX_STEPS {
        if choices.is_empty() {
            break;
        }
        match choices.octet() {
            0..=0x9F => rig.packet(&mut choices),
            0xA0..=0xAF => rig.traced(&mut choices),
            0xB0..=0xBF => rig.fast_cnp(&mut choices),
            0xC0..=0xDF => rig.pass(1 << choices.below(31)),
            0xE0..=0xEF => rig.post(&mut choices),
            _ => rig.receive(choices.octets(128)),
        }
        rig.sent();
    }
    rig.end();
}

struct Rig {
    endpoint: Endpoint,
    qpn: Qpn,
    key: MemoryKey,
    closed: MemoryKey,
    now: Instant,
    posted: usize,
    /// Fast CNPs that were taken.
    believed: usize,
    buffer: Vec<u8>,
}

fn qpn(number: u8) -> Qpn {
    Qpn::from_octets([0, 0, number])
}

/// A rate control, and traces in both directions.
fn steer(choices: &mut Choices<'_>, config: &mut QueuePairConfig) {
    let form = choices.octet();
    let rate_bits_per_s = choices.of(&[100_000_000_000, 10_000_000_000, 1_000_000_000]);
    config.rate = match form & 7 {
        0 => None,
        1 => Some(RateAlgorithm::Fixed { bits_per_s: rate_bits_per_s }),
        2 => Some(RateAlgorithm::Dcqcn(DcqcnParameters::sigcomm_2015(rate_bits_per_s))),
        3 => Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(rate_bits_per_s))),
        4 => Some(RateAlgorithm::Dcqcn(DcqcnParameters::hpcc_vendor(rate_bits_per_s))),
        5 => Some(RateAlgorithm::Nscc(NsccParameters::published(rate_bits_per_s, 10_000, 4_200))),
        _ => Some(RateAlgorithm::Hpcc(HpccParameters::published(rate_bits_per_s, 10_000, NAMESPACE))),
    };
    config.trace = (form & 8 != 0).then(|| TraceRequest::hpcc(NAMESPACE, 1 + (form >> 5)));
    config.trace_return_interval_ns = (form & 16 != 0).then_some(1_000);
}

/// A Hop-by-Hop Options header with a trace, as nodes have filled it; UDP follows.
fn trace_header(choices: &mut Choices<'_>) -> Vec<u8> {
    let form = choices.octet();
    let fields = if form & 0xC0 == 0xC0 { TraceType(choices.u32() >> 8) } else { srdma_rc::HPCC_FIELDS };
    let namespace_id = if form & 0x30 == 0x30 { choices.u16() } else { NAMESPACE };
    let mut octets = [0; 264];
    let header = TraceHeader::for_nodes(namespace_id, fields, 1 + usize::from(form & 7));
    let Some(len) = header.and_then(|header| header.emit_hop_by_hop(NextHeader::UDP, &mut octets)) else {
        return Vec::new();
    };
    let mut octets = octets[..len].to_vec();
    for _ in 0..choices.below(9) {
        let node = NodeData {
            hop_limit: Some(60),
            node_id: Some(choices.octet().into()),
            egress: Some(choices.octet().into()),
            timestamp_fraction: Some(choices.u32()),
            queue_depth: Some(choices.u32()),
            namespace_data_wide: Some(
                LinkLoad { rate_mbit_per_s: choices.u16().into(), sent_octets: choices.u32().into() }.to_data(),
            ),
            ..NodeData::default()
        };
        ioam::fill(&mut octets, |_| Some(node), |_| {});
    }
    octets
}

impl Rig {
    fn new(choices: &mut Choices<'_>) -> Rig {
        let form = choices.octet();
        let fast_cnp = (form & 8 != 0).then(|| {
            let access_list = vec![Prefix::host(SWITCH), Prefix::host(PEER)];
            FastCnpConfig { max_events: MAX_EVENTS, ..FastCnpConfig::new(access_list) }
        });
        let mut endpoint =
            Endpoint::new(EndpointConfig { fast_cnp, answers_trimmed: form & 4 != 0, ..EndpointConfig::new(OURS) });
        let mut config = QueuePairConfig::new(qpn(0x11), PEER, qpn(0x22));
        config.path_mtu = PathMtu::Octets256;
        config.habits = if form & 1 == 0 { Habits::strict() } else { Habits::soft_roce() };
        config.sq_psn = Psn::new(0xFF_FFFE);
        config.rq_psn = Psn::new(0xFF_FFFF);
        config.retry_count = form >> 5;
        config.cnp_interval_ns = (form & 2 != 0).then_some(1000);
        if form & 16 != 0 {
            steer(choices, &mut config);
        }
        let key = endpoint.register_memory(vec![0; REGION_OCTETS], BASE, Access::REMOTE, 0x42);
        let closed = endpoint.register_memory(vec![3; 64], BASE, Access::LOCAL, 0x43);
        endpoint.add_queue_pair(config).expect("a good configuration");
        let buffer = vec![0; endpoint.max_packet_octets()];
        let mut rig = Rig { endpoint, qpn: qpn(0x11), key, closed, now: Instant::ZERO, posted: 0, believed: 0, buffer };
        if form & 4 != 0 {
            rig.post(choices);
        }
        rig
    }

    /// Posts a request or a receive; the queue pair may be in error.
    fn post(&mut self, choices: &mut Choices<'_>) {
        let remote = RemoteAddress { virtual_address: 0x9000, rkey: MemoryKey(0x1234) };
        let length_octets = u32::from(choices.u16()) % 1024;
        let local = LocalRange { key: self.key, offset: 1024, length_octets };
        let operation = match choices.octet() & 7 {
            0 | 1 => {
                let posted = self.endpoint.post_receive(self.qpn, Receive { wr_id: 2, local });
                self.posted += usize::from(posted.is_ok());
                return;
            }
            2 => Operation::Send { immediate: None },
            3 => Operation::Write { remote, immediate: Some([1; 4]) },
            4 => Operation::Write { remote, immediate: None },
            5 => {
                let _ = self.endpoint.send_cnp(self.qpn);
                return;
            }
            _ => Operation::Read { remote },
        };
        let request = WorkRequest { wr_id: 1, operation, local, signalled: true };
        self.posted += usize::from(self.endpoint.post_send(self.qpn, request).is_ok());
    }

    /// A packet with a right ICRC, near enough to what is expected to get far; sometimes damaged.
    fn packet(&mut self, choices: &mut Choices<'_>) {
        let octets = self.given(choices);
        self.perhaps_damaged(choices, octets);
    }

    /// The same with a trace, which the ICRC does not cover (D43).
    fn traced(&mut self, choices: &mut Choices<'_>) {
        let header = trace_header(choices);
        let mut octets = self.given(choices);
        if octets[6] == NextHeader::UDP.0 && !header.is_empty() {
            let payload_length = u16::from_be_bytes([octets[4], octets[5]]) + header.len() as u16;
            octets[4..6].copy_from_slice(&payload_length.to_be_bytes());
            octets[6] = NextHeader::HOP_BY_HOP.0;
            octets.splice(40..40, header);
        }
        self.perhaps_damaged(choices, octets);
    }

    /// A Fast CNP from some address, for this queue pair or another.
    fn fast_cnp(&mut self, choices: &mut Choices<'_>) {
        let form = choices.octet();
        let header = if form & 1 != 0 { trace_header(choices) } else { Vec::new() };
        let trace = Trace::find(&header).and_then(Result::ok);
        let value = FastCnpValue {
            source: [SWITCH, SWITCH, PEER, STRANGER][usize::from(form >> 6)],
            destination: OURS,
            traffic_class: FastCnpValue::TRAFFIC_CLASS,
            hop_limit: FastCnpValue::HOP_LIMIT,
            source_port: 0xC001,
            dest_qpn: if form & 0x30 == 0x30 { qpn(choices.octet()) } else { qpn(0x22) },
            original_destination: if form & 0x0C == 0x0C { STRANGER } else { PEER },
            trace: trace.map(|trace| trace.octets()),
        };
        let mut octets = vec![0; value.len_octets()];
        if value.emit(OptionTypes::default(), &mut octets).is_some() {
            self.perhaps_damaged(choices, octets);
        }
    }

    fn perhaps_damaged(&mut self, choices: &mut Choices<'_>, mut octets: Vec<u8>) {
        let damage = choices.octet();
        if damage >= 0xE0 {
            let at = usize::from(choices.u16()) % octets.len();
            octets[at] ^= 1 << (damage & 7);
            if damage & 8 != 0 {
                octets.truncate(at);
            }
        }
        self.receive(&octets);
    }

    fn given(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        let opcode = Opcode(choices.of(&OPCODES));
        let form = choices.octet();
        let psn = match form & 7 {
            7 => Psn::new(choices.u32()),
            near => Psn::new(0xFF_FFFC).plus(u32::from(near) + u32::from(form >> 6)),
        };
        let place = choices.octet();
        let virtual_address = if place == 0xFF { choices.u64() } else { BASE - 32 + u64::from(place) * 8 };
        let rkey = if form & 8 == 0 { self.key.0 } else { choices.of(&[self.closed.0, 0, u32::MAX]) };
        let payload_len = choices.of(&[0, 1, 64, 256, 188, 255, 256, 300]);
        let dma_length = if form & 16 == 0 { payload_len as u32 } else { choices.u32() & 0xFFF };
        let syndrome = Syndrome::from_octet(choices.of(&[0x1F, 0x1F, 0x60, 0x20, 0x61, 0x62, 0x63, 0x40, 0, 0x3F]));
        let (reth, aeth) = (Reth { virtual_address, rkey, dma_length }.emit(), Aeth { syndrome, msn: 0 }.emit());
        let (immediate, cnp) = (ImmDtView([place; 4]), CnpView::with_count(0));
        let atomic = AtomicEth { virtual_address, rkey, swap_or_add: 1, compare: 0 }.emit();
        let extended = match (opcode.has_reth(), opcode.has_immediate()) {
            (true, true) => Extended::RethImmediate(&reth, &immediate),
            (true, false) => Extended::Reth(&reth),
            (false, true) => Extended::Immediate(&immediate),
            (false, false) if opcode.has_aeth() => Extended::Aeth(&aeth),
            (false, false) if opcode.is_atomic() => Extended::Atomic(&atomic),
            (false, false) if opcode == Opcode::CNP => Extended::Cnp(&cnp),
            (false, false) => Extended::None,
        };
        let ipv6 = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: NextHeader::UDP,
            hop_limit: 64,
            source: PEER,
            destination: OURS,
        };
        let bth = Bth { ack_request: form & 32 != 0, ..Bth::new(opcode, self.qpn, psn) };
        let payload = &[0xAA; 300][..payload_len];
        let packet = PacketValue { ipv6, source_port: 50_000, bth, extended, payload };
        let mut octets = vec![0; packet.len_octets()];
        // An opcode that has other headers than these stays a packet of zeros.
        let _ = packet.emit(&mut octets);
        octets
    }

    fn receive(&mut self, octets: &[u8]) {
        let before = self.endpoint.memory(self.key).expect("a region").clone();
        let refused = self.endpoint.drops().total();
        let is_good =
            Packet::parse(octets, octets.len()).is_ok_and(|packet| packet.icrc([]).is_ok_and(|check| check.is_good()));
        let taken = |endpoint: &Endpoint| {
            let counters = endpoint.fast_cnp_counters();
            counters.from_switches + counters.from_receivers
        };
        let taken_before = taken(&self.endpoint);
        let outcome = self.endpoint.receive(self.now, &[octets]);
        if taken(&self.endpoint) > taken_before {
            assert_eq!(outcome, Ok(()));
            let source = octets.get(8..24).unwrap_or(&[]);
            assert!(source == SWITCH.octets() || source == PEER.octets(), "a stranger was believed");
            self.believed += 1;
        }
        assert_eq!(self.endpoint.drops().total(), refused + u64::from(outcome.is_err()), "every refusal is counted");
        assert!(is_good || outcome.is_err(), "a packet with a bad ICRC was believed");
        let after = self.endpoint.memory(self.key).expect("a region");
        let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
        assert!(changed <= octets.len(), "{changed} octets of memory changed by a packet of {}", octets.len());
        assert!(outcome.is_ok() || changed == 0, "a refused packet changes nothing: {outcome:?}");
    }

    fn pass(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        self.endpoint.tick(self.now);
        let deadline = self.endpoint.next_deadline();
        assert!(deadline.is_none_or(|deadline| deadline > self.now), "{deadline:?} is due for ever");
        let limits = self.endpoint.rate_limits(self.now, self.qpn);
        assert!(limits.is_none_or(|it| it.rate_bits_per_s != Some(0) && it.window_octets != Some(0)), "{limits:?}");
    }

    /// Takes what the endpoint wants to send now.
    fn sent(&mut self) {
        let mut count = 0;
        while let Some(len) = self.endpoint.poll_transmit(self.now, &mut self.buffer) {
            count += 1;
            assert!(count <= MOST_SENT, "it never stops");
            let packet = Packet::parse(&self.buffer[..len], len).expect("a RoCEv2 packet");
            assert!(packet.icrc([]).expect("whole").is_good(), "the ICRC of a packet sent");
            assert_eq!(packet.total_len(), len);
        }
    }

    fn end(mut self) {
        let events = std::iter::from_fn(|| self.endpoint.poll_congestion()).count();
        assert!(events <= self.believed.min(MAX_EVENTS), "{events} events of {} Fast CNPs", self.believed);
        assert_eq!(self.endpoint.memory(self.closed), Some(&vec![3; 64]), "no key opens it");
        let completions = std::iter::from_fn(|| self.endpoint.poll_completion()).count();
        assert!(completions <= self.posted, "{completions} completions of {} requests", self.posted);
    }
}
