//! Selective repeat, out-of-order reception and adaptive retransmission (D228).

use crate::support::{Given, Rig, pattern};
use srdma_rc::{
    Access, CompletedOperation, DropReason, Habits, LocalRange, MemoryKey, Operation, Receive, RemoteAddress, Status,
    WorkRequest,
};
use srdma_wire::{Opcode, PathMtu, Psn};

const ACK: u8 = 0x1F;
const SEQUENCE_ERROR: u8 = 0x60;
const FIRST: u32 = 0xFF_FFFE;
const TIMEOUT_NS: u64 = 4096 << 8;

fn rig(adjust: impl FnOnce(&mut srdma_rc::QueuePairConfig)) -> Rig {
    Rig::new(|config| {
        config.path_mtu = PathMtu::Octets256;
        config.sq_psn = Psn::new(FIRST);
        config.rq_psn = Psn::new(FIRST);
        config.ack_timeout = 8;
        config.habits = Habits::strict().with_selective_repeat();
        adjust(config);
    })
}

fn psn(n: u32) -> u32 {
    FIRST.wrapping_add(n) & 0xFF_FFFF
}

fn psns(numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
    numbers.into_iter().map(psn).collect()
}

/// Posts a WRITE of so many packets, and lets it be sent.
fn write(rig: &mut Rig, packets: u32) {
    let key = rig.endpoint.register_memory(pattern(100_000, 9), 0, Access::LOCAL, 1);
    let remote = RemoteAddress { virtual_address: 0x9000, rkey: MemoryKey(0x1234) };
    let local = LocalRange { key, offset: 0, length_octets: packets * 256 };
    let request =
        WorkRequest { wr_id: 1, operation: Operation::Write { remote, immediate: None }, local, signalled: true };
    rig.endpoint.post_send(rig.qpn, request).expect("posted");
    assert_eq!(rig.psns().len(), packets as usize);
}

fn statuses(rig: &mut Rig) -> Vec<(u64, Status)> {
    rig.completions().iter().map(|done| (done.wr_id, done.status)).collect()
}

/// A NAK has one packet sent again, which requests an ACK; the same NAK again is a further loss.
#[test]
fn a_nak_has_one_packet_sent_again() {
    let mut rig = rig(|_| {});
    write(&mut rig, 9);
    rig.give(&Given::response(psn(3), SEQUENCE_ERROR)).expect("taken");
    assert_eq!(rig.give(&Given::response(psn(3), SEQUENCE_ERROR)), Err(DropReason::StaleResponse), "it waits");
    let sent = rig.sent();
    let [again] = &sent[..] else { panic!("one packet, not {}", sent.len()) };
    assert_eq!((again.psn, again.opcode, again.ack_request), (psn(3), Opcode::WRITE_MIDDLE, true));
    assert_eq!(again.payload, pattern(100_000, 9)[3 * 256..4 * 256]);
    rig.give(&Given::response(psn(3), SEQUENCE_ERROR)).expect("lost again");
    assert_eq!(rig.psns(), [psn(3)]);
    rig.give(&Given::response(psn(6), SEQUENCE_ERROR)).expect("another loss");
    assert_eq!(rig.psns(), [psn(6)]);
    rig.give(&Given::response(psn(8), ACK)).expect("taken");
    assert_eq!((rig.psns(), statuses(&mut rig)), (vec![], vec![(1, Status::Success)]));
    assert_eq!(rig.endpoint.counters(rig.qpn).expect("queue pair").packets_retransmitted, 3);
}

/// NAKs without progress use up the retries.
#[test]
fn naks_without_progress_fail_the_queue_pair() {
    let mut rig = rig(|config| config.retry_count = 2);
    write(&mut rig, 4);
    rig.give(&Given::response(psn(1), SEQUENCE_ERROR)).expect("progress, and a retry");
    for _ in 0..2 {
        assert_eq!(rig.psns(), [psn(1)]);
        rig.give(&Given::response(psn(1), SEQUENCE_ERROR)).expect("taken");
    }
    assert_eq!(statuses(&mut rig), [(1, Status::RetryExceeded)]);
}

/// Packets behind a gap are kept, and taken in their order; each gap has one NAK.
#[test]
fn packets_behind_a_gap_are_kept() {
    let mut rig = rig(|_| {});
    let key = rig.region(4096, Access::REMOTE);
    for wr_id in 0..6 {
        let local = LocalRange { key, offset: wr_id * 10, length_octets: 10 };
        rig.endpoint.post_receive(rig.qpn, Receive { wr_id, local }).expect("posted");
    }
    let send = |n: u32| Given::new(Opcode::SEND_ONLY, psn(n), vec![n as u8 + 1; 10]).ack_request();
    for n in [1, 2, 2, 4] {
        rig.give(&send(n)).expect("kept");
    }
    assert_eq!(rig.acknowledges(), [(psn(0), SEQUENCE_ERROR, 0)]);
    rig.give(&send(0)).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(2), ACK, 3), (psn(3), SEQUENCE_ERROR, 3)]);
    rig.give(&send(5)).expect("kept");
    rig.give(&send(3)).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(5), ACK, 6)]);
    let done = rig.completions();
    assert!(done.iter().all(|done| done.operation == CompletedOperation::Receive && done.status == Status::Success));
    assert_eq!(done.iter().map(|done| done.wr_id).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let expected: Vec<u8> = (1..=6).flat_map(|n| [n; 10]).collect();
    assert_eq!(rig.endpoint.memory(key).expect("region")[..60], expected);
}

/// What is kept is bounded; and a receiver that is not ready for one of it gets all of it again.
#[test]
fn what_is_kept_is_bounded_and_dropped_by_an_rnr_nak() {
    let mut rig = rig(|config| config.habits.max_outstanding_psns = 4);
    let key = rig.region(4096, Access::REMOTE);
    let send = |n: u32| Given::new(Opcode::SEND_ONLY, psn(n), vec![1; 10]).ack_request();
    let receive = Receive { wr_id: 1, local: LocalRange { key, offset: 0, length_octets: 10 } };
    rig.endpoint.post_receive(rig.qpn, receive).expect("posted");
    for n in [1, 2, 3] {
        rig.give(&send(n)).expect("kept");
    }
    assert_eq!(rig.give(&send(4)), Err(DropReason::OutOfSequence));
    assert_eq!(rig.acknowledges(), [(psn(0), SEQUENCE_ERROR, 0)]);
    rig.give(&send(0)).expect("taken");
    let sent = rig.acknowledges();
    assert_eq!((sent[0], sent[1].0, sent[1].1 >> 5), ((psn(0), ACK, 1), psn(1), 1), "RNR NAK");
    for wr_id in 2..4 {
        rig.endpoint.post_receive(rig.qpn, Receive { wr_id, ..receive }).expect("posted");
    }
    rig.give(&send(1)).expect("taken");
    assert_eq!(rig.acknowledges(), [(psn(1), ACK, 2)], "the packets behind it were not kept");
}

/// Timeouts begin with a sixteenth of the ACK timeout and double up to it; those below spend no retry; everything not
/// acknowledged is sent again.
#[test]
fn timeouts_adapt() {
    let mut rig = rig(|config| config.retry_count = 1);
    write(&mut rig, 3);
    for part in [16, 8, 4, 2, 1] {
        rig.advance_ns(TIMEOUT_NS / part - 1);
        assert_eq!(rig.psns(), []);
        rig.advance_ns(1);
        assert_eq!(rig.psns(), psns(0..3));
    }
    rig.give(&Given::response(psn(0), ACK)).expect("progress");
    rig.advance_ns(TIMEOUT_NS / 16);
    assert_eq!(rig.psns(), psns(1..3), "from the beginning");
    rig.advance_ns(TIMEOUT_NS * 15 / 16);
    assert_eq!(rig.psns(), psns(1..3));
}
