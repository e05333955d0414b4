//! ICMPv6 errors that a node sends to the source of a dropped packet, and cases without an error (RFC 4443, RFC 2473,
//! RFC 9524 section 2.2.3).

use crate::common::group::{HEADEND, address, edge_with, encapsulated, entry, inner, receiver};
use crate::common::{Bench, ipv6};
use srdma_dataplane::*;
use srdma_frame::PortId;
use srdma_testkit::checksums;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

const LOOPBACK: &str = "2001:db8:ffff::1";
const SOURCE: &str = "2001:db8:5::5";

/// A node with the source at port 0 and everything else at port 1, whose link carries 1400 octets.
fn node() -> Bench {
    let mut bench = Bench::with(LOOPBACK, 2, |config| {
        config.ports[1].link_mtu = 1400;
        config.icmp_errors_per_second = 5;
    });
    bench.route(SOURCE, 0);
    bench.route("2001:db8:1::/48", 1);
    bench.route("5f00::/16", 1);
    bench
}

fn encaps(bench: &mut Bench, prefix: &str, len: u8, segments: &[&str]) {
    let segments = segments.iter().map(|segment| address(segment)).collect();
    route(bench, prefix, len, RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None });
}

fn route(bench: &mut Bench, prefix: &str, len: u8, action: RouteAction) {
    let prefix = Prefix::new(address(prefix), len).unwrap();
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
}

/// Type, code and parameter of an error, and the packet that it quotes.
fn read(error: &[u8]) -> (u8, u8, u32, &[u8]) {
    assert_eq!((error[6], &error[8..24]), (58, &address(LOOPBACK).octets()[..]));
    assert_eq!(&error[24..40], &address(SOURCE).octets());
    assert!(error.len() <= 1280);
    (error[40], error[41], u32::from_be_bytes(error[44..48].try_into().unwrap()), &error[48..])
}

/// RFC 4443 section 3.2.
#[test]
fn a_packet_too_big_names_the_links_mtu() {
    let mut bench = node();
    assert_eq!(bench.send(0, &ipv6(SOURCE, "2001:db8:1::1", 0, 59, &[0; 1360])).len(), 1);
    let sent = bench.send(0, &ipv6(SOURCE, "2001:db8:1::1", 0, 59, &[0; 1361]));
    let (kind, code, mtu, quoted) = read(&sent[0].1);
    assert_eq!((sent.len(), sent[0].0, kind, code, mtu), (1, 0, 2, 0, 1400));
    assert_eq!(quoted.len(), 1280 - 48);
    assert_eq!(bench.drops(0), [("packet_too_big", 1)]);
}

/// RFC 2473 section 7.1: the source gets the MTU that the tunnel leaves, about its own packet; with nested policies
/// too.
#[test]
fn an_encapsulated_source_gets_the_mtu_within_the_tunnel() {
    let mut bench = node();
    encaps(&mut bench, "2001:db8:2::", 48, &["5f00:0:1::", "5f00:0:2::"]);
    encaps(&mut bench, "2001:db8:3::", 48, &["2001:db8:2::9"]);
    for (destination, overhead) in [("2001:db8:2::1", 40 + 24), ("2001:db8:3::1", 40 + 40 + 24)] {
        let longest = ipv6(SOURCE, destination, 0, 59, &vec![0; 1400 - overhead - 40]);
        assert_eq!(bench.send(0, &longest)[0].1.len(), 1400);
        let too_long = ipv6(SOURCE, destination, 0, 59, &vec![0; 1400 - overhead - 39]);
        let sent = bench.send(0, &too_long);
        let (kind, code, mtu, quoted) = read(&sent[0].1);
        assert_eq!((kind, code, mtu), (2, 0, 1400 - overhead as u32));
        let mut expected = too_long.clone();
        expected[7] -= 1;
        assert_eq!(quoted, &expected[..1280 - 48]);
    }
}

/// A policy may lead to a multicast group: then the packet is a replicated one, and its source gets no error.
#[test]
fn a_source_behind_a_multicast_policy_gets_no_error() {
    let mut bench = node();
    encaps(&mut bench, "2001:db8:2::", 48, &["ff3e::100", "2001:db8:1::1"]);
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address(LOOPBACK),
        group: address("ff3e::100"),
        incoming: None,
        outgoing: vec![PortId(1), PortId(0)],
        end_mt: false,
        require_hmac: false,
    }));
    let sent = bench.send(0, &ipv6(SOURCE, "2001:db8:2::1", 0, 59, &[0; 1350]));
    assert_eq!((sent.len(), sent[0].0, &sent[0].1[24..40]), (1, 0, &address("ff3e::100").octets()[..]));
    assert_eq!(bench.drops(0), [("packet_too_big", 1)]);
}

/// An error goes back by the policy that leads to the source.
#[test]
fn errors_follow_policies() {
    let mut bench = node();
    encaps(&mut bench, SOURCE, 128, &["5f00:0:9::"]);
    let sent = bench.send(0, &ipv6(SOURCE, "2001:db8:77::1", 0, 59, &[]));
    assert_eq!((sent[0].0, sent[0].1[6], &sent[0].1[24..40]), (1, 41, &address("5f00:0:9::").octets()[..]));
    assert_eq!(read(&sent[0].1[40..]).0, 1);
}

/// RFC 4443 section 2.4 e: no error about an error, a redirect, or a packet without a unicast source.
#[test]
fn some_packets_cause_no_icmp_error() {
    let nowhere = "2001:db8:77::1";
    let answers = |packet: &[u8]| {
        let mut bench = node();
        bench.route("::/0", 0);
        bench.route("::/128", 0);
        let prefix = Prefix::new(address(nowhere), 128).unwrap();
        bench.apply(Command::AddSid { prefix, behavior: SidBehavior::End(Flavors::default()) });
        (bench.send(0, packet).len(), bench.drops(0)[0].0)
    };
    let icmp = |kind| ipv6(SOURCE, nowhere, 0, 58, &[kind, 0, 0, 0, 0, 0, 0, 0]);
    let srh_then_icmp = |kind| {
        let srh = [&[58, 2, 4, 0, 0, 0, 0, 0][..], &[0; 16], &[kind, 0, 0, 0, 0, 0, 0, 0]].concat();
        ipv6(SOURCE, nowhere, 0, 43, &srh)
    };
    assert_eq!(answers(&icmp(129)), (1, "upper_layer"));
    assert_eq!(answers(&srh_then_icmp(129)), (1, "upper_layer"));
    for kind in [1, 2, 127, 137] {
        assert_eq!(answers(&icmp(kind)), (0, "upper_layer"));
        assert_eq!(answers(&srh_then_icmp(kind)), (0, "upper_layer"));
    }
    assert_eq!(answers(&ipv6("::", "2001:db8:1::1", 0, 59, &[])), (0, "bad_source"));
    assert_eq!(answers(&ipv6("ff02::1", "2001:db8:1::1", 0, 59, &[])), (0, "bad_source"));
}

/// RFC 4443 section 2.4 f.
#[test]
fn errors_are_limited_in_rate() {
    let mut bench = node();
    let unroutable = ipv6(SOURCE, "2001:db8:77::1", 0, 59, &[]);
    assert_eq!((0..20).map(|_| bench.send(0, &unroutable).len()).sum::<usize>(), 5);
    bench.now = bench.now.after_ns(200_000_000);
    assert_eq!((0..20).map(|_| bench.send(0, &unroutable).len()).sum::<usize>(), 1);
    assert_eq!(bench.drops(0), [("no_route", 40)]);
}

/// A flood that causes other errors does not keep a source from learning the MTU.
#[test]
fn packet_too_big_has_a_limit_of_its_own() {
    let mut bench = node();
    let unroutable = ipv6(SOURCE, "2001:db8:77::1", 0, 59, &[]);
    assert_eq!((0..20).map(|_| bench.send(0, &unroutable).len()).sum::<usize>(), 5);
    let long = ipv6(SOURCE, "2001:db8:1::1", 0, 59, &[0; 1361]);
    let sent = (0..20).flat_map(|_| bench.send(0, &long)).collect::<Vec<_>>();
    assert_eq!(sent.len(), 5);
    assert!(sent.iter().all(|(_, error)| read(error).0 == 2));
}

/// RFC 9524 section 2.2.3: for copies, only a Packet Too Big is sent, to the headend, within the rate limit.
#[test]
fn replicated_packets_are_answered_by_packet_too_big_only() {
    let mut bench = Bench::with(LOOPBACK, 3, |config| {
        config.ports[1].link_mtu = 200;
        config.icmp_errors_per_second = 1;
    });
    bench.route(HEADEND, 0);
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address(HEADEND),
        group: address("ff3e::100"),
        incoming: Some(PortId(0)),
        outgoing: vec![PortId(1), PortId(2)],
        end_mt: false,
        require_hmac: false,
    }));
    let to_group = |hop_limit| {
        let mut packet = encapsulated(&inner(0x04, 0, &[1; 256], false));
        packet[7] = hop_limit;
        packet[24..40].copy_from_slice(&address("ff3e::100").octets());
        packet
    };
    let sent = bench.send(0, &to_group(9));
    let kinds: Vec<(u16, u8)> = sent.iter().map(|(port, packet)| (*port, packet[6])).collect();
    assert_eq!(kinds, [(0, 58), (2, 43)]);
    assert_eq!((sent[0].1[40], sent[0].1[41], &sent[0].1[44..48]), (2, 0, &200u32.to_be_bytes()[..]));
    assert_eq!(bench.send(0, &to_group(9)).len(), 1, "no second error within the second");
    bench.now = bench.now.after_ns(5_000_000_000);
    assert_eq!(bench.send(0, &to_group(1)), [], "an exhausted hop limit is not told");
    assert_eq!(bench.drops(0), [("hop_limit_exceeded", 1), ("packet_too_big", 2)]);
}

/// A copy that is too long for its receiver's link is dropped with its own reason, without an error.
#[test]
fn copies_too_long_for_a_link_are_counted() {
    let mut bench = edge_with(false, |config| config.ports[1].link_mtu = 300);
    bench.apply(Command::AddGroup(Box::new(entry(&[receiver(1, 0x101, None)], None))));
    assert_eq!(bench.send(0, &encapsulated(&inner(0x04, 0, &[1; 512], false))), []);
    assert_eq!(bench.drops(0), [("packet_too_big", 1)]);
}

/// The model's ICRC of a RoCEv2 packet is not that of its outer header: an error quotes the inner packet as it was sent.
#[test]
fn quoted_packets_keep_their_icrc() {
    let mut bench = node();
    encaps(&mut bench, "2001:db8:ff::", 48, &["5f00:0:1::"]);
    let data = inner(0x04, 0, &[3; 1300], false);
    let source: Ipv6Addr = <[u8; 16]>::try_from(&data[8..24]).unwrap().into();
    bench.route(&source.to_string(), 0);
    let sent = bench.send(0, &data);
    let quoted = &sent[0].1[48..];
    let whole = [quoted, &data[quoted.len()..]].concat();
    assert_eq!(checksums::icrc(&whole[..whole.len() - 4])[..], whole[whole.len() - 4..]);
}
