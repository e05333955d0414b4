//! The requester, step by step: the packets that it sends and accepts.

mod reads;

use crate::support::{Given, Rig, pattern};
use srdma_rc::{
    Access, DropReason, Habits, LocalRange, MemoryKey, Operation, PostError, QueuePairState, RemoteAddress, Status,
    WorkRequest,
};
use srdma_wire::{Opcode, PathMtu, Psn};

const ACK: u8 = 0x1F;
const SEQUENCE_ERROR: u8 = 0x60;
const REMOTE: RemoteAddress = RemoteAddress { virtual_address: 0x9000, rkey: MemoryKey(0x1234) };
const TIMEOUT_NS: u64 = 4096 << 8;

fn rig(adjust: impl FnOnce(&mut srdma_rc::QueuePairConfig)) -> (Rig, MemoryKey) {
    let mut rig = Rig::new(|config| {
        config.path_mtu = PathMtu::Octets256;
        config.sq_psn = Psn::new(100);
        config.ack_timeout = 8;
        adjust(config);
    });
    let key = rig.endpoint.register_memory(pattern(100_000, 9), 0, Access::LOCAL, 1);
    (rig, key)
}

fn post(rig: &mut Rig, key: MemoryKey, wr_id: u64, operation: Operation, length_octets: u32) {
    let local = LocalRange { key, offset: 0, length_octets };
    let request = WorkRequest { wr_id, operation, local, signalled: true };
    rig.endpoint.post_send(rig.qpn, request).expect("posted");
}

fn post_write(rig: &mut Rig, key: MemoryKey, wr_id: u64, packets: u32) {
    post(rig, key, wr_id, Operation::Write { remote: REMOTE, immediate: None }, packets * 256);
}

fn statuses(rig: &mut Rig) -> Vec<(u64, Status)> {
    rig.completions().iter().map(|done| (done.wr_id, done.status)).collect()
}

#[test]
fn a_message_is_cut_into_packets() {
    use Opcode as O;
    let write = Operation::Write { remote: REMOTE, immediate: None };
    let write_immediate = Operation::Write { remote: REMOTE, immediate: Some(*b"imm.") };
    let send = Operation::Send { immediate: None };
    let send_immediate = Operation::Send { immediate: Some(*b"imm.") };
    let cases: [(Operation, u32, &[Opcode]); 12] = [
        (write, 0, &[O::WRITE_ONLY]),
        (write, 256, &[O::WRITE_ONLY]),
        (write, 257, &[O::WRITE_FIRST, O::WRITE_LAST]),
        (write, 513, &[O::WRITE_FIRST, O::WRITE_MIDDLE, O::WRITE_LAST]),
        (write_immediate, 1, &[O::WRITE_ONLY_IMMEDIATE]),
        (write_immediate, 512, &[O::WRITE_FIRST, O::WRITE_LAST_IMMEDIATE]),
        (send, 255, &[O::SEND_ONLY]),
        (send, 768, &[O::SEND_FIRST, O::SEND_MIDDLE, O::SEND_LAST]),
        (send_immediate, 0, &[O::SEND_ONLY_IMMEDIATE]),
        (send_immediate, 300, &[O::SEND_FIRST, O::SEND_LAST_IMMEDIATE]),
        (Operation::Read { remote: REMOTE }, 0, &[O::READ_REQUEST]),
        (Operation::Read { remote: REMOTE }, 1000, &[O::READ_REQUEST]),
    ];
    for (operation, length, opcodes) in cases {
        let (mut rig, key) = rig(|_| {});
        post(&mut rig, key, 1, operation, length);
        let sent = rig.sent();
        assert_eq!(sent.iter().map(|packet| packet.opcode).collect::<Vec<_>>(), opcodes);
        let psns: Vec<u32> = (100..).take(opcodes.len()).collect();
        assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), psns);
        for (packet, opcode) in sent.iter().zip(opcodes) {
            let reth = opcode.has_reth().then_some(srdma_wire::Reth {
                virtual_address: 0x9000,
                rkey: 0x1234,
                dma_length: length,
            });
            assert_eq!(packet.reth, reth);
            assert_eq!(packet.immediate, opcode.has_immediate().then_some(*b"imm."));
            assert_eq!(packet.ack_request, opcode.is_last());
        }
        let payload: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
        let is_read = matches!(operation, Operation::Read { .. });
        assert_eq!(payload, if is_read { vec![] } else { pattern(length as usize, 9) });
    }
}

#[test]
fn an_ack_is_requested_by_every_66th_packet_and_the_window_is_128() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 300);
    let sent = rig.sent();
    assert_eq!(sent.len(), 128);
    let asking = |sent: &[crate::support::Seen]| -> Vec<u32> {
        sent.iter().filter(|packet| packet.ack_request).map(|packet| packet.psn).collect()
    };
    assert_eq!(asking(&sent), [165]);
    rig.give(&Given::response(165, ACK)).expect("taken");
    let more = rig.sent();
    assert_eq!(more.iter().map(|packet| packet.psn).collect::<Vec<_>>(), (228..294).collect::<Vec<_>>());
    assert_eq!(asking(&more), [231]);
}

#[test]
fn psns_wrap() {
    let (mut rig, key) = rig(|config| config.sq_psn = Psn::new(0xFF_FFFE));
    post_write(&mut rig, key, 1, 2);
    post_write(&mut rig, key, 2, 2);
    assert_eq!(rig.psns(), [0xFF_FFFE, 0xFF_FFFF, 0, 1]);
    rig.give(&Given::response(0, ACK)).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::Success)]);
    rig.give(&Given::response(1, ACK)).expect("taken");
    assert_eq!(statuses(&mut rig), [(2, Status::Success)]);
    assert_eq!(rig.endpoint.next_deadline(), None);
}

#[test]
fn a_sequence_nak_acknowledges_earlier_psns_and_goes_back() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 2);
    post_write(&mut rig, key, 2, 3);
    assert_eq!(rig.psns(), [100, 101, 102, 103, 104]);
    rig.give(&Given::response(103, SEQUENCE_ERROR)).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::Success)]);
    assert_eq!(rig.give(&Given::response(103, SEQUENCE_ERROR)), Err(DropReason::StaleResponse), "a copy of it");
    assert_eq!(rig.psns(), [103, 104]);
    assert_eq!(rig.give(&Given::response(102, SEQUENCE_ERROR)), Err(DropReason::StaleResponse), "lower: ignored");
    assert_eq!(rig.psns(), []);
    rig.give(&Given::response(103, SEQUENCE_ERROR)).expect("lost again");
    assert_eq!(rig.psns(), [103, 104]);
    let counters = rig.endpoint.counters(rig.qpn).expect("queue pair");
    assert_eq!((counters.packets_sent, counters.packets_retransmitted, counters.naks_received), (9, 4, 4));
    assert_eq!(counters.payload_octets_sent, 9 * 256);
}

#[test]
fn after_one_go_back_soft_roce_waits_for_an_ack() {
    let (mut rig, key) = rig(|config| {
        config.habits = Habits::soft_roce();
        config.retry_count = 3;
    });
    post_write(&mut rig, key, 1, 5);
    rig.sent();
    rig.give(&Given::response(102, SEQUENCE_ERROR)).expect("taken");
    assert_eq!(rig.psns(), [102, 103, 104]);
    assert_eq!(rig.give(&Given::response(103, SEQUENCE_ERROR)), Err(DropReason::StaleResponse));
    assert_eq!(rig.psns(), [], "further NAKs are not acted upon");
    assert_eq!(rig.give(&Given::response(104, SEQUENCE_ERROR)), Err(DropReason::StaleResponse));
    rig.give(&Given::response(104, SEQUENCE_ERROR)).expect("taken as the end");
    assert_eq!(statuses(&mut rig), [(1, Status::RetryExceeded)], "each spent a retry");
}

#[test]
fn a_real_ack_ends_the_deafness_of_soft_roce() {
    let (mut rig, key) = rig(|config| config.habits = Habits::soft_roce());
    post_write(&mut rig, key, 1, 5);
    rig.sent();
    rig.give(&Given::response(101, SEQUENCE_ERROR)).expect("taken");
    assert_eq!(rig.psns(), [101, 102, 103, 104]);
    rig.give(&Given::response(101, ACK)).expect("taken");
    rig.give(&Given::response(103, SEQUENCE_ERROR)).expect("taken");
    assert_eq!(rig.psns(), [103, 104]);
}

#[test]
fn an_ack_of_unsent_data_is_accepted_only_by_configuration() {
    let (mut strict, key) = rig(|_| {});
    post_write(&mut strict, key, 1, 2);
    strict.sent();
    assert_eq!(strict.give(&Given::response(102, ACK)), Err(DropReason::AcknowledgesUnsent));
    assert_eq!(strict.give(&Given::response(103, SEQUENCE_ERROR)), Err(DropReason::AcknowledgesUnsent));
    assert_eq!(statuses(&mut strict), []);
    assert_eq!(strict.endpoint.drops().get(DropReason::AcknowledgesUnsent), 2);

    let (mut soft, key) = rig(|config| config.habits = Habits::soft_roce());
    post_write(&mut soft, key, 1, 2);
    soft.sent();
    soft.give(&Given::response(5000, ACK)).expect("accepted");
    assert_eq!(statuses(&mut soft), [(1, Status::Success)]);
}

#[test]
fn an_old_ack_is_ignored() {
    for habits in [Habits::strict(), Habits::soft_roce()] {
        let (mut rig, key) = rig(|config| config.habits = habits);
        post_write(&mut rig, key, 1, 4);
        rig.sent();
        rig.give(&Given::response(102, ACK)).expect("taken");
        for behind in [102, 101, 100, 99, 0] {
            assert_eq!(rig.give(&Given::response(behind, ACK)), Err(DropReason::StaleResponse));
        }
        assert_eq!(rig.psns(), []);
        assert_eq!(statuses(&mut rig), []);
    }
}

/// Status by fatal NAK. A READ or ATOMIC to a group's Proxy Address ends like the first (D26).
#[test]
fn a_fatal_nak_fails_the_request_and_flushes_the_others() {
    let cases = [
        (0x61, Status::RemoteInvalidRequest),
        (0x62, Status::RemoteAccessError),
        (0x63, Status::RemoteOperationalError),
    ];
    for habits in [Habits::strict(), Habits::soft_roce()] {
        for (syndrome, status) in cases {
            let (mut rig, key) = rig(|config| config.habits = habits);
            post_write(&mut rig, key, 1, 2);
            post(&mut rig, key, 2, Operation::Read { remote: REMOTE }, 500);
            post_write(&mut rig, key, 3, 2);
            assert_eq!(rig.psns(), [100, 101, 102, 104, 105]);
            rig.give(&Given::response(102, syndrome)).expect("taken");
            let expected = [(1, Status::Success), (2, status), (3, Status::Flushed)];
            assert_eq!(statuses(&mut rig), expected, "all before the NAK's PSN is done");
            assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error));
            assert_eq!(rig.endpoint.next_deadline(), None);
            assert_eq!(rig.give(&Given::response(105, ACK)), Err(DropReason::QueuePairInError));
            let local = LocalRange { key, offset: 0, length_octets: 1 };
            let request =
                WorkRequest { wr_id: 4, operation: Operation::Read { remote: REMOTE }, local, signalled: true };
            assert_eq!(rig.endpoint.post_send(rig.qpn, request), Err(PostError::InError(rig.qpn)));
        }
    }
}

#[test]
fn reserved_syndromes_are_ignored() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 2);
    rig.sent();
    for syndrome in [0x40, 0x5F, 0x64, 0x7F] {
        assert_eq!(rig.give(&Given::response(101, syndrome)), Err(DropReason::ReservedSyndrome));
    }
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn requests_to_a_silent_peer_are_retried_and_then_fail() {
    for (habits, retry_count, timeouts) in
        [(Habits::strict(), 7, 8), (Habits::strict(), 0, 1), (Habits::soft_roce(), 2, 3)]
    {
        let (mut rig, key) = rig(|config| {
            config.habits = habits;
            config.retry_count = retry_count;
        });
        post_write(&mut rig, key, 1, 2);
        post_write(&mut rig, key, 2, 1);
        for timeout in 1..=timeouts {
            assert_eq!(rig.psns(), [100, 101, 102]);
            let deadline = rig.endpoint.next_deadline().expect("armed");
            assert_eq!(deadline.as_ns(), timeout * TIMEOUT_NS);
            rig.advance_ns(TIMEOUT_NS - 1);
            assert_eq!(rig.psns(), [], "not before its time");
            rig.advance_ns(1);
        }
        assert_eq!(rig.psns(), []);
        assert_eq!(statuses(&mut rig), [(1, Status::RetryExceeded), (2, Status::Flushed)]);
        assert_eq!(rig.endpoint.counters(rig.qpn).expect("queue pair").timeouts, timeouts);
    }
}

#[test]
fn seven_retries_are_unlimited_with_soft_roce() {
    let (mut rig, key) = rig(|config| config.habits = Habits::soft_roce());
    post_write(&mut rig, key, 1, 1);
    for _ in 0..100 {
        assert_eq!(rig.psns(), [100]);
        rig.advance_ns(TIMEOUT_NS);
    }
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn progress_resets_the_retries() {
    let (mut rig, key) = rig(|config| config.retry_count = 1);
    post_write(&mut rig, key, 1, 4);
    for psn in 100..103 {
        rig.sent();
        rig.advance_ns(TIMEOUT_NS);
        rig.sent();
        rig.give(&Given::response(psn, ACK)).expect("taken");
    }
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn any_response_rearms_the_timer_by_configuration() {
    for (habits, deadline_ns) in [(Habits::strict(), TIMEOUT_NS + 10), (Habits::soft_roce(), TIMEOUT_NS + 20)] {
        let (mut rig, key) = rig(|config| {
            config.habits = habits;
            config.retry_count = 6;
        });
        post_write(&mut rig, key, 1, 4);
        rig.sent();
        rig.advance_ns(10);
        rig.give(&Given::response(101, ACK)).expect("taken");
        rig.advance_ns(10);
        assert_eq!(rig.give(&Given::response(100, ACK)), Err(DropReason::StaleResponse));
        assert_eq!(rig.endpoint.next_deadline().expect("armed").as_ns(), deadline_ns);
    }
}

#[test]
fn a_peer_that_is_not_ready_is_retried_after_its_time() {
    let (mut rig, key) = rig(|config| config.rnr_retry = 1);
    post_write(&mut rig, key, 1, 3);
    rig.sent();
    rig.give(&Given::response(101, 0x20 | 2)).expect("taken");
    assert_eq!(rig.psns(), []);
    assert_eq!(rig.give(&Given::response(101, SEQUENCE_ERROR)), Err(DropReason::StaleResponse), "RNR wins");
    assert_eq!(rig.psns(), []);
    assert_eq!(rig.endpoint.next_deadline().expect("armed").as_ns(), 20_000, "timer code 2 is 0.02 ms");
    rig.advance_ns(20_000);
    assert_eq!(rig.psns(), [101, 102]);
    rig.give(&Given::response(101, 0x20 | 2)).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::RnrRetryExceeded)]);
}

/// D204: the message that the peer is not ready for is sent alone, also after a loss, until the peer has acknowledged
/// it.
#[test]
fn one_message_is_sent_until_the_peer_is_ready_by_configuration() {
    for (one_message, again) in [(false, vec![100, 101, 102, 103, 104]), (true, vec![100, 101])] {
        let (mut rig, key) = rig(|config| config.habits.sends_one_message_until_ready = one_message);
        post_write(&mut rig, key, 1, 2);
        post_write(&mut rig, key, 2, 3);
        assert_eq!(rig.psns(), [100, 101, 102, 103, 104]);
        for _ in 0..3 {
            rig.give(&Given::response(100, 0x20 | 2)).expect("taken");
            rig.advance_ns(20_000);
            assert_eq!(rig.psns(), again);
        }
        rig.advance_ns(TIMEOUT_NS);
        assert_eq!(rig.psns(), again, "it was lost");
        rig.give(&Given::response(101, ACK)).expect("taken");
        let rest = if one_message { vec![102, 103, 104] } else { Vec::new() };
        assert_eq!(rig.psns(), rest);
        rig.give(&Given::response(104, ACK)).expect("taken");
        assert_eq!(statuses(&mut rig), [(1, Status::Success), (2, Status::Success)]);
    }
}

#[test]
fn progress_resets_the_rnr_retries() {
    let (mut rig, key) = rig(|config| config.rnr_retry = 1);
    post_write(&mut rig, key, 1, 4);
    for psn in 100..103 {
        rig.sent();
        rig.give(&Given::response(psn, 0x20 | 2)).expect("taken");
        rig.advance_ns(20_000);
        rig.sent();
        rig.give(&Given::response(psn, ACK)).expect("taken");
    }
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn rnr_retry_7_is_unlimited() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 1);
    for _ in 0..100 {
        assert_eq!(rig.psns(), [100]);
        rig.give(&Given::response(100, 0x20)).expect("taken");
        assert_eq!(rig.psns(), []);
        rig.advance_ns(655_360_000);
    }
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn unsignalled_success_is_silent() {
    let (mut rig, key) = rig(|_| {});
    let local = LocalRange { key, offset: 0, length_octets: 4 };
    let operation = Operation::Write { remote: REMOTE, immediate: None };
    for wr_id in 0..2 {
        let request = WorkRequest { wr_id, operation, local, signalled: wr_id == 1 };
        rig.endpoint.post_send(rig.qpn, request).expect("posted");
    }
    rig.sent();
    rig.give(&Given::response(101, ACK)).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::Success)]);
}

#[test]
fn impossible_requests_are_refused_at_once() {
    let (mut rig, key) = rig(|config| config.send_queue_depth = 1);
    let qpn = rig.qpn;
    let request = |key, offset, length_octets| WorkRequest {
        wr_id: 0,
        operation: Operation::Send { immediate: None },
        local: LocalRange { key, offset, length_octets },
        signalled: true,
    };
    let mut post = |request| rig.endpoint.post_send(qpn, request);
    assert_eq!(post(request(key, 0, (1 << 31) + 1)), Err(PostError::TooLong { qpn, found: (1 << 31) + 1 }));
    let outside = request(key, 99_999, 2);
    assert_eq!(post(outside), Err(PostError::OutsideRegion { qpn, local: outside.local }));
    post(request(key, 99_999, 1)).expect("posted");
    assert_eq!(post(request(key, 0, 1)), Err(PostError::QueueFull { qpn, depth: 1 }));
}

#[test]
fn a_cnp_is_sent_on_request_and_counted_on_receipt() {
    let (mut rig, _) = rig(|_| {});
    rig.endpoint.send_cnp(rig.qpn).expect("a queue pair");
    let mut octets = vec![0; 4200];
    let length = rig.endpoint.poll_transmit(rig.now, &mut octets).expect("a CNP");
    assert_eq!(length, 80, "IPv6 40, UDP 8, BTH 12, reserved 16, ICRC 4 (FC-3-1)");
    assert_eq!(octets[48], 0x81);
    assert_eq!(octets[52] & 0x40, 0x40, "BECN");
    assert_eq!(octets[60..76], [0; 16]);
    rig.give(&Given::new(Opcode::CNP, 0, vec![])).expect("taken");
    assert_eq!(rig.endpoint.counters(rig.qpn).expect("queue pair").cnps_received, 1);
}

/// Its turn, its timer and its slot are removed with it; the next owner of the slot has a clean state.
#[test]
fn a_removed_queue_pair_sends_nothing() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 2);
    assert_eq!(rig.psns(), [100, 101]);
    post_write(&mut rig, key, 2, 2);
    let counters = rig.endpoint.remove_queue_pair(rig.qpn).expect("it is there");
    assert_eq!((counters.packets_sent, rig.endpoint.next_deadline(), rig.endpoint.may_transmit()), (2, None, false));
    assert_eq!(rig.give(&Given::response(101, ACK)), Err(DropReason::UnknownQueuePair));
    let next = srdma_rc::QueuePairConfig::new(rig.qpn, crate::support::PEER, rig.qpn);
    rig.endpoint.add_queue_pair(next).expect("the number is free");
    assert_eq!((rig.endpoint.queue_pairs(), rig.psns()), (1, vec![]));
    post_write(&mut rig, key, 3, 1);
    assert_eq!(rig.psns().len(), 1);
    assert_eq!(statuses(&mut rig), []);
}

/// Of forty that wait for an acknowledgement thirty are removed; the others have other places then, and their timers and
/// turns with them.
#[test]
fn a_removed_queue_pair_leaves_no_gap() {
    let (mut rig, key) = rig(|_| {});
    let number = |number: u32| crate::support::qpn(0x100 + number);
    let config = |qpn| srdma_rc::QueuePairConfig {
        ack_timeout: 8,
        ..srdma_rc::QueuePairConfig::new(qpn, crate::support::PEER, qpn)
    };
    let first = rig.qpn;
    for qpn in (0..40).map(number) {
        rig.endpoint.add_queue_pair(config(qpn)).expect("a good configuration");
        rig.qpn = qpn;
        post_write(&mut rig, key, u64::from(qpn.get()), 1);
    }
    assert_eq!(rig.psns().len(), 40);
    rig.qpn = number(39);
    post_write(&mut rig, key, 1, 1);
    for qpn in (0..40).filter(|index| index % 4 != 3).map(number).chain([first]) {
        assert!(rig.endpoint.remove_queue_pair(qpn).is_some());
    }
    rig.endpoint.add_queue_pair(config(number(40))).expect("a good configuration");
    assert_eq!(rig.endpoint.queue_pairs(), 11);
    assert_eq!(rig.psns().len(), 1, "what was posted last still has its turn");
    rig.advance_ns(TIMEOUT_NS);
    assert_eq!(rig.psns().len(), 11, "all that is not acknowledged is sent again");
    let timeouts = |index| rig.endpoint.counters(number(index)).map(|counters| counters.timeouts);
    assert_eq!([0, 3, 39, 40].map(timeouts), [None, Some(1), Some(1), Some(0)]);
}
