//! ICMPv4 errors (RFC 792, RFC 1812 sections 4.3.2 and 4.3.3, RFC 1191).

use super::*;
use crate::common::ipv6;

/// Captured packet 1 with 1,400 octets of data.
fn long() -> Vec<u8> {
    let mut packet = captured()[PACKET][..20].to_vec();
    packet[2..4].copy_from_slice(&1428_u16.to_be_bytes());
    packet.extend(&captured()[FRAGMENTATION_NEEDED][48..56]);
    packet.resize(1428, 0);
    sealed(packet)
}

fn with_mtu(mtu: u16) -> Bench {
    node_with(|config| config.ports[1].link_mtu = mtu)
}

#[test]
fn sources_are_told() {
    let captured = captured();
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    let exhausted = changed(&captured[PACKET], &[(8, 1)]);
    assert_eq!(bench.send(0, &exhausted), [(0, captured[TIME_EXCEEDED].clone())]);
    assert_eq!(only_drop(&bench, 0), "hop_limit_exceeded");

    let mut bench = node();
    assert_eq!(bench.send(0, &captured[PACKET]), [(0, captured[NETWORK_UNREACHABLE].clone())]);
    assert_eq!(only_drop(&bench, 0), "no_route");

    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    bench.apply(Command::RemoveNeighbour(hop(1)));
    assert_eq!(bench.send(0, &captured[PACKET]), [(0, captured[HOST_UNREACHABLE].clone())]);
    assert_eq!(only_drop(&bench, 0), "no_neighbour");

    let mut bench = with_mtu(1280);
    route(&mut bench, "10.2.0.0/16", via(1));
    assert_eq!(bench.send(0, &long()), [(0, captured[FRAGMENTATION_NEEDED].clone())]);
    assert_eq!(only_drop(&bench, 0), "packet_too_big");
    route(&mut bench, "10.2.0.0/16", segments(&[FAR_SID], EncapsMode::Reduced));
    assert_eq!(bench.send(0, &long()), [(0, captured[FRAGMENTATION_NEEDED_BEFORE_TUNNEL].clone())]);
    assert_eq!(only_drop_count(&bench), [("packet_too_big", 2)]);
}

fn only_drop_count(bench: &Bench) -> Vec<(&'static str, u64)> {
    bench.drops(0)
}

/// RFC 1812 section 4.3.2.7: no errors about errors, nor about fragments but the first.
#[test]
fn what_no_error_answers() {
    let answered = |packet: Vec<u8>| !node().send(0, &packet).is_empty();
    let icmp = |kind: u8| packet("10.1.0.2", "10.9.0.1", 1, &[kind, 0, 0, 0, 0, 0, 0, 0]);
    for kind in [3, 4, 5, 11, 12] {
        assert!(!answered(icmp(kind)), "type {kind}");
    }
    for kind in [0, 8, 13, 14] {
        assert!(answered(icmp(kind)), "type {kind}");
    }
    assert!(!answered(packet("10.1.0.2", "10.9.0.1", 1, &[])), "its type is not there");
    let udp = packet("10.1.0.2", "10.9.0.1", 17, &[0; 16]);
    assert!(answered(changed(&udp, &[(6, 0x20)])), "the first fragment");
    assert!(!answered(changed(&udp, &[(6, 0x20), (7, 1)])), "a later one");
}

/// RFC 1812 section 4.3.2.8.
#[test]
fn errors_are_limited() {
    let mut bench = node_with(|config| config.icmp_errors_per_second = 3);
    let unreachable = packet("10.1.0.2", "10.9.0.1", 17, &[0; 8]);
    let answers: usize = (0..10).map(|_| bench.send(0, &unreachable).len()).sum();
    assert_eq!(answers, 3);
    assert_eq!(bench.drops(0), [("no_route", 10)]);
}

/// RFC 1812 section 4.3.2.4: an address of the port, of another one, or the dummy address.
#[test]
fn sources_of_errors() {
    let source = |addresses: [&[&str]; 2]| {
        let mut bench = node_with(|config| {
            for (port, addresses) in config.ports.iter_mut().zip(addresses) {
                port.addresses = addresses.iter().map(|text| mapped(text)).collect();
            }
            config.ports[0].addresses.insert(0, address("2001:db8:1::1"));
        });
        let sent = bench.send(0, &packet("10.1.0.2", "10.9.0.1", 17, &[0; 8]));
        Ipv4Addr::from(<[u8; 4]>::try_from(&sent[0].1[12..16]).unwrap()).to_string()
    };
    assert_eq!(source([&["10.1.0.1", "10.1.0.9"], &["10.3.0.1"]]), "10.1.0.1");
    assert_eq!(source([&[], &["10.3.0.1"]]), "10.3.0.1");
    assert_eq!(source([&[], &[]]), "192.0.0.8");
}

/// D233: an error about a tenant's packet stays with the tenant, and goes through the tunnel of the tenant's table.
#[test]
fn errors_about_tenants_packets() {
    let mut bench = with_sids(node());
    let inner = packet("10.5.0.5", "10.9.0.1", 17, &[0; 8]);
    assert_eq!(bench.send(1, &ipv6("2001:db8:5::5", END_DT4, 0, 4, &inner)), [], "no route back in the table");
    assert_eq!(bench.drops(1), [("no_route", 1)]);
    route_in(&mut bench, TENANT, "10.5.0.0/16", segments(&[FAR_SID], EncapsMode::Reduced));
    let sent = bench.send(1, &ipv6("2001:db8:5::5", END_DT4, 0, 4, &inner));
    let [(1, error)] = &sent[..] else { panic!("one error: {sent:?}") };
    assert_eq!((&error[24..40], error[6], error[7]), (&address(FAR_SID).octets()[..], 4, 64));
    let error = &error[40..];
    assert_eq!((error[8], error[9], error[20], error[21], &error[16..20]), (64, 1, 3, 0, &[10, 5, 0, 5][..]));
    assert_eq!(error[28..], inner[..], "as it came out of its tunnel");
    // End.DX4: the table of the SID too, for its adjacency is no route back.
    bench.apply(Command::RemoveNeighbour(hop(2)));
    let sent = bench.send(1, &ipv6("2001:db8:5::5", END_DX4, 0, 4, &inner));
    let [(1, error)] = &sent[..] else { panic!("one error: {sent:?}") };
    assert_eq!((error[60], error[61]), (3, 1));
}
