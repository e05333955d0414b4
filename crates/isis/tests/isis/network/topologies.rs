//! Multi-topology (RFC 5120, D247): systems of the topology of IPv6, alone and beside those of the standard one.

use super::net::{Net, config, config_of_ipv6, locator, system};
use srdma_isis::tlv::{
    AdjacencyState, Leak, Locator, LspEntry, Member, Neighbour, Reachability, ThreeWay, Topologies, TopologyId, kind,
};
use srdma_isis::{CircuitId, Config, Hello, HelloRefusal, IsisDrop, Level, Lsp, LspFlags, LspId, NodeId, frame};
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

const IPV6: TopologyId = TopologyId::IPV6_UNICAST;

fn prefix(number: u16) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), 48).unwrap()
}

fn member(topology: TopologyId) -> Member {
    Member { topology, ..Member::default() }
}

fn reachable(number: u16) -> Reachability {
    Reachability { metric: 1, leak: Leak::None, is_external: false, prefix: prefix(number) }
}

fn kinds(net: &Net, at: usize, of: usize) -> Vec<u8> {
    let id = LspId { node: NodeId::of(system(of)), fragment: 0 };
    let lsp = net.speakers[at].database(Level::Two).get(id).expect("its LSP").lsp();
    lsp.tlvs().map(|tlv| tlv.unwrap().kind).collect()
}

#[test]
fn paths_of_systems_in_the_topology_of_ipv6() {
    let mut net = Net::default();
    for number in 0..4 {
        net.add(Config { prefixes: vec![reachable(number as u16)], ..config_of_ipv6(number) });
    }
    (1..4).for_each(|number| net.join(number - 1, number, 10));
    net.run_ms(2_000);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert_eq!(paths.prefixes[&locator(3)].distance, 30);
    assert_eq!(paths.prefixes[&prefix(3)].distance, 31);
    assert_eq!(net.speakers[0].learned(net.now)[&system(3)].sids.len(), 1);
    let kinds = kinds(&net, 0, 3);
    let [with_id, without] = [[229, 222, 237, 27].as_slice(), &[22, 236]];
    assert!(with_id.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    assert!(!without.iter().any(|kind| kinds.contains(kind)), "{kinds:?}");
}

/// RFC 5120 section 3.1: without a common topology there is no adjacency, and the refusal has a name.
#[test]
fn systems_without_a_common_topology_are_no_neighbours() {
    let mut net = Net::default();
    net.add(config_of_ipv6(0));
    net.add(config(1));
    net.join(0, 1, 10);
    net.run_ms(10_000);
    for at in 0..2 {
        assert!(net.speakers[at].drops()[&IsisDrop::Hello(HelloRefusal::OtherTopology)] > 2);
        assert!(net.speakers[at].shortest_paths(net.now).prefixes.is_empty());
    }
    // The other one follows, and they are.
    net.speakers[1].reconfigure(|config| *config = config_of_ipv6(1));
    net.run_ms(10_000);
    assert_eq!(net.speakers[0].shortest_paths(net.now).prefixes[&locator(1)].distance, 10);
    // Adjacencies stay up, and carry nothing, until the neighbour's next hello.
    net.speakers[1].reconfigure(|config| *config = super::net::config(1));
    net.run_ms(60_000);
    assert!((0..2).all(|at| net.speakers[at].shortest_paths(net.now).prefixes.is_empty()));
    assert!(!net.is_adjacent(0));
}

/// The O bit of TLV 229 counts, not that of the header, which is the standard topology's.
#[test]
fn no_path_leads_through_a_system_that_is_overloaded_in_the_topology() {
    let mut net = Net::default();
    (0..3).for_each(|number| {
        net.add(config_of_ipv6(number));
    });
    (1..3).for_each(|number| net.join(number - 1, number, 10));
    net.run_ms(2_000);
    assert!(net.speakers[0].shortest_paths(net.now).prefixes.contains_key(&locator(2)));
    net.speakers[1].reconfigure(|config| config.is_overloaded = true);
    net.run_ms(2_000);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert!(paths.prefixes.contains_key(&locator(1)) && !paths.prefixes.contains_key(&locator(2)));
    let id = LspId { node: NodeId::of(system(1)), fragment: 0 };
    let lsp = net.speakers[0].database(Level::Two).get(id).unwrap().lsp();
    let member = Topologies::parse(lsp.tlvs()).unwrap().member(IPV6).unwrap();
    assert!(lsp.flags.is_overloaded && member.is_overloaded, "both bits, for systems of either topology");
}

/// An LSP of system 2 in place of its own. Its neighbour is system 1.
fn inject(net: &mut Net, flags: LspFlags, topologies: &Topologies, tlvs: &[u8]) {
    let id = LspId { node: NodeId::of(system(2)), fragment: 0 };
    let sequence = net.speakers[0].database(Level::Two).get(id).map_or(0, |stored| stored.lsp().entry.sequence) + 1;
    let mut octets = Vec::new();
    topologies.emit(&mut octets);
    octets.extend(tlvs);
    let entry = LspEntry { lifetime_s: 1200, id, sequence, checksum: 0 };
    let lsp = Lsp::new(Level::Two, entry, flags, &octets);
    net.inject((1, CircuitId(1)), frame::wrap(MacAddress([2; 6]), lsp.octets()).unwrap());
    net.run_ms(500);
}

/// A system as FRR is: in both topologies, with all kinds of TLVs.
#[test]
fn only_the_tlvs_of_ones_own_topology_count() {
    let mut net = Net::default();
    (0..2).for_each(|number| {
        net.add(config_of_ipv6(number));
    });
    net.join(0, 1, 10);
    net.run_ms(2_000);
    // System 2 is no speaker, but what is injected.
    let end = net.open_end(1);
    let both = Topologies::listed([TopologyId::STANDARD, IPV6].map(member).to_vec());
    let hello = Hello {
        levels: vec![Level::Two],
        source: system(2),
        holding_time_s: u16::MAX,
        circuit: 0,
        areas: Vec::new(),
        addresses: Vec::new(),
        three_way: Some(ThreeWay {
            state: AdjacencyState::Initializing,
            circuit: Some(1),
            neighbour: Some((system(1), 2)),
        }),
        topologies: both.clone(),
    };
    net.inject(end, frame::wrap(MacAddress([2; 6]), &hello.emit(&[])).unwrap());
    net.run_ms(500);
    let neighbour = |metric| Neighbour { node: NodeId::of(system(1)), metric, end_x: Vec::new() };
    let mut tlvs = Vec::new();
    Neighbour::emit_all(&[neighbour(5)], TopologyId::STANDARD, &mut tlvs);
    Neighbour::emit_all(&[neighbour(10)], IPV6, &mut tlvs);
    Neighbour::emit_all(&[neighbour(1)], TopologyId::new(7), &mut tlvs);
    Reachability::emit_all(&[reachable(1)], TopologyId::STANDARD, &mut tlvs);
    Reachability::emit_all(&[reachable(2)], IPV6, &mut tlvs);
    Reachability::emit_all(&[reachable(3)], TopologyId::new(7), &mut tlvs);
    for (number, topology) in [(100, TopologyId::STANDARD), (200, IPV6), (300, TopologyId::new(7))] {
        let prefix = locator(number);
        Locator { topology, metric: 0, leak: Leak::None, algorithm: 0, prefix, sids: Vec::new() }.emit(&mut tlvs);
    }
    // The header's bit is the standard topology's.
    let flags = LspFlags { is_overloaded: true, is_level_2: true, ..LspFlags::default() };
    inject(&mut net, flags, &both, &tlvs);
    let found = |net: &Net| net.speakers[0].shortest_paths(net.now).prefixes.keys().copied().collect::<Vec<_>>();
    assert_eq!(found(&net), [prefix(2), locator(1), locator(200)]);
    let learned = net.speakers[0].learned(net.now);
    assert_eq!(learned[&system(2)].locators, [locator(100), locator(200), locator(300)], "SIDs of any topology");
    // It takes part in the topology no more, whatever else it announces.
    inject(&mut net, flags, &Topologies::listed(vec![member(TopologyId::STANDARD)]), &tlvs);
    assert_eq!(found(&net), [locator(1)]);
    inject(&mut net, flags, &Topologies::default(), &tlvs);
    assert_eq!(found(&net), [locator(1)]);
    inject(&mut net, flags, &both, &tlvs);
    assert_eq!(found(&net).len(), 3);
    // Cut off in the middle, a TLV counts for nothing.
    let cut: Vec<u8> = tlvs.iter().copied().chain([kind::MT_IPV6_REACHABILITY, 3, 0, 2, 0]).collect();
    inject(&mut net, flags, &both, &cut);
    assert_eq!(found(&net).len(), 3);
    inject(&mut net, flags, &both, &[kind::MT_IS_REACHABILITY, 1, 0]);
    assert_eq!(found(&net), [locator(1)]);
}
