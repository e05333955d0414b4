//! D284: CNPs that tell how many flows of the receiver are congested, and a sender that goes by it.

use crate::support::{Given, OURS, PEER, pattern, qpn};
use srdma_rc::rate::{DcqcnParameters, IncastScale};
use srdma_rc::{Access, Endpoint, EndpointConfig, MemoryKey, QueuePairConfig, RateAlgorithm};
use srdma_wire::{Instant, Opcode};

/// Where the 16 octets of a CNP begin: behind IPv6, UDP and BTH.
const PAYLOAD: usize = 40 + 8 + 12;

/// An endpoint with the queue pairs 0x11 and 0x12, each of which sends a CNP in 50 µs at most; both together one in 30.
fn endpoint(cnp_pace_ns: Option<u64>) -> (Endpoint, MemoryKey) {
    let mut endpoint = Endpoint::new(EndpointConfig { cnp_pace_ns, ..EndpointConfig::new(OURS) });
    for number in [0x11, 0x12] {
        let config = QueuePairConfig::new(qpn(number), PEER, qpn(number + 0x11));
        endpoint.add_queue_pair(QueuePairConfig { cnp_interval_ns: Some(50_000), ..config }).expect("a queue pair");
    }
    let key = endpoint.register_memory(pattern(4096, 1), 0x1000, Access::REMOTE_WRITE, 1);
    (endpoint, key)
}

/// A marked WRITE for a queue pair: the payload of the CNP that answers it, if one does.
fn answer(endpoint: &mut Endpoint, key: MemoryKey, number: u32, psn: u32, now_ns: u64) -> Option<[u8; 16]> {
    let mut write = Given::new(Opcode::WRITE_ONLY, psn, vec![7; 64]).reth(0x1000, key, 64);
    write.bth.dest_qpn = qpn(number);
    let mut octets = write.octets();
    octets[1] |= 0x30;
    let now = Instant::from_ns(now_ns);
    endpoint.receive(now, &[&octets]).expect("good");
    let mut buffer = vec![0; endpoint.max_packet_octets()];
    endpoint.poll_transmit(now, &mut buffer)?;
    assert_eq!(buffer[PAYLOAD - 12], 0x81, "a CNP");
    buffer[PAYLOAD..PAYLOAD + 16].try_into().ok()
}

#[test]
fn cnps_tell_flows_and_period_and_come_accordingly() {
    let (mut endpoint, key) = endpoint(Some(30_000));
    let told = |flows, period_us| Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, flows, 0, period_us]);
    assert_eq!(answer(&mut endpoint, key, 0x11, 0, 0), told(1, 50), "no more often than the flow's interval");
    assert_eq!(answer(&mut endpoint, key, 0x12, 0, 1_000), told(2, 60));
    assert_eq!(answer(&mut endpoint, key, 0x12, 1, 60_999), None, "60 µs are not over");
    assert_eq!(answer(&mut endpoint, key, 0x12, 2, 61_000), told(2, 60));
    assert_eq!(answer(&mut endpoint, key, 0x11, 1, 900_000), told(1, 50), "the other one is not congested any more");
}

#[test]
fn cnps_tell_nothing_by_default() {
    let (mut endpoint, key) = endpoint(None);
    assert_eq!(answer(&mut endpoint, key, 0x11, 0, 0), Some([0; 16]));
    assert_eq!(answer(&mut endpoint, key, 0x12, 0, 1_000), Some([0; 16]));
    assert_eq!(answer(&mut endpoint, key, 0x12, 1, 51_000), Some([0; 16]), "50 µs for each");
}

/// 8 Gbit/s, halved by the CNP; then an increase after 55 µs, or after 110 where the period is twice as long.
#[test]
fn a_sender_takes_the_extent_from_the_cnp() {
    for (incast, told, increased_ns) in [
        (None, (9, 100), 55_000),
        (Some(IncastScale { period_ns: 50_000 }), (9, 100), 110_000),
        (Some(IncastScale { period_ns: 50_000 }), (0, 0), 55_000),
    ] {
        let (mut endpoint, _) = endpoint(None);
        let parameters = DcqcnParameters { incast, octets_per_increase: None, ..DcqcnParameters::sigcomm_2015(8_000) };
        let parameters = DcqcnParameters { min_rate_bits_per_s: 1, ..parameters };
        let rate = Some(RateAlgorithm::Dcqcn(parameters));
        let config = QueuePairConfig::new(qpn(0x13), PEER, qpn(0x33));
        endpoint.add_queue_pair(QueuePairConfig { rate, ..config }).expect("a queue pair");
        let mut cnp = Given::new(Opcode::CNP, 0, vec![]);
        cnp.bth.dest_qpn = qpn(0x13);
        endpoint.receive(Instant::ZERO, &[&cnp.telling(told.0, told.1).octets()]).expect("a CNP");
        let mut rate_at = |ns| endpoint.rate_limits(Instant::from_ns(ns), qpn(0x13)).and_then(|it| it.rate_bits_per_s);
        assert_eq!(rate_at(increased_ns - 1), Some(4_000), "{incast:?} {told:?}");
        assert_eq!(rate_at(increased_ns), Some(6_000), "{incast:?} {told:?}");
    }
}
