//! Scopes of addresses, options and chains of headers at SIDs, pings and traceroutes to SIDs, errors about tenants'
//! packets (RFC 4291, RFC 8200, RFC 8883, RFC 8986, RFC 9259).

use crate::common::{Bench, address, ipv6, next_hop, prefix};
use srdma_dataplane::*;
use srdma_testkit::checksums;

const LOOPBACK: &str = "2001:db8:ffff::1";
const SOURCE: &str = "2001:db8:5::5";
const END: &str = "fd00:1::e";
const END_USD: &str = "fd00:1::11";
const END_DT6: &str = "fd00:1::d6";
const TENANT: &str = "fd00:1::d7";
const DESTINATION: &str = "2001:db8:1::1";

/// SIDs, a default route by port 1, the source at port 0; and a tenant's table 7, whose hosts are at port 2.
fn node() -> Bench {
    let mut bench = Bench::new(LOOPBACK, 3);
    bench.route("::/0", 1);
    bench.route("2001:db8:5::/48", 0);
    let usd = Flavors { usd: true, ..Flavors::default() };
    for (sid, behavior) in [
        (END, SidBehavior::End(Flavors::default())),
        (END_USD, SidBehavior::End(usd)),
        (END_DT6, SidBehavior::EndDt6(TableId(0))),
        (TENANT, SidBehavior::EndDt6(TableId(7))),
    ] {
        bench.apply(Command::AddSid { prefix: prefix(sid), behavior });
    }
    let action = RouteAction::Via(vec![next_hop(2)]);
    bench.apply(Command::AddRoute { table: TableId(7), prefix: prefix("2001:db8:7::/48"), action });
    bench
}

/// Ports and packets that leave for a packet of the source, and the reasons for which it was dropped.
fn result(packet: &[u8]) -> (Vec<(u16, Vec<u8>)>, Vec<&'static str>) {
    let mut bench = node();
    let sent = bench.send(0, packet);
    (sent, bench.drops(0).into_iter().map(|(reason, _)| reason).collect())
}

fn dropped(packet: &[u8]) -> &'static str {
    let (sent, reasons) = result(packet);
    assert_eq!((sent, reasons.len()), (vec![], 1), "{reasons:?}");
    reasons[0]
}

/// Type, code and parameter of the ICMPv6 error that the source gets.
fn reported(packet: &[u8]) -> (u8, u8, u32) {
    let (sent, _) = result(packet);
    let [(0, error)] = &sent[..] else { panic!("one error at port 0, not {sent:?}") };
    assert_eq!((error[6], &error[8..24]), (58, &address(LOOPBACK).octets()[..]));
    (error[40], error[41], u32::from_be_bytes(error[44..48].try_into().unwrap()))
}

/// An SRH with these segments, the last one first, before `payload`.
fn srh(next_header: u8, left: u8, segments: &[&str], payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![next_header, 2 * segments.len() as u8, 4, left, segments.len() as u8 - 1, 0, 0, 0];
    octets.extend(segments.iter().flat_map(|segment| address(segment).octets()));
    octets.extend(payload);
    octets
}

/// An options header with one option of four octets.
fn options(next_header: u8, option: u8, payload: &[u8]) -> Vec<u8> {
    [&[next_header, 0, option, 4, 0, 0, 0, 0], payload].concat()
}

/// RFC 4291 sections 2.5.2, 2.5.3, 2.5.6: neither a route nor a segment nor a tunnel leads such packets out.
#[test]
fn addresses_of_a_link_or_a_host_are_not_forwarded() {
    for destination in ["fe80::1", "febf::1", "::1", "::"] {
        assert_eq!(dropped(&ipv6(SOURCE, destination, 0, 59, &[])), "scope", "to {destination}");
        let list = srh(59, 1, &[destination], &[]);
        assert_eq!(dropped(&ipv6(SOURCE, END, 0, 43, &list)), "scope", "by a segment to {destination}");
        for sid in [END_DT6, END_USD] {
            let inner = ipv6(SOURCE, destination, 0, 59, &[]);
            assert_eq!(dropped(&ipv6(SOURCE, sid, 0, 41, &inner)), "scope", "out of {sid} to {destination}");
        }
    }
    // A policy may lead there too; it is looked up once for all of its packets.
    let mut bench = node();
    let action =
        RouteAction::Encaps { segments: vec![address("fe80::1")], mode: EncapsMode::Reduced, hmac_key_id: None };
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:2::/48"), action });
    for count in 1..3 {
        assert_eq!(bench.send(0, &ipv6(SOURCE, "2001:db8:2::1", 0, 59, &[])), []);
        assert_eq!(bench.drops(0), [("scope", count)]);
    }
    for (source, reason) in [("fe80::1", "scope"), ("::1", "scope"), ("::", "bad_source"), ("ff02::1", "bad_source")] {
        assert_eq!(dropped(&ipv6(source, DESTINATION, 0, 59, &[])), reason, "from {source}");
        assert_eq!(dropped(&ipv6(source, END, 0, 59, &[])), reason, "from {source} to a SID");
        for sid in [END_DT6, END_USD] {
            let inner = ipv6(source, DESTINATION, 0, 59, &[]);
            assert_eq!(dropped(&ipv6(SOURCE, sid, 0, 41, &inner)), reason, "out of {sid} from {source}");
        }
    }
    // Others that begin with the same octets are forwarded; a neighbour may address the node itself.
    for destination in ["64:ff9b::1", "fec0::1", "::2", "fdff::1"] {
        assert_eq!(result(&ipv6(destination, destination, 0, 59, &[])).0.len(), 1, "{destination}");
    }
    assert_eq!(dropped(&ipv6("fe80::1", LOOPBACK, 0, 59, &[])), "local_delivery");
    assert_eq!(dropped(&ipv6("::1", LOOPBACK, 0, 59, &[])), "scope");
}

/// D229: RFC 8200 section 4.2: a SID is the packet's destination, and processes the options before and behind the SRH.
#[test]
fn options_at_a_sid_are_processed() {
    let to_sid = |option| ipv6(SOURCE, END, 0, 60, &options(43, option, &srh(59, 1, &[DESTINATION], &[])));
    for option in [0x01, 0x1E, 0x31] {
        assert_eq!(result(&to_sid(option)).0[0].0, 1, "option {option:#x} is skipped");
    }
    assert_eq!(dropped(&to_sid(0x5E)), "bad_option");
    for option in [0x9E, 0xDE] {
        assert_eq!(reported(&to_sid(option)), (4, 2, 42));
        let behind = srh(60, 0, &[DESTINATION], &options(41, option, &ipv6(SOURCE, DESTINATION, 0, 59, &[])));
        for sid in [END_DT6, END_USD] {
            assert_eq!(reported(&ipv6(SOURCE, sid, 0, 43, &behind)), (4, 2, 40 + 24 + 2));
        }
    }
    let overrun = [43, 0, 1, 9, 0, 0, 0, 0];
    let packet = ipv6(SOURCE, END, 0, 60, &[&overrun[..], &srh(59, 1, &[DESTINATION], &[])].concat());
    assert_eq!(reported(&packet), (4, 0, 42));
    // Who only forwards does not look at them.
    assert_eq!(result(&ipv6(SOURCE, DESTINATION, 0, 60, &options(59, 0x9E, &[]))).0.len(), 1);
}

/// RFC 8200 section 4.1, RFC 8883 section 2.4.
#[test]
fn chains_of_options_headers_are_bounded() {
    let list = srh(59, 1, &[DESTINATION], &[]);
    let first = ipv6(SOURCE, END, 0, 0, &options(60, 1, &options(43, 1, &list)));
    assert_eq!(result(&first).0[0].0, 1);
    let second = ipv6(SOURCE, END, 0, 60, &options(0, 1, &options(43, 1, &list)));
    assert_eq!(reported(&second), (4, 1, 40));
    let four = (0..4).fold(list, |rest, place| options(if place == 0 { 43 } else { 60 }, 1, &rest));
    assert_eq!(reported(&ipv6(SOURCE, END, 0, 60, &four)), (4, 8, 40 + 4 * 8));
}

/// RFC 8986 sections 4.1 and 4.6: behind a routing header without segments left the next header is processed, also
/// another routing header.
#[test]
fn routing_headers_may_follow_each_other() {
    let second = srh(59, 1, &[DESTINATION], &[]);
    let (sent, _) = result(&ipv6(SOURCE, END, 0, 43, &srh(43, 0, &["2001:db8:9::9"], &second)));
    assert_eq!((sent[0].0, &sent[0].1[24..40]), (1, &address(DESTINATION).octets()[..]));
    let inner = ipv6(SOURCE, DESTINATION, 0, 59, &[]);
    let done = srh(43, 0, &["2001:db8:9::9"], &srh(41, 0, &["2001:db8:9::8"], &inner));
    for sid in [END_DT6, END_USD] {
        let (sent, reasons) = result(&ipv6(SOURCE, sid, 0, 43, &done));
        assert_eq!((sent[0].0, sent[0].1.len()), (1, 40), "{sid}: {reasons:?}");
    }
    let left = srh(43, 0, &["2001:db8:9::9"], &srh(41, 1, &["2001:db8:9::8"], &inner));
    assert_eq!(reported(&ipv6(SOURCE, END_DT6, 0, 43, &left)), (4, 0, 40 + 24 + 3));
}

/// RFC 8986 section 4.1: S05 comes before S09.
#[test]
fn the_hop_limit_is_checked_before_the_segments() {
    let mut packet = ipv6(SOURCE, END, 0, 43, &srh(59, 9, &[DESTINATION], &[]));
    assert_eq!(reported(&packet), (4, 0, 43));
    packet[7] = 1;
    assert_eq!(reported(&packet), (3, 0, 0));
}

/// D229: RFC 9259 section 2.1.1: a node without support of the O-flag ignores it, and sends it on.
#[test]
fn the_oam_flag_is_ignored() {
    const FLAGS: usize = 40 + 5;
    let payload = [0xA5; 32];
    let packet = |flags| {
        let mut packet = ipv6(SOURCE, END, 0, 43, &srh(253, 1, &[DESTINATION, END], &payload));
        packet[FLAGS] = flags;
        packet
    };
    let [plain, flagged] = [0, 0x20].map(|flags| result(&packet(flags)));
    assert_eq!((plain.0.len(), flagged.0.len()), (1, 1));
    assert_eq!(flagged.0[0].1[FLAGS], 0x20);
    assert_eq!(plain.0[0].1[FLAGS + 1..], flagged.0[0].1[FLAGS + 1..]);
}

/// An echo request with eight octets of data.
fn echo_request(destination: &str) -> Vec<u8> {
    let mut packet = ipv6(SOURCE, destination, 0, 58, &[128, 0, 0, 0, 0x12, 0x34, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    let checksum = checksums::icmpv6(&packet);
    packet[42..44].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// D229: RFC 9259 sections 3.1 and 3.2: pings and traceroutes to SIDs, by a list of segments too.
#[test]
fn sids_answer_pings_and_traceroutes() {
    for sid in [END, END_USD, END_DT6] {
        let request = echo_request(sid);
        let by_segments = ipv6(SOURCE, sid, 0, 43, &srh(58, 0, &[sid], &request[40..]));
        for packet in [&request, &by_segments] {
            let (sent, reasons) = result(packet);
            let [(0, reply)] = &sent[..] else { panic!("{sid}: one reply at port 0, not {sent:?}") };
            assert_eq!((&reply[8..24], &reply[24..40]), (&address(sid).octets()[..], &address(SOURCE).octets()[..]));
            assert_eq!((reply[6], reply[40], &reply[44..]), (58, 129, &request[44..]));
            assert_eq!(u16::from_be_bytes([reply[42], reply[43]]), checksums::icmpv6(reply));
            assert_eq!(reasons, [] as [&str; 0]);
        }
        let probe = [0xC0, 0, 0x82, 0x9A, 0, 12, 0, 0, 1, 2, 3, 4];
        assert_eq!(reported(&ipv6(SOURCE, sid, 0, 17, &probe)), (1, 4, 0));
        let other = [0xC0, 0, 0x12, 0xB7, 0, 12, 0, 0, 1, 2, 3, 4];
        assert_eq!(reported(&ipv6(SOURCE, sid, 0, 17, &other)), (4, 4, 40));
    }
    let mut damaged = echo_request(END);
    damaged[50] ^= 1;
    assert_eq!(dropped(&damaged), "upper_layer");
    let long = ipv6(SOURCE, END, 0, 58, &[&[128, 0, 0, 0], &[0; 3000][..]].concat());
    assert_eq!(dropped(&long), "upper_layer");
    let mut bench = node();
    let answered = (0..200).map(|_| bench.send(0, &echo_request(END)).len()).sum::<usize>();
    assert_eq!(bench.drops(0), [("echo_rate_limited", 200 - answered as u64)]);
    assert!(answered > 0 && answered < 200);
}

/// D229: An error about a packet of a tenant's table goes by that table, or nowhere.
#[test]
fn errors_stay_in_the_packets_table() {
    let of_tenant = |source: &str| {
        let inner = ipv6(source, "2001:db8:8::1", 0, 59, &[]);
        result(&ipv6(SOURCE, TENANT, 0, 41, &inner))
    };
    let (sent, reasons) = of_tenant("2001:db8:7::7");
    assert_eq!((sent[0].0, &sent[0].1[24..40], sent[0].1[40]), (2, &address("2001:db8:7::7").octets()[..], 1));
    assert_eq!(reasons, ["no_route"]);
    assert_eq!(of_tenant(SOURCE).0, [], "the main table would lead to port 0");
    // The outer packet is not the tenant's.
    assert_eq!(reported(&ipv6(SOURCE, TENANT, 0, 59, &[])), (4, 4, 40));
}

/// RFC 2473 section 7.1: a source is never told of less than 1,280 octets, which it would not heed.
#[test]
fn a_tunnel_leaves_the_least_mtu() {
    let mut bench = Bench::with(LOOPBACK, 2, |config| config.ports[1].link_mtu = 1300);
    bench.route("2001:db8:5::/48", 0);
    bench.route("5f00::/16", 1);
    let action =
        RouteAction::Encaps { segments: vec![address("5f00::1")], mode: EncapsMode::Reduced, hmac_key_id: None };
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:2::/48"), action });
    let sent = bench.send(0, &ipv6(SOURCE, "2001:db8:2::1", 0, 59, &[0; 1300]));
    assert_eq!((sent[0].1[40], &sent[0].1[44..48]), (2, &1280u32.to_be_bytes()[..]));
}

/// RFC 4443 section 2.4 e.1: an error behind a Fragment header is one, and a later fragment of ICMPv6 may be.
#[test]
fn no_error_answers_a_fragment_of_an_error() {
    let fragment = |offset: u16, more: u8, message: &[u8]| {
        let header = [58, 0, (offset >> 5) as u8, (offset << 3) as u8 | more, 0, 0, 0, 1];
        ipv6(SOURCE, END, 0, 44, &[&header[..], message].concat())
    };
    assert_eq!(dropped(&fragment(0, 0, &[1, 0, 0, 0, 0, 0, 0, 0])), "upper_layer");
    assert_eq!(reported(&fragment(0, 0, &[129, 0, 0, 0, 0, 0, 0, 0])), (4, 4, 40));
    // Malformed: its length is no multiple of 8.
    assert_eq!(dropped(&fragment(9, 1, &[129, 0, 0, 0, 0])), "fragment_malformed");
    assert_eq!(dropped(&fragment(0, 1, &[1, 0, 0, 0, 0])), "fragment_malformed");
    assert_eq!(reported(&fragment(0, 1, &[129, 0, 0, 0, 0])), (4, 0, 4));
}

/// RFC 4861 section 7.2.2, RFC 4443 section 3.1: code 3 for a neighbour whose MAC address is not known.
#[test]
fn an_unknown_neighbour_is_reported() {
    let mut bench = node();
    bench.apply(Command::RemoveNeighbour(next_hop(1)));
    let sent = bench.send(0, &ipv6(SOURCE, DESTINATION, 0, 59, &[]));
    assert_eq!((sent[0].0, sent[0].1[40], sent[0].1[41]), (0, 1, 3));
    assert_eq!(bench.drops(0), [("no_neighbour", 1)]);
}

/// RFC 8754 section 2.1: a TLV that reaches beyond the SRH, where an HMAC is required, is reported at Hdr Ext Len.
#[test]
fn a_tlv_beyond_its_srh_is_reported() {
    let mut bench = Bench::with(LOOPBACK, 2, |config| config.hmac = HmacPolicy::Required);
    bench.route("2001:db8:5::/48", 0);
    bench.apply(Command::AddSid { prefix: prefix(END), behavior: SidBehavior::End(Flavors::default()) });
    let mut list = vec![59, 3, 4, 1, 0, 0, 0, 0];
    list.extend(address(DESTINATION).octets());
    // PadN.
    list.extend([4, 99, 0, 0, 0, 0, 0, 0]);
    let sent = bench.send(0, &ipv6(SOURCE, END, 0, 43, &list));
    assert_eq!((sent[0].1[40], sent[0].1[41], &sent[0].1[44..48]), (4, 0, &41u32.to_be_bytes()[..]));
    assert_eq!(bench.drops(0), [("malformed_tlv", 1)]);
    list[25] = 6;
    assert_eq!(bench.send(0, &ipv6(SOURCE, END, 0, 43, &list)), []);
    assert_eq!(bench.drops(0), [("malformed_tlv", 1), ("hmac_missing", 1)]);
}
