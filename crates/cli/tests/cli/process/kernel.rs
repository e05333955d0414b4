//! Our node in the place of each Linux router of `h1 -a- r1 -b- r2 -c- r3 -d- h2`: for the packets that the router
//! received, it must send those that the router sent, in both directions, from the IPv6 header on.

use crate::process::common::{Bench, Packet, golden, ipv6, packets, port};
use serde_json::json;
use std::fmt::Write;

/// The links, and how captures on them are named.
const LINKS: [(char, &str); 4] = [('a', "1h1-r1"), ('b', "2r1-r2"), ('c', "3r2-r3"), ('d', "4r3-h2")];

/// The SIDs of the routers, with the flavors of Linux: its uN has neither PSP nor USD, so that the last one needs an
/// additional End.DT6.
const SIDS: [&[(&str, &str)]; 3] = [
    &[("5f00:0:100::/48", "'End'\nflavors = ['NEXT-CSID']"), ("fd00:11::e", "'End'"), ("fd00:11::f", PSP)],
    &[
        ("5f00:0:200::/48", "'End'\nflavors = ['NEXT-CSID']"),
        ("fd00:22::e", "'End'"),
        ("fd00:22::f", PSP),
        ("fd00:22::a", "'End.X'\nnext_hop = 'fe80::2%c'"),
    ],
    &[
        ("5f00:0:300::/48", "'End'\nflavors = ['NEXT-CSID']"),
        ("5f00:0:300::", "'End.DT6'"),
        ("fd00:33::d6", "'End.DT6'"),
    ],
];

const PSP: &str = "'End'\nflavors = ['PSP']";

/// Prefixes behind the routers' right-hand sides.
const RIGHT: [&[&str]; 3] = [
    &["5f00:0:200::/47", "fd00:22::/32", "fd00:33::/32", "fd00:d::/64"],
    &["5f00:0:300::/48", "fd00:33::/32", "fd00:d::/64"],
    &["fd00:d::/64"],
];

/// The configuration of a router, from 0, with these SIDs.
fn router(number: usize, sids: &[(&str, &str)]) -> String {
    let (left, right) = (LINKS[number].0, LINKS[number + 1].0);
    let mut text = format!("[node]\nloopback = 'fd00:{left}::2'\n");
    for (link, own, other, neighbour) in [(left, 2, 1, "fe80::1"), (right, 1, 2, "fe80::2")] {
        write!(
            text,
            "[[port]]\nname = '{link}'\nmac = '02:00:00:00:0{link}:0{own}'\n\
             [[neighbour]]\naddress = '{neighbour}%{link}'\nmac = '02:00:00:00:0{link}:0{other}'\n"
        )
        .expect("a string takes any text");
    }
    let routes = RIGHT[number].iter().map(|prefix| (*prefix, format!("fe80::2%{right}")));
    for (prefix, next_hop) in routes.chain([("fd00:a::/64", format!("fe80::1%{left}"))]) {
        writeln!(text, "[[route]]\nprefix = '{prefix}'\nvia = ['{next_hop}']").expect("a string takes any text");
    }
    for (sid, behavior) in sids {
        writeln!(text, "[[sid]]\nsid = '{sid}'\nbehavior = {behavior}").expect("a string takes any text");
    }
    text
}

/// The packets of a capture that a MAC address sent.
fn sent_by(capture: &str, link: char, side: u8) -> Vec<Packet> {
    let link = u8::from_str_radix(&link.to_string(), 16).expect("a link's letter is a hexadecimal digit");
    packets(&golden(capture)).into_iter().filter(|packet| packet.octets[6..12] == [2, 0, 0, 0, link, side]).collect()
}

/// A router, from 0, in our place: everything that it sent over both links.
fn check(capture: &str, number: usize, sids: &[(&str, &str)]) {
    let [(left, left_name), (right, right_name)] = [LINKS[number], LINKS[number + 1]];
    let [left_capture, right_capture] = [left_name, right_name].map(|link| format!("kernel_{capture}_{link}"));
    let bench = Bench::new(&router(number, sids));
    let [left_port, right_port] = [left, right].map(String::from);
    let inputs = [(left_port.as_str(), golden(&left_capture)), (right_port.as_str(), golden(&right_capture))];
    let report = bench.run(&inputs, &[]);
    let expected =
        [(left_port.as_str(), sent_by(&left_capture, left, 2)), (&right_port, sent_by(&right_capture, right, 1))];
    for (name, expected) in expected {
        let sent = bench.sent(name);
        assert!(!expected.is_empty());
        assert_eq!(ipv6(&sent), ipv6(&expected), "{capture}, router {}, port {name}", number + 1);
        for (packet, expected) in sent.iter().zip(&expected) {
            assert_eq!(packet.ethernet(), expected.ethernet());
        }
        // The captures hold what the router itself sent, too: that is for others.
        let drops = json!({ "not_for_this_port": expected.len() });
        assert_eq!(port(&report, name)["drops"], drops, "{capture}, router {}, port {name}", number + 1);
    }
}

fn check_all(capture: &str) {
    for (number, sids) in SIDS.iter().enumerate() {
        check(capture, number, sids);
    }
}

/// One container of micro-SIDs in the destination address, no SRH (PP-4-3, PP-5.2-2).
#[test]
fn t1_shifts_in_the_destination_address() {
    check_all("t1_usid_red");
}

/// The same beside an SRH with Segments Left 0, which stays untouched.
#[test]
fn t2_shifts_beside_an_srh() {
    check_all("t2_usid_encap");
}

/// End, End, End.DT6 over a reduced SRH.
#[test]
fn t3_end_with_a_reduced_srh() {
    check_all("t3_red3");
}

/// End, End.X, End.DT6 over a full SRH.
#[test]
fn t4_end_x_with_a_full_srh() {
    check_all("t4_encap3");
}

/// PSP at the second router.
#[test]
fn t5_penultimate_segment_pop() {
    check_all("t5_psp");
}

/// Two containers, the second one from a reduced SRH (PP-4-4).
#[test]
fn t7_two_containers() {
    check_all("t7_usid2");
}

/// uN of RFC 9800, with USD: the last router decapsulates without an End.DT6 (PP-5.1-1), to the same packets.
#[test]
fn the_last_micro_node_needs_no_end_dt6() {
    for capture in ["t1_usid_red", "t2_usid_encap", "t7_usid2"] {
        check(capture, 2, &[("5f00:0:300::/48", "'uN'")]);
    }
}

/// H.Encaps.Red of packets in transit. The kernel departs from RFC 8986 section 5.1 in three fields: it decrements the
/// outer hop limit and leaves the inner one, and copies the inner flow label. The rest must be the same.
#[test]
fn t20_encapsulation_in_transit() {
    let configuration = router(0, SIDS[0]).replace("fd00:a::2", "fd00:b::1").replace(
        "prefix = 'fd00:d::/64'\nvia = ['fe80::2%b']",
        "prefix = 'fd00:d::/64'\nencaps = { segments = ['5f00:0:200:300::'] }",
    );
    assert!(configuration.contains("encaps"));
    let bench = Bench::new(&configuration);
    bench.run(&[("a", golden("kernel_t20_transit_encap_1h1-r1"))], &[]);
    let expected = sent_by("kernel_t20_transit_encap_2r1-r2", 'b', 1);
    let sent = bench.sent("b");
    assert_eq!(sent.len(), 4);
    for (packet, expected) in sent.iter().zip(&expected) {
        let (packet, expected) = (packet.ipv6(), expected.ipv6());
        assert_eq!((packet[7], packet[47]), (64, expected[47] - 1), "outer and inner hop limit");
        assert_eq!(without_departures(packet), without_departures(expected));
    }
    assert_eq!(sent.len(), expected.len());
}

/// A tunnelled packet with outer flow label and both hop limits zero.
fn without_departures(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet[7] = 0;
    packet[47] = 0;
    packet
}

/// Static multicast routes (MT-5.2-2, MT-3-2): plain, and under an SRH with an End.MT TLV that a transit node leaves
/// alone.
#[test]
fn t16_multicast_routes() {
    let mut configuration = "[node]\nloopback = 'fd00::1'\n".to_owned();
    for (name, mac) in [("src", "02:00:00:00:0a:02"), ("leaf1", "36:0e:57:bb:0a:54"), ("leaf2", "2a:a6:30:fe:ae:aa")] {
        writeln!(configuration, "[[port]]\nname = '{name}'\nmac = '{mac}'").expect("a string takes any text");
    }
    configuration.push_str(
        "[[multicast_route]]\nsource = 'fd00:a::1'\ngroup = 'ff3e::100'\nincoming = 'src'\n\
         outgoing = ['leaf1', 'leaf2']\n",
    );
    let bench = Bench::new(&configuration);
    bench.run(&[("src", golden("kernel_t16_mcast_1src"))], &[]);
    for (name, capture) in [("leaf1", "kernel_t16_mcast_2leaf1"), ("leaf2", "kernel_t16_mcast_3leaf2")] {
        let octets = |packets: Vec<Packet>| packets.into_iter().map(|packet| packet.octets).collect::<Vec<_>>();
        assert_eq!(octets(bench.sent(name)), octets(packets(&golden(capture))), "{name}");
    }
}
