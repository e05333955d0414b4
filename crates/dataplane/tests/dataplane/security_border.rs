//! The boundary of the SR domain (RFC 8754 section 5.1, D36), and source addresses at its edge (BCP 38, MT-9-2).

use crate::common::group::{self, address, encapsulated, inner, receiver};
use crate::common::{Bench, next_hop, prefix};
use proptest::prelude::*;
use srdma_dataplane::*;
use srdma_frame::PortId;

/// The node's loopback, and its SIDs.
const NODE: &str = "2001:db8:ff:1::1";
const END: &str = "2001:db8:ff:1::e";
const CARRIER: &str = "5f00:0:100:200::";
/// A SID and the loopback of another node.
const OTHER_SID: &str = "2001:db8:ff:2::e";
const OTHER: &str = "2001:db8:ff:2::1";
const PROXY: &str = "2001:db8:cc::1";
/// The hosts of port 0, and one that is anywhere else.
const HOST: &str = "2001:db8:bb::1";
const OUTSIDER: &str = "2001:db8:dd::1";

fn domain() -> Domain {
    Domain {
        sids: vec![prefix("5f00::/32"), prefix("2001:db8:ff::/48")],
        infrastructure: vec![prefix("2001:db8:ff::/48")],
        proxies: vec![prefix("2001:db8:cc::/48")],
    }
}

/// A node with hosts behind port 0, a foreign network behind port 1 and its domain behind port 2.
fn node() -> Bench {
    let mut bench = Bench::new(NODE, 3);
    for (text, port) in [("::/0", 1), ("2001:db8:bb::/64", 0), ("2001:db8:ff::/48", 2), ("2001:db8:cc::/48", 2)] {
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix(text), action });
    }
    let micro = SidBehavior::End(Flavors::MICRO);
    bench.apply(Command::AddSid { prefix: prefix(END), behavior: SidBehavior::End(Flavors::default()) });
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:100::/48"), behavior: micro });
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:200::/48"), behavior: micro });
    bench
}

/// The same, with its domain and its borders configured.
fn guarded() -> Bench {
    let mut bench = node();
    bench.apply(Command::SetDomain(domain()));
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix("2001:db8:bb::/64")] });
    bench.apply(Command::SetBorder { port: PortId(1), sources: Vec::new() });
    bench
}

/// A UDP packet.
fn udp(source: &str, destination: &str) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    packet.extend(address(source).octets());
    packet.extend(address(destination).octets());
    packet.extend([0x30, 0x39, 0x30, 0x39, 0, 8, 0, 0]);
    packet
}

/// The same with an SRH of these segments, the last one first.
fn with_srh(source: &str, destination: &str, segments_left: u8, segments: &[&str]) -> Vec<u8> {
    let mut packet = udp(source, destination);
    let mut srh = vec![17, 2 * segments.len() as u8, 4, segments_left, segments.len() as u8 - 1, 0, 0, 0];
    segments.iter().for_each(|segment| srh.extend(address(segment).octets()));
    packet[6] = 43;
    packet[5] += srh.len() as u8;
    packet.splice(40..40, srh);
    packet
}

/// What becomes of a packet: the ports that it leaves by, and why it was dropped.
fn outcome(mut bench: Bench, port: u16, packet: &[u8]) -> (Vec<u16>, Vec<&'static str>) {
    let sent = bench.send(port, packet).iter().map(|(port, _)| *port).collect();
    (sent, bench.drops(port).iter().map(|(name, _)| *name).collect())
}

#[track_caller]
fn passes(port: u16, source: &str, destination: &str, out: u16) {
    assert_eq!(outcome(guarded(), port, &udp(source, destination)), (vec![out], vec![]));
}

#[track_caller]
fn refused(port: u16, packet: &[u8], reason: &'static str) {
    assert_eq!(outcome(guarded(), port, packet), (vec![], vec![reason]));
}

/// D36: RFC 8754 section 5.1, first rule: nothing from outside goes to a SID, be it this node's or another's, in the
/// plain or by a carrier of micro-SIDs; nor to a node itself.
#[test]
fn no_packet_from_outside_reaches_a_sid() {
    for (port, source) in [(0, HOST), (1, OUTSIDER)] {
        for sid in [END, OTHER_SID, CARRIER, "5f00:0:900::"] {
            refused(port, &udp(source, sid), "sid_from_outside");
            refused(port, &with_srh(source, sid, 1, &[OUTSIDER, sid]), "sid_from_outside");
        }
    }
    // Where addresses are no SIDs, they are still the nodes' own.
    let mut bench = guarded();
    bench.apply(Command::RemoveSid(prefix(END)));
    bench.apply(Command::SetDomain(Domain { sids: vec![prefix("5f00::/32")], ..domain() }));
    assert_eq!(outcome(bench, 1, &udp(OUTSIDER, OTHER)), (vec![], vec!["node_from_outside"]));
}

/// D36: Hosts reach the Proxy Addresses, each other and the world.
#[test]
fn hosts_reach_addresses_outside_the_domain() {
    passes(0, HOST, OUTSIDER, 1);
    passes(0, HOST, PROXY, 2);
    passes(1, OUTSIDER, HOST, 0);
    passes(1, OUTSIDER, PROXY, 2);
}

/// BCP 38: no packet comes in with a source address of the domain, the Proxy Addresses included, in whose name data
/// would reach receivers; none of a port's hosts sends in another's name.
#[test]
fn no_host_sends_in_another_name() {
    for port in [0, 1] {
        for source in [NODE, OTHER, OTHER_SID, PROXY, "5f00:0:100::1"] {
            refused(port, &udp(source, HOST), "forged_source");
            refused(port, &udp(source, END), "forged_source");
        }
    }
    refused(0, &udp(OUTSIDER, HOST), "source_not_assigned");
    refused(0, &udp("2001:db8:bb:1::1", OUTSIDER), "source_not_assigned");
    refused(0, &udp("fe80::1", OUTSIDER), "source_not_assigned");
    // Ports to foreign networks have no list: only the domain's own addresses are refused.
    passes(1, HOST, HOST, 0);
}

/// RFC 8754 section 5.1, second rule: a SID takes nothing from a source that is no node's, by whatever port it came.
#[test]
fn a_sid_accepts_packets_of_nodes_only() {
    let from = |source| with_srh(source, END, 1, &[OTHER, END]);
    assert_eq!(outcome(guarded(), 2, &from(OTHER)), (vec![2], vec![]));
    refused(2, &from(HOST), "foreign_source");
    refused(2, &udp(OUTSIDER, CARRIER), "foreign_source");
    refused(2, &udp("2001:db8:cc::1", END), "foreign_source");
    // End.MT: the copies are those of the headend, not of a foreign sender that wraps the same packet.
    let receivers = [receiver(1, 0x101, None)];
    let edge = || {
        let mut bench = group::edge(false);
        bench.apply(Command::AddGroup(Box::new(group::entry(&receivers, None))));
        bench
    };
    let data = encapsulated(&inner(0x04, 0, &[1; 64], false));
    let mut foreign = data.clone();
    foreign[8..24].copy_from_slice(&address(OUTSIDER).octets());
    let mut bench = edge();
    assert_eq!([&data, &foreign].map(|packet| bench.send(0, packet).len()), [1, 1]);
    let nodes = ["2001:db8:6::/48", "2001:db8:a::/48"].map(prefix).to_vec();
    bench.apply(Command::SetDomain(Domain {
        sids: vec![prefix("5f00::/32")],
        infrastructure: nodes,
        proxies: vec![prefix("2001:db8:ff::/48")],
    }));
    assert_eq!([&data, &foreign].map(|packet| bench.send(0, packet).len()), [1, 0]);
    assert_eq!(bench.drops(0), [("foreign_source", 1)]);
}

/// RFC 8754 section 7.2: no packet that leaves shows a SID of the domain.
#[test]
fn no_sid_leaves_the_domain() {
    let leaving = |destination, segments: &[&str]| with_srh(OTHER, destination, 0, segments);
    refused(2, &leaving(OUTSIDER, &[OUTSIDER, OTHER_SID]), "leaves_domain");
    refused(2, &leaving(HOST, &[HOST, CARRIER]), "leaves_domain");
    refused(2, &udp(OTHER, "5f00:0:900::"), "leaves_domain");
    // An SRH of another domain passes, and so does any other packet.
    assert_eq!(outcome(guarded(), 2, &leaving(OUTSIDER, &[OUTSIDER, "2001:db8:ee::1"])), (vec![1], vec![]));
    passes(2, OTHER, OUTSIDER, 1);
    // Inside it may go on.
    let inside = with_srh(OTHER, OTHER_SID, 1, &[OUTSIDER, OTHER_SID]);
    assert_eq!(outcome(guarded(), 2, &inside), (vec![2], vec![]));
    // An SRH that cannot be read, as it lies behind more than the first segment of the frame has.
    let mut long = leaving(OUTSIDER, &[OUTSIDER, OTHER_SID]);
    long[41] = 200;
    refused(2, &long, "leaves_domain");
}

/// A node without a domain filters nothing, and reports that its SIDs are open.
#[test]
fn without_a_domain_nothing_is_filtered() {
    for (port, source, destination) in [(0, OUTSIDER, OTHER_SID), (1, OTHER, OTHER_SID), (1, PROXY, OTHER)] {
        assert_eq!(outcome(node(), port, &udp(source, destination)), (vec![2], vec![]));
    }
    assert!(node().node.has_open_sids());
    assert!(!guarded().node.has_open_sids());
    assert!(!Bench::new(NODE, 1).node.has_open_sids());
    // Borders alone are BCP 38.
    let mut bench = node();
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix("2001:db8:bb::/64")] });
    assert_eq!(bench.send(0, &udp(OUTSIDER, OTHER)), vec![]);
    assert_eq!(bench.send(0, &udp(HOST, OTHER_SID)).len(), 1);
    assert_eq!(bench.drops(0), [("source_not_assigned", 1)]);
    // The configuration can be removed.
    let mut bench = guarded();
    bench.apply(Command::RemoveBorder(PortId(0)));
    bench.apply(Command::RemoveBorder(PortId(1)));
    bench.apply(Command::RemoveDomain);
    assert_eq!(outcome(bench, 1, &udp(OTHER, OTHER_SID)), (vec![2], vec![]));
}

/// A node's addresses lie in its domain, in whatever order both are configured.
#[test]
fn a_domain_without_its_own_node_is_refused() {
    let mut bench = guarded();
    let mut set = |domain| bench.node.apply(Command::SetDomain(domain));
    let infrastructure = vec![prefix("2001:db8:fe::/48")];
    let loopback = ConfigError::LoopbackOutsideDomain(address(NODE));
    assert_eq!(set(Domain { infrastructure, ..domain() }), Err(loopback));
    let sids = vec![prefix("5f00:0:100::/64"), prefix("2001:db8:ff::/48")];
    assert_eq!(set(Domain { sids, ..domain() }), Err(ConfigError::SidOutsideDomain(prefix("5f00:0:100::/48"))));
    let proxies = vec![prefix("2001:db8:bb::/96")];
    let of_domain = prefix("2001:db8:bb::/96");
    let sources = prefix("2001:db8:bb::/64");
    let meeting = ConfigError::SourcesOfDomain { port: 0, sources, of_domain };
    assert_eq!(set(Domain { proxies, ..domain() }), Err(meeting));

    let sid = prefix("2001:db8:fd::1");
    let refused = bench.node.apply(Command::AddSid { prefix: sid, behavior: SidBehavior::End(Flavors::default()) });
    assert_eq!(refused, Err(ConfigError::SidOutsideDomain(sid)));
    let entry = group::entry(&[receiver(1, 0x101, None)], None);
    let outside = ConfigError::ProxyOutsideDomain { proxy: entry.proxy, group: entry.id.0 };
    assert_eq!(bench.node.apply(Command::PrepareGroup(Box::new(entry))), Err(outside));
    let sources = vec![prefix("::/0")];
    let refused = bench.node.apply(Command::SetBorder { port: PortId(0), sources });
    assert!(matches!(refused, Err(ConfigError::SourcesOfDomain { port: 0, .. })));
    let refused = bench.node.apply(Command::SetBorder { port: PortId(3), sources: Vec::new() });
    assert_eq!(refused, Err(ConfigError::UnknownPort(3, 3)));
}

/// An address near the prefixes that matter: one of them with some bits changed.
fn near() -> impl Strategy<Value = std::net::Ipv6Addr> {
    let bases = ["5f00::", "2001:db8:ff::", "2001:db8:cc::", "2001:db8:bb::", "2001:db8:dd::"];
    (0..bases.len(), any::<u32>(), 0u32..96).prop_map(move |(base, noise, shift)| {
        let changed = u128::from(address(bases[base])) ^ u128::from(noise) << shift;
        changed.into()
    })
}

proptest! {
    /// A packet passes a border exactly if this model of the addresses' leading groups accepts it.
    #[test]
    fn the_border_follows_the_prefixes(port in 0u16..2, source in near(), destination in near()) {
        let starts = |address: std::net::Ipv6Addr, groups: &[u16]| address.segments().starts_with(groups);
        let is_sid = |address| starts(address, &[0x5f00, 0]) || starts(address, &[0x2001, 0xdb8, 0xff]);
        let is_proxy = |address| starts(address, &[0x2001, 0xdb8, 0xcc]);
        let is_host = starts(source, &[0x2001, 0xdb8, 0xbb, 0]);
        let passes = !is_sid(source)
            && !is_proxy(source)
            && (port == 1 || is_host)
            && (is_proxy(destination) || !is_sid(destination));
        prop_assume!(!source.is_multicast() && !destination.is_multicast());
        let packet = udp(&source.to_string(), &destination.to_string());
        let (sent, dropped) = outcome(guarded(), port, &packet);
        prop_assert_eq!((sent.len(), dropped.len()), if passes { (1, 0) } else { (0, 1) });
    }
}
