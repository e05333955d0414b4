//! Malformed and hostile input: each is counted, none is accepted, and no table grows.

use proptest::prelude::*;
use srdma_capture::Reader;
use srdma_isis::tlv::{AdjacencyState, LspEntry, Member, Neighbour, ThreeWay, Topologies, TopologyId};
use srdma_isis::{
    CircuitConfig, CircuitId, CircuitType, Config, Hello, HelloRefusal, IsisDrop, LanHello, Level, Lsp, LspFlags,
    LspId, NodeId, Pdu, PduKind, Speaker, SystemId, frame,
};
use srdma_wire::{Instant, MacAddress};
use std::path::Path;

const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);
const NEIGHBOUR: SystemId = SystemId([0, 0, 0, 0, 0, 2]);
const NOW: Instant = Instant::from_ns(1_000_000_000);

fn hello(state: AdjacencyState, names: Option<(SystemId, u32)>) -> Hello {
    Hello {
        levels: vec![Level::Two],
        source: NEIGHBOUR,
        holding_time_s: 30,
        circuit: 0,
        areas: vec![vec![0x49, 0, 1]],
        addresses: Vec::new(),
        three_way: Some(ThreeWay { state, circuit: Some(9), neighbour: names }),
        topologies: Topologies::default(),
    }
}

fn framed(pdu: &[u8]) -> Vec<u8> {
    frame::wrap(MacAddress([2, 0, 0, 0, 0, 2]), pdu).unwrap()
}

/// A speaker with one neighbour, whose adjacency is up.
fn adjacent(limit_lsps: usize) -> (Speaker, CircuitId) {
    let config = Config { limit_lsps, ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own") };
    let mut speaker = Speaker::new(config, 1, 1);
    let circuit = speaker.add_circuit(NOW, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, 1])));
    speaker.receive(NOW, circuit, &framed(&hello(AdjacencyState::Initializing, Some((OWN, 1))).emit(&[])));
    assert_eq!(speaker.adjacency(Level::Two, circuit).unwrap().state, AdjacencyState::Up);
    speaker.tick(NOW);
    (speaker, circuit)
}

fn lsp(number: u16, sequence: u32, lifetime_s: u16, tlvs: &[u8]) -> Lsp {
    let [high, low] = number.to_be_bytes();
    let id = LspId { node: NodeId::of(SystemId([0, 0, 0, 1, high, low])), fragment: 0 };
    let entry = LspEntry { lifetime_s, id, sequence, checksum: 0 };
    Lsp::new(Level::Two, entry, LspFlags { is_level_2: true, ..LspFlags::default() }, tlvs)
}

#[test]
fn the_last_hello_says_down_and_has_a_holding_time_of_one_second() {
    let (mut speaker, _) = adjacent(10);
    while speaker.poll_transmit().is_some() {}
    speaker.retire(NOW);
    let (_, last) = speaker.poll_transmit().unwrap();
    let hello = Hello::parse(&Pdu::parse(frame::unwrap(&last).unwrap()).unwrap()).unwrap();
    let down = ThreeWay { state: AdjacencyState::Down, circuit: Some(1), neighbour: None };
    assert_eq!((hello.holding_time_s, hello.three_way), (1, Some(down)));
    assert!(speaker.poll_transmit().is_none());
}

/// Routes lead to a neighbour's address: another one is a change, though the adjacency stays up.
#[test]
fn another_address_of_a_neighbour_is_a_change() {
    let (mut speaker, circuit) = adjacent(10);
    speaker.take_changes();
    let addresses = vec!["fe80::7".parse().unwrap()];
    let moved = Hello { addresses, ..hello(AdjacencyState::Up, Some((OWN, 1))) };
    for is_change in [true, false] {
        speaker.receive(NOW, circuit, &framed(&moved.emit(&[])));
        assert_eq!(speaker.take_changes().adjacencies, is_change);
    }
}

#[test]
fn a_full_database_stores_no_more_lsps() {
    let (mut speaker, circuit) = adjacent(10);
    for number in 0..100 {
        speaker.receive(NOW, circuit, &framed(lsp(number, 1, 1200, &[]).octets()));
        speaker.tick(NOW);
    }
    assert_eq!(speaker.database(Level::Two).len(), 10, "our own among them");
    assert_eq!(speaker.drops()[&IsisDrop::DatabaseFull], 91);
}

#[test]
fn a_full_database_stores_no_more_lsps_of_our_own_system() {
    let (mut speaker, circuit) = adjacent(10);
    for pseudonode in 1..=200 {
        let entry = LspEntry {
            lifetime_s: 1200,
            id: LspId { node: NodeId { system: OWN, pseudonode }, fragment: 0 },
            sequence: 1,
            checksum: 0,
        };
        speaker.receive(NOW, circuit, &framed(Lsp::new(Level::Two, entry, LspFlags::default(), &[]).octets()));
        speaker.tick(NOW);
    }
    assert_eq!(speaker.database(Level::Two).len(), 10, "their purges among them");
    assert_eq!(speaker.drops()[&IsisDrop::DatabaseFull], 191);
}

#[test]
fn a_purge_of_an_unknown_lsp_is_acknowledged_and_not_stored() {
    let (mut speaker, circuit) = adjacent(10);
    while speaker.poll_transmit().is_some() {}
    speaker.receive(NOW, circuit, &framed(lsp(7, 3, 0, &[]).octets()));
    assert_eq!(speaker.database(Level::Two).len(), 1);
    let (_, octets) = speaker.poll_transmit().unwrap();
    let pdu = Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap();
    let entries = srdma_isis::pdu::Partial::parse(&pdu).unwrap().entries;
    assert_eq!((entries[0].sequence, entries[0].lifetime_s), (3, 0));
}

#[test]
fn a_wrong_checksum_and_an_overrun_are_distinguished() {
    let (mut speaker, circuit) = adjacent(10);
    let mut octets = lsp(7, 1, 1200, &[137, 3, b'a', b'b', b'c']).octets().to_vec();
    octets[30] ^= 0x20;
    speaker.receive(NOW, circuit, &framed(&octets));
    assert_eq!(speaker.drops()[&IsisDrop::Checksum], 1);
    octets[28] = 200;
    speaker.receive(NOW, circuit, &framed(&octets));
    assert_eq!(speaker.drops()[&IsisDrop::Malformed], 1);
    speaker.receive(NOW, circuit, &framed(&octets[..20]));
    assert_eq!(speaker.drops()[&IsisDrop::Malformed], 2);
    assert_eq!(speaker.database(Level::Two).len(), 1);
}

#[test]
fn a_lsp_of_the_same_number_with_other_octets_is_purged() {
    let (mut speaker, circuit) = adjacent(10);
    speaker.receive(NOW, circuit, &framed(lsp(7, 1, 1200, &[137, 1, b'a']).octets()));
    speaker.receive(NOW, circuit, &framed(lsp(7, 1, 1200, &[137, 1, b'b']).octets()));
    assert_eq!(speaker.counters().confusions, 1);
    let stored = speaker.database(Level::Two).get(lsp(7, 1, 0, &[]).entry.id).unwrap();
    assert_eq!(stored.lifetime_s(NOW), 0);
    // The system originates it again.
    speaker.receive(NOW, circuit, &framed(lsp(7, 2, 1200, &[137, 1, b'b']).octets()));
    assert_eq!(speaker.database(Level::Two).get(lsp(7, 1, 0, &[]).entry.id).unwrap().lifetime_s(NOW), 1200);
}

/// RFC 7987: neither digest nor checksum covers the lifetime.
#[test]
fn a_lifetime_below_the_least_one_is_raised() {
    let (mut speaker, circuit) = adjacent(10);
    let id = |number| lsp(number, 1, 0, &[]).entry.id;
    let lifetime_s = |speaker: &Speaker, number| speaker.database(Level::Two).get(id(number)).unwrap().lifetime_s(NOW);
    for (number, received_s, stored_s) in [(7, 1, 1200), (8, 1199, 1200), (9, 1201, 1201), (10, 65_535, 65_535)] {
        speaker.receive(NOW, circuit, &framed(lsp(number, 1, received_s, &[]).octets()));
        assert_eq!(lifetime_s(&speaker, number), stored_s);
    }
    // Another lifetime of the same version is no confusion, and changes nothing.
    speaker.receive(NOW, circuit, &framed(lsp(9, 1, 3, &[]).octets()));
    assert_eq!((lifetime_s(&speaker, 9), speaker.counters().confusions), (1201, 0));
    speaker.receive(NOW, circuit, &framed(lsp(7, 1, 0, &[]).octets()));
    assert_eq!(lifetime_s(&speaker, 7), 0, "a purge is none the less one");
    let mut speaker = adjacent(10).0;
    speaker.reconfigure(|config| config.timers.lifetime_s = 2_000);
    speaker.receive(NOW, circuit, &framed(lsp(7, 1, 1200, &[]).octets()));
    assert_eq!(lifetime_s(&speaker, 7), 2_000, "the lifetime of our own LSPs");
}

#[test]
fn pdus_without_an_adjacency_are_ignored() {
    let mut speaker = Speaker::new(Config::new(OWN, vec![vec![0x49, 0, 1]], "own"), 1, 1);
    let circuit = speaker.add_circuit(NOW, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, 1])));
    speaker.receive(NOW, circuit, &framed(lsp(7, 1, 1200, &[]).octets()));
    assert_eq!(speaker.drops()[&IsisDrop::NoAdjacency], 1);
    let refused = |speaker: &mut Speaker, hello: &Hello| {
        speaker.receive(NOW, circuit, &framed(&hello.emit(&[])));
        speaker.drops().iter().filter(|(reason, _)| matches!(reason, IsisDrop::Hello(_))).count()
    };
    let fine = hello(AdjacencyState::Initializing, Some((OWN, 1)));
    assert_eq!(refused(&mut speaker, &Hello { source: OWN, ..fine.clone() }), 1);
    assert_eq!(refused(&mut speaker, &Hello { levels: vec![Level::One], ..fine.clone() }), 2);
    assert_eq!(refused(&mut speaker, &Hello { three_way: None, ..fine.clone() }), 3);
    assert_eq!(refused(&mut speaker, &hello(AdjacencyState::Initializing, Some((OWN, 2)))), 4);
    let of_ipv6 = Topologies::only(Member { topology: TopologyId::IPV6_UNICAST, ..Member::default() });
    assert_eq!(refused(&mut speaker, &Hello { topologies: of_ipv6, ..fine.clone() }), 5);
    assert!(speaker.adjacency(Level::Two, circuit).is_none());
    assert_eq!(refused(&mut speaker, &fine), 5);
}

/// A speaker on a LAN, in the topology of IPv6, with one neighbour.
fn on_a_lan(limit_lsps: usize) -> (Speaker, CircuitId) {
    let topology = TopologyId::IPV6_UNICAST;
    let config = Config { limit_lsps, topology, ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own") };
    let mut speaker = Speaker::new(config, 1, 1);
    let kind = CircuitType::Broadcast { priority: 64 };
    let circuit =
        speaker.add_circuit(NOW, CircuitConfig { kind, ..CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, 1])) });
    speaker.receive(NOW, circuit, &lan_hello(2));
    assert!(speaker.adjacency(Level::Two, circuit).unwrap().is_up());
    speaker.tick(NOW);
    (speaker, circuit)
}

/// The hello of a system that hears us, in both topologies.
fn lan_hello(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let member = |topology| Member { topology, ..Member::default() };
    let hello = LanHello {
        levels: vec![Level::Two],
        source: SystemId([0, 0, 0, 0, high, low]),
        holding_time_s: 30,
        priority: 1,
        lan_id: NodeId::default(),
        areas: vec![vec![0x49, 0, 1]],
        addresses: Vec::new(),
        heard: vec![MacAddress([2, 0, 0, 0, 0, 1])],
        topologies: Topologies::listed(vec![member(TopologyId::STANDARD), member(TopologyId::IPV6_UNICAST)]),
    };
    frame::wrap(MacAddress([2, 0, 0, 0, high, low]), &hello.emit(Level::Two, &[])).unwrap()
}

#[test]
fn a_lan_has_so_many_neighbours_and_no_more() {
    let (mut speaker, circuit) = on_a_lan(10);
    (2..300).for_each(|number| speaker.receive(NOW, circuit, &lan_hello(number)));
    assert_eq!(speaker.adjacencies(Level::Two, circuit).count(), 128);
    assert_eq!(speaker.drops()[&IsisDrop::Hello(HelloRefusal::TooManyNeighbours)], 299 - 129);
    // Its hello names all of them, and its pseudonode all and itself.
    while speaker.poll_transmit().is_some() {}
    let later = NOW.after_ns(7_000_000_000);
    speaker.tick(later);
    let mut hellos = 0;
    while let Some((_, octets)) = speaker.poll_transmit() {
        let pdu = Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap();
        if let PduKind::LanHello(_) = pdu.kind {
            assert_eq!(LanHello::parse(&pdu).unwrap().heard.len(), 128);
            hellos += 1;
        }
    }
    assert!(hellos > 0);
    let pseudonode = NodeId { system: OWN, pseudonode: 1 };
    assert_eq!(speaker.designated(Level::Two, circuit), Some(pseudonode));
    let members: usize = (0..=1)
        .filter_map(|fragment| speaker.database(Level::Two).get(LspId { node: pseudonode, fragment }))
        .map(|stored| Neighbour::of_topology(stored.lsp().tlvs(), TopologyId::STANDARD).count())
        .sum();
    assert_eq!(members, 129);
}

#[test]
fn hellos_of_a_lan_are_refused_by_name() {
    let (mut speaker, circuit) = on_a_lan(10);
    let refused = |speaker: &mut Speaker, change: &dyn Fn(&mut LanHello), level: Level| {
        let octets = lan_hello(7);
        let mut hello = LanHello::parse(&Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap()).unwrap();
        change(&mut hello);
        speaker.receive(NOW, circuit, &framed(&hello.emit(level, &[])));
        let hellos = speaker.drops().iter().filter(|(reason, _)| matches!(reason, IsisDrop::Hello(_)));
        hellos.map(|(reason, count)| format!("{} {count}", reason.name())).collect::<Vec<_>>().join(", ")
    };
    let own = refused(&mut speaker, &|hello| hello.source = OWN, Level::Two);
    assert_eq!(own, "hello_own_system_id 1");
    let level_1 = refused(&mut speaker, &|_| {}, Level::One);
    assert_eq!(level_1, "hello_own_system_id 1, hello_other_level 1");
    let of_level_1 = refused(&mut speaker, &|hello| hello.levels = vec![Level::One], Level::Two);
    assert_eq!(of_level_1, "hello_own_system_id 1, hello_other_level 2");
    assert_eq!(speaker.adjacencies(Level::Two, circuit).count(), 1);
    // A hello of a point-to-point circuit, and one of a LAN there.
    speaker.receive(NOW, circuit, &framed(&hello(AdjacencyState::Initializing, None).emit(&[])));
    let (mut other, other_circuit) = adjacent(10);
    other.receive(NOW, other_circuit, &lan_hello(7));
    for speaker in [&speaker, &other] {
        assert_eq!(speaker.drops()[&IsisDrop::Hello(HelloRefusal::OtherType)], 1);
    }
    // An octet is missing in the last address.
    let octets = lan_hello(7);
    let mut pdu = frame::unwrap(&octets).unwrap().to_vec();
    pdu.pop();
    let (length, at) = (pdu.len() as u16, pdu.len() - 6);
    pdu[17..19].copy_from_slice(&length.to_be_bytes());
    pdu[at] = 5;
    speaker.receive(NOW, circuit, &framed(&pdu));
    assert_eq!(speaker.drops()[&IsisDrop::Malformed], 1);
}

/// The LSP of a system whose hellos have not come is dropped, whatever others are up (ISO 10589 section 7.3.15.1).
#[test]
fn lsps_of_strangers_on_a_lan_are_dropped() {
    let (mut speaker, circuit) = on_a_lan(10);
    let octets = |from: u8| frame::wrap(MacAddress([2, 0, 0, 0, 0, from]), lsp(7, 1, 1200, &[]).octets()).unwrap();
    speaker.receive(NOW, circuit, &octets(3));
    assert_eq!((speaker.drops()[&IsisDrop::NoAdjacency], speaker.database(Level::Two).len()), (1, 1));
    speaker.receive(NOW, circuit, &octets(2));
    assert_eq!(speaker.database(Level::Two).len(), 2);
}

fn frames_of_others() -> Vec<Vec<u8>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden");
    ["frr103_isis_srv6_lsp.pcap", "scapy_08_isis.pcap", "frr84_isis_lan.pcap"]
        .iter()
        .flat_map(|name| Reader::open(&golden.join(name)).unwrap().map(|packet| packet.unwrap().octets))
        .collect()
}

proptest! {
    /// Frames of FRR and scapy with octets changed and ends cut off, and time that passes.
    #[test]
    fn no_octets_hurt(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(),
                                                         any::<u8>(), any::<bool>(), 0_u64..4000), 1..60)) {
        let frames = frames_of_others();
        let lan = changes.len() % 2 == 0;
        let (mut speaker, circuit) = if lan { on_a_lan(6) } else { adjacent(6) };
        let mut now = NOW;
        for (which, at, octet, cut, ms) in changes {
            let mut octets = which.get(&frames).clone();
            let at = at.index(octets.len());
            if cut {
                octets.truncate(at);
            } else {
                octets[at] = octet;
            }
            speaker.receive(now, circuit, &octets);
            now = now.after_ns(ms * 1_000_000);
            speaker.tick(now);
            // A pseudonode's LSP has a place in any case.
            prop_assert!(speaker.database(Level::Two).len() <= 6 + usize::from(lan));
            prop_assert!(speaker.next_deadline().unwrap() > now || speaker.next_deadline().unwrap() == Instant::ZERO);
            while speaker.poll_transmit().is_some() {}
            let _ = (speaker.shortest_paths(now), speaker.learned(now));
        }
    }
}
