//! Packets that are refused: each by its name, and none by a panic.

use crate::net::{config, router};
use proptest::prelude::*;
use srdma_ospf::packet::{ALL_ROUTERS, options};
use srdma_ospf::{
    Body, CircuitConfig, CircuitId, Description, Hello, LsType, Lsa, LsaHeader, LsaKey, NeighbourState, OspfDrop,
    Packet, RouterId, Speaker,
};
use srdma_wire::Instant;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

pub(crate) const NOW: Instant = Instant::from_ns(1_000_000_000);
pub(crate) const OWN: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const PEER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
pub(crate) const CIRCUIT: CircuitId = CircuitId(0);

fn speaker() -> Speaker {
    let mut speaker = Speaker::new(config(0));
    speaker.add_circuit(NOW, CircuitConfig::new(OWN));
    speaker.tick(NOW);
    speaker
}

pub(crate) fn packet(body: Body) -> Packet {
    Packet { router: router(1), area: 0, instance: 0, body }
}

fn hello() -> Hello {
    Hello {
        interface: 7,
        priority: 1,
        options: 0x13,
        hello_s: 10,
        dead_s: 40,
        designated: RouterId(0),
        backup: RouterId(0),
        neighbours: vec![router(0)],
    }
}

fn description(sequence: u32, is_first: bool) -> Description {
    Description {
        options: 0x13,
        mtu: 1500,
        is_first,
        has_more: is_first,
        is_master: true,
        sequence,
        headers: Vec::new(),
    }
}

pub(crate) fn give(speaker: &mut Speaker, packet: &Packet) {
    speaker.receive(NOW, CIRCUIT, PEER, ALL_ROUTERS, &packet.emit(PEER, ALL_ROUTERS));
}

/// A speaker whose neighbour has a greater id and is full.
pub(crate) fn full() -> Speaker {
    let mut speaker = speaker();
    give(&mut speaker, &packet(Body::Hello(hello())));
    give(&mut speaker, &packet(Body::Description(description(100, true))));
    give(&mut speaker, &packet(Body::Description(description(101, false))));
    assert_eq!(speaker.neighbour(CIRCUIT).map(|neighbour| neighbour.state), Some(NeighbourState::Full));
    assert_eq!(speaker.drops().len(), 0);
    speaker
}

/// The reason for which the speaker drops this.
fn reason(mut speaker: Speaker, act: impl FnOnce(&mut Speaker)) -> OspfDrop {
    act(&mut speaker);
    let drops: Vec<(OspfDrop, u64)> = speaker.drops().iter().map(|(reason, count)| (*reason, *count)).collect();
    assert!(matches!(drops[..], [(_, 1)]), "{drops:?}");
    drops[0].0
}

fn lsa(kind: LsType) -> Lsa {
    let header = LsaHeader {
        age_s: 1,
        kind,
        id: 9,
        router: router(5),
        sequence: LsaHeader::FIRST_SEQUENCE,
        checksum: 0,
        length: 0,
    };
    Lsa::new(header, &[1, 2, 3, 4]).unwrap()
}

/// D276: also of other areas, other instances, stub areas and trailers.
#[test]
fn every_refusal_has_its_name() {
    let with_hello = |change: fn(&mut Hello)| {
        let mut changed = hello();
        change(&mut changed);
        reason(speaker(), |speaker| give(speaker, &packet(Body::Hello(changed))))
    };
    let with_packet = |change: fn(&mut Packet)| {
        let mut changed = packet(Body::Hello(hello()));
        change(&mut changed);
        reason(speaker(), |speaker| give(speaker, &changed))
    };
    let with_octets = |change: fn(&mut Vec<u8>)| {
        let mut octets = packet(Body::Hello(hello())).emit(PEER, ALL_ROUTERS);
        change(&mut octets);
        reason(speaker(), |speaker| speaker.receive(NOW, CIRCUIT, PEER, ALL_ROUTERS, &octets))
    };
    let between = |source: Ipv6Addr, destination: Ipv6Addr| {
        let octets = packet(Body::Hello(hello())).emit(source, destination);
        reason(speaker(), |speaker| speaker.receive(NOW, CIRCUIT, source, destination, &octets))
    };
    let when_full = |body: Body| reason(full(), |speaker| give(speaker, &packet(body)));
    let key = LsaKey { kind: LsType::ROUTER, id: 0, router: router(77) };
    let mut damaged = lsa(LsType::ROUTER).octets().to_vec();
    damaged[21] ^= 1;
    let damaged = Lsa::parse(&mut srdma_isis::reader::Reader::new("an LSA", &damaged)).unwrap();
    let mut small = full();
    small.reconfigure(|config| config.limit_lsas = 0);
    let update = |lsas| packet(Body::Update(lsas));
    let found = [
        reason(speaker(), |speaker| {
            speaker.set_link(NOW, CIRCUIT, false);
            give(speaker, &packet(Body::Hello(hello())));
        }),
        between("2001:db8::1".parse().unwrap(), ALL_ROUTERS),
        between(PEER, "ff02::6".parse().unwrap()),
        with_octets(|octets| octets[0] = 2),
        with_octets(|octets| {
            octets[1] = 6;
            // The checksum's word of version and type.
            let sum = u16::from_be_bytes([octets[12], octets[13]]).wrapping_sub(5);
            octets[12..14].copy_from_slice(&sum.to_be_bytes());
        }),
        with_octets(|octets| octets[20] ^= 1),
        with_octets(|octets| octets.truncate(30)),
        with_packet(|packet| packet.area = 1),
        with_packet(|packet| packet.instance = 1),
        with_packet(|packet| packet.router = router(0)),
        with_hello(|hello| hello.options |= options::AT),
        with_hello(|hello| hello.hello_s = 5),
        with_hello(|hello| hello.dead_s = 20),
        with_hello(|hello| hello.options &= !options::E),
        reason(full(), |speaker| {
            let (other, source) =
                (Packet { router: router(2), ..packet(Body::Hello(hello())) }, "fe80::3".parse().unwrap());
            speaker.receive(NOW, CIRCUIT, source, ALL_ROUTERS, &other.emit(source, ALL_ROUTERS));
        }),
        reason(speaker(), |speaker| give(speaker, &update(vec![lsa(LsType::ROUTER)]))),
        reason(speaker(), |speaker| {
            give(speaker, &packet(Body::Hello(hello())));
            give(speaker, &update(vec![lsa(LsType::ROUTER)]));
        }),
        when_full(Body::Description(Description { mtu: 1501, ..description(102, false) })),
        when_full(Body::Description(description(103, false))),
        when_full(Body::Request(vec![key])),
        when_full(Body::Update(vec![damaged])),
        when_full(Body::Update(vec![lsa(LsType(0x6001))])),
        reason(full(), |speaker| {
            let newer = LsaHeader { sequence: LsaHeader::FIRST_SEQUENCE + 1, ..lsa(LsType::ROUTER).header() };
            give(speaker, &update(vec![lsa(LsType::ROUTER)]));
            give(speaker, &update(vec![Lsa::new(newer, &[1, 2, 3, 4]).unwrap()]));
        }),
        reason(small, |speaker| give(speaker, &update(vec![lsa(LsType::ROUTER)]))),
    ];
    assert_eq!(found, OspfDrop::ALL);
    let names: BTreeSet<&str> = OspfDrop::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names.len(), OspfDrop::ALL.len());
}

/// A neighbour that begins its exchange anew, as FRR does when it gets an LSA that it has requested no more, is answered
/// at once, not after RxmtInterval.
#[test]
fn an_exchange_begins_anew_with_the_neighbours_description() {
    let mut speaker = full();
    while speaker.poll_transmit().is_some() {}
    give(&mut speaker, &packet(Body::Description(description(200, true))));
    assert_eq!(speaker.neighbour(CIRCUIT).map(|neighbour| neighbour.state), Some(NeighbourState::Exchange));
    let sent: Vec<Packet> = std::iter::from_fn(|| speaker.poll_transmit())
        .map(|sent| Packet::parse(&sent.octets, OWN, sent.destination).unwrap())
        .collect();
    let Some(Packet { body: Body::Description(answer), .. }) = sent.last() else { panic!("{sent:?}") };
    assert_eq!((answer.sequence, answer.is_master, answer.headers.is_empty()), (200, false, false));
    give(&mut speaker, &packet(Body::Description(description(201, false))));
    assert_eq!(speaker.neighbour(CIRCUIT).map(|neighbour| neighbour.state), Some(NeighbourState::Full));
    assert_eq!((speaker.counters().restarted_exchanges, speaker.drops().len()), (1, 0));
}

/// RFC 2328 section 13, step 8: a neighbour with an older instance gets the newer one at once.
#[test]
fn an_older_lsa_is_answered_by_the_newer_one() {
    let mut speaker = full();
    let newer = LsaHeader { sequence: LsaHeader::FIRST_SEQUENCE + 4, ..lsa(LsType::ROUTER).header() };
    give(&mut speaker, &packet(Body::Update(vec![Lsa::new(newer, &[1, 2, 3, 4]).unwrap()])));
    while speaker.poll_transmit().is_some() {}
    give(&mut speaker, &packet(Body::Update(vec![lsa(LsType::ROUTER)])));
    let sent = speaker.poll_transmit().expect("an answer");
    assert_eq!(sent.destination, PEER);
    let Body::Update(lsas) = Packet::parse(&sent.octets, OWN, PEER).unwrap().body else { panic!("an update") };
    assert_eq!(lsas.iter().map(|lsa| lsa.header().sequence).collect::<Vec<_>>(), [LsaHeader::FIRST_SEQUENCE + 4]);
    assert!(speaker.poll_transmit().is_none(), "and no acknowledgment");
}

/// D276: LSAs of unknown types are kept by their U-bit (RFC 5340 section A.4.2.1), and not read.
#[test]
fn unknown_lsas_are_stored() {
    let mut speaker = full();
    let kinds = [LsType(0xA0FF), LsType(0x20FF), LsType(0x4005)];
    give(&mut speaker, &packet(Body::Update(kinds.map(lsa).to_vec())));
    let stored = |circuit| speaker.database().iter().filter(move |(place, _)| place.circuit == circuit);
    let of_router = |circuit| {
        stored(circuit)
            .filter(|(place, _)| place.key.router == router(5))
            .map(|(place, _)| place.key.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_router(None), [LsType(0x4005), LsType(0xA0FF)]);
    assert_eq!(of_router(Some(CIRCUIT)), [LsType(0x20FF)], "it stays on the link");
    assert!(speaker.drops().is_empty());
}

proptest! {
    #[test]
    fn no_octets_panic(
        kind in 1_u8..6,
        body in prop::collection::vec(any::<u8>(), 0..300),
        is_full in any::<bool>(),
    ) {
        let mut octets = vec![3, kind, 0, 0];
        octets.extend(router(1).0.to_be_bytes());
        octets.extend([0; 8]);
        octets.extend(body);
        let length = (octets.len() as u16).to_be_bytes();
        octets[2..4].copy_from_slice(&length);
        let mut sum = srdma_wire::checksum::Sum::pseudo_header(
            &PEER.octets(), &ALL_ROUTERS.octets(), octets.len() as u32, srdma_wire::ipv6::NextHeader(89),
        );
        sum.add(&octets);
        octets[12..14].copy_from_slice(&sum.checksum().to_be_bytes());
        let mut speaker = if is_full { full() } else { speaker() };
        let before = speaker.counters().received;
        speaker.receive(NOW, CIRCUIT, PEER, ALL_ROUTERS, &octets);
        let dropped: u64 = speaker.drops().values().sum();
        prop_assert!(speaker.counters().received > before || dropped > 0);
        prop_assert!(!speaker.drops().contains_key(&OspfDrop::Checksum));
        if let Ok(packet) = Packet::parse(&octets, PEER, ALL_ROUTERS) {
            let again = packet.emit(PEER, ALL_ROUTERS);
            prop_assert_eq!(Packet::parse(&again, PEER, ALL_ROUTERS), Ok(packet));
        }
        let _ = (speaker.paths(), speaker.learned());
    }
}
