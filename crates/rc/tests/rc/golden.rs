//! Exchanges recorded between two Linux soft-RoCE endpoints (testdata/golden/rxe): one side is replayed, ours is the
//! other.
//!
//! The recordings were made at the sender. Packets lost after that point are in them although they never arrived; a
//! response that was lost before it is not.

use crate::support::Seen;
use srdma_capture::Reader;
use srdma_rc::{
    Access, Endpoint, EndpointConfig, Habits, LocalRange, MemoryKey, Operation, QueuePairConfig, Receive,
    RemoteAddress, Status, WorkRequest,
};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, Opcode, PathMtu, Psn, Qpn};
use std::path::Path;

/// The recorded endpoints had a local ACK timeout of 67 ms.
const TIMEOUT: u8 = 14;
const TIMEOUT_NS: u64 = 4096 << TIMEOUT;

/// A recorded exchange, and the parameters that are not in the recording.
struct Exchange {
    file: &'static str,
    path_mtu: PathMtu,
    /// Requests lost behind the point of recording, counted from the file's first frame.
    lost_requests: &'static [usize],
    /// Responses lost before that point, counted from the first the responder makes.
    lost_responses: &'static [usize],
    /// Octets of each message.
    messages: &'static [u32],
}

const EXCHANGES: [Exchange; 8] = [
    exchange("write_1024_t1", PathMtu::Octets1024, &[20_000]),
    exchange("write_4096_t1", PathMtu::Octets4096, &[40_000]),
    exchange("send_t1", PathMtu::Octets1024, &[5_000, 5_000, 5_000]),
    exchange("send_imm_t1", PathMtu::Octets1024, &[777]),
    exchange("ecn_ce_and_injected_cnp_t1", PathMtu::Octets1024, &[10_240]),
    Exchange { lost_requests: &[2], ..exchange("nak_seq_t1", PathMtu::Octets1024, &[10_240]) },
    Exchange { lost_responses: &[0], ..exchange("ack_lost_t1", PathMtu::Octets1024, &[4_096]) },
    Exchange { lost_requests: &[3], ..exchange("timeout_last_lost_t1", PathMtu::Octets1024, &[4_096]) },
];

const fn exchange(file: &'static str, path_mtu: PathMtu, messages: &'static [u32]) -> Exchange {
    Exchange { file, path_mtu, lost_requests: &[], lost_responses: &[], messages }
}

/// A recorded packet, from its IPv6 header on.
struct Frame {
    octets: Vec<u8>,
    is_request: bool,
    time_ns: u64,
}

impl Exchange {
    fn frames(&self) -> Vec<Frame> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/rxe");
        let reader = Reader::open(&folder.join(self.file).with_extension("pcap")).expect("a capture");
        let frames: Vec<Frame> = reader
            .map(|packet| {
                let packet = packet.expect("an undamaged capture");
                let octets = packet.octets[14..].to_vec();
                let is_request = Packet::parse(&octets, octets.len()).expect("RoCEv2").bth.opcode().is_request();
                Frame { octets, is_request, time_ns: packet.time_ns }
            })
            .collect();
        assert!(frames.len() >= 2, "{}", self.file);
        frames
    }

    /// The endpoint that one of the recorded packets came from, and the number of its queue pair there.
    fn endpoint_of(&self, frame: &Frame) -> (Endpoint, Qpn) {
        let packet = Packet::parse(&frame.octets, frame.octets.len()).expect("RoCEv2");
        // Both recorded queue pairs have the same number.
        let qpn = packet.bth.dest_qpn();
        let mut config = QueuePairConfig::new(qpn, packet.ipv6.destination(), qpn);
        (config.sq_psn, config.rq_psn) = (Psn::new(4096), Psn::new(4096));
        config.path_mtu = self.path_mtu;
        config.habits = Habits::soft_roce();
        config.ack_timeout = TIMEOUT;
        let mut endpoint = Endpoint::new(EndpointConfig::new(packet.ipv6.source()));
        endpoint.add_queue_pair(config).expect("a good configuration");
        (endpoint, qpn)
    }

    /// The memory that the recorded RETH names, with the recorded key.
    fn register_recorded_region(&self, endpoint: &mut Endpoint, first: &Frame) -> MemoryKey {
        let packet = Packet::parse(&first.octets, first.octets.len()).expect("RoCEv2");
        let Some(reth) = packet.extended.reth().map(|reth| reth.value()) else {
            return endpoint.register_memory(vec![0; 65_536], 0, Access::LOCAL, 0);
        };
        for _ in 0..reth.rkey >> 8 {
            endpoint.register_memory(vec![], 0, Access::LOCAL, 0);
        }
        let key =
            endpoint.register_memory(vec![0; 65_536], reth.virtual_address, Access::REMOTE_WRITE, reth.rkey as u8);
        assert_eq!(key.0, reth.rkey);
        key
    }

    /// The messages as the recorded sender had them, from the payloads of its packets.
    fn recorded_data(&self, frames: &[Frame]) -> Vec<u8> {
        let mut data = vec![0; self.messages.iter().sum::<u32>() as usize];
        let mtu = self.path_mtu.octets() as usize;
        let packets: Vec<u32> = self.messages.iter().map(|length| self.path_mtu.packets(*length)).collect();
        for frame in frames.iter().filter(|frame| frame.is_request) {
            let seen = Seen::from_octets(&frame.octets);
            let (mut number, mut at) = (seen.psn - 4096, 0);
            for (packets, length) in packets.iter().zip(self.messages) {
                if number < *packets {
                    let start = at + number as usize * mtu;
                    data[start..start + seen.payload.len()].copy_from_slice(&seen.payload);
                    break;
                }
                number -= packets;
                at += *length as usize;
            }
        }
        data
    }
}

fn drain(endpoint: &mut Endpoint, now: Instant) -> Vec<Seen> {
    let mut buffer = vec![0; endpoint.max_packet_octets()];
    std::iter::from_fn(|| endpoint.poll_transmit(now, &mut buffer).map(|length| Seen::from_octets(&buffer[..length])))
        .collect()
}

#[test]
fn our_responder_answers_recorded_requests_like_the_recorded_one() {
    for exchange in EXCHANGES {
        let name = exchange.file;
        let frames = exchange.frames();
        let first = frames.iter().find(|frame| frame.is_request).expect("a request");
        let recorded = |frame: &&Frame| !frame.is_request && Seen::from_octets(&frame.octets).opcode != Opcode::CNP;
        let responder = frames.iter().find(recorded).expect("a response");
        let (mut endpoint, qpn) = exchange.endpoint_of(responder);
        let key = exchange.register_recorded_region(&mut endpoint, first);
        let mut offset = 0;
        for length_octets in exchange.messages {
            let local = LocalRange { key, offset, length_octets: *length_octets };
            endpoint.post_receive(qpn, Receive { wr_id: 0, local }).expect("posted");
            offset += u64::from(*length_octets);
        }

        let mut responses = Vec::new();
        for (index, frame) in frames.iter().enumerate().filter(|(_, frame)| frame.is_request) {
            if exchange.lost_requests.contains(&index) {
                continue;
            }
            // Packets out of sequence are refused, which is part of the comparison.
            let _ = endpoint.receive(Instant::ZERO, &[&frame.octets]);
            responses.extend(drain(&mut endpoint, Instant::ZERO));
        }
        let arrived: Vec<Seen> = responses
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !exchange.lost_responses.contains(index))
            .map(|(_, response)| response)
            .collect();
        let expected: Vec<Seen> =
            frames.iter().filter(recorded).map(|frame| Seen::from_octets(&frame.octets)).collect();
        assert_eq!(arrived, expected, "{name}: opcode, PSN, syndrome and MSN of each response");
        let data = exchange.recorded_data(&frames);
        assert!(endpoint.memory(key).expect("region")[..data.len()] == data, "{name}: what arrived");
    }
}

#[test]
fn our_requester_reacts_to_recorded_responses_like_the_recorded_one() {
    for exchange in EXCHANGES {
        let name = exchange.file;
        let frames = exchange.frames();
        let first = frames.iter().find(|frame| frame.is_request).expect("a request");
        let (mut endpoint, qpn) = exchange.endpoint_of(first);
        let data = exchange.recorded_data(&frames);
        let source = endpoint.register_memory(data, 0, Access::LOCAL, 0);
        let opening = Seen::from_octets(&first.octets);
        let mut offset = 0;
        for length_octets in exchange.messages {
            let operation = match opening.reth {
                Some(reth) => {
                    let remote = RemoteAddress { virtual_address: reth.virtual_address, rkey: MemoryKey(reth.rkey) };
                    Operation::Write { remote, immediate: None }
                }
                None => Operation::Send { immediate: opening.immediate },
            };
            let local = LocalRange { key: source, offset, length_octets: *length_octets };
            endpoint.post_send(qpn, WorkRequest { wr_id: 0, operation, local, signalled: true }).expect("posted");
            offset += u64::from(*length_octets);
        }

        let mut sent = drain(&mut endpoint, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut last_request_ns = first.time_ns;
        for frame in &frames {
            if frame.is_request {
                // A pause of a timeout is a timeout: the recorded peer waited a little longer than its timer.
                if frame.time_ns - last_request_ns > TIMEOUT_NS / 2 {
                    now = now.after_ns(TIMEOUT_NS);
                    endpoint.tick(now);
                    sent.extend(drain(&mut endpoint, now));
                }
                last_request_ns = frame.time_ns;
            } else {
                let _ = endpoint.receive(now, &[&frame.octets]);
                sent.extend(drain(&mut endpoint, now));
            }
        }
        let expected: Vec<Seen> =
            frames.iter().filter(|frame| frame.is_request).map(|frame| Seen::from_octets(&frame.octets)).collect();
        let psns = |packets: &[Seen]| -> Vec<u32> { packets.iter().map(|packet| packet.psn).collect() };
        assert_eq!(psns(&sent), psns(&expected), "{name}: the sequence of PSNs");
        assert!(sent == expected, "{name}: opcode, AckReq, RETH, immediate and payload of each request");
        let statuses: Vec<Status> = std::iter::from_fn(|| endpoint.poll_completion()).map(|done| done.status).collect();
        assert_eq!(statuses, vec![Status::Success; exchange.messages.len()], "{name}");
    }
}
