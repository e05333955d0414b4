use super::*;
use srdma_testkit::checksums;
use srdma_wire::Prefix;
use std::time::Duration;

const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x53, 0, 0, 0, 0, 1);

fn prefix(number: u16, len: u8) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), len).unwrap()
}

fn config() -> FastCnpConfig {
    FastCnpConfig { senders: vec![prefix(0, 44)], capable: vec![prefix(1, 48)], ..FastCnpConfig::new() }
}

/// An RC SEND Only from 2001:db8:`net`::`host`, with a trace of so many octets of node data in a Hop-by-Hop header.
fn frame(net: u16, host: u16, trace_octets: Option<usize>) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some(octets) = trace_octets {
        let trace = [&[0, 1, 8, (octets / 4) as u8, 2, 0, 0, 0][..], &vec![0; octets]].concat();
        options.extend([17, 0, 1, 0, 0x31, trace.len() as u8 + 2, 0, 0]);
        options.extend(trace);
        let padding = options.len().wrapping_neg() % 8;
        options.extend([&[1, 2, 0, 0][..padding], &[]].concat());
        options[1] = (options.len() / 8 - 1) as u8;
    }
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xDD, 0x60, 0, 0, 0];
    frame.extend((options.len() as u16 + 24).to_be_bytes());
    frame.extend([if options.is_empty() { 17 } else { 0 }, 64]);
    frame.extend(Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host).octets());
    frame.extend(Ipv6Addr::new(0x2001, 0xdb8, 0xF, 0, 0, 0, 0, 9).octets());
    frame.extend(options);
    frame.extend([0xD0, 1, 0x12, 0xB7, 0, 24, 0, 0, 4, 0, 0xFF, 0xFF, 0, 0, 1, 0x11, 0x80, 0, 0, 9, 0, 0, 0, 0]);
    frame
}

fn decide(notifier: &mut Notifier, ns: u64, frame: &[u8]) -> Option<bool> {
    match notifier.decide(Instant::from_ns(ns), frame) {
        Decision::None | Decision::Refused | Decision::NotifiedBefore => None,
        Decision::Notify(notice) => Some(notice.and_mark),
    }
}

/// FC-4-5, FC-4-6, D47: capable, unknown, incapable; and for a while.
#[test]
fn capability_decides_about_marks() {
    let mut notifier = Notifier::new(config());
    assert_eq!(decide(&mut notifier, 0, &frame(1, 1, None)), Some(false), "known to be capable: MUST NOT mark");
    assert_eq!(decide(&mut notifier, 0, &frame(2, 1, None)), Some(true), "unknown: both");
    assert_eq!(decide(&mut notifier, 0, &frame(0x1001, 1, None)), None, "in no prefix of `senders`");
    let host = |net| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, 1).octets();
    let destination = Ipv6Addr::new(0x2001, 0xdb8, 0xF, 0, 0, 0, 0, 9).octets();
    let qpn = |number| Qpn::new(number).unwrap();
    let at = Instant::from_ns;
    assert!(!notifier.refused(at(1), &host(3), &destination, qpn(0x111)), "never notified");
    assert!(!notifier.refused(at(1), &host(1), &destination, qpn(0x112)), "another flow");
    assert!(notifier.refused(at(1), &host(1), &destination, qpn(0x111)));
    assert_eq!(decide(&mut notifier, 100_000, &frame(1, 1, None)), None, "it has refused");
    assert_eq!(decide(&mut notifier, 100_000, &frame(1, 2, None)), Some(false), "its neighbour has not");
    let later = Duration::from_secs(300).as_nanos() as u64 + 1;
    assert_eq!(decide(&mut notifier, later - 1, &frame(1, 1, None)), None);
    assert_eq!(decide(&mut notifier, later, &frame(1, 1, None)), Some(false), "asked again");
    let counters = notifier.counters;
    assert_eq!((counters.refusals, counters.incapable, counters.not_a_sender), (1, 2, 1));
}

#[test]
fn an_unknown_sender_need_not_be_marked() {
    let mut notifier = Notifier::new(FastCnpConfig { mark_unknown: false, ..config() });
    assert_eq!(decide(&mut notifier, 0, &frame(2, 1, None)), Some(false));
}

/// D45: a flow that was notified within the interval is marked, unless its sender supports Fast CNP and the
/// configuration disables the mark.
#[test]
fn marks_within_the_interval() {
    for (net, mark_notified, is_refused) in [(1, true, true), (1, false, false), (2, true, true), (2, false, true)] {
        let mut notifier = Notifier::new(FastCnpConfig { mark_notified, ..config() });
        assert!(decide(&mut notifier, 0, &frame(net, 1, None)).is_some());
        match notifier.decide(Instant::from_ns(49_999), &frame(net, 1, None)) {
            Decision::Refused => assert!(is_refused),
            Decision::NotifiedBefore => assert!(!is_refused),
            Decision::None | Decision::Notify(_) => panic!("notified a moment ago"),
        }
    }
}

/// FC-5-2, D45: one for a flow in 50 us; for all flows the bucket; both counted, and marked instead.
#[test]
fn packets_beyond_a_limit_are_marked() {
    let mut notifier = Notifier::new(FastCnpConfig { per_second: 100_000, at_once: 3, ..config() });
    let flow: Vec<u64> = (0..20)
        .map(|step| step * 10_000)
        .filter(|ns| decide(&mut notifier, *ns, &frame(1, 1, None)).is_some())
        .collect();
    assert_eq!((flow, notifier.counters.refused_by_flow), (vec![0, 50_000, 100_000, 150_000], 16));
    let notified = (2..100).filter(|host| decide(&mut notifier, 1_000_000, &frame(1, *host, None)).is_some()).count();
    assert_eq!((notified, notifier.counters.refused_by_node), (3, 95));
    let notified = (2..100).filter(|host| decide(&mut notifier, 1_010_000, &frame(1, *host, None)).is_some()).count();
    assert_eq!(notified, 1, "ten microseconds are worth one");
}

/// FC-4-1, FC-4-2, D41: the fields, the ICRC by the bitwise reference as if there were no options, and traces of every
/// length: 228 octets of node data fit, 232 do not.
#[test]
fn a_fast_cnp_has_the_packets_fields() {
    for (trace_octets, len) in [(None, 104), (Some(0), 112), (Some(24), 136), (Some(228), 344), (Some(232), 104)] {
        let mut notifier = Notifier::new(config());
        let data = frame(1, 1, trace_octets);
        let Decision::Notify(notice) = notifier.decide(Instant::ZERO, &data) else { panic!("not notified") };
        let mut octets = [0xEE; 344];
        assert_eq!(
            notifier.write(&notice.fields, LOOPBACK, OptionTypes::default(), &CnpView::with_rate(0), &mut octets),
            Some(len)
        );
        let octets = &octets[..len];
        assert_eq!(octets[..4], [0x6C, 0, 0, 0], "DSCP 48, Not-ECT");
        assert_eq!(octets[8..24], LOOPBACK.octets());
        assert_eq!(octets[24..40], data[14 + 8..14 + 24]);
        let mut standard = [&octets[..40], &octets[len - 40..len - 4]].concat();
        (standard[4], standard[5], standard[6]) = (0, 40, 17);
        assert_eq!(octets[len - 4..], checksums::icrc(&standard));
        let address = &data[14 + 24..14 + 40];
        assert!(octets[40..len - 40].windows(16).any(|window| window == address));
        assert_eq!(octets[len - 40..len - 38], [0xD0, 1], "UDP source port");
        assert_eq!(octets[len - 40 + 13..len - 40 + 16], [0, 1, 0x11], "Destination QP");
        let counters = notifier.counters;
        let has_trace = trace_octets.is_some_and(|octets| octets <= 228);
        let too_long = trace_octets.is_some_and(|octets| octets > 228);
        assert_eq!((counters.sent_with_trace, counters.trace_too_long), (has_trace.into(), too_long.into()));
    }
}

/// A million packets a second of a flow, and of as many flows: the limits hold, and nothing grows.
#[test]
fn a_storm_of_congested_packets_is_bounded() {
    let mut notifier = Notifier::new(FastCnpConfig { per_second: 20_000, at_once: 64, ..config() });
    let mut notified = 0;
    for step in 0..1_000_000_u64 {
        let data = frame(1, (step % 50_000) as u16, None);
        notified += u64::from(decide(&mut notifier, step * 1000, &data).is_some());
    }
    assert!((19_900..=20_100).contains(&notified), "{notified} in a second");
    let counters = notifier.counters;
    assert_eq!(counters.refused_by_flow + counters.refused_by_node + notified, 1_000_000);
}
