//! Octets of probes, and packets that are none.

use proptest::prelude::*;
use srdma_fabric::{Encoding, FatTree, HostId, LeafSpine, NodeId, SidPlan, Speeds, Step, Topology};
use srdma_mapper::{Config, Mapper, MapperError, Paths, PathsError};
use srdma_wire::Instant;
use std::net::Ipv6Addr;

const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

fn figure1() -> Topology {
    Topology::from_toml(include_str!("../../../../fabrics/figure1.toml")).unwrap()
}

fn mapper(topology: &Topology, config: Config) -> (Paths, Mapper) {
    let sids = SidPlan::new(topology, SidPlan::BLOCK).unwrap();
    let paths = Paths::new(topology, &sids, HostId(0), Encoding::Nodes).unwrap();
    let mapper = Mapper::new(Instant::ZERO, config, &paths).unwrap();
    (paths, mapper)
}

/// The probe of the path by these switches.
fn probe(topology: &Topology, switches: &[&str]) -> Vec<u8> {
    let (paths, mut mapper) = mapper(topology, Config { gap_ns: 0, ..Config::new(ADDRESS) });
    let index = paths.iter().position(|path| path.switches == switches).expect("the path");
    let mut now = Instant::ZERO;
    loop {
        let _ = mapper.tick(now);
        while let Some((path, packet)) = mapper.poll(now) {
            if path == index {
                return packet;
            }
        }
        now = mapper.next_deadline().expect("a deadline");
    }
}

/// D87, D256: the way there and back, by hand; the label of value 2, the spine's uplink to leaf 3.
#[test]
fn a_probe_goes_along_its_path_and_back() {
    let octets = probe(&figure1(), &["leaf1", "spine6", "leaf3"]);
    let outer = [
        &[0x6C, 0x08, 0, 0, 0, 92, 41, 64][..],
        &ADDRESS.octets(),
        &[0x5F, 0, 0, 0, 1, 0, 6, 0, 3, 0, 6, 0, 1, 0, 0, 0],
    ]
    .concat();
    assert_eq!(octets[..40], outer);
    let inner =
        [&[0x6C, 0, 0, 0, 0, 52, 17, 64][..], &ADDRESS.octets(), &ADDRESS.octets(), &[3, 0xFD, 3, 0xFD]].concat();
    assert_eq!(octets[40..84], inner);
    assert_eq!(octets.len(), 40 + 92);
}

/// Nine ids: six in the address, three in the SRH (RFC 8754 section 2, reduced).
#[test]
fn a_probe_of_three_tiers_has_an_srh() {
    let topology = FatTree { tiers: 3, k: 4, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap();
    let octets = probe(&topology, &["edge1.1", "agg1.2", "core2.1", "agg2.2", "edge2.1"]);
    let expected = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
    assert_eq!((octets[6], &octets[24..40]), (43, &expected("5f00:0:101:4902:9201:4a02:201:4a02")[..]));
    let srh = [&[41, 2, 4, 1, 0, 0, 0, 0][..], &expected("5f00:0:9201:4902:101::")].concat();
    assert_eq!(octets[40..64], srh);
    assert_eq!((octets[64] >> 4, octets[64 + 6]), (6, 17));
}

/// By links, the last of which is the NIC's own: read back by the parser of programs, and counted by hand.
#[test]
fn probes_by_links_use_the_links_of_their_path() {
    let topology = LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, speeds: Speeds::DEFAULT }.topology().unwrap();
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    let paths = Paths::new(&topology, &sids, HostId(0), Encoding::Links).unwrap();
    let far = paths.iter().find(|path| path.switches == ["leaf1", "spine2", "leaf2"]).expect("the path");
    // Leaf 1 by port 3, spine 2 by port 1, leaf 2 by port 3, spine 2 by port 0, leaf 1 by port 0, which is the NIC's.
    assert_eq!(far.program.destination, "5f00:0:e003:e001:e003:e000:e000:0".parse::<Ipv6Addr>().unwrap());
    for path in paths.iter() {
        let steps = path.program.decode(&sids, &topology, Some(HostId(0))).unwrap();
        let links: Vec<_> = steps
            .iter()
            .map(|step| match step {
                Step::Link(_, link) => *link,
                other => panic!("{other:?}"),
            })
            .collect();
        let back: Vec<_> = path.links.iter().rev().copied().collect();
        assert_eq!(links, [&path.links[1..], &back].concat());
    }
}

/// 399 leaves by 200 spines: more than a session of 16 bits distinguishes.
#[test]
fn a_nic_with_too_many_paths_is_refused() {
    let fabric = LeafSpine { leaves: 400, spines: 200, hosts_per_leaf: 1, speeds: Speeds::DEFAULT };
    let topology = fabric.topology().unwrap();
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    let refused = Paths::new(&topology, &sids, HostId(0), Encoding::Nodes).unwrap_err();
    assert_eq!(refused, PathsError::TooManyPaths);
}

#[test]
fn settings_of_zero_are_refused() {
    let topology = figure1();
    let (paths, _) = mapper(&topology, Config::new(ADDRESS));
    let refused = |config| Mapper::new(Instant::ZERO, config, &paths).unwrap_err();
    let config = Config::new(ADDRESS);
    assert_eq!(refused(Config { interval_ns: 0, ..config.clone() }), MapperError::Zero("interval"));
    assert_eq!(refused(Config { timeout_ns: 0, ..config.clone() }), MapperError::Zero("timeout"));
    assert_eq!(refused(Config { deny_after: 0, ..config.clone() }), MapperError::Zero("deny_after"));
    assert_eq!(refused(Config { allow_after: 0, ..config }), MapperError::Zero("allow_after"));
}

#[test]
fn a_probe_counts_once_and_late_ones_not() {
    let topology = figure1();
    let (_, mut mapper) = mapper(&topology, Config::new(ADDRESS));
    let (path, packet) = mapper.poll(Instant::ZERO).unwrap();
    assert_eq!(path, 0);
    let inner = packet[40..].to_vec();
    assert_eq!(mapper.receive(Instant::from_ns(900), &inner), None);
    assert_eq!(mapper.reports().next().unwrap().round_trip_ns, Some(900));
    assert_eq!(mapper.receive(Instant::from_ns(901), &inner), None);
    let counters = *mapper.counters();
    assert_eq!((counters.probes_returned, counters.probes_foreign), (1, 1));
    let mut now = mapper.next_deadline().unwrap();
    let _ = mapper.tick(now);
    let (_, second) = mapper.poll(now).unwrap();
    now = now.after_ns(mapper.config().timeout_ns);
    let _ = mapper.tick(now);
    assert_eq!(mapper.counters().probes_lost, 1);
    // As a socket has it: behind the headers of IPv6 and UDP.
    mapper.receive_payload(now, &second[40 + 48..]);
    assert_eq!(mapper.counters().probes_late, 1);
}

#[test]
fn a_nic_that_is_alone_at_its_switch_has_the_paths_to_others() {
    let topology = figure1();
    let (paths, _) = mapper(&topology, Config::new(ADDRESS));
    let own = topology.node("leaf2").unwrap();
    assert!(paths.iter().any(|path| path.switches == [topology.name(own)]));
    assert!(matches!(topology.node("nic1"), Some(NodeId::Host(HostId(0)))));
}

proptest! {
    /// Packets from outside change nothing but the counter of foreign ones.
    #[test]
    fn foreign_packets_change_nothing(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..8), flip in 0_usize..92) {
        let topology = figure1();
        let (_, mut mapper) = mapper(&topology, Config::new(ADDRESS));
        let (_, packet) = mapper.poll(Instant::ZERO).unwrap();
        let mut damaged = packet[40..].to_vec();
        // Traffic class, flow label and hop limit may change on the way; the reserved octets are ignored, but summed.
        let flip = if flip < 4 || flip == 7 { 8 } else { flip };
        damaged[flip] ^= 0x10;
        let deadline = mapper.next_deadline();
        for packet in packets.iter().chain([&damaged]) {
            prop_assert_eq!(mapper.receive(Instant::from_ns(5), packet), None);
            prop_assert_eq!(mapper.receive_payload(Instant::from_ns(5), packet), None);
        }
        prop_assert_eq!(mapper.counters().probes_returned, 0);
        prop_assert_eq!(mapper.counters().probes_foreign, 2 * (packets.len() as u64 + 1));
        prop_assert_eq!(mapper.next_deadline(), deadline);
    }
}
