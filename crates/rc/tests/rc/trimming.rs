//! Packets that come trimmed (D88): the ICRC is the complement of the right one, and there is no payload.

use crate::support::{Given, PEER, Rig};
use srdma_rc::{Access, DropReason, Endpoint, EndpointConfig, MemoryKey, QueuePairConfig};
use srdma_wire::{Opcode, Psn};

const SEQUENCE_ERROR: u8 = 0x60;

fn rig(answers_trimmed: bool) -> (Rig, MemoryKey) {
    let mut rig = Rig::new(|_| ());
    let config = EndpointConfig { answers_trimmed, ..EndpointConfig::new(crate::support::OURS) };
    rig.endpoint = Endpoint::new(config);
    let mut config = QueuePairConfig::new(rig.qpn, PEER, crate::support::qpn(0x22));
    config.rq_psn = Psn::new(0xFF_FFFF);
    rig.endpoint.add_queue_pair(config).expect("a good configuration");
    let key = rig.region(4096, Access::REMOTE);
    (rig, key)
}

/// The n-th expected PSN.
fn psn(n: u32) -> u32 {
    0xFF_FFFFu32.wrapping_add(n) & 0xFF_FFFF
}

fn whole(n: u32, key: MemoryKey) -> Given {
    Given::new(Opcode::WRITE_ONLY, psn(n), vec![7; 4]).reth(0x1000, key, 4)
}

/// A trimmed packet of four octets.
fn trimmed(n: u32, key: MemoryKey) -> Vec<u8> {
    let mut octets = Given::new(Opcode::WRITE_ONLY, psn(n), Vec::new()).reth(0x1000, key, 4).octets();
    let icrc = octets.len() - 4;
    octets[icrc..].iter_mut().for_each(|octet| *octet = !*octet);
    octets
}

#[test]
fn a_trimmed_expected_packet_is_requested_at_once() {
    let (mut rig, key) = rig(true);
    for _ in 0..2 {
        assert_eq!(rig.endpoint.receive(rig.now, &[&trimmed(0, key)]), Err(DropReason::Trimmed));
    }
    assert_eq!(rig.acknowledges(), [(psn(0), SEQUENCE_ERROR, 0)], "once");
    assert_eq!(rig.endpoint.counters(rig.qpn).expect("there").trimmed_received, 2);
    rig.give(&whole(0, key)).expect("it is sent again");
}

/// Trimmed packets overtake the others: until those have come, nothing is missing.
#[test]
fn a_trimmed_later_packet_is_requested_when_it_is_expected() {
    let (mut rig, key) = rig(true);
    for n in [4, 2, 3] {
        assert_eq!(rig.endpoint.receive(rig.now, &[&trimmed(n, key)]), Err(DropReason::Trimmed));
    }
    rig.give(&whole(0, key)).expect("expected");
    assert_eq!(rig.acknowledges(), []);
    rig.give(&whole(1, key)).expect("expected");
    assert_eq!(rig.acknowledges(), [(psn(2), SEQUENCE_ERROR, 2)]);
    for n in 2..5 {
        rig.give(&whole(n, key)).expect("sent again");
    }
    assert_eq!(rig.acknowledges(), []);
}

/// An endpoint without support of trimming, and one that gets a damaged trimmed packet, drop it.
#[test]
fn other_endpoints_drop_trimmed_packets_as_damaged() {
    let (mut unknowing, key) = rig(false);
    assert_eq!(unknowing.endpoint.receive(unknowing.now, &[&trimmed(0, key)]), Err(DropReason::BadIcrc));
    let (mut knowing, key) = rig(true);
    let mut damaged = trimmed(0, key);
    damaged[60] ^= 1;
    assert_eq!(knowing.endpoint.receive(knowing.now, &[&damaged]), Err(DropReason::BadIcrc));
    assert_eq!((unknowing.acknowledges(), knowing.acknowledges()), (vec![], vec![]));
}
