//! IOAM traces: in data packets, back by Fast CNPs, and what HPCC++ makes of them.

use crate::support::{Given, OURS, PEER, Rig, pattern, qpn};
use srdma_rc::rate::HpccParameters;
use srdma_rc::{
    Access, CompletedOperation, ConfigError, DropReason, Endpoint, EndpointConfig, FastCnpConfig, HPCC_FIELDS,
    LocalRange, MemoryKey, Operation, QueuePairConfig, RateAlgorithm, RemoteAddress, Status, TraceRequest, WorkRequest,
};
use srdma_wire::fast_cnp::{FastCnp, OptionTypes};
use srdma_wire::ioam::{self, LinkLoad, NodeData, Trace, TraceType};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, NextHeader, Opcode, Prefix};

const NAMESPACE: u16 = 9;
const REGION_OCTETS: usize = 1 << 20;

/// IPv6 header, then the Hop-by-Hop Options header of nine hops: 4 + 10 + 9 * 24 octets, a multiple of eight with its
/// padding.
const TRACE_OCTETS: usize = 232;

fn write(key: MemoryKey, length_octets: u32) -> WorkRequest {
    let remote = RemoteAddress { virtual_address: 0x1000, rkey: key };
    let local = LocalRange { key, offset: 0, length_octets };
    WorkRequest { wr_id: 1, operation: Operation::Write { remote, immediate: None }, local, signalled: true }
}

/// Fills a packet's traces as a node does.
fn fill(packet: &mut [u8], node_id: u32, now_ns: u64, queue_octets: u32, load: LinkLoad) {
    let data = NodeData {
        hop_limit: Some(63),
        node_id: Some(node_id),
        ingress: Some(0),
        egress: Some(1),
        timestamp_fraction: Some((now_ns % 1_000_000_000) as u32),
        queue_depth: Some(queue_octets),
        namespace_data_wide: Some(load.to_data()),
        ..NodeData::default()
    };
    if packet[6] == NextHeader::HOP_BY_HOP.0 {
        ioam::fill(&mut packet[40..], |namespace| (namespace == NAMESPACE).then_some(data), |_| {});
    }
}

#[test]
fn data_packets_carry_the_trace_and_others_do_not() {
    let mut rig = Rig::new(|config| config.trace = Some(TraceRequest::hpcc(NAMESPACE, 9)));
    let key = rig.region(REGION_OCTETS, Access::REMOTE);
    assert_eq!(rig.endpoint.max_packet_octets(), 40 + TRACE_OCTETS + 8 + 12 + 20 + 4096 + 4);
    rig.endpoint.post_send(rig.qpn, write(key, 4097)).expect("posted");
    rig.give(&Given::new(Opcode::READ_REQUEST, 0, vec![]).reth(0x1000, key, 10)).expect("good");
    rig.give(&Given::new(Opcode::WRITE_ONLY, 1, vec![1; 4]).reth(0x1000, key, 4).ack_request()).expect("good");
    let mut buffer = vec![0; rig.endpoint.max_packet_octets()];
    let mut seen = Vec::new();
    while let Some(length) = rig.endpoint.poll_transmit(rig.now, &mut buffer) {
        let octets = &buffer[..length];
        let packet = Packet::parse(octets, length).expect("a RoCEv2 packet");
        assert!(packet.icrc([]).expect("whole").is_good(), "as if no extension header were there (D43)");
        assert_eq!(packet.total_len(), length);
        if packet.extension_octets() > 0 {
            let trace = Trace::find(&octets[40..]).expect("there").expect("whole");
            assert_eq!(trace.header.namespace_id(), NAMESPACE);
            assert_eq!(trace.header.trace_type(), HPCC_FIELDS);
            assert_eq!((trace.header.remaining_len_words(), trace.nodes().count()), (54, 0));
        }
        seen.push((
            packet.bth.opcode(),
            packet.extension_octets() as usize,
            packet.payload().expect("one piece").len(),
        ));
    }
    assert_eq!(
        seen,
        [
            (Opcode::READ_RESPONSE_ONLY, TRACE_OCTETS, 10),
            (Opcode::ACKNOWLEDGE, 0, 0),
            (Opcode::WRITE_FIRST, TRACE_OCTETS, 4096),
            (Opcode::WRITE_LAST, TRACE_OCTETS, 1),
        ]
    );
}

#[test]
fn a_trace_must_have_room_and_fit() {
    let with = |fields, hops| {
        let mut endpoint: Endpoint = Endpoint::new(EndpointConfig::new(OURS));
        let trace = Some(TraceRequest { namespace_id: 1, fields, hops });
        endpoint.add_queue_pair(QueuePairConfig { trace, ..QueuePairConfig::new(qpn(0x11), PEER, qpn(0x22)) })
    };
    assert_eq!(with(HPCC_FIELDS, 10), Ok(()), "an option can hold ten, though no Fast CNP can");
    assert!(matches!(with(HPCC_FIELDS, 11), Err(ConfigError::Trace { hops: 11, words: 6, .. })));
    assert!(matches!(with(HPCC_FIELDS, 0), Err(ConfigError::Trace { .. })));
    assert!(matches!(with(TraceType(0), 5), Err(ConfigError::Trace { .. })));
    let error = with(HPCC_FIELDS, 11).expect_err("too much").to_string();
    assert_eq!(error, "queue pair 0x11: a trace of 11 hops of 6 words must have 1 to 61 words");
}

/// A sender that is steered by traces, and a receiver that returns them.
fn pair(base_rtt_ns: u64, line_rate_bits_per_s: u64) -> ([Endpoint; 2], [MemoryKey; 2]) {
    let mut keys = Vec::new();
    let endpoints = [0, 1].map(|side: usize| {
        let access_list = vec![Prefix::host([PEER, OURS][side])];
        let fast_cnp = Some(FastCnpConfig::new(access_list));
        let mut endpoint = Endpoint::new(EndpointConfig { fast_cnp, ..EndpointConfig::new([OURS, PEER][side]) });
        let mut config = QueuePairConfig::new(qpn([0x11, 0x22][side]), [PEER, OURS][side], qpn([0x22, 0x11][side]));
        if side == 0 {
            let parameters = HpccParameters::published(line_rate_bits_per_s, base_rtt_ns, NAMESPACE);
            config.rate = Some(RateAlgorithm::Hpcc(parameters));
            config.trace = Some(TraceRequest::hpcc(NAMESPACE, 9));
        } else {
            config.trace_return_interval_ns = Some(2_000);
        }
        endpoint.add_queue_pair(config).expect("a good configuration");
        keys.push(endpoint.register_memory(pattern(REGION_OCTETS, side as u8), 0x1000, Access::REMOTE, 0x42));
        endpoint
    });
    (endpoints, [keys[0], keys[1]])
}

fn next(endpoint: &mut Endpoint, now: Instant) -> Option<Vec<u8>> {
    let mut buffer = vec![0; endpoint.max_packet_octets()];
    let length = endpoint.poll_transmit(now, &mut buffer)?;
    buffer.truncate(length);
    Some(buffer)
}

#[test]
fn a_receiver_returns_traces_once_in_its_interval() {
    let ([mut sender, mut receiver], keys) = pair(10_000, 100_000_000_000);
    sender.post_send(qpn(0x11), write(keys[1], 3 * 4096)).expect("posted");
    let load = LinkLoad { rate_mbit_per_s: 100_000, sent_octets: 1234 };
    let mut returned = Vec::new();
    for at in [0, 1_000, 2_000] {
        let now = Instant::from_ns(at);
        let mut data = next(&mut sender, now).expect("data");
        fill(&mut data, 7, at, 100, load);
        receiver.receive(now, &[&data]).expect("the switch changed nothing that the ICRC covers");
        while let Some(octets) = next(&mut receiver, now) {
            let packet = Packet::parse(&octets, octets.len()).expect("a RoCEv2 packet");
            if let Some(fast_cnp) = FastCnp::find(&packet, OptionTypes::default()).expect("well formed") {
                assert_eq!((packet.ipv6.source(), fast_cnp.original_destination), (PEER, PEER), "FC-4-8");
                assert_eq!(packet.bth.dest_qpn(), qpn(0x22), "as in the data packet (FC-4-7)");
                assert_eq!(packet.udp.source_port(), Packet::parse(&data, data.len()).expect("it").udp.source_port());
                assert_eq!(packet.ipv6.traffic_class(), 48 << 2, "D44");
                let trace = Trace::parse(fast_cnp.trace.expect("a trace")).expect("whole");
                let nodes: Vec<_> = trace.nodes().map(|node| node.expect("whole")).collect();
                assert_eq!(nodes.len(), 1);
                assert_eq!((nodes[0].node_id, nodes[0].namespace_data_wide), (Some(7), Some(load.to_data())));
                sender.receive(now, &[&octets]).expect("accepted");
                returned.push(at);
            }
        }
    }
    assert_eq!(returned, [0, 2_000]);
    assert_eq!(receiver.counters(qpn(0x22)).expect("there").traces_returned, 2);
    assert_eq!(sender.fast_cnp_counters().from_receivers, 2);
    assert_eq!(sender.poll_congestion(), None, "a receiver cannot be detoured");
    let limits = sender.rate_limits(Instant::from_ns(2_000), qpn(0x11)).expect("it has a rate control");
    assert!(limits.window_octets.is_some());
}

#[test]
fn damaged_traces_do_not_damage_the_data() {
    let ([mut sender, mut receiver], keys) = pair(10_000, 100_000_000_000);
    sender.post_send(qpn(0x11), write(keys[1], 2 * 4096)).expect("posted");
    let mut data = next(&mut sender, Instant::ZERO).expect("data");
    // RemainingLen, behind the option's four octets and the namespace.
    data[40 + 11] = 0x7F;
    receiver.receive(Instant::ZERO, &[&data]).expect("the data are good");
    assert_eq!(receiver.counters(qpn(0x22)).expect("there").traces_not_returned, 1);
    assert_eq!(next(&mut receiver, Instant::ZERO), None);

    let mut data = next(&mut sender, Instant::ZERO).expect("data");
    let set = |data: &mut [u8], option_type| data[40 + 4] = option_type;
    set(&mut data, 0x71);
    assert_eq!(receiver.receive(Instant::ZERO, &[&data]), Err(DropReason::UnknownOption), "discard if not known");
    set(&mut data, 0x11);
    receiver.receive(Instant::ZERO, &[&data]).expect("passed over (RFC 8200 section 4.2)");
    assert_eq!(receiver.memory(keys[1]).expect("a region")[..8192], pattern(REGION_OCTETS, 0)[..8192]);
}

/// A link of 25 Gbit/s between a sender and a receiver of 100: the case that HPCC++ is made for.
struct Bottleneck {
    queue: std::collections::VecDeque<Vec<u8>>,
    queued_octets: u64,
    sent_octets: u64,
    busy_until_ns: u64,
    most_queued_octets: u64,
}

const BOTTLENECK_MBIT_PER_S: u64 = 25_000;
const DELAY_NS: u64 = 2_000;

impl Bottleneck {
    /// The packet that leaves the link at `now_ns`, if any.
    fn serve(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        if now_ns < self.busy_until_ns {
            return None;
        }
        let mut packet = self.queue.pop_front()?;
        let octets = packet.len() as u64 + 38;
        self.queued_octets -= octets;
        self.sent_octets += octets;
        let load = LinkLoad { rate_mbit_per_s: BOTTLENECK_MBIT_PER_S as u32, sent_octets: self.sent_octets };
        fill(&mut packet, 3, now_ns, self.queued_octets as u32, load);
        self.busy_until_ns = now_ns + octets * 8_000 / BOTTLENECK_MBIT_PER_S;
        Some((self.busy_until_ns + DELAY_NS, packet))
    }
}

#[test]
fn hpcc_fills_a_link_and_keeps_its_queue_short() {
    let base_rtt_ns = 2 * DELAY_NS + 2_000;
    let ([mut sender, mut receiver], keys) = pair(base_rtt_ns, 100_000_000_000);
    let mut link = Bottleneck {
        queue: std::collections::VecDeque::new(),
        queued_octets: 0,
        sent_octets: 0,
        busy_until_ns: 0,
        most_queued_octets: 0,
    };
    let mut forth: std::collections::VecDeque<(u64, Vec<u8>)> = std::collections::VecDeque::new();
    let mut back = forth.clone();
    let mut port_free_ns = 0;
    let mut completions = 0;
    for _ in 0..8 {
        sender.post_send(qpn(0x11), write(keys[1], REGION_OCTETS as u32)).expect("posted");
    }
    let (settled_ns, end_ns) = (300_000, 2_000_000);
    let mut sent_when_settled = 0;
    for now_ns in (0..end_ns).step_by(10) {
        let now = Instant::from_ns(now_ns);
        sender.tick(now);
        while back.front().is_some_and(|(at, _)| *at <= now_ns) {
            let (_, packet) = back.pop_front().expect("it is there");
            sender.receive(now, &[&packet]).expect("accepted");
        }
        while forth.front().is_some_and(|(at, _)| *at <= now_ns) {
            let (_, packet) = forth.pop_front().expect("it is there");
            receiver.receive(now, &[&packet]).expect("good");
            while let Some(response) = next(&mut receiver, now) {
                back.push_back((now_ns + DELAY_NS, response));
            }
        }
        while port_free_ns <= now_ns
            && let Some(packet) = next(&mut sender, now)
        {
            let octets = packet.len() as u64 + 38;
            port_free_ns = now_ns + octets * 8 / 100;
            link.queued_octets += octets;
            link.queue.push_back(packet);
        }
        forth.extend(link.serve(now_ns));
        while let Some(completion) = sender.poll_completion() {
            assert_eq!((completion.operation, completion.status), (CompletedOperation::Write, Status::Success));
            completions += 1;
            sender.post_send(qpn(0x11), write(keys[1], REGION_OCTETS as u32)).expect("posted");
        }
        if now_ns == settled_ns {
            sent_when_settled = link.sent_octets;
        }
        if now_ns >= settled_ns {
            link.most_queued_octets = link.most_queued_octets.max(link.queued_octets);
        }
    }
    let bits = (link.sent_octets - sent_when_settled) * 8;
    let utilisation = bits as f64 / ((end_ns - settled_ns) * BOTTLENECK_MBIT_PER_S / 1_000) as f64;
    assert!(completions > 0);
    assert!((0.85..=1.0).contains(&utilisation), "η is 0.95: {utilisation}");
    let product = BOTTLENECK_MBIT_PER_S * base_rtt_ns / 8_000;
    assert!(link.most_queued_octets < product, "{} octets waited, a round trip is {product}", link.most_queued_octets);
}
