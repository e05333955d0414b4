//! D283: marks repeated in ACKs, round trips measured, and a window that follows both.

use crate::support::{Given, Rig, pattern};
use srdma_rc::rate::NsccParameters;
use srdma_rc::{Access, DropReason, LocalRange, Operation, RateAlgorithm, RemoteAddress, WorkRequest};
use srdma_wire::Opcode;

/// The octet of FECN and BECN: behind IPv6, UDP, and four octets of the BTH.
const CONGESTION: usize = 40 + 8 + 4;
const BECN: u8 = 0x40;

/// PSN and congestion octet of everything that waits to be sent.
fn sent(rig: &mut Rig) -> Vec<(u8, u8)> {
    let mut buffer = vec![0; rig.endpoint.max_packet_octets()];
    let mut sent = Vec::new();
    while rig.endpoint.poll_transmit(rig.now, &mut buffer).is_some() {
        sent.push((buffer[CONGESTION + 7], buffer[CONGESTION]));
    }
    sent
}

/// A WRITE of one packet with these ECN bits.
fn arrives(rig: &mut Rig, psn: u32, key: srdma_rc::MemoryKey, ecn: u8) -> Result<(), DropReason> {
    let mut octets = Given::new(Opcode::WRITE_ONLY, psn, vec![7; 64]).reth(0x1000, key, 64).ack_request().octets();
    octets[1] |= ecn << 4;
    rig.endpoint.receive(rig.now, &[&octets])
}

#[test]
fn an_ack_repeats_the_mark_of_the_packet_that_requested_it() {
    for echoes_marks in [true, false] {
        let mut rig = Rig::new(|config| config.echoes_marks = echoes_marks);
        let key = rig.endpoint.register_memory(pattern(4096, 1), 0x1000, Access::REMOTE_WRITE, 1);
        let becn = if echoes_marks { BECN } else { 0 };
        for (psn, ecn, expected) in [(0, 2, 0), (1, 3, becn), (2, 1, 0), (3, 3, becn)] {
            assert_eq!(arrives(&mut rig, psn, key, ecn), Ok(()));
            assert_eq!(sent(&mut rig), [(psn as u8, expected)], "PSN {psn}, echoes {echoes_marks}");
        }
        assert_eq!(arrives(&mut rig, 3, key, 3), Ok(()));
        assert_eq!(sent(&mut rig), [(3, 0)], "that of a duplicate is old");
        assert_eq!(arrives(&mut rig, 9, key, 3), Err(DropReason::OutOfSequence));
        assert_eq!(sent(&mut rig), [(4, 0)], "a NAK acknowledges no packet of its own");
    }
}

/// A base round trip of 10 µs at 8 Gbit/s: 10,000 octets; a largest window of ten times as many.
fn parameters() -> NsccParameters {
    NsccParameters {
        max_window_share: 10.0,
        delay_weight: 1.0,
        adjust_octets: u64::MAX,
        additive_octets: 0.0,
        ..NsccParameters::published(8_000_000_000, 10_000, 4_198)
    }
}

/// The window after an ACK of the only packet, which comes so late.
fn window_after(round_trip_ns: u64, is_marked: bool, is_repeated: bool) -> Option<u64> {
    let mut rig = Rig::new(|config| config.rate = Some(RateAlgorithm::Nscc(parameters())));
    let key = rig.endpoint.register_memory(pattern(4096, 1), 0x1000, Access::LOCAL, 1);
    let remote = RemoteAddress { virtual_address: 0x1000, rkey: key };
    let local = LocalRange { key, offset: 0, length_octets: 64 };
    let operation = Operation::Write { remote, immediate: None };
    rig.endpoint.post_send(rig.qpn, WorkRequest { wr_id: 1, operation, local, signalled: true }).expect("posted");
    assert_eq!(sent(&mut rig), [(0, 0)]);
    if is_repeated {
        rig.give(&Given::response(0, 0x60)).expect("a sequence NAK");
        assert_eq!(sent(&mut rig), [(0, 0)]);
    }
    rig.advance_ns(round_trip_ns);
    let mut ack = Given::response(0, 0x1F);
    ack.bth.becn = is_marked;
    rig.give(&ack).expect("an ACK");
    rig.endpoint.rate_limits(rig.now, rig.qpn).expect("it has a rate control").window_octets
}

#[test]
fn mark_and_round_trip_of_an_ack_decide_on_the_window() {
    assert_eq!(window_after(30_000, true, false), Some(60_000), "γ = 0.8 of half: 10 of 20 µs are too much");
    assert_eq!(window_after(20_001, true, false), Some(99_992), "1 of 10,001 ns");
    assert_eq!(window_after(19_999, true, false), Some(100_000), "no more than the target");
    assert_eq!(window_after(30_000, false, false), Some(100_000), "not marked");
}

#[test]
fn a_packet_that_was_sent_twice_is_not_measured() {
    // The loss takes a packet of 4,198 octets.
    assert_eq!(window_after(30_000, true, true), Some(95_802));
}
