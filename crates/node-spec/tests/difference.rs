//! A node that follows a difference is the node that a new one of the new spec would be, and keeps the state of PSNs.

use proptest::prelude::*;
use srdma_bfd::Config;
use srdma_dataplane::headend::HeadendConfig;
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BfdPeer, BfdReport, BfdSession, ClassMap, Connection, Cover, CrossConnect,
    Domain, EgressConfig, EncapsMode, FastCnpConfig, Flavors, IoamConfig, IoamInterface, IoamNamespace, Learning,
    MulticastRoute, NextHop, Node, NodeConfig, PolicyId, PortConfig, RouteAction, SegmentList, SharedHosts,
    SidBehavior, SrPolicy, TableId,
};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_group::{Branch, GroupEntry, GroupId, ListMode, NodeIndex, NodeRole, Parent, Policy, Receiver};
use srdma_node_spec::{Entries, KeySpec, LinkFacts, NodeSpec, diff};
use srdma_testkit::checksums;
use srdma_wire::{Instant, MacAddress, Prefix, Psn, Qpn};
use std::net::Ipv6Addr;

const PORTS: u16 = 3;
const LOOPBACK: &str = "2001:db8:a::1";
const END_MT: &str = "5f00:0:1:e000::";
const OTHER_SID: &str = "5f00:0:2::";
const END_DX4: &str = "5f00:0:d4::";
/// An address that means nothing, or is a route, a SID or a Proxy Address.
const MANIFOLD: &str = "2001:db8:ff::200";
const PROXIES: [&str; 2] = ["2001:db8:ff::100", MANIFOLD];

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(address(text), len).expect("a prefix")
}

fn hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, port + 1) }
}

fn mac(port: u16, other: u8) -> MacAddress {
    MacAddress([2, 0, 0, other, 1, port as u8])
}

/// Decisions, taken from random bits one by one.
struct Bits(u128);

impl Bits {
    /// One of `count`.
    fn one_of(&mut self, count: u128) -> u128 {
        let taken = self.0 % count;
        self.0 /= count;
        taken
    }

    fn is(&mut self) -> bool {
        self.one_of(2) == 1
    }
}

fn settings() -> NodeConfig {
    let port = |port: u16| PortConfig {
        name: format!("p{port}"),
        mac: MacAddress([2, 0, 0, 0, 0, port as u8]),
        addresses: Vec::new(),
        link_mtu: 4608,
        queue_limit_octets: 1 << 20,
        ..PortConfig::default()
    };
    NodeConfig::new(address(LOOPBACK), (0..PORTS).map(port).collect())
}

/// The edge's entry of a group in an epoch: each has its own receivers.
fn group(id: u32, proxy: &str, epoch: u32) -> GroupEntry {
    let receiver = |host: u32| {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, id as u16, host as u16);
        Receiver::new(address, Qpn::new(0x100 + host).expect("a queue pair"), NodeIndex(1))
    };
    let receivers: Vec<Receiver> = (1..=2 + epoch).map(receiver).collect();
    GroupEntry {
        id: GroupId(id),
        epoch,
        renewed: 0,
        proxy: address(proxy),
        designated_qpn: Qpn::new(0xAB00 + id).expect("a queue pair"),
        initial_psn: Psn::new(100),
        role: NodeRole::Edge,
        sid: address(END_MT),
        parent: Parent::Node { loopback: address("2001:db8:6::1"), sid: None },
        branches: receivers.iter().map(|receiver| Branch::new(receiver.address)).collect(),
        downstream: Vec::new(),
        receivers,
        region: None,
        headend: None,
        repair: None,
        policy: Policy { lists: ListMode::Provisioned, ..Policy::default() },
        more_regions: Vec::new(),
    }
}

fn entries(bits: &mut Bits, epochs: [u32; 2]) -> Entries {
    let mut entries = Entries::default();
    for port in 0..PORTS {
        if bits.one_of(4) > 0 {
            entries.neighbours.insert((PortId(port), hop(port).address), mac(port, bits.one_of(2) as u8));
        }
    }
    if bits.one_of(4) == 0 {
        let facts = LinkFacts { mac: mac(9, 9), addresses: vec![address("2001:db8:77::1")], link_mtu: 1500 };
        entries.links.insert(PortId(0), facts);
    }
    for id in [7, 8] {
        if bits.is() {
            entries.keys.insert(id, KeySpec::new(vec![bits.one_of(2) as u8; 16], Cover::Tlvs));
        }
    }
    let has_steering = bits.is();
    if has_steering {
        let headend = HeadendConfig { probes: None, ..HeadendConfig::new(address(LOOPBACK)) };
        entries.steering = Some(headend);
    }
    let encaps = |hmac_key_id| RouteAction::Encaps {
        segments: vec![address("5f00:0:9::"), address("5f00:0:8::")],
        mode: EncapsMode::Reduced,
        hmac_key_id,
    };
    let signing = entries.keys.keys().next().copied();
    for id in [1, 2].map(PolicyId) {
        if bits.is() {
            let list = |last: u16, weight| SegmentList {
                segments: vec![address("5f00:0:9::"), Ipv6Addr::new(0x5f00, 0, last, 0, 0, 0, 0, 0)],
                weight,
            };
            let lists = (0..=bits.one_of(2)).map(|last| list(last as u16, 1 + bits.one_of(2) as u32)).collect();
            let hmac_key_id = signing.filter(|_| bits.is());
            entries.policies.insert(id, SrPolicy { lists, hmac_key_id });
        }
    }
    let policy = entries.policies.keys().next().copied();
    let mode = if bits.is() { EncapsMode::Encaps } else { EncapsMode::Reduced };
    for (text, len) in [("2001:db8:2::", 64), ("2001:db8:6::", 64), ("5f00::", 16), ("2001:db8:dd::", 48)] {
        let action = match (bits.one_of(7), policy) {
            (6, Some(policy)) => RouteAction::Policy { policy, mode },
            (0, _) => continue,
            (1, _) => RouteAction::Via(vec![hop(0), hop(1)]),
            (2, _) => RouteAction::Blackhole,
            (3, _) => encaps(signing),
            (4, _) => encaps(None),
            _ => RouteAction::Via(vec![hop(bits.one_of(3) as u16)]),
        };
        entries.routes.insert((TableId(0), prefix(text, len)), action);
    }
    if bits.is() {
        entries.routes.insert((TableId(5), prefix("::", 0)), RouteAction::Via(vec![hop(2)]));
    }
    let ipv4_hop = |last: u8| NextHop { port: PortId(2), address: address(&format!("::ffff:192.0.2.{last}")) };
    for (table, last) in [(0, 1), (5, 1), (5, 2)] {
        let hop = ipv4_hop(last);
        match bits.one_of(5) {
            0 => drop(entries.neighbours.insert((hop.port, hop.address), mac(2, last))),
            1 => {
                let key = (TableId(table), prefix("::ffff:198.51.100.0", 120));
                entries.routes.insert(key, RouteAction::Via(vec![hop]));
            }
            2 => drop(entries.routes.insert((TableId(table), prefix("::ffff:192.0.2.1", 128)), encaps(None))),
            3 => {
                let behavior = SidBehavior::EndDx4 { next_hop: hop, table: TableId(table) };
                entries.sids.insert(prefix(END_DX4, 128), behavior);
            }
            _ => drop(entries.sids.insert(prefix(END_DX4, 128), SidBehavior::EndDt46(TableId(table)))),
        }
    }
    match bits.one_of(4) {
        0 => {}
        1 => drop(entries.sids.insert(prefix(END_MT, 128), SidBehavior::EndDt6(TableId(5)))),
        _ => drop(entries.sids.insert(prefix(END_MT, 128), SidBehavior::EndMt { require_hmac: bits.is() })),
    }
    if let Some(policy) = policy.filter(|_| bits.is()) {
        entries.cross_connects.insert(PortId(1), CrossConnect { policy, mode });
    }
    match bits.one_of(7) {
        0 => {}
        // Port 1 may have traffic classes.
        6 => drop(entries.sids.insert(prefix(OTHER_SID, 48), SidBehavior::EndDx2(PortId(bits.one_of(2) as u16)))),
        4 => {
            let behavior = SidBehavior::EndDx6 { next_hop: hop(2), table: TableId(5) };
            entries.sids.insert(prefix(OTHER_SID, 48), behavior);
        }
        5 => {
            let applied = policy.map(|policy| SidBehavior::EndB6Encaps { policy, mode });
            entries.sids.extend(applied.map(|behavior| (prefix(OTHER_SID, 48), behavior)));
        }
        1 => drop(entries.sids.insert(prefix(OTHER_SID, 48), SidBehavior::End(Flavors::MICRO))),
        2 => drop(entries.sids.insert(prefix(OTHER_SID, 48), SidBehavior::EndX(Flavors::MICRO, hop(1)))),
        _ => drop(entries.sids.insert(prefix(OTHER_SID, 128), SidBehavior::EndE(TableId(0)))),
    }
    let is_exchanged = bits.is();
    let mut is_proxy = false;
    for (index, epoch) in epochs.into_iter().enumerate() {
        if bits.is() {
            let proxy = PROXIES[index ^ usize::from(is_exchanged)];
            is_proxy |= proxy == MANIFOLD;
            entries.groups.insert(index as u32 + 1, group(index as u32 + 1, proxy, epoch));
        }
    }
    match bits.one_of(3) {
        _ if is_proxy => {}
        0 => {}
        1 => drop(entries.routes.insert((TableId(0), prefix(MANIFOLD, 128)), RouteAction::Via(vec![hop(1)]))),
        _ => drop(entries.sids.insert(prefix(MANIFOLD, 128), SidBehavior::End(Flavors::default()))),
    }
    if bits.is() {
        let all = |texts: &[(&str, u8)]| texts.iter().map(|(text, len)| prefix(text, *len)).collect();
        let more = if bits.is() { ("2001:db8:6::", 48) } else { ("2001:db8:7::", 48) };
        entries.domain = Some(Domain {
            sids: all(&[("5f00::", 16), ("2001:db8:ff::", 48)]),
            infrastructure: all(&[("2001:db8:a::", 48), more]),
            proxies: all(&[("2001:db8:ff::", 48)]),
        });
    }
    if bits.is() {
        let sources = if bits.is() { vec![prefix("2001:db8:2::", 64)] } else { vec![prefix("2001:db8:b::", 64)] };
        entries.borders.insert(PortId(2), sources);
    }
    if bits.is() {
        let mut map = ClassMap::default();
        map.set(26, 3);
        entries.classes = Some(map);
        entries.egress.insert(PortId(1), EgressConfig::new(1_000_000 + bits.one_of(2) as u64, 1 << 16));
    }
    if bits.is() {
        let namespace = IoamNamespace { id: 1, data: None, data_wide: None, opaque: None };
        let interface = IoamInterface { port: PortId(0), id: Some(3), id_wide: None, fills: true };
        entries.ioam = Some(IoamConfig {
            node_id: Some(bits.one_of(2) as u32),
            namespaces: vec![namespace],
            interfaces: vec![interface],
            ..IoamConfig::default()
        });
    }
    if bits.is() {
        let senders = vec![prefix("2001:db8:1::", 48)];
        entries.fast_cnp = Some(FastCnpConfig { senders, ..FastCnpConfig::new() });
    }
    if (has_steering || entries.fast_cnp.is_some()) && bits.is() {
        let qpn = |number| Qpn::new(number).expect("a queue pair");
        let (host, peer) = (address("2001:db8:2::5"), address("2001:db8:1::1"));
        let connection = Connection { host, host_qpn: qpn(5), peer, peer_qpn: qpn(6 + bits.one_of(2) as u32) };
        entries.connections.insert((host, peer, connection.peer_qpn), connection);
    }
    if bits.is() {
        entries.backpressure = Some(BackpressureConfig::default());
    }
    if bits.is() {
        let sids = BackpressureSids {
            outer_source: prefix("2001:db8:9::", 64),
            end_c: Some(address("5f00:0:9:c::")),
            end_e: bits.is().then(|| address("5f00:0:9:d::")),
        };
        entries.backpressure_sids.insert(sids.outer_source, sids);
    }
    if bits.is() {
        let hosts = prefix("2001:db8:d0::", 64);
        let proxies = if bits.is() { prefix("2001:db8:ff::", 64) } else { prefix("2001:db8:ff::", 48) };
        let peer = address(if bits.is() { "2001:db8:6::1" } else { "2001:db8:9::1" });
        entries.shared_hosts.insert(hosts, SharedHosts { hosts, proxies, peer, sid: address("5f00:0:9::") });
        entries.routes.insert((TableId(0), proxies), RouteAction::ToPeer);
    }
    if bits.is() {
        let (source, group) = (address("2001:db8:6::1"), address("ff3e::100"));
        let outgoing = (1..=1 + bits.one_of(2) as u16).map(PortId).collect();
        let route = MulticastRoute { source, group, incoming: None, outgoing, end_mt: false, require_hmac: false };
        entries.multicast_routes.insert((source, group), route);
    }
    for peer in [
        BfdPeer { port: None, address: address("2001:db8:9::1") },
        BfdPeer { port: Some(PortId(0)), address: hop(0).address },
    ] {
        if bits.is() {
            let config = Config::new(if bits.is() { 10_000 } else { 20_000 }, 50_000, 3).expect("above the least");
            let local = address(if bits.is() { LOOPBACK } else { "2001:db8:77::1" });
            entries.bfd.insert(peer, BfdSession { peer, local, config, is_enabled: bits.is() });
        }
    }
    if bits.one_of(3) == 0 {
        entries.learning = Some(Learning {
            proxies: vec![prefix(if bits.is() { "2001:db8:c1::" } else { "2001:db8:c2::" }, 48)],
            parent: address("2001:db8:6::1"),
            parent_sid: None,
            policy: Policy { lists: ListMode::Tlv, ..Policy::default() },
            max_groups: 4,
            max_receivers: 16,
            idle_ns: 1_000_000_000,
        });
    }
    entries
}

/// Two specs; the epochs of the groups do not fall from the first to the second.
fn specs(old: u128, new: u128, epochs: [(u32, u32); 2]) -> (NodeSpec, NodeSpec) {
    let spec = |bits, epochs| NodeSpec { node: settings(), entries: entries(&mut Bits(bits), epochs) };
    let old = spec(old, epochs.map(|(epoch, _)| epoch));
    (old, spec(new, epochs.map(|(epoch, rise)| epoch + rise)))
}

/// A node's configuration and the state of its groups, as lines.
fn shown(node: &Node) -> Vec<String> {
    let mut lines: Vec<String> = node.sids().map(|(prefix, behavior, _)| format!("{prefix} {behavior:?}")).collect();
    lines.extend(node.groups().map(|id| format!("{:?}", node.group_entry(id))));
    lines.push(format!("{} prefixes, {} neighbours", node.prefix_count(), node.neighbour_count()));
    lines.push(format!("{:?} open: {}", node.fast_cnp(), node.has_open_sids()));
    lines.extend(node.config().ports.iter().map(|port| format!("{port:?}")));
    lines.push(format!("steering: {}", node.headend().is_some()));
    lines.extend(node.bfd_reports().map(|BfdReport { peer, local, session, .. }| {
        format!("{peer:?} {local} {:?} {:?}", session.config(), session.state())
    }));
    lines.sort();
    lines
}

/// A UDP packet to an address; the inner one of `SID` is in IPv6 again.
fn packet(destination: Ipv6Addr, dscp: u8, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | dscp >> 2, dscp << 6, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(address("2001:db8:1::1").octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

fn probes() -> Vec<Vec<u8>> {
    let destinations =
        ["2001:db8:2::5", "2001:db8:6::1", "5f00:0:9::", "2001:db8:dd::1", MANIFOLD, "2001:db8:c1::1", "2001:db8:e::1"];
    let links = (0..PORTS).map(|port| hop(port).address);
    let udp = [0xC0, 0, 0x12, 0xB8, 0, 8, 0, 0];
    let plain = destinations.into_iter().map(address).chain(links).map(|to| packet(to, 26, 17, &udp));
    let inner = packet(address("2001:db8:2::5"), 0, 17, &udp);
    let sids = [END_MT, OTHER_SID, "5f00:0:2:300::"];
    let tunnelled = sids.into_iter().map(|sid| packet(address(sid), 0, 41, &inner));
    let srh = [&[41, 2, 4, 1, 0, 0, 0, 0][..], &address("5f00:0:9::").octets(), &inner].concat();
    let by_segments = packet(address(OTHER_SID), 0, 43, &srh);
    plain.chain(tunnelled).chain([by_segments]).collect()
}

/// Passes a packet to a port; returns the sent packets, each with its port.
fn forwarded(node: &mut Node, port: u16, packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let (mut pool, now) = (Pool::new(512), Instant::ZERO);
    let own = node.config().ports[usize::from(port)].mac;
    let octets = [&own.0[..], &mac(port, 0).0, &[0x86, 0xDD], packet].concat();
    let mut frames = vec![Frame::from_octets(&octets, &mut pool).expect("it fits")];
    node.receive(now, PortId(port), &mut frames, &mut pool);
    let mut sent = Vec::new();
    for port in 0..PORTS {
        while let Some(frame) = node.dequeue(now, PortId(port), &mut pool) {
            sent.push((port, frame.to_vec(&pool)));
            frame.release(&mut pool);
        }
    }
    sent
}

/// A RoCEv2 packet of a group: to its Proxy Address and Designated QPN.
fn roce(group: &GroupEntry, source: Ipv6Addr, opcode: u8, psn: u8, rest: &[u8]) -> Vec<u8> {
    let len = 24 + rest.len() as u8;
    let designated = group.designated_qpn.get().to_be_bytes();
    let mut udp = vec![0xD0, 0x01, 0x12, 0xB7, 0, len, 0, 0, opcode, 0, 0xFF, 0xFF, 0];
    udp.extend(&designated[1..]);
    udp.extend([0, 0, 0, psn]);
    udp.extend(rest);
    let mut packet = packet(group.proxy, 0, 17, &udp);
    packet[4..6].copy_from_slice(&u16::from(len).to_be_bytes());
    packet[8..24].copy_from_slice(&source.octets());
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    packet
}

/// Octets of a packet that the group's source sends in one piece, as the headend encapsulates it.
fn data(group: &GroupEntry, psn: u8) -> Vec<u8> {
    const SEND_ONLY: u8 = 0x04;
    let inner = roce(group, address("2001:db8:1::1"), SEND_ONLY, psn, &[7; 8]);
    // An SRH in the reduced form, with the Proxy Address as its only segment.
    let srh = [&[41, 2, 4, 1, 0, 0, 0, 0][..], &group.proxy.octets()].concat();
    packet(address(END_MT), 0, 43, &[srh, inner].concat())
}

/// An acknowledgement of a receiver.
fn acknowledgement(group: &GroupEntry, receiver: &Receiver, psn: u8) -> Vec<u8> {
    const ACKNOWLEDGE: u8 = 0x11;
    roce(group, receiver.address, ACKNOWLEDGE, psn, &[0x1F, 0, 0, 1])
}

/// Sends packets to each group, and has its receivers acknowledge some of them.
fn acknowledge(node: &mut Node) {
    let groups: Vec<GroupEntry> = node.groups().filter_map(|id| node.group_entry(id).cloned()).collect();
    for group in &groups {
        (100..104).for_each(|psn| drop(forwarded(node, 0, &data(group, psn))));
        for (receiver, psn) in group.receivers.iter().zip(100..) {
            // It counts at the port that leads to the receiver.
            (0..PORTS).for_each(|port| drop(forwarded(node, port, &acknowledgement(group, receiver, psn))));
        }
    }
}

/// The PSNs of a group.
fn psns(node: &Node, id: u32) -> String {
    format!("{:?}", node.acknowledgements(GroupId(id)))
}

#[test]
fn acknowledgements_arrive() {
    let mut spec = NodeSpec::new(settings());
    spec.entries.neighbours.insert((PortId(1), hop(1).address), mac(1, 0));
    spec.entries.routes.insert((TableId(0), prefix("2001:db8::", 32)), RouteAction::Via(vec![hop(1)]));
    spec.entries.sids.insert(prefix(END_MT, 128), SidBehavior::EndMt { require_hmac: false });
    spec.entries.groups.insert(1, group(1, PROXIES[0], 0));
    let mut node = spec.build().expect("right");
    let fresh = psns(&node, 1);
    acknowledge(&mut node);
    assert_ne!(psns(&node, 1), fresh);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_difference_leads_to_the_new_spec(
        old in any::<u128>(),
        new in any::<u128>(),
        epochs in [(0..2_u32, 0..2_u32), (0..2_u32, 0..2_u32)],
    ) {
        let (old, new) = specs(old, new, epochs);
        let (built, fresh) = (old.build(), new.build());
        prop_assume!(built.is_ok() && fresh.is_ok());
        let (mut node, mut fresh) = (built.expect("assumed"), fresh.expect("assumed"));
        acknowledge(&mut node);
        let staying = old.entries.groups.iter().filter(|(id, group)| new.entries.groups.get(id) == Some(group));
        let before: Vec<(u32, String)> = staying.map(|(id, _)| (*id, psns(&node, *id))).collect();
        for command in diff(&old, &new).expect("epochs rise") {
            let text = format!("{command:?}");
            prop_assert!(node.apply(command).is_ok(), "{text} is refused");
        }
        prop_assert_eq!(shown(&node), shown(&fresh));
        for port in new.entries.egress.keys() {
            prop_assert_eq!(node.egress_config(*port), fresh.egress_config(*port));
        }
        for (id, known) in before {
            prop_assert_eq!(psns(&node, id), known, "group {}", id);
        }
        for probe in probes() {
            for port in 0..PORTS {
                prop_assert_eq!(forwarded(&mut node, port, &probe), forwarded(&mut fresh, port, &probe));
            }
        }
    }

    /// The difference of a spec with itself is nothing, and there and back are as many steps as it takes.
    #[test]
    fn nothing_differs_from_itself(bits in any::<u128>()) {
        let (spec, same) = specs(bits, bits, [(0, 0), (1, 0)]);
        prop_assert!(diff(&spec, &same).expect("the same").is_empty());
    }
}
