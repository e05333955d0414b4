//! The responder, step by step: the packets that it answers and those that it ignores.

use crate::support::{Given, Rig, pattern};
use srdma_rc::{
    Access, CompletedOperation, DropReason, Habits, LocalRange, MemoryKey, QueuePairState, Receive, Status,
};
use srdma_wire::{Opcode, PathMtu, Psn};

const ACK: u8 = 0x1F;
const SEQUENCE_ERROR: u8 = 0x60;
const INVALID_REQUEST: u8 = 0x61;
const REMOTE_ACCESS_ERROR: u8 = 0x62;
const RNR_12: u8 = 0x20 | 12;

const FIRST: u32 = 0xFF_FFFE;

/// A responder with path MTU 256 that expects [`FIRST`], so that PSNs wrap at once; and its region of 4,096 octets.
fn rig(habits: Habits) -> (Rig, MemoryKey) {
    let mut rig = Rig::new(|config| {
        config.path_mtu = PathMtu::Octets256;
        config.rq_psn = Psn::new(FIRST);
        config.habits = habits;
    });
    let key = rig.region(4096, Access::REMOTE);
    (rig, key)
}

fn psn(n: u32) -> u32 {
    FIRST.wrapping_add(n) & 0xFF_FFFF
}

fn write_only(n: u32, key: MemoryKey, payload: Vec<u8>) -> Given {
    let length = payload.len() as u32;
    Given::new(Opcode::WRITE_ONLY, psn(n), payload).reth(0x1000, key, length).ack_request()
}

fn send_only(n: u32) -> Given {
    Given::new(Opcode::SEND_ONLY, psn(n), vec![7; 10]).ack_request()
}

fn post_receive(rig: &mut Rig, key: MemoryKey, wr_id: u64, length_octets: u32) {
    let receive = Receive { wr_id, local: LocalRange { key, offset: 0, length_octets } };
    rig.endpoint.post_receive(rig.qpn, receive).expect("posted");
}

#[test]
fn only_packets_with_an_ack_request_are_acknowledged() {
    let (mut rig, key) = rig(Habits::strict());
    let data = pattern(600, 1);
    let parts: Vec<&[u8]> = data.chunks(256).collect();
    let first = Given::new(Opcode::WRITE_FIRST, psn(0), parts[0].to_vec()).reth(0x1000, key, 600);
    let middle = Given::new(Opcode::WRITE_MIDDLE, psn(1), parts[1].to_vec());
    rig.give(&first).expect("taken");
    assert_eq!(rig.acknowledges(), []);
    rig.give(&middle.ack_request()).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(1), ACK, 0)], "inside a message the MSN stays");
    rig.give(&Given::new(Opcode::WRITE_LAST, psn(2), parts[2].to_vec()).ack_request()).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(2), ACK, 1)]);
    assert_eq!(rig.endpoint.memory(key).expect("region")[..601], [&data[..], &[0]].concat());
    assert_eq!(rig.completions(), [], "a plain WRITE is silent at its target");
}

#[test]
fn a_gap_is_reported_once_until_it_is_filled() {
    for habits in [Habits::strict(), Habits::soft_roce()] {
        let (mut rig, key) = rig(habits);
        for n in [1, 2, 3] {
            assert_eq!(rig.give(&write_only(n, key, vec![1; 4])), Err(DropReason::OutOfSequence));
        }
        assert_eq!(rig.acknowledges(), [(psn(0), SEQUENCE_ERROR, 0)]);
        rig.give(&write_only(0, key, vec![1; 4])).expect("the one expected");
        assert_eq!(rig.acknowledges(), [(psn(0), ACK, 1)]);
        assert_eq!(rig.give(&write_only(2, key, vec![1; 4])), Err(DropReason::OutOfSequence));
        assert_eq!(rig.acknowledges(), [(psn(1), SEQUENCE_ERROR, 1)], "a new gap, a new NAK");
    }
}

#[test]
fn a_duplicate_is_answered_with_the_newest_psn_and_not_done_again() {
    let (mut rig, key) = rig(Habits::soft_roce());
    for n in 0..3 {
        rig.give(&write_only(n, key, vec![n as u8 + 1; 4])).expect("in sequence");
    }
    rig.acknowledges();
    rig.give(&write_only(0, key, vec![1; 4])).expect("answered");
    rig.give(&write_only(1, key, vec![2; 4])).expect("answered");
    assert_eq!(rig.acknowledges(), [(psn(2), ACK, 3), (psn(2), ACK, 3)], "one for each");
    assert_eq!(rig.endpoint.memory(key).expect("region")[..4], [3; 4], "the last WRITE stands");
    assert_eq!(rig.endpoint.counters(rig.qpn).expect("queue pair").duplicates_received, 2);
}

#[test]
fn a_duplicate_before_the_first_request_is_answered_by_configuration() {
    for (habits, expected) in [(Habits::strict(), psn(0) - 1), (Habits::soft_roce(), 0xFF_FFFF)] {
        let (mut rig, key) = rig(habits);
        let early = Given {
            bth: srdma_wire::Bth { psn: Psn::new(psn(0) - 9), ..write_only(0, key, vec![]).bth },
            ..write_only(0, key, vec![1; 4])
        };
        rig.give(&early).expect("answered");
        assert_eq!(rig.acknowledges(), [(expected, ACK, 0)]);
        assert_eq!(rig.endpoint.memory(key).expect("region")[..4], [0; 4]);
    }
}

#[test]
fn waiting_acks_are_merged_by_configuration() {
    for (habits, expected) in [(Habits::strict(), 1), (Habits::soft_roce(), 3)] {
        let (mut rig, key) = rig(habits);
        for n in 0..3 {
            rig.give(&write_only(n, key, vec![1; 4])).expect("in sequence");
        }
        let acks = rig.acknowledges();
        assert_eq!(acks.len(), expected);
        assert_eq!(acks.last(), Some(&(psn(2), ACK, 3)));
    }
}

#[test]
fn without_a_receive_the_response_is_an_rnr_nak() {
    for (habits, after) in [(Habits::strict(), vec![]), (Habits::soft_roce(), vec![(psn(0), SEQUENCE_ERROR, 0)])] {
        let (mut rig, key) = rig(habits);
        assert_eq!(rig.give(&send_only(0)), Err(DropReason::ReceiverNotReady));
        assert_eq!(rig.acknowledges(), [(psn(0), RNR_12, 0)]);
        assert_eq!(rig.give(&send_only(1)), Err(DropReason::OutOfSequence));
        assert_eq!(rig.acknowledges(), after, "whether a sequence NAK follows is a habit");
        assert_eq!(rig.give(&send_only(0)), Err(DropReason::ReceiverNotReady));
        assert_eq!(rig.acknowledges(), [(psn(0), RNR_12, 0)], "a repeated request gets a repeated response");
        post_receive(&mut rig, key, 5, 100);
        rig.give(&send_only(0)).expect("taken");
        assert_eq!(rig.acknowledges(), [(psn(0), ACK, 1)]);
        let [done] = rig.completions()[..] else { panic!("one receive, one completion") };
        assert_eq!((done.wr_id, done.operation, done.status), (5, CompletedOperation::Receive, Status::Success));
        assert_eq!((done.length_octets, done.immediate), (10, None));
    }
}

#[test]
fn a_write_with_immediate_uses_up_a_receive_at_its_last_packet() {
    let (mut rig, key) = rig(Habits::strict());
    let first = Given::new(Opcode::WRITE_FIRST, psn(0), vec![1; 256]).reth(0x1000, key, 300);
    let last = Given::new(Opcode::WRITE_LAST_IMMEDIATE, psn(1), vec![2; 44]).immediate(*b"abcd").ack_request();
    rig.give(&first).expect("needs no receive");
    assert_eq!(rig.give(&last), Err(DropReason::ReceiverNotReady));
    assert_eq!(rig.acknowledges(), [(psn(1), RNR_12, 0)]);
    assert_eq!(rig.endpoint.memory(key).expect("region")[256..300], [0; 44], "nothing is written before");
    post_receive(&mut rig, key, 6, 0);
    rig.give(&last).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(1), ACK, 1)]);
    let [done] = rig.completions()[..] else { panic!("one completion") };
    assert_eq!((done.operation, done.status), (CompletedOperation::ReceiveWriteImmediate, Status::Success));
    assert_eq!((done.wr_id, done.length_octets, done.immediate), (6, 300, Some(*b"abcd")));
    assert_eq!(rig.endpoint.memory(key).expect("region")[256..300], [2; 44]);
}

/// Requests that the responder refuses with a fatal NAK, each by the packets before it.
#[test]
fn invalid_requests_are_fatal() {
    let mtu = || vec![9u8; 256];
    let write_first = |key| Given::new(Opcode::WRITE_FIRST, psn(0), mtu()).reth(0x1000, key, 600);
    let (_, key) = rig(Habits::strict());
    let cases: Vec<(&str, Vec<Given>, Given)> = vec![
        ("Middle without First", vec![], Given::new(Opcode::WRITE_MIDDLE, psn(0), mtu())),
        ("Last without First", vec![], Given::new(Opcode::SEND_LAST, psn(0), vec![1])),
        ("First inside a message", vec![write_first(key)], {
            Given { bth: srdma_wire::Bth { psn: Psn::new(psn(1)), ..write_first(key).bth }, ..write_first(key) }
        }),
        ("SEND inside a WRITE", vec![write_first(key)], Given::new(Opcode::SEND_MIDDLE, psn(1), mtu())),
        ("READ inside a WRITE", vec![write_first(key)], {
            Given::new(Opcode::READ_REQUEST, psn(1), vec![]).reth(0x1000, key, 4)
        }),
        ("First shorter than the path MTU", vec![], {
            Given::new(Opcode::WRITE_FIRST, psn(0), vec![9; 252]).reth(0x1000, key, 600)
        }),
        ("Only longer than the path MTU", vec![], {
            Given::new(Opcode::WRITE_ONLY, psn(0), vec![9; 260]).reth(0x1000, key, 260)
        }),
        ("empty Last", vec![write_first(key)], Given::new(Opcode::WRITE_LAST, psn(1), vec![])),
        ("Last that comes too early", vec![write_first(key)], Given::new(Opcode::WRITE_LAST, psn(1), vec![1; 100])),
        ("First that holds all", vec![], Given::new(Opcode::WRITE_FIRST, psn(0), mtu()).reth(0x1000, key, 256)),
        ("Only with fewer octets than its RETH", vec![], {
            Given::new(Opcode::WRITE_ONLY, psn(0), vec![1; 4]).reth(0x1000, key, 5)
        }),
        ("more than 2^31 octets", vec![], {
            Given::new(Opcode::WRITE_FIRST, psn(0), mtu()).reth(0x1000, key, (1 << 31) + 1)
        }),
        ("ATOMIC CmpSwap", vec![], Given::new(Opcode::COMPARE_SWAP, psn(0), vec![])),
        ("ATOMIC FetchAdd", vec![], Given::new(Opcode::FETCH_ADD, psn(0), vec![])),
        ("READ with a payload", vec![], Given::new(Opcode::READ_REQUEST, psn(0), vec![1; 4]).reth(0x1000, key, 4)),
    ];
    for (name, before, request) in cases {
        let (mut rig, _) = rig(Habits::strict());
        post_receive(&mut rig, key, 1, 1000);
        let expected = psn(before.len() as u32);
        for packet in &before {
            rig.give(packet).expect(name);
        }
        let memory = rig.endpoint.memory(key).expect("region").clone();
        assert_eq!(rig.give(&request), Err(DropReason::InvalidRequest), "{name}");
        assert_eq!(rig.acknowledges(), [(expected, INVALID_REQUEST, 0)], "{name}");
        assert_eq!(rig.endpoint.memory(key), Some(&memory), "{name}");
        assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error), "{name}");
        assert_eq!(rig.completions().iter().map(|done| done.status).collect::<Vec<_>>(), [Status::Flushed], "{name}");
        assert_eq!(rig.give(&request), Err(DropReason::QueuePairInError), "{name}");
        assert_eq!(rig.acknowledges(), [], "{name}");
    }
}

#[test]
fn keys_bounds_and_access_are_checked() {
    let (mut probe, key) = rig(Habits::strict());
    let write_only_region = probe.endpoint.register_memory(vec![0; 64], 0, Access::REMOTE_WRITE, 1);
    let read_only_region = probe.endpoint.register_memory(vec![0; 64], 0, Access::REMOTE_READ, 1);
    let write = |key, address, length| {
        Given::new(Opcode::WRITE_ONLY, psn(0), vec![5; length as usize]).reth(address, key, length)
    };
    let read = |key, address, length| Given::new(Opcode::READ_REQUEST, psn(0), vec![]).reth(address, key, length);
    let cases = [
        ("unknown region", write(MemoryKey(0x77 << 8), 0x1000, 4)),
        ("right region, wrong tag", write(MemoryKey(key.0 ^ 0x80), 0x1000, 4)),
        ("one octet past the end", write(key, 0x1000 + 4093, 4)),
        ("one octet before the beginning", write(key, 0xFFF, 4)),
        ("an address that wraps", write(key, u64::MAX - 1, 4)),
        ("WRITE to a READ region", write(read_only_region, 0, 4)),
        ("READ from a WRITE region", read(write_only_region, 0, 4)),
        ("READ past the end", read(key, 0x1000, 4097)),
        ("a first packet inside, the message not", {
            Given::new(Opcode::WRITE_FIRST, psn(0), vec![5; 256]).reth(0x1000, key, 5000)
        }),
    ];
    for (name, request) in cases {
        let (mut rig, key) = rig(Habits::strict());
        rig.endpoint.register_memory(vec![0; 64], 0, Access::REMOTE_WRITE, 1);
        rig.endpoint.register_memory(vec![0; 64], 0, Access::REMOTE_READ, 1);
        assert_eq!(rig.give(&request), Err(DropReason::RemoteAccess), "{name}");
        assert_eq!(rig.acknowledges(), [(psn(0), REMOTE_ACCESS_ERROR, 0)], "{name}");
        assert!(rig.endpoint.memory(key).expect("region").iter().all(|octet| *octet == 0), "{name}");
        assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error), "{name}");
    }
}

#[test]
fn an_empty_message_needs_no_key() {
    let (mut rig, _) = rig(Habits::strict());
    rig.give(&write_only(0, MemoryKey(0xDEAD), vec![])).expect("taken");
    rig.give(&Given::new(Opcode::READ_REQUEST, psn(1), vec![]).reth(0, MemoryKey(0xDEAD), 0)).expect("taken");
    let sent = rig.sent();
    assert_eq!(sent[0].acknowledge(), (psn(0), ACK, 1));
    assert_eq!((sent[1].opcode, sent[1].psn), (Opcode::READ_RESPONSE_ONLY, psn(1)));
    assert_eq!(sent[1].payload, []);
}

#[test]
fn a_send_longer_than_its_receive_fails_both_sides() {
    let (mut rig, key) = rig(Habits::strict());
    post_receive(&mut rig, key, 1, 300);
    post_receive(&mut rig, key, 2, 300);
    rig.give(&Given::new(Opcode::SEND_FIRST, psn(0), vec![1; 256])).expect("fits so far");
    let last = Given::new(Opcode::SEND_LAST, psn(1), vec![2; 45]);
    assert_eq!(rig.give(&last), Err(DropReason::InvalidRequest));
    assert_eq!(rig.acknowledges(), [(psn(1), INVALID_REQUEST, 0)]);
    let statuses: Vec<_> = rig.completions().iter().map(|done| (done.wr_id, done.status)).collect();
    assert_eq!(statuses, [(1, Status::LocalLengthError), (2, Status::Flushed)]);
    assert_eq!(rig.endpoint.memory(key).expect("region")[256..301], [0; 45]);
}

#[test]
fn a_receive_that_is_being_filled_is_flushed_too() {
    let (mut rig, key) = rig(Habits::strict());
    post_receive(&mut rig, key, 1, 1000);
    post_receive(&mut rig, key, 2, 1000);
    rig.give(&Given::new(Opcode::SEND_FIRST, psn(0), vec![1; 256])).expect("taken");
    assert_eq!(rig.give(&send_only(1)), Err(DropReason::InvalidRequest));
    let statuses: Vec<_> = rig.completions().iter().map(|done| (done.wr_id, done.status)).collect();
    assert_eq!(statuses, [(1, Status::Flushed), (2, Status::Flushed)]);
}

#[test]
fn a_read_is_answered_in_segments_with_a_psn_for_each() {
    let (mut rig, key) = rig(Habits::strict());
    let data = pattern(600, 3);
    rig.endpoint.memory_mut(key).expect("region")[100..700].copy_from_slice(&data);
    rig.give(&Given::new(Opcode::READ_REQUEST, psn(0), vec![]).reth(0x1000 + 100, key, 600)).expect("taken");
    rig.give(&write_only(3, key, vec![1; 4])).expect("the PSN behind the responses");
    let sent = rig.sent();
    let expected = [
        (Opcode::READ_RESPONSE_FIRST, psn(0), Some((ACK, 1)), &data[..256]),
        (Opcode::READ_RESPONSE_MIDDLE, psn(1), None, &data[256..512]),
        (Opcode::READ_RESPONSE_LAST, psn(2), Some((ACK, 1)), &data[512..]),
        (Opcode::ACKNOWLEDGE, psn(3), Some((ACK, 2)), &[]),
    ];
    for (sent, (opcode, psn, aeth, payload)) in sent.iter().zip(expected) {
        assert_eq!((sent.opcode, sent.psn, sent.aeth, &sent.payload[..]), (opcode, psn, aeth, payload));
    }
    assert_eq!(sent.len(), 4);
}

#[test]
fn a_repeated_read_is_answered_from_its_psn() {
    let (mut rig, key) = rig(Habits::strict());
    let data = pattern(600, 3);
    rig.endpoint.memory_mut(key).expect("region")[..600].copy_from_slice(&data);
    let whole = Given::new(Opcode::READ_REQUEST, psn(0), vec![]).reth(0x1000, key, 600);
    rig.give(&whole).expect("taken");
    assert_eq!(rig.psns(), [psn(0), psn(1), psn(2)]);
    rig.give(&Given::new(Opcode::READ_REQUEST, psn(1), vec![]).reth(0x1000 + 256, key, 344)).expect("answered");
    let sent = rig.sent();
    let opcodes: Vec<_> = sent.iter().map(|packet| (packet.opcode, packet.psn)).collect();
    assert_eq!(opcodes, [(Opcode::READ_RESPONSE_FIRST, psn(1)), (Opcode::READ_RESPONSE_LAST, psn(2))]);
    assert_eq!([&sent[0].payload[..], &sent[1].payload[..]].concat(), data[256..]);

    let beyond = Given::new(Opcode::READ_REQUEST, psn(2), vec![]).reth(0x1000, key, 600);
    assert_eq!(rig.give(&beyond), Err(DropReason::InvalidDuplicate), "it would use up PSNs not seen yet");
    assert_eq!(rig.psns(), []);
    rig.give(&write_only(3, key, vec![1; 4])).expect("the expected PSN has not moved");
}

#[test]
fn a_read_repeated_while_it_is_answered_restarts_at_its_psn() {
    let (mut rig, key) = rig(Habits::strict());
    let data = pattern(600, 3);
    rig.endpoint.memory_mut(key).expect("region")[..600].copy_from_slice(&data);
    let from = |n: u32| {
        let done = n * 256;
        Given::new(Opcode::READ_REQUEST, psn(n), vec![]).reth(0x1000 + u64::from(done), key, 600 - done)
    };
    rig.give(&from(0)).expect("taken");
    let mut buffer = vec![0; rig.endpoint.max_packet_octets()];
    for _ in 0..2 {
        rig.endpoint.poll_transmit(rig.now, &mut buffer).expect("a response");
    }
    rig.give(&from(1)).expect("answered");
    let sent = rig.sent();
    let opcodes: Vec<_> = sent.iter().map(|packet| (packet.opcode, packet.psn)).collect();
    assert_eq!(opcodes, [(Opcode::READ_RESPONSE_FIRST, psn(1)), (Opcode::READ_RESPONSE_LAST, psn(2))]);
    assert_eq!([&sent[0].payload[..], &sent[1].payload[..]].concat(), data[256..]);

    rig.give(&Given::new(Opcode::READ_REQUEST, psn(3), vec![]).reth(0x1000, key, 600)).expect("another");
    rig.give(&Given::new(Opcode::READ_REQUEST, psn(4), vec![]).reth(0x1100, key, 344)).expect("ahead of its answer");
    assert_eq!(rig.psns(), [psn(3), psn(4), psn(5)], "each once");
}

#[test]
fn reads_beyond_the_agreed_number_are_refused() {
    let mut rig = Rig::new(|config| config.max_outstanding_reads = 2);
    let key = rig.region(64, Access::REMOTE_READ);
    let read = |psn| Given::new(Opcode::READ_REQUEST, psn, vec![]).reth(0x1000, key, 4);
    rig.give(&read(0)).expect("first");
    rig.give(&read(1)).expect("second");
    assert_eq!(rig.give(&read(2)), Err(DropReason::InvalidRequest));
    let sent = rig.sent();
    assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [0, 1, 2], "in the order of the requests");
    assert_eq!(sent[2].acknowledge(), (2, INVALID_REQUEST, 2));
}

#[test]
fn unpolled_responses_do_not_pile_up() {
    let (mut rig, key) = rig(Habits::soft_roce());
    rig.give(&write_only(0, key, vec![1; 4])).expect("taken");
    for _ in 0..10_000 {
        rig.give(&write_only(0, key, vec![1; 4])).expect("answered");
    }
    let acks = rig.acknowledges();
    assert_eq!(acks.len(), 256);
    assert!(acks.iter().all(|ack| *ack == (psn(0), ACK, 1)));
}

#[test]
fn a_mark_is_answered_with_a_cnp_only_when_configured() {
    for (interval, expected) in [(None, 0), (Some(50_000), 1)] {
        let mut rig = Rig::new(|config| config.cnp_interval_ns = interval);
        let key = rig.region(64, Access::REMOTE_WRITE);
        for psn in 0..3 {
            let mut octets = Given::new(Opcode::WRITE_ONLY, psn, vec![1; 4]).reth(0x1000, key, 4).octets();
            octets[1] |= 0x30; // Congestion Experienced: outside the ICRC
            rig.endpoint.receive(rig.now, &[&octets]).expect("taken");
        }
        let sent = rig.sent();
        assert_eq!(sent.len(), expected, "at most one in the interval (FC-3-2)");
        assert!(sent.iter().all(|packet| packet.opcode == Opcode::CNP && packet.psn == 0));
        assert_eq!(rig.endpoint.counters(rig.qpn).expect("queue pair").cnps_sent, expected as u64);
    }
}
