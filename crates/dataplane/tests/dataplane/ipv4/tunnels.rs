//! Into SRv6 and out of it.

use super::*;
use crate::common::ipv6;
use srdma_testkit::checksums;

/// The packet with flow label 0, and the label.
fn without_flow_label(mut packet: Vec<u8>) -> (Vec<u8>, u32) {
    let label = u32::from_be_bytes([0, packet[1] & 0xF, packet[2], packet[3]]);
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    (packet, label)
}

/// RFC 8986 sections 5.1 and 5.2: next header 4, Type of Service outward, one hop less inside.
#[test]
fn packets_are_encapsulated() {
    let captured = captured();
    let actions = [
        segments(&[FAR_SID], EncapsMode::Reduced),
        segments(&[FAR_SID], EncapsMode::Encaps),
        segments(&[VIA, FAR_SID], EncapsMode::Reduced),
    ];
    for (action, expected) in actions.into_iter().zip(ENCAPSULATED) {
        let mut bench = node();
        route(&mut bench, "10.2.0.0/16", action);
        let sent = bench.send(0, &captured[PACKET]);
        let [(1, sent)] = &sent[..] else { panic!("one packet by port 1: {sent:?}") };
        let (sent, label) = without_flow_label(sent.clone());
        assert_eq!(sent, captured[expected]);
        assert_ne!(label, 0, "RFC 6438: the flow");
    }
}

/// RFC 6438: all packets of a flow have one flow label, others have others.
#[test]
fn the_flow_label_is_that_of_the_flow() {
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", segments(&[FAR_SID], EncapsMode::Reduced));
    let mut label = |changes: &[(usize, u8)]| {
        let sent = bench.send(0, &changed(&captured()[PACKET], changes));
        without_flow_label(sent[0].1.clone()).1
    };
    let of_flow = label(&[]);
    assert_eq!(label(&[(1, 0), (4, 9), (8, 9), (28, 9)]), of_flow, "TOS, identification, TTL and data");
    for of_other in [(12, 11), (16, 11), (9, 6), (21, 0x51), (23, 10)] {
        assert_ne!(label(&[of_other]), of_flow, "{of_other:?}");
    }
}

/// An SR policy takes both versions, each by its flow.
#[test]
fn an_sr_policy_takes_ipv4_packets() {
    let mut bench = node();
    let list = |segment: &str, weight| SegmentList { segments: vec![address(segment), address(FAR_SID)], weight };
    let lists = vec![list("fd01::1", 1), list("fd02::1", 1)];
    bench.apply(Command::AddPolicy { id: PolicyId(1), policy: Box::new(SrPolicy { lists, hmac_key_id: None }) });
    let action = RouteAction::Policy { policy: PolicyId(1), mode: EncapsMode::Reduced };
    route(&mut bench, "10.2.0.0/16", action.clone());
    let prefix = common::prefix("2001:db8:77::/48");
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let mut firsts = std::collections::BTreeSet::new();
    for port in 0..32 {
        let host = changed(&captured()[PACKET], &[(21, port)]);
        let sent = bench.send(0, &host);
        let (outer, inner) = sent[0].1.split_at(40 + 24);
        assert_eq!((outer[6], outer[40], outer[43]), (43, 4, 1), "routing, IPv4, one segment left");
        assert_eq!(inner, changed(&host, &[(8, 63)]));
        firsts.insert(outer[24..40].to_vec());
        assert_eq!(bench.send(0, &host), sent);
    }
    assert_eq!(firsts.len(), 2);
    let sent = bench.send(0, &ipv6("2001:db8:5::5", "2001:db8:77::1", 0, 59, &[]));
    assert_eq!(sent[0].1[40], 41, "IPv6 packets have their own next header");
    assert_eq!(bench.node.apply(Command::RemovePolicy(PolicyId(1))), Err(ConfigError::PolicyInUse(1)));
}

/// RFC 8986 sections 4.5, 4.7 and 4.8: with and without an SRH; RFC 6040: CE goes inward.
#[test]
fn packets_leave_their_tunnels() {
    let captured = captured();
    for sid in [END_DT4, END_DX4, END_DT46] {
        for tunnelled in TUNNELLED {
            let mut bench = with_sids(node());
            let sent = bench.send(1, &to_sid(&captured[tunnelled], sid));
            assert_eq!(sent, [(2, captured[INNER].clone())], "{sid}");
            let counted: Vec<_> = bench.node.sid_counters().filter(|(_, traffic)| traffic.frames == 1).collect();
            assert_eq!(counted.iter().map(|(sid, _)| sid.address()).collect::<Vec<_>>(), [address(sid)]);
        }
    }
    // A host that does not know ECN: RFC 6040 drops.
    let mut bench = with_sids(node());
    let inner = changed(&captured[PACKET], &[(1, 0)]);
    let mut tunnelled = ipv6("2001:db8:5::5", END_DT4, 0, 4, &inner);
    tunnelled[1] |= 0x30;
    assert_eq!(bench.send(1, &tunnelled), []);
    assert_eq!(only_drop(&bench, 1), "congestion_experienced");
}

/// Compressed SIDs: as with End.DT6, the prefix of a SID ends where its argument begins.
#[test]
fn micro_sids_of_the_behaviours_take_their_packets() {
    for behavior in [
        SidBehavior::EndDt4(TENANT),
        SidBehavior::EndDt46(TENANT),
        SidBehavior::EndDx4 { next_hop: hop(2), table: TENANT },
    ] {
        let mut bench = with_sids(node());
        let micro = |text: &str| common::prefix(&format!("{text}/48"));
        bench.apply(Command::AddSid { prefix: micro("5f00:0:d4::"), behavior });
        let node = Flavors { next_csid: Some(NextCsid::F3216), ..Flavors::MICRO };
        bench.apply(Command::AddSid { prefix: micro("5f00:0:100::"), behavior: SidBehavior::End(node) });
        let captured = captured();
        for to in ["5f00:0:d4::", "5f00:0:100:d4::"] {
            assert_eq!(bench.send(1, &to_sid(&captured[TUNNELLED[0]], to)), [(2, captured[INNER].clone())], "{to}");
        }
    }
}

/// End.DT46: IPv6 inside, by the table of the same number.
#[test]
fn end_dt46_takes_both_versions() {
    let mut bench = with_sids(node());
    let action = RouteAction::Via(vec![crate::common::next_hop(2)]);
    bench.apply(Command::AddRoute { table: TENANT, prefix: common::prefix("2001:db8:7::/48"), action });
    let inner = ipv6("2001:db8:8::8", "2001:db8:7::7", 0, 59, &[]);
    let srh = [&[41, 2, 4, 0, 0, 0, 0, 0][..], &address(END_DT46).octets(), &inner].concat();
    let tunnelled = [ipv6("2001:db8:5::5", END_DT46, 0, 41, &inner), ipv6("2001:db8:5::5", END_DT46, 0, 43, &srh)];
    let mut expected = inner;
    expected[7] -= 1;
    for packet in tunnelled {
        assert_eq!(bench.send(1, &packet), [(2, expected.clone())]);
    }
}

/// RFC 8986 section 4.1.1, by the kind of the upper layer: ICMPv6 type, code and pointer, or the drop's reason.
#[test]
fn other_upper_layers_are_refused() {
    let inner_ipv6 = ipv6("2001:db8:8::8", "2001:db8:7::7", 0, 59, &[]);
    let inner_ipv4 = packet("10.1.0.2", "10.2.0.2", 17, &[0; 8]);
    let cases = [
        (END_DT4, 41, inner_ipv6.clone()),
        (END_DX4, 41, inner_ipv6),
        ("fd00:1::d6", 4, inner_ipv4.clone()),
        (END_DT46, 143, vec![0; 60]),
        (END_DT4, 59, vec![]),
    ];
    for (sid, next_header, payload) in cases {
        let mut bench = with_sids(node());
        let prefix = common::prefix("fd00:1::d6");
        bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndDt6(TENANT) });
        let sent = bench.send(1, &ipv6("2001:db8:5::5", sid, 0, next_header, &payload));
        assert_eq!(only_drop(&bench, 1), "upper_layer", "{sid} {next_header}");
        let [(1, error)] = &sent[..] else { panic!("one error: {sent:?}") };
        assert_eq!((error[6], error[40], error[41], &error[44..48]), (58, 4, 4, &[0, 0, 0, 40][..]));
        assert_eq!(u16::from_be_bytes([error[42], error[43]]), checksums::icmpv6(error));
    }
    // S02: segments left.
    for sid in [END_DT4, END_DX4, END_DT46] {
        let mut bench = with_sids(node());
        let srh = [&[4, 2, 4, 1, 0, 0, 0, 0][..], &address(VIA).octets(), &inner_ipv4].concat();
        let sent = bench.send(1, &ipv6("2001:db8:5::5", sid, 0, 43, &srh));
        assert_eq!(only_drop(&bench, 1), "segments_left");
        assert_eq!((sent[0].1[40], sent[0].1[41], &sent[0].1[44..48]), (4, 0, &[0, 0, 0, 43][..]));
    }
    // RFC 9259: a ping of the SID.
    let mut bench = with_sids(node());
    let mut ping = ipv6("2001:db8:5::5", END_DT4, 0, 58, &[128, 0, 0, 0, 0, 1, 0, 1]);
    let checksum = checksums::icmpv6(&ping);
    ping[42..44].copy_from_slice(&checksum.to_be_bytes());
    let sent = bench.send(1, &ping);
    assert_eq!((&sent[0].1[8..24], sent[0].1[40]), (&address(END_DT4).octets()[..], 129));
}

/// Two nodes, as of two sites of a VPN: what one encapsulates, the other one takes out, both ways.
#[test]
fn a_vpn_of_two_nodes() {
    let host = captured()[PACKET].clone();
    let mut near = with_sids(node());
    route(&mut near, "10.2.0.0/16", segments(&[VIA, END_DT46], EncapsMode::Reduced));
    let mut far = with_sids(node());
    far.apply(Command::AddSid { prefix: common::prefix(VIA), behavior: SidBehavior::End(Flavors::default()) });
    let [(1, tunnelled)] = &near.send(0, &host)[..] else { panic!("one packet") };
    assert_eq!(far.send(1, tunnelled), [(2, changed(&host, &[(8, 62)]))]);
    let answer = packet("10.2.0.2", "10.1.0.2", 1, &[0; 8]);
    route(&mut far, "10.1.0.0/16", segments(&[END_DT4], EncapsMode::Encaps));
    let tunnel_home = Command::AddRoute {
        table: TableId(0),
        prefix: common::prefix(END_DT4),
        action: RouteAction::Via(vec![crate::common::next_hop(1)]),
    };
    far.apply(Command::RemoveSid(common::prefix(END_DT4)));
    far.apply(tunnel_home);
    let [(1, tunnelled)] = &far.send(2, &answer)[..] else { panic!("one packet") };
    assert_eq!(near.send(1, tunnelled), [(0, changed(&answer, &[(8, 62)]))]);
}

/// A tunnel to a SID of the node itself ends there; routes that lead round and round end too.
#[test]
fn a_tunnel_to_oneself() {
    let mut bench = with_sids(node());
    route(&mut bench, "10.2.0.0/16", segments(&[END_DT4], EncapsMode::Reduced));
    let host = captured()[PACKET].clone();
    assert_eq!(bench.send(0, &host), [(2, changed(&host, &[(8, 62)]))]);
    route_in(&mut bench, TENANT, "10.2.0.0/16", segments(&[END_DT4], EncapsMode::Reduced));
    assert_eq!(bench.send(0, &host), []);
    assert_eq!(only_drop(&bench, 0), "segment_loop");
}
