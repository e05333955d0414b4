//! What the plan has, and a test for each thing that keeps packets out of it.

use super::*;
use crate::config::{Command, NextHop, NodeConfig, PortConfig, RouteAction};
use crate::cross_connect::CrossConnect;
use crate::egress::{EgressConfig, PfcConfig};
use crate::encaps::EncapsMode;
use crate::headend::HeadendConfig;
use crate::ioam::{IoamConfig, IoamNamespace};
use crate::policy::{PolicyId, SegmentList, SrPolicy};
use crate::security::{Cover, Domain, HmacKey};
use srdma_wire::MacAddress;
use std::net::Ipv6Addr;

const LOOPBACK: &str = "2001:db8:ff::1";
const ROUTE: &str = "2001:db8:a::/48";
const END: &str = "2001:db8:f:1::/128";
const END_X: &str = "2001:db8:f:2::/128";
const POLICY: &str = "2001:db8:c::/48";

fn prefix(text: &str) -> Prefix {
    text.parse().expect("a prefix")
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

fn neighbour() -> NextHop {
    NextHop { port: PortId(1), address: address("fe80::2") }
}

fn apply(node: &mut Node, commands: impl IntoIterator<Item = Command>) {
    commands.into_iter().for_each(|command| node.apply(command).expect("a command that the node takes"));
}

fn route(to: &str, action: RouteAction) -> Command {
    Command::AddRoute { table: TableId(0), prefix: prefix(to), action }
}

/// Two ports; a route, SIDs and a policy by way of a neighbour at the second one.
fn node(configure: impl FnOnce(&mut NodeConfig)) -> Node {
    let port = |number: u8| PortConfig {
        name: format!("p{number}"),
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        addresses: Vec::new(),
        link_mtu: 1500,
        queue_limit_octets: 1 << 20,
        ..PortConfig::default()
    };
    let mut config = NodeConfig::new(address(LOOPBACK), vec![port(0), port(1)]);
    configure(&mut config);
    let mut node = Node::new(config);
    let encaps = |segments: &[&str]| RouteAction::Encaps {
        segments: segments.iter().map(|segment| address(segment)).collect(),
        mode: EncapsMode::Reduced,
        hmac_key_id: None,
    };
    apply(
        &mut node,
        [
            Command::AddNeighbour { next_hop: neighbour(), mac: MacAddress([2, 0, 0, 0, 9, 9]) },
            route(ROUTE, RouteAction::Via(vec![neighbour()])),
            route(POLICY, encaps(&["2001:db8:a::1"])),
            Command::AddSid { prefix: prefix(END), behavior: SidBehavior::End(Flavors::default()) },
            Command::AddSid { prefix: prefix(END_X), behavior: SidBehavior::EndX(Flavors::MICRO, neighbour()) },
        ],
    );
    node
}

fn plan(node: &Node) -> FastPath {
    node.fast_path(|_| true)
}

#[track_caller]
fn entry(node: &Node, of: &str) -> FastPathEntry {
    plan(node).entries[&(TableId(0), prefix(of))].clone()
}

fn classes() -> EgressConfig {
    EgressConfig::new(1_000_000_000, 1 << 20)
}

#[test]
fn routes_sids_and_policies_are_in_the_plan() {
    let node = node(|_| {});
    let addresses = [2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 0, 1];
    let hop = FastPathHop { port: PortId(1), addresses, link_mtu: 1500 };
    assert_eq!(entry(&node, ROUTE), FastPathEntry::Via(vec![hop.clone()]));
    assert_eq!(entry(&node, END), FastPathEntry::End(Flavors::default()));
    assert_eq!(entry(&node, END_X), FastPathEntry::EndX(Flavors::MICRO, hop));
    let FastPathEntry::Encaps(headers) = entry(&node, POLICY) else { panic!("no policy") };
    assert_eq!((headers.len(), &headers[24..]), (40, &address("2001:db8:a::1").octets()[..]));
    // Its own address, and all else, keeps shorter prefixes away.
    assert_eq!(entry(&node, "2001:db8:ff::1/128"), FastPathEntry::Element);
    let plan = plan(&node);
    assert_eq!((plan.obstacle, plan.ports, plan.sources), (None, vec![None, None], None));
}

#[test]
fn every_change_of_the_tables_changes_the_generation() {
    let mut node = node(|_| {});
    let before = node.generation();
    apply(&mut node, [Command::RemoveNeighbour(neighbour())]);
    assert_ne!(node.generation(), before);
    // Drops are the element's.
    for of in [ROUTE, END_X] {
        assert_eq!(entry(&node, of), FastPathEntry::Element);
    }
    apply(&mut node, [route(ROUTE, RouteAction::Blackhole)]);
    assert_eq!(entry(&node, ROUTE), FastPathEntry::Element);
}

#[test]
fn what_leads_to_a_port_that_is_not_open_is_the_elements() {
    let node = node(|_| {});
    let plan = node.fast_path(|port| port == PortId(0));
    assert_eq!(plan.entries[&(TableId(0), prefix(ROUTE))], FastPathEntry::Element);
}

#[test]
fn equal_paths_are_in_the_plan_while_none_is_avoided_or_unknown() {
    let mut node = node(|_| {});
    let other = NextHop { port: PortId(0), address: address("fe80::3") };
    apply(&mut node, [route(ROUTE, RouteAction::Via(vec![neighbour(), other]))]);
    assert_eq!(entry(&node, ROUTE), FastPathEntry::Element);
    apply(&mut node, [Command::AddNeighbour { next_hop: other, mac: MacAddress([2, 0, 0, 0, 9, 8]) }]);
    assert!(matches!(entry(&node, ROUTE), FastPathEntry::Via(hops) if hops.len() == 2));
}

/// A port of an obstacle: the plan names it, and nothing leads there.
#[track_caller]
fn is_out(node: &Node, port: usize, obstacle: FastPathObstacle) {
    let mut ports = vec![None, None];
    ports[port] = Some(obstacle);
    assert_eq!(plan(node).ports, ports);
    let leads_there = port == 1;
    assert_eq!(entry(node, ROUTE) == FastPathEntry::Element, leads_there);
    assert_eq!(entry(node, END_X) == FastPathEntry::Element, leads_there);
}

#[test]
fn ports_with_traffic_classes_are_out() {
    for port in [0, 1] {
        let mut node = node(|_| {});
        let id = PortId(port as u16);
        apply(&mut node, [Command::SetEgress { port: id, egress: Box::new(classes()) }]);
        is_out(&node, port, FastPathObstacle::Classes);
        apply(&mut node, [Command::RemoveEgress(id)]);
        assert_eq!(plan(&node).ports, [None, None]);
    }
}

#[test]
fn ports_with_pfc_are_out() {
    for port in [0, 1] {
        let mut node = node(|_| {});
        let mut egress = classes();
        let pfc = PfcConfig { xoff_octets: 9000, xon_octets: 3000, headroom_octets: 5000, quanta: 100 };
        egress.classes[3].pfc = Some(pfc);
        apply(&mut node, [Command::SetEgress { port: PortId(port as u16), egress: Box::new(egress) }]);
        is_out(&node, port, FastPathObstacle::Pfc);
    }
}

#[test]
fn border_ports_are_out() {
    for port in [0, 1] {
        let mut node = node(|_| {});
        let id = PortId(port as u16);
        apply(&mut node, [Command::SetBorder { port: id, sources: Vec::new() }]);
        is_out(&node, port, FastPathObstacle::Border);
        apply(&mut node, [Command::RemoveBorder(id)]);
        assert_eq!(plan(&node).ports, [None, None]);
    }
}

/// The whole node is out, and back when the feature is off again.
#[track_caller]
fn keeps_the_node_out(on: Command, off: Command, obstacle: FastPathObstacle) {
    let mut node = node(|_| {});
    apply(&mut node, [on]);
    let found = plan(&node);
    assert_eq!((found.obstacle, found.entries.len()), (Some(obstacle), 0));
    apply(&mut node, [off]);
    assert_eq!(plan(&node).obstacle, None);
}

#[test]
fn a_node_with_fast_cnp_is_out() {
    let on = Command::SetFastCnp(Box::default());
    keeps_the_node_out(on, Command::RemoveFastCnp, FastPathObstacle::FastCnp);
}

#[test]
fn a_node_that_steers_is_out() {
    let on = Command::SetSteering(Box::new(HeadendConfig::new(address(LOOPBACK))));
    keeps_the_node_out(on, Command::RemoveSteering, FastPathObstacle::Steering);
}

#[test]
fn a_node_that_writes_to_traces_is_out() {
    let namespace = IoamNamespace { id: 1, data: None, data_wide: None, opaque: None };
    let on = Command::SetIoam(Box::new(IoamConfig { namespaces: vec![namespace], ..IoamConfig::default() }));
    keeps_the_node_out(on, Command::RemoveIoam, FastPathObstacle::Ioam);
}

#[test]
fn sids_that_require_an_hmac_and_policies_that_sign_are_the_elements() {
    let mut node = node(|config| config.hmac = HmacPolicy::Required);
    for of in [END, END_X] {
        assert_eq!(entry(&node, of), FastPathEntry::Element);
    }
    assert!(matches!(entry(&node, ROUTE), FastPathEntry::Via(_)));
    let segments = ["2001:db8:a::1", "2001:db8:a::2"].map(address).to_vec();
    let signed = RouteAction::Encaps { segments, mode: EncapsMode::Encaps, hmac_key_id: Some(7) };
    let key = Command::AddHmacKey { key_id: 7, key: HmacKey::new(b"secret", Cover::Rfc8754) };
    apply(&mut node, [key, route(POLICY, signed)]);
    assert_eq!(entry(&node, POLICY), FastPathEntry::Element);
}

/// RFC 8754 section 5.1: the program compares sources with these.
#[test]
fn a_domain_limits_the_sources_of_packets_to_sids() {
    let mut node = node(|_| {});
    let infrastructure = vec![prefix("2001:db8:ff::/48")];
    let sids = vec![prefix("2001:db8:f::/48")];
    apply(
        &mut node,
        [Command::SetDomain(Domain { sids, infrastructure: infrastructure.clone(), proxies: Vec::new() })],
    );
    assert_eq!(plan(&node).sources, Some(infrastructure));
}

#[test]
fn behaviours_with_state_are_the_elements() {
    let mut node = node(|_| {});
    let lists = vec![SegmentList { segments: vec![address("2001:db8:a::1")], weight: 1 }];
    let policy = Box::new(SrPolicy { lists, hmac_key_id: None });
    let (id, mode) = (PolicyId(1), EncapsMode::Reduced);
    let applied = route(POLICY, RouteAction::Policy { policy: id, mode });
    apply(&mut node, [Command::AddPolicy { id, policy }, applied]);
    assert_eq!(entry(&node, POLICY), FastPathEntry::Element);
    for behavior in [
        SidBehavior::EndC,
        SidBehavior::EndMt { require_hmac: false },
        SidBehavior::EndE(TableId(0)),
        SidBehavior::EndDx6 { next_hop: neighbour(), table: TableId(0) },
        SidBehavior::EndDx2(PortId(1)),
        SidBehavior::EndB6Encaps { policy: id, mode },
    ] {
        apply(&mut node, [Command::AddSid { prefix: prefix(END), behavior }]);
        assert_eq!(entry(&node, END), FastPathEntry::Element);
    }
    let cross_connect = CrossConnect { policy: id, mode };
    apply(&mut node, [Command::SetCrossConnect { port: PortId(1), cross_connect }]);
    assert_eq!(plan(&node).ports, [None, Some(FastPathObstacle::CrossConnect)]);
    assert_eq!(entry(&node, ROUTE), FastPathEntry::Element);
    apply(&mut node, [Command::RemoveCrossConnect(PortId(1))]);
    apply(&mut node, [Command::AddSid { prefix: prefix(END), behavior: SidBehavior::EndDt6(TableId(4)) }]);
    assert_eq!(entry(&node, END), FastPathEntry::EndDt6(TableId(4)));
}
