//! Fast CNPs at the host: accepted only from sources on the list, for the queue pair that they name, and never more often
//! than allowed.

use crate::support::{Given, OURS, PEER, Rig, Traced, qpn};
use srdma_capture::Reader;
use srdma_rc::rate::DcqcnParameters;
use srdma_rc::{
    CongestionEvent, DropReason, Endpoint, EndpointConfig, FastCnpConfig, QueuePairConfig, RateAlgorithm, RateLimits,
};
use srdma_wire::fast_cnp::{FastCnpValue, OptionTypes};
use srdma_wire::ioam::LinkLoad;
use srdma_wire::{CnpView, Instant, Opcode, Prefix};
use std::net::Ipv6Addr;
use std::path::Path;

const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 7);
const OTHER_PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3);
const LINE: u64 = 100_000_000_000;

fn access_list() -> Vec<Prefix> {
    let switches = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0);
    vec![Prefix::new(switches, 48).expect("a length"), Prefix::host(PEER)]
}

/// Queue pair 0x11 to 0x22 at PEER, and 0x12 to 0x22 at another peer, both by DCQCN.
fn endpoint(fast_cnp: Option<FastCnpConfig>) -> Endpoint {
    let mut endpoint = Endpoint::new(EndpointConfig { fast_cnp, ..EndpointConfig::new(OURS) });
    for (own, peer) in [(0x11, PEER), (0x12, OTHER_PEER)] {
        let rate = Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(LINE)));
        let config = QueuePairConfig { rate, ..QueuePairConfig::new(qpn(own), peer, qpn(0x22)) };
        endpoint.add_queue_pair(config).expect("a good configuration");
    }
    endpoint
}

fn value() -> FastCnpValue<'static> {
    FastCnpValue {
        source: SWITCH,
        destination: OURS,
        traffic_class: FastCnpValue::TRAFFIC_CLASS,
        hop_limit: FastCnpValue::HOP_LIMIT,
        source_port: 0xC001,
        dest_qpn: qpn(0x22),
        original_destination: PEER,
        trace: None,
    }
}

fn octets(value: &FastCnpValue<'_>) -> Vec<u8> {
    let mut octets = vec![0; 400];
    let length = value.emit(OptionTypes::default(), &mut octets).expect("it fits");
    octets.truncate(length);
    octets
}

fn is_limited(endpoint: &mut Endpoint, own: u32) -> bool {
    let unlimited = RateLimits { rate_bits_per_s: None, window_octets: None };
    endpoint.rate_limits(Instant::ZERO, qpn(own)).expect("it has a rate control") != unlimited
}

#[test]
fn no_fast_cnp_is_accepted_by_default() {
    let mut endpoint = endpoint(None);
    let outcome = endpoint.receive(Instant::ZERO, &[&octets(&value())]);
    assert_eq!(outcome, Err(DropReason::FastCnpDisabled), "FC-5-4");
    assert_eq!(endpoint.drops().get(DropReason::FastCnpDisabled), 1);
    assert!(!is_limited(&mut endpoint, 0x11));
}

#[test]
fn the_queue_pair_is_found_by_original_destination_and_qpn() {
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    let at = Instant::from_ns(5);
    let value = FastCnpValue { original_destination: OTHER_PEER, ..value() };
    endpoint.receive(at, &[&octets(&value)]).expect("accepted");
    assert_eq!((is_limited(&mut endpoint, 0x11), is_limited(&mut endpoint, 0x12)), (false, true), "FC-4-7");
    assert_eq!(endpoint.poll_congestion(), Some(CongestionEvent { at, qpn: qpn(0x12), switch: SWITCH }), "FC-4-8");
    assert_eq!(endpoint.poll_congestion(), None);
    let counters = endpoint.fast_cnp_counters();
    assert_eq!((counters.from_switches, counters.from_receivers, counters.with_trace), (1, 0, 0));
    assert_eq!(endpoint.counters(qpn(0x12)).expect("there").fast_cnps_received, 1);
}

/// FC-4-8: the source distinguishes a switch's from a receiver's, and only a switch can be detoured.
#[test]
fn fast_cnps_of_receivers_and_switches_are_distinguished() {
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    let from_receiver = FastCnpValue { source: PEER, ..value() };
    endpoint.receive(Instant::ZERO, &[&octets(&from_receiver)]).expect("accepted");
    assert!(is_limited(&mut endpoint, 0x11), "without a trace it is a CNP");
    assert_eq!(endpoint.poll_congestion(), None);
    assert_eq!(endpoint.fast_cnp_counters().from_receivers, 1);
}

/// D240: the rate that a switch notifies, in Mbit/s in the third word of the payload. A receiver knows none.
#[test]
fn a_switch_notifies_a_rate() {
    let with_rate = |source| {
        let mut octets = vec![0; 400];
        let value = FastCnpValue { source, ..value() };
        let payload = CnpView::with_rate(3_000);
        let length = value.emit_with(OptionTypes::default(), &payload, &mut octets).expect("it fits");
        octets.truncate(length);
        octets
    };
    for (source, expected) in [(SWITCH, 3_000_000_000), (PEER, LINE / 2)] {
        let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
        endpoint.receive(Instant::ZERO, &[&with_rate(source)]).expect("accepted");
        let limits = endpoint.rate_limits(Instant::ZERO, qpn(0x11)).expect("it has a rate control");
        let rate = limits.rate_bits_per_s.expect("it is limited");
        assert!(rate.abs_diff(expected) < LINE / 1000, "{rate} of {expected}");
    }
}

#[test]
fn a_returned_trace_is_no_congestion_notification() {
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    let mut traced = Traced::new(5);
    traced.hop(1, 2, 3, LinkLoad { rate_mbit_per_s: 100_000, sent_octets: 4 });
    let trace = traced.octets();
    let returned = FastCnpValue { source: PEER, trace: Some(&trace), ..value() };
    endpoint.receive(Instant::ZERO, &[&octets(&returned)]).expect("accepted");
    assert!(!is_limited(&mut endpoint, 0x11));
    endpoint.receive(Instant::from_ns(1_000), &[&octets(&FastCnpValue { source: SWITCH, ..returned })]).expect("too");
    assert!(is_limited(&mut endpoint, 0x11));
    assert_eq!(endpoint.fast_cnp_counters().with_trace, 2);
}

/// Every way in which one can be wrong: counted under its name, and nothing else happens.
#[test]
fn invalid_fast_cnps_are_counted_and_change_nothing() {
    let good = octets(&value());
    let mut traced = Traced::new(5);
    traced.hop(1, 2, 3, LinkLoad { rate_mbit_per_s: 100_000, sent_octets: 4 });
    let trace = traced.octets();
    let with_trace = octets(&FastCnpValue { trace: Some(&trace), ..value() });
    let edited = |octets: &[u8], edits: &[(usize, u8)]| {
        let mut octets = octets.to_vec();
        for (offset, octet) in edits {
            octets[*offset] = *octet;
        }
        octets
    };
    // The Destination Options header is at 40, its option's type at 42 (option 1) or 44 (option 2).
    let hop_by_hop = {
        let mut octets = edited(&good, &[(6, 0)]);
        octets[40] = 17;
        octets
    };
    let in_two_headers = {
        let mut octets = good.clone();
        octets.splice(64..64, good[40..64].iter().copied());
        octets[40] = 60;
        octets[5] += 24;
        octets
    };
    let twice = {
        let mut octets = good.clone();
        octets.splice(60..64, good[42..60].iter().copied().chain([0, 0]));
        octets[41] = 4;
        octets[5] += 16;
        octets
    };
    let beside = {
        let mut octets = good.clone();
        octets.splice(64..64, [0x9F, 6, 0, 0, 0, 0, 0, 0]);
        octets[41] = 3;
        octets[5] += 8;
        octets
    };
    let cases: Vec<(&str, Vec<u8>, DropReason)> = vec![
        ("from outside the list (FC-5-3)", edited(&good, &[(13, 1)]), DropReason::FastCnpSource),
        ("from a host that is no switch", octets(&FastCnpValue { source: OURS, ..value() }), DropReason::FastCnpSource),
        ("for an unknown peer", edited(&good, &[(59, 9)]), DropReason::UnknownQueuePair),
        ("for an unknown QPN", octets(&FastCnpValue { dest_qpn: qpn(0x23), ..value() }), DropReason::UnknownQueuePair),
        (
            "with this host's own QPN",
            octets(&FastCnpValue { dest_qpn: qpn(0x11), ..value() }),
            DropReason::UnknownQueuePair,
        ),
        ("an option too short", edited(&good, &[(43, 15)]), DropReason::FastCnpLength),
        ("an option too long", edited(&good, &[(43, 18), (62, 0), (63, 0)]), DropReason::FastCnpLength),
        ("an option beyond its header", edited(&good, &[(43, 60)]), DropReason::OptionOverrun),
        ("in Hop-by-Hop Options", hop_by_hop, DropReason::FastCnpPlace),
        ("in two headers", in_two_headers, DropReason::FastCnpPlace),
        ("twice", twice, DropReason::FastCnpTwice),
        ("beside an unknown option", beside, DropReason::UnknownOption),
        ("in an ACK", edited(&good, &[(72, Opcode::ACKNOWLEDGE.0)]), DropReason::FastCnpOpcode),
        ("another IOAM option", edited(&with_trace, &[(47, 3)]), DropReason::FastCnpTrace),
        ("a trace that claims more than it holds", edited(&with_trace, &[(51, 0x7F)]), DropReason::FastCnpTrace),
        ("a trace that ends inside a node", edited(&with_trace, &[(51, 50)]), DropReason::FastCnpTrace),
        ("a trace of other fields than its type", edited(&with_trace, &[(52, 0xFF)]), DropReason::FastCnpTrace),
        ("another partition", edited(&good, &[(74, 0x7F), (75, 0xFE)]), DropReason::PartitionKey),
        ("a damaged QPN that exists", edited(&good, &[(100, 1)]), DropReason::BadIcrc),
        ("a UDP checksum", edited(&good, &[(70, 1)]), DropReason::BadUdpChecksum),
        ("cut short", good[..80].to_vec(), DropReason::Truncated),
    ];
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    for (number, (name, packet, reason)) in cases.iter().enumerate() {
        assert_eq!(endpoint.receive(Instant::ZERO, &[packet]), Err(*reason), "{name}");
        assert_eq!(endpoint.drops().total(), number as u64 + 1, "{name}");
        assert!(!is_limited(&mut endpoint, 0x11) && !is_limited(&mut endpoint, 0x12), "{name}");
        assert_eq!(endpoint.poll_congestion(), None, "{name}");
        assert!(!endpoint.may_transmit() && endpoint.next_deadline().is_none(), "{name}");
    }
    endpoint.receive(Instant::ZERO, &[&good]).expect("the good one");
    assert!(is_limited(&mut endpoint, 0x11));
}

/// Fast CNPs that scapy made: option 1, option 1 behind its padding, option 2 with a type of its own. The first three
/// have an ICRC that counts the extension header; ours does not (D43).
#[test]
fn fast_cnps_of_scapy_are_accepted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_04_fastcnp.pcap");
    let reader = Reader::open(&file).expect("a capture");
    let packets: Vec<Vec<u8>> = reader.map(|packet| packet.expect("whole").octets[14..].to_vec()).collect();
    let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
    for (index, is_good) in [(2, false), (3, false), (4, false), (5, true), (6, true), (7, true)] {
        let mut config = FastCnpConfig::new(vec![Prefix::host(address("2001:db8:53::1"))]);
        config.option_types = OptionTypes::new(0x9E, 0x9D).expect("act 10, chg 0");
        let config = EndpointConfig { fast_cnp: Some(config), ..EndpointConfig::new(address("2001:db8:1::1")) };
        let mut endpoint: Endpoint = Endpoint::new(config);
        let rate = Some(RateAlgorithm::Dcqcn(DcqcnParameters::sigcomm_2015(LINE)));
        let queue_pair = QueuePairConfig::new(qpn(0x11), address("2001:db8:2::1"), qpn(0xABCD));
        endpoint.add_queue_pair(QueuePairConfig { rate, ..queue_pair }).expect("a good configuration");
        let outcome = endpoint.receive(Instant::ZERO, &[&packets[index]]);
        assert_eq!(outcome, if is_good { Ok(()) } else { Err(DropReason::BadIcrc) }, "frame {}", index + 1);
        assert_eq!(is_limited(&mut endpoint, 0x11), is_good, "frame {}", index + 1);
        assert_eq!(endpoint.fast_cnp_counters().with_trace, u64::from(index == 7));
    }
}

/// D40: other padding than ours is accepted.
#[test]
fn other_padding_is_accepted() {
    let mut packet = octets(&value());
    let address = packet[44..60].to_vec();
    packet[42..48].copy_from_slice(&[1, 2, 0, 0, 0x9E, 16]);
    packet[48..64].copy_from_slice(&address);
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    endpoint.receive(Instant::ZERO, &[&packet]).expect("accepted");
    assert!(is_limited(&mut endpoint, 0x11));
}

/// A million a second: one reaction in the interval, and never more events than there is room for.
#[test]
fn a_flood_changes_the_rate_once_in_the_interval() {
    let config = FastCnpConfig { min_interval_ns: 50_000, max_events: 16, ..FastCnpConfig::new(access_list()) };
    let mut endpoint = endpoint(Some(config));
    let packet = octets(&value());
    for microsecond in 0..10_000 {
        let outcome = endpoint.receive(Instant::from_ns(microsecond * 1_000), &[&packet]);
        let expected = if microsecond % 50 == 0 { Ok(()) } else { Err(DropReason::FastCnpTooOften) };
        assert_eq!(outcome, expected, "at {microsecond} µs");
    }
    assert_eq!(endpoint.counters(qpn(0x11)).expect("there").fast_cnps_received, 200);
    assert_eq!(endpoint.drops().get(DropReason::FastCnpTooOften), 9_800);
    assert_eq!(std::iter::from_fn(|| endpoint.poll_congestion()).count(), 16);
    assert_eq!(endpoint.fast_cnp_counters().events_lost, 184);
}

/// FC-5-3: a million from outside the access list, each of another address; and a million of an accepted switch, each
/// for another unknown queue pair; half of them with a trace. Each is counted under its name, without any other effect:
/// nothing is allocated, no packet or timer becomes due, and the next valid one is accepted.
#[test]
fn a_flood_of_refused_packets_leaves_no_state() {
    const EACH: u32 = 1_000_000;
    let mut traced = Traced::new(5);
    traced.hop(1, 2, 3, LinkLoad { rate_mbit_per_s: 100_000, sent_octets: 4 });
    let trace = traced.octets();
    let of_strangers = |number: u32| {
        let source = Ipv6Addr::from_bits(Ipv6Addr::new(0x2001, 0xdb8, 0xdd, 0, 0, 0, 0, 0).to_bits() | number as u128);
        FastCnpValue { source, ..value() }
    };
    let for_nobody = |number: u32| FastCnpValue { dest_qpn: qpn(0x1000 + number), ..value() };
    let floods: [(&dyn Fn(u32) -> FastCnpValue<'static>, DropReason); 2] =
        [(&of_strangers, DropReason::FastCnpSource), (&for_nobody, DropReason::UnknownQueuePair)];
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    let mut packet = vec![0; 400];
    for (flood, reason) in floods {
        let allocated = allocation_counter::measure(|| {
            for number in 0..EACH {
                let value = FastCnpValue { trace: (number % 2 == 1).then_some(&trace[..]), ..flood(number) };
                let length = value.emit(OptionTypes::default(), &mut packet).expect("it fits");
                let now = Instant::from_ns(u64::from(number) * 1_000);
                assert_eq!(endpoint.receive(now, &[&packet[..length]]), Err(reason), "number {number}");
            }
        });
        assert_eq!(allocated.count_total, 0, "{reason}");
        assert_eq!(endpoint.drops().get(reason), u64::from(EACH));
        assert!(!is_limited(&mut endpoint, 0x11) && !is_limited(&mut endpoint, 0x12), "{reason}");
        assert_eq!(endpoint.poll_congestion(), None, "{reason}");
        assert!(!endpoint.may_transmit() && endpoint.next_deadline().is_none(), "{reason}");
        assert_eq!(endpoint.fast_cnp_counters(), Default::default(), "{reason}");
    }
    assert_eq!(endpoint.drops().total(), 2 * u64::from(EACH));
    endpoint.receive(Instant::from_ns(1_000_000_000), &[&octets(&value())]).expect("a good one");
    assert!(is_limited(&mut endpoint, 0x11));
}

/// FC-6-1, D42: other types, apart.
#[test]
fn option_types_can_be_set() {
    let option_types = OptionTypes::new(0x9D, 0x9C).expect("act 10, chg 0");
    let mut endpoint = endpoint(Some(FastCnpConfig { option_types, ..FastCnpConfig::new(access_list()) }));
    assert_eq!(endpoint.receive(Instant::ZERO, &[&octets(&value())]), Err(DropReason::NotUdp), "an unknown option");
    let mut packet = vec![0; 200];
    let length = value().emit(option_types, &mut packet).expect("it fits");
    endpoint.receive(Instant::ZERO, &[&packet[..length]]).expect("accepted");
}

#[test]
fn queue_pairs_with_the_same_peer_are_ambiguous() {
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    endpoint.add_queue_pair(QueuePairConfig::new(qpn(0x13), PEER, qpn(0x22))).expect("a good configuration");
    assert_eq!(endpoint.receive(Instant::ZERO, &[&octets(&value())]), Err(DropReason::UnknownQueuePair));
}

#[test]
fn a_failed_queue_pair_accepts_no_fast_cnp() {
    let mut rig: Rig = Rig::new(|_| {});
    rig.endpoint.refuse(rig.qpn);
    let _ = rig.give(&Given::new(Opcode::WRITE_ONLY, 0, vec![1; 4]).reth(0, srdma_rc::MemoryKey(0), 4));
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    endpoint.refuse(qpn(0x11));
    let given = Given::new(Opcode::WRITE_ONLY, 0, vec![1; 4]).reth(0, srdma_rc::MemoryKey(0), 4);
    endpoint.receive(Instant::ZERO, &[&given.octets()]).expect_err("it refuses");
    assert_eq!(endpoint.receive(Instant::ZERO, &[&octets(&value())]), Err(DropReason::QueuePairInError));
}

/// Two queue pairs with the same peer cannot be distinguished; when one of them is gone, the other is found again.
#[test]
fn a_removed_queue_pair_is_not_found() {
    let mut endpoint = endpoint(Some(FastCnpConfig::new(access_list())));
    let second = QueuePairConfig::new(qpn(0x13), PEER, qpn(0x22));
    endpoint.add_queue_pair(second).expect("a good configuration");
    let packet = octets(&value());
    assert_eq!(endpoint.receive(Instant::ZERO, &[&packet]), Err(DropReason::UnknownQueuePair));
    assert!(endpoint.remove_queue_pair(qpn(0x13)).is_some());
    assert_eq!(endpoint.remove_queue_pair(qpn(0x13)), None);
    assert_eq!(endpoint.receive(Instant::ZERO, &[&packet]), Ok(()));
    let counters = endpoint.remove_queue_pair(qpn(0x11)).expect("it is there");
    assert_eq!((counters.fast_cnps_received, endpoint.queue_pairs()), (1, 1));
    assert_eq!(endpoint.receive(Instant::ZERO, &[&packet]), Err(DropReason::UnknownQueuePair));
}
