//! Ethernet frames in SRv6: H.Encaps.L2, H.Encaps.L2.Red and End.DX2 (RFC 8986 sections 4.9, 5.3 and 5.4; D243).

use crate::common::{Bench, address, ipv6, port_mac, prefix};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};

const LOOPBACK: &str = "2001:db8:ffff::1";
const SOURCE: &str = "2001:db8:5::5";
const END_DX2: &str = "fd00:1::d2";
const FAR: &str = "fd01::d2";
const ID: PolicyId = PolicyId(3);

/// Next Header of Ethernet.
const ETHERNET: u8 = 143;

/// The port of the frames, and the one of the core.
const FRAMES: u16 = 0;
const CORE: u16 = 1;

fn policy(segments: &[&str]) -> Command {
    let segments = segments.iter().map(|segment| address(segment)).collect();
    let lists = vec![SegmentList { segments, weight: 1 }];
    Command::AddPolicy { id: ID, policy: Box::new(SrPolicy { lists, hmac_key_id: None }) }
}

fn connected(mode: EncapsMode) -> Command {
    Command::SetCrossConnect { port: PortId(FRAMES), cross_connect: CrossConnect { policy: ID, mode } }
}

fn end_dx2() -> Command {
    Command::AddSid { prefix: prefix(END_DX2), behavior: SidBehavior::EndDx2(PortId(FRAMES)) }
}

/// A node with a policy of these segments for the frames of port 0, and an End.DX2 toward it; the core is at port 1.
fn node(segments: &[&str], mode: EncapsMode) -> Bench {
    let mut bench = Bench::with(LOOPBACK, 3, |config| config.ports[usize::from(FRAMES)].link_mtu = 1500);
    bench.route("fd01::/16", CORE);
    bench.route("2001:db8:5::/48", CORE);
    for command in [policy(segments), connected(mode), end_dx2()] {
        bench.apply(command);
    }
    bench
}

/// Passes a frame to a port; returns what leaves, each with its port.
fn pass(bench: &mut Bench, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let frame = Frame::from_octets(frame, &mut bench.pool).unwrap();
    let Bench { node, pool, now, .. } = bench;
    node.receive(*now, PortId(port), &mut vec![frame], pool);
    let mut sent = Vec::new();
    for port in 0..3 {
        while let Some(octets) = bench.give_out(PortId(port)) {
            sent.push((port, octets));
        }
    }
    assert_eq!(bench.pool.in_use(), 0, "every chunk comes back");
    sent
}

/// A frame between two hosts that are not the node's.
fn frame(ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0xAA, 0, 2, 2, 0, 0, 0xAA, 0, 1][..], &ethertype, payload].concat()
}

/// Frames of several kinds: ARP, IPv6 with a DSCP and a used-up hop limit, a VLAN tag around it, a broadcast.
fn frames() -> Vec<Vec<u8>> {
    let mut packet = ipv6(SOURCE, "2001:db8:9::9", 3, 17, &[0xC0, 1, 0x12, 0xB8, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    packet[1] = 2 << 4;
    packet[7] = 1;
    let mut broadcast = frame([8, 6], &[7; 28]);
    broadcast[..6].fill(0xFF);
    vec![
        frame([8, 6], &[1; 28]),
        frame([0x86, 0xDD], &packet),
        frame([0x81, 0], &[&[0, 5, 0x86, 0xDD], &packet[..]].concat()),
        frame([8, 0], &[0x45; 1500]),
        frame([0x81, 0], &[&[0, 5, 8, 0], &[0x45; 1500][..]].concat()),
        broadcast,
        frame([0, 0], &[]),
    ]
}

/// A frame in SRv6 as another node sends it.
fn in_srv6(srh: &[u8], next_header: u8, payload: &[u8]) -> Vec<u8> {
    let first = if srh.is_empty() { next_header } else { 43 };
    let packet = ipv6(SOURCE, END_DX2, 0, first, &[srh, payload].concat());
    [&port_mac(CORE).0[..], &[2, 0, 0, 0, 1, CORE as u8, 0x86, 0xDD], &packet].concat()
}

/// RFC 8986 sections 5.3 and 5.4: the frame is whole behind the headers, whose DSCP is that of an IPv6 packet in it, and
/// whose ECN is not.
#[test]
fn frames_leave_whole_by_the_policy() {
    for frame in frames() {
        let is_ipv6 = frame[12..14] == [0x86, 0xDD];
        let class = if is_ipv6 { 3 } else { 0 };
        let mut bench = node(&[FAR], EncapsMode::Reduced);
        let sent = pass(&mut bench, FRAMES, &frame);
        let [(CORE, octets)] = &sent[..] else { panic!("one frame of the core, not {sent:?}: {:?}", bench.drops(0)) };
        let mut expected = ipv6(LOOPBACK, FAR, class, ETHERNET, &frame);
        let mut packet = octets[14..].to_vec();
        assert_eq!(octets[..14], [&[2, 0, 0, 0, 1, 1][..], &port_mac(CORE).0, &[0x86, 0xDD]].concat());
        // The flow label is the flow's.
        packet[1] &= 0xF0;
        packet[2..4].fill(0);
        assert_eq!(packet, expected);

        let mut bench = node(&[FAR, "fd01::2"], EncapsMode::Encaps);
        let sent = pass(&mut bench, FRAMES, &frame);
        let segments = [address("fd01::2"), address(FAR)].map(|segment| segment.octets()).concat();
        let srh = [&[ETHERNET, 4, 4, 1, 1, 0, 0, 0][..], &segments, &frame].concat();
        expected = ipv6(LOOPBACK, FAR, class, 43, &srh);
        assert_eq!((sent.len(), &sent[0].1[14 + 4..]), (1, &expected[4..]));
    }
}

/// RFC 8986 section 4.9: what comes out is the frame that went in, hop limits and ECN included, whatever it is.
#[test]
fn frames_come_out_as_they_went_in() {
    for frame in frames() {
        let mut bench = node(&[FAR], EncapsMode::Reduced);
        let segments = address(END_DX2).octets();
        let srh = [&[ETHERNET, 2, 4, 0, 0, 0, 0, 0][..], &segments].concat();
        for received in [in_srv6(&[], ETHERNET, &frame), in_srv6(&srh, ETHERNET, &frame)] {
            assert_eq!(pass(&mut bench, CORE, &received), [(FRAMES, frame.clone())], "{:?}", bench.drops(CORE));
        }
        assert_eq!(bench.node.sid_counters().map(|(_, traffic)| traffic.frames).sum::<u64>(), 2);
    }
}

/// At a port with classes a frame is in that of DSCP 0, and is neither marked nor trimmed, whatever is in it.
#[test]
fn frames_have_one_class() {
    let mut bench = node(&[FAR], EncapsMode::Reduced);
    let mut egress = EgressConfig::new(1_000_000_000, 1 << 16);
    egress.trim_dscp = Some(10);
    for class in &mut egress.classes {
        class.marking = Some(Marking { k_min_octets: 0, k_max_octets: 0, p_max: 1.0 });
    }
    bench.apply(Command::SetEgress { port: PortId(FRAMES), egress: Box::new(egress) });
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let frames = frames();
    for frame in &frames {
        assert_eq!(pass(&mut bench, CORE, &in_srv6(&[], ETHERNET, frame)), [(FRAMES, frame.clone())]);
    }
    let counted = |bench: &Bench| {
        let counters = (0..8).map(|class| bench.node.class_counters(PortId(FRAMES), class).unwrap());
        counters.map(|counters| (counters.sent.frames, counters.marks, counters.trimmed)).collect::<Vec<_>>()
    };
    let mut expected = [(0, 0, 0); 8];
    expected[0].0 = frames.len() as u64;
    assert_eq!(counted(&bench), expected);
    let full: Vec<Frame> =
        (0..100).map(|_| Frame::from_octets(&in_srv6(&[], ETHERNET, &frames[3]), &mut bench.pool).unwrap()).collect();
    let Bench { node, pool, now, .. } = &mut bench;
    node.receive(*now, PortId(CORE), &mut { full }, pool);
    let dropped: u64 = bench.drops(CORE).iter().map(|(_, count)| count).sum();
    assert!(dropped > 0 && bench.drops(CORE).len() == 1, "{:?}", bench.drops(CORE));
    while bench.give_out(PortId(FRAMES)).is_some() {}
    assert!(counted(&bench).iter().all(|(_, marks, trimmed)| marks + trimmed == 0));
}

/// A policy that ends at the node's own End.DX2: from port to port.
#[test]
fn a_frame_may_come_back() {
    let mut bench = node(&[END_DX2], EncapsMode::Reduced);
    bench.apply(Command::AddSid { prefix: prefix(END_DX2), behavior: SidBehavior::EndDx2(PortId(2)) });
    for frame in frames() {
        assert_eq!(pass(&mut bench, FRAMES, &frame), [(2, frame.clone())]);
    }
}

/// Frames of a flow keep their list; hosts' pairs are spread.
#[test]
fn frames_are_spread_by_their_flows() {
    let mut bench = node(&[FAR], EncapsMode::Reduced);
    bench.route("fd02::/16", 2);
    let list = |segment| SegmentList { segments: vec![address(segment)], weight: 1 };
    let lists = vec![list(FAR), list("fd02::d2")];
    bench.apply(Command::AddPolicy { id: ID, policy: Box::new(SrPolicy { lists, hmac_key_id: None }) });
    let mut ports = |ethertype: [u8; 2], host: u8| {
        let mut frame = frame(ethertype, &[1; 28]);
        frame[11] = host;
        pass(&mut bench, FRAMES, &frame)[0].0
    };
    let chosen: Vec<u16> = (0..200).map(|host| ports([8, 6], host)).collect();
    assert!((60..140).contains(&chosen.iter().filter(|port| **port == 2).count()), "{chosen:?}");
    assert_eq!((0..200).map(|host| ports([8, 0], host)).collect::<Vec<_>>(), chosen, "other frames of these hosts");
}

/// Every refusal has its name; nothing is sent about a frame, neither to a host nor to the node itself.
#[test]
fn frames_that_cannot_pass_are_dropped() {
    let mut bench = node(&[FAR], EncapsMode::Reduced);
    let pause = [&[1, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0xAA, 0, 1, 0x88, 8][..], &[1, 1, 0, 1, 0, 9]].concat();
    assert_eq!(pass(&mut bench, FRAMES, &pause), []);
    assert_eq!(pass(&mut bench, FRAMES, &[2; 13]), []);
    assert_eq!(pass(&mut bench, FRAMES, &frame([8, 0], &[0; 4600])), []);
    bench.apply(Command::RemoveRoute { table: TableId(0), prefix: prefix("fd01::/16") });
    let packet = ipv6(SOURCE, "2001:db8:9::9", 0, 59, &[]);
    assert_eq!(pass(&mut bench, FRAMES, &frame([0x86, 0xDD], &packet)), []);
    let drops = bench.drops(FRAMES);
    let expected = [("truncated", 1), ("mac_control", 1), ("no_route", 1), ("packet_too_big", 1)];
    assert!(drops.len() == 4 && expected.iter().all(|drop| drops.contains(drop)), "{drops:?}");
    assert_eq!(bench.node.own_drops().iter().count(), 0);

    for short in [&[][..], &[5; 13]] {
        assert_eq!(pass(&mut bench, CORE, &in_srv6(&[], ETHERNET, short)), []);
    }
    assert_eq!(pass(&mut bench, CORE, &in_srv6(&[], ETHERNET, &frame([8, 0], &[0; 1501]))), []);
    assert_eq!(pass(&mut bench, CORE, &in_srv6(&[], ETHERNET, &frame([0x81, 0], &[0; 1505]))), []);
    assert_eq!(bench.drops(CORE), [("truncated", 2), ("packet_too_big", 2)]);
    // Parameter Problem, code 4, and code 0 at Segments Left.
    let srh = [&[ETHERNET, 2, 4, 1, 0, 0, 0, 0][..], &address(FAR).octets()].concat();
    for (received, kind, code) in [(in_srv6(&[], 41, &packet), 4, 4), (in_srv6(&srh, ETHERNET, &packet), 4, 0)] {
        let sent = pass(&mut bench, CORE, &received);
        let [(CORE, error)] = &sent[..] else { panic!("one error, not {sent:?}") };
        assert_eq!((error[14 + 6], error[54], error[55]), (58, kind, code));
    }
}

/// Commands, and their refusals, which change nothing.
#[test]
fn cross_connects_are_set_and_removed() {
    let mut bench = node(&[FAR], EncapsMode::Reduced);
    let packet = ipv6(SOURCE, "2001:db8:5::1", 0, 59, &[]);
    let plain = [&port_mac(FRAMES).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD], &packet].concat();
    assert_eq!(pass(&mut bench, FRAMES, &plain)[0].1[14 + 6], ETHERNET);
    let node = &mut bench.node;
    let of = |port, policy| Command::SetCrossConnect {
        port: PortId(port),
        cross_connect: CrossConnect { policy: PolicyId(policy), mode: EncapsMode::Reduced },
    };
    assert_eq!(node.apply(of(9, 3)), Err(ConfigError::UnknownPort(9, 3)));
    assert_eq!(node.apply(of(0, 9)), Err(ConfigError::UnknownPolicy(9)));
    assert_eq!(node.apply(Command::RemoveCrossConnect(PortId(1))), Err(ConfigError::UnknownCrossConnect(1)));
    let unknown = Command::AddSid { prefix: prefix("fd00:1::d3"), behavior: SidBehavior::EndDx2(PortId(3)) };
    assert_eq!(node.apply(unknown), Err(ConfigError::UnknownPort(3, 3)));
    assert_eq!(node.apply(Command::RemovePolicy(ID)), Err(ConfigError::PolicyInUse(3)));
    node.apply(Command::RemoveCrossConnect(PortId(FRAMES))).unwrap();
    node.apply(Command::RemovePolicy(ID)).unwrap();
    let sent = pass(&mut bench, FRAMES, &plain);
    assert_eq!((sent[0].0, sent[0].1[14 + 6], sent[0].1[14 + 7]), (CORE, 59, 63), "it is a router's port again");
}
