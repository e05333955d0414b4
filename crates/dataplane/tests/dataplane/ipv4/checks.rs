//! Checks of headers and addresses (RFC 1812 sections 5.2.2 and 5.3.7), on the link and out of a tunnel.

use super::*;
use crate::common::ipv6;

/// What becomes of a packet on the link and inside a tunnel: the reason of its drop, or "sent".
fn result(packet: &[u8]) -> [&'static str; 2] {
    let tunnelled = ipv6("2001:db8:5::5", END_DT4, 0, 4, packet);
    [packet, &tunnelled].map(|octets| {
        let mut bench = with_sids(node());
        route(&mut bench, "0.0.0.0/0", via(1));
        route_in(&mut bench, TENANT, "0.0.0.0/0", via(1));
        match bench.send(0, octets).len() {
            0 => only_drop(&bench, 0),
            _ => "sent",
        }
    })
}

fn alike(packet: &[u8], expected: &str) {
    assert_eq!(result(packet), [expected; 2], "{packet:02x?}");
}

#[test]
fn headers_are_checked() {
    let right = packet("10.1.0.2", "10.2.0.2", 17, &[0; 40]);
    alike(&right, "sent");
    let mut wrong = right.clone();
    wrong[10] ^= 1;
    alike(&wrong, "bad_ipv4_header");
    for ihl in 0..5 {
        alike(&changed(&right, &[(0, 0x40 | ihl)]), "bad_ipv4_header");
    }
    // Shorter than its header; longer than the frame.
    alike(&changed(&right, &[(2, 0), (3, 19)]), "bad_ipv4_header");
    alike(&changed(&right, &[(0, 0x46), (3, 20)]), "bad_ipv4_header");
    alike(&changed(&right, &[(3, 61)]), "truncated");
    alike(&right[..59], "truncated");
    for len in 1..20 {
        alike(&right[..len], "truncated");
    }
    alike(&right[..20], "truncated");
    // Options are passed on as they are.
    let with_options = changed(&right, &[(0, 0x46), (20, 1), (21, 1), (22, 1), (23, 0)]);
    alike(&with_options, "sent");
    // A header of options that are not there.
    let mut cut = changed(&right, &[(0, 0x4F), (3, 60)]);
    cut.truncate(50);
    alike(&cut, "truncated");
}

/// The version of what End.DT4 finds; on the link the EtherType has said it before.
#[test]
fn other_versions_are_refused() {
    for version in [0, 3, 5, 15] {
        let other = changed(&packet("10.1.0.2", "10.2.0.2", 17, &[0; 40]), &[(0, version << 4 | 5)]);
        let mut bench = with_sids(node());
        assert_eq!(bench.send(0, &ipv6("2001:db8:5::5", END_DT4, 0, 4, &other)), []);
        assert_eq!(only_drop(&bench, 0), "bad_version");
    }
}

#[test]
fn addresses_of_no_single_host_and_of_a_link_are_refused() {
    let from = |source: &str| packet(source, "10.2.0.2", 17, &[0; 40]);
    for (source, reason) in [
        ("0.0.0.0", "bad_source"),
        ("0.1.2.3", "bad_source"),
        ("224.0.0.1", "bad_source"),
        ("239.255.255.255", "bad_source"),
        ("255.255.255.255", "bad_source"),
        ("127.0.0.1", "scope"),
        ("169.254.1.1", "scope"),
        ("1.0.0.1", "sent"),
        ("223.255.255.254", "sent"),
    ] {
        alike(&from(source), reason);
    }
    let to = |destination: &str| packet("10.1.0.2", destination, 17, &[0; 40]);
    for (destination, reason) in [
        ("0.0.0.0", "scope"),
        ("127.0.0.1", "scope"),
        ("169.254.1.1", "scope"),
        ("224.0.0.5", "ipv4_multicast"),
        ("255.255.255.255", "ipv4_multicast"),
        ("240.0.0.1", "sent"),
    ] {
        alike(&to(destination), reason);
    }
}

/// End.DX4 does not look up, and refuses the same destinations.
#[test]
fn an_adjacency_takes_no_packets_of_a_link() {
    for (destination, reason) in [("224.0.0.5", "ipv4_multicast"), ("127.0.0.1", "scope"), ("169.254.0.9", "scope")] {
        let mut bench = with_sids(node());
        let inner = packet("10.1.0.2", destination, 17, &[0; 8]);
        assert_eq!(bench.send(0, &ipv6("2001:db8:5::5", END_DX4, 0, 4, &inner)), []);
        assert_eq!(only_drop(&bench, 0), reason);
    }
}

/// D260, BCP 38: a border's sources are those of both versions.
#[test]
fn a_border_checks_sources() {
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    let sources = vec![net("10.1.0.0/24"), common::prefix("2001:db8:1::/48")];
    bench.apply(Command::SetBorder { port: PortId(0), sources });
    assert_eq!(bench.send(0, &packet("10.1.0.2", "10.2.0.2", 17, &[0; 8])).len(), 1);
    assert_eq!(bench.send(0, &packet("10.1.1.2", "10.2.0.2", 17, &[0; 8])), []);
    assert_eq!(only_drop(&bench, 0), "source_not_assigned");
    // Out by a border that keeps SIDs in, whatever the octets are at the places of an IPv6 header.
    let domain = Domain {
        sids: vec![common::prefix("fd00::/8")],
        infrastructure: vec![common::prefix("2001:db8:ffff::/48")],
        proxies: vec![],
    };
    bench.apply(Command::SetDomain(domain));
    bench.apply(Command::SetBorder { port: PortId(1), sources: vec![] });
    let like_a_sid = packet("10.1.0.2", "10.2.0.2", 17, &[0xFD; 40]);
    assert_eq!(bench.send(0, &like_a_sid).len(), 1);
    // A border without sources takes all of IPv4.
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![] });
    assert_eq!(bench.send(0, &packet("10.1.1.2", "10.2.0.2", 17, &[0; 8])).len(), 1);
}

/// RFC 8754 section 5.1 holds for the new SIDs as well.
#[test]
fn sids_are_guarded() {
    let mut bench = with_sids(node());
    let domain = Domain {
        sids: vec![common::prefix("fd00::/16")],
        infrastructure: vec![common::prefix("2001:db8:ffff::/48")],
        proxies: vec![],
    };
    bench.apply(Command::SetDomain(domain));
    let inner = packet("10.1.0.2", "10.2.0.2", 17, &[0; 8]);
    for (count, sid) in (1..).zip([END_DT4, END_DX4, END_DT46]) {
        assert_eq!(bench.send(1, &ipv6("2001:db8:5::5", sid, 0, 4, &inner)), []);
        assert_eq!(bench.drops(1), [("foreign_source", count)]);
        assert_eq!(bench.send(1, &ipv6("2001:db8:ffff::2", sid, 0, 4, &inner)).len(), 1);
    }
}
