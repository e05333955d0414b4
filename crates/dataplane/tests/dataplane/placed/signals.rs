//! Path signals, and their effect on the next packet.

use crate::placed::support::*;
use srdma_dataplane::Connection;
use srdma_dataplane::headend::Incoming;
use srdma_frame::Pool;
use srdma_steering::{Cause, Mode, Signal, SignalEffect};
use srdma_wire::Qpn;

/// PP-4-6, section 5.3 of the draft: spine 5 is congested, and the very next packet goes by spine 6.
#[test]
fn a_fast_cnp_names_the_node_to_avoid() {
    let mut nic = Nic::new(|_| ());
    assert_eq!(nic.destination(1), BY_SPINE5);
    assert_eq!(nic.receive(&fast_cnp(SPINE5, QPN3)), Incoming::Passing);
    assert_eq!(nic.destination(2), BY_SPINE6);
    let counters = *nic.headend.steering().counters();
    assert_eq!((counters.moves_by(Cause::FastCnp), counters.all_moves()), (1, 1));
    nic.pass_us(50);
    nic.receive(&fast_cnp(SPINE5, QPN3));
    assert_eq!(nic.destination(3), BY_SPINE6, "a second one about the same spine is about what is over");
    assert_eq!(nic.headend.steering().counters().not_on_path, 1);
}

/// Other flows stay on their paths: only flows with a signal move.
#[test]
fn only_the_signalled_flow_moves() {
    let mut nic = Nic::new(|_| ());
    let by = |nic: &mut Nic, qpn, psn| destination_of(&nic.send(&data(qpn, psn)));
    assert_eq!([by(&mut nic, 7, 1), by(&mut nic, 8, 1)], [BY_SPINE5; 2]);
    nic.receive(&fast_cnp(SPINE5, 7));
    assert_eq!([by(&mut nic, 7, 2), by(&mut nic, 8, 2)], [BY_SPINE6, BY_SPINE5]);
    assert_eq!(by(&mut nic, 9, 1), BY_SPINE6, "a new flow avoids what is congested");
}

/// A CNP names the host's queue pair: a single flow is meant; of several the one whose acknowledgement came back to it, or
/// the one that is configured.
#[test]
fn a_cnp_is_matched_with_its_flow() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    nic.receive(&cnp(QPN1));
    assert_eq!(nic.destination(2), BY_SPINE6, "the only flow between the two");

    let mut nic = Nic::new(|_| ());
    let by = |nic: &mut Nic, qpn, psn| destination_of(&nic.send(&data(qpn, psn)));
    by(&mut nic, 7, 1000);
    by(&mut nic, 8, 2000);
    nic.receive(&cnp(0x17));
    assert_eq!(nic.headend.counters().unmatched, 1);
    nic.receive(&answer(0x17, 1000, ACK));
    nic.receive(&cnp(0x17));
    assert_eq!([by(&mut nic, 7, 1001), by(&mut nic, 8, 2001)], [BY_SPINE6, BY_SPINE5]);
    assert_eq!(nic.headend.counters().acks_timed, 1);

    let mut nic = Nic::new(|_| ());
    by(&mut nic, 7, 1000);
    by(&mut nic, 8, 2000);
    let qpn = |number| Qpn::new(number).unwrap();
    let (host, peer) = (address(NIC1), address(NIC3));
    nic.headend.add_connection(Connection { host, host_qpn: qpn(0x18), peer, peer_qpn: qpn(8) });
    nic.receive(&cnp(0x18));
    assert_eq!([by(&mut nic, 7, 1001), by(&mut nic, 8, 2001)], [BY_SPINE5, BY_SPINE6]);
    assert!(nic.headend.remove_connection(host, peer, qpn(8)));
    assert!(!nic.headend.remove_connection(host, peer, qpn(8)));
}

/// The same in the tunnel that they came by, for a node that takes it off itself.
#[test]
fn signals_are_read_inside_tunnels() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    let inner = fast_cnp(SPINE5, QPN3);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((inner.len() as u16).to_be_bytes());
    packet.extend([41, 60]);
    packet.extend(address(SPINE5).octets());
    packet.extend(address("5f00:0:1100:d6::").octets());
    packet.extend(&inner);
    nic.receive(&packet);
    assert_eq!(nic.destination(2), BY_SPINE6);
}

#[test]
fn damaged_and_unmatched_signals_move_no_flow() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    for mut packet in [fast_cnp(SPINE5, QPN3), cnp(QPN1), answer(QPN1, 1, SEQUENCE_ERROR)] {
        let last = packet.len() - 1;
        packet[last] ^= 1;
        nic.receive(&packet);
    }
    assert_eq!(nic.headend.counters().damaged, 3);
    nic.receive(&fast_cnp("2001:db8:ff::77", QPN3));
    nic.receive(&fast_cnp(SPINE5, QPN3 + 1));
    nic.receive(&rocev2("2001:db8:77::1", NIC1, 0x81, QPN1, 0, &[0; 16]));
    assert_eq!(nic.destination(2), BY_SPINE5);
    assert_eq!(nic.headend.steering().counters().all_moves(), 0);
}

/// One gap may be a damaged packet; two within 10 ms are the path's.
#[test]
fn losses_move_a_flow_when_there_are_several() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    nic.receive(&answer(QPN1, 1, ACK));
    nic.receive(&answer(QPN1, 2, SEQUENCE_ERROR));
    assert_eq!(nic.destination(2), BY_SPINE5);
    nic.pass_us(20_000);
    nic.receive(&answer(QPN1, 2, SEQUENCE_ERROR));
    assert_eq!(nic.destination(3), BY_SPINE5, "long ago");
    nic.pass_us(500);
    nic.receive(&answer(QPN1, 3, SEQUENCE_ERROR));
    assert_eq!(nic.destination(4), BY_SPINE6);
    assert_eq!((nic.headend.counters().naks, nic.headend.steering().counters().moves_by(Cause::Loss)), (3, 1));
}

/// A host that goes back without a NAK has timed out.
#[test]
fn going_back_is_loss() {
    let mut nic = Nic::new(|_| ());
    for psn in [1, 2, 3, 1, 2, 3, 4, 5] {
        assert_eq!(nic.destination(psn), BY_SPINE5);
        nic.pass_us(10);
    }
    nic.destination(2);
    assert_eq!(nic.destination(3), BY_SPINE6);
    assert_eq!(nic.headend.counters().sent_again, 5);
}

/// D83: packets that were under way when the flow moved are overtaken, and sent again.
#[test]
fn retransmissions_after_a_move_are_counted() {
    let mut nic = Nic::new(|_| ());
    (1..=4).for_each(|psn| drop(nic.destination(psn)));
    nic.receive(&fast_cnp(SPINE5, QPN3));
    assert_eq!(nic.destination(5), BY_SPINE6);
    nic.pass_us(20);
    nic.receive(&answer(QPN1, 3, SEQUENCE_ERROR));
    for psn in 3..=5 {
        assert_eq!(nic.destination(psn), BY_SPINE6, "what a move has done is no reason for another");
    }
    assert_eq!(nic.destination(6), BY_SPINE6);
    let counters = nic.headend.counters();
    assert_eq!((counters.sent_again_after_move, counters.sent_again), (3, 0));
    assert_eq!(nic.headend.steering().counters().all_moves(), 1);
}

/// D83: in ordered mode a flow moves with its next message, or after an idle gap.
#[test]
fn ordered_flows_move_at_boundaries() {
    let mut nic = Nic::new(|config| config.steering.mode = Mode::Ordered);
    let send = |nic: &mut Nic, opcode, psn| destination_of(&nic.send(&rocev2(NIC1, NIC3, opcode, QPN3, psn, &[9; 8])));
    const FIRST: u8 = 0x00;
    const MIDDLE: u8 = 0x01;
    const LAST: u8 = 0x02;
    assert_eq!(send(&mut nic, FIRST, 1), BY_SPINE5);
    nic.receive(&fast_cnp(SPINE5, QPN3));
    assert_eq!([send(&mut nic, MIDDLE, 2), send(&mut nic, LAST, 3)], [BY_SPINE5; 2]);
    assert_eq!([send(&mut nic, FIRST, 4), send(&mut nic, MIDDLE, 5)], [BY_SPINE6; 2]);
    nic.pass_us(2_000);
    send(&mut nic, MIDDLE, 6);
    nic.receive(&fast_cnp(SPINE6, QPN3));
    nic.pass_us(99);
    assert_eq!(send(&mut nic, MIDDLE, 7), BY_SPINE6);
    nic.pass_us(100);
    assert_eq!(send(&mut nic, MIDDLE, 8), BY_SPINE5, "idle for 100 us");
}

/// D88: an endpoint reports trimmed packets itself.
#[test]
fn an_endpoint_can_signal_its_own_measurements() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    let qpn = |number| Qpn::new(number).unwrap();
    let (host, peer) = (address(NIC1), address(NIC3));
    assert_eq!(nic.headend.handle_signal(nic.now, host, peer, qpn(QPN3), Signal::Trimmed), SignalEffect::FlowMoves);
    assert_eq!(nic.headend.handle_signal(nic.now, host, peer, qpn(QPN3 + 1), Signal::Trimmed), SignalEffect::Unknown);
    assert_eq!(nic.destination(2), BY_SPINE6);
}

/// Marks and trimmed packets that come in are counted; they concern the sender at the other end.
#[test]
fn marks_and_trimmed_packets_are_counted() {
    let mut nic = Nic::new(|config| config.trimmed_dscp = Some(13));
    let mut marked = rocev2(NIC3, NIC1, 0x04, QPN1, 1, &[1; 4]);
    marked[1] |= 0x30;
    nic.receive(&marked);
    let mut trimmed = rocev2(NIC3, NIC1, 0x04, QPN1, 2, &[]);
    (trimmed[0], trimmed[1]) = (0x60 | 13 >> 2, (13 << 6 & 0xFF) as u8);
    nic.receive(&trimmed);
    let counters = nic.headend.counters();
    assert_eq!((counters.marked_received, counters.trimmed_received), (1, 1));
}

/// Nothing allocates for a packet or a signal.
#[test]
fn packets_and_signals_allocate_nothing() {
    let mut nic = Nic::new(|_| ());
    nic.pool = Pool::new(256);
    let room = |packet: Vec<u8>| [&[0; 14][..], &packet].concat();
    let out: Vec<Vec<u8>> = (0..64).map(|psn| room(data(psn % 8, psn))).collect();
    let back: Vec<Vec<u8>> =
        [fast_cnp(SPINE5, 3), fast_cnp(SPINE6, 3), cnp(QPN1), answer(QPN1, 3, ACK)].map(room).into();
    let mut rounds = |count: u64| {
        for _ in 0..count {
            for octets in &out {
                let mut frame = srdma_frame::Frame::from_octets(octets, &mut nic.pool).unwrap();
                nic.headend.outgoing(nic.now, &mut frame, &mut nic.pool).unwrap();
                frame.release(&mut nic.pool);
            }
            for octets in &back {
                let frame = srdma_frame::Frame::from_octets(octets, &mut nic.pool).unwrap();
                nic.headend.incoming(nic.now, &frame, &nic.pool);
                frame.release(&mut nic.pool);
            }
            nic.headend.tick(nic.now);
            while let Some(frame) = nic.headend.poll_probe(nic.now, &mut nic.pool) {
                nic.headend.incoming(nic.now, &frame, &nic.pool);
                frame.release(&mut nic.pool);
            }
            nic.pass_us(137);
        }
    };
    rounds(200);
    let info = allocation_counter::measure(|| rounds(1_000));
    assert_eq!(info.count_total, 0);
}
