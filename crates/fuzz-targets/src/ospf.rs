//! The OSPFv3 speaker: packets by two circuits, with a full neighbour at one of them, and time that passes. Its
//! database keeps its limit, it never requests an immediate call for ever, and it sends valid packets.

use crate::choices::Choices;
use srdma_ospf::packet::ALL_ROUTERS;
use srdma_ospf::srv6::{Locator, parse_capabilities, put_capabilities};
use srdma_ospf::{
    Body, CircuitConfig, CircuitId, Config, Description, Hello, LsType, Lsa, LsaHeader, Packet, RouterId, Speaker,
};
use srdma_wire::Instant;
use std::net::Ipv6Addr;

const OWN: RouterId = RouterId(1);
const NEIGHBOUR: RouterId = RouterId(2);
const LIMIT: usize = 8;
/// Router, information and two links.
const OWN_LSAS: usize = 4;
const START: Instant = Instant::from_ns(1);
const ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

/// Each step: the time to wait, the circuit, the length of a packet, the packet.
pub fn ospf(input: &[u8]) {
    let mut speaker = adjacent();
    let mut choices = Choices::new(input);
    let mut now = START;
    while !choices.is_empty() {
        now = now.after_ns(u64::from(choices.octet()).pow(3) * 500_000);
        let circuit = CircuitId(choices.below(2));
        let length = usize::from(choices.u16() % 512);
        let mends = choices.rarely(2);
        let octets: Vec<u8> = (0..length).map(|_| choices.octet()).collect();
        let octets = if mends { mended(&octets) } else { octets };
        speaker.receive(now, circuit, SOURCE, ALL_ROUTERS, &octets);
        settle(&mut speaker, now);
    }
    let _ = (speaker.paths(), speaker.learned());
    tlvs(input);
}

/// A parsed value is emitted and parsed again unchanged.
fn tlvs(body: &[u8]) {
    if let Ok(Some(flags)) = parse_capabilities(body) {
        let mut out = Vec::new();
        put_capabilities(flags, &mut out);
        assert_eq!(parse_capabilities(&out), Ok(Some(flags)));
    }
    if let Ok(locators) = Locator::parse_all(body) {
        let mut out = Vec::new();
        locators.iter().for_each(|locator| locator.emit(&mut out));
        assert_eq!(Locator::parse_all(&out), Ok(locators));
    }
}

fn packet(body: Body) -> Vec<u8> {
    Packet { router: NEIGHBOUR, area: 0, instance: 0, body }.emit(SOURCE, ALL_ROUTERS)
}

/// A speaker with a neighbour at circuit 0, whose descriptions are exchanged.
fn adjacent() -> Speaker {
    let mut speaker = Speaker::new(Config { limit_lsas: LIMIT, ..Config::new(OWN, "own") });
    let circuits = [0, 1].map(|_| speaker.add_circuit(START, CircuitConfig::new(ADDRESS)));
    let hello = Hello {
        interface: 1,
        priority: 0,
        options: 0x13,
        hello_s: 10,
        dead_s: 40,
        designated: RouterId::default(),
        backup: RouterId::default(),
        neighbours: vec![OWN],
    };
    let part = |sequence, is_first| {
        let (options, mtu, headers) = (0x13, 1500, Vec::new());
        Body::Description(Description {
            options,
            mtu,
            is_first,
            has_more: is_first,
            is_master: true,
            sequence,
            headers,
        })
    };
    for body in [Body::Hello(hello), part(7, true), part(8, false)] {
        speaker.receive(START, circuits[0], SOURCE, ALL_ROUTERS, &packet(body));
        settle(&mut speaker, START);
    }
    speaker
}

/// A packet with a right header; of an update the first LSA is the whole rest, with a right checksum.
fn mended(octets: &[u8]) -> Vec<u8> {
    let (first, rest) = octets.split_first().unwrap_or((&0, &[]));
    let kind = first % 5 + 1;
    if kind == 4 && rest.len() >= 20 {
        let word = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let kinds = [0x2001, 0x2002, 0x0008, 0x2009, 0xA00C, 0xA021, 0xA02A, word(0) as u16];
        let header = LsaHeader {
            age_s: (word(0) >> 16) as u16,
            kind: LsType(kinds[usize::from(rest[4]) % kinds.len()]),
            id: u32::from(rest[5] % 4),
            router: RouterId(u32::from(rest[6] % 4)),
            sequence: word(8).cast_signed(),
            checksum: 0,
            length: 0,
        };
        return packet(Body::Update(Lsa::new(header, &rest[20..]).into_iter().collect()));
    }
    let mut octets = packet(Body::Acknowledgment(Vec::new()));
    octets[1] = kind;
    octets.extend(rest);
    let length = (octets.len() as u16).to_be_bytes();
    octets[2..4].copy_from_slice(&length);
    octets[12..14].fill(0);
    let (source, destination) = (SOURCE.octets(), ALL_ROUTERS.octets());
    let protocol = srdma_wire::ipv6::NextHeader(srdma_ospf::packet::PROTOCOL);
    let mut sum = srdma_wire::checksum::Sum::pseudo_header(&source, &destination, octets.len() as u32, protocol);
    sum.add(&octets);
    octets[12..14].copy_from_slice(&sum.checksum().to_be_bytes());
    octets
}

fn settle(speaker: &mut Speaker, now: Instant) {
    // Due work is done by one call; work that becomes due by it by a few more.
    for call in 0.. {
        speaker.tick(now);
        while let Some(sent) = speaker.poll_transmit() {
            let packet = Packet::parse(&sent.octets, ADDRESS, sent.destination).expect("a sound packet");
            if let Body::Update(lsas) = packet.body {
                assert!(lsas.iter().all(Lsa::has_right_checksum));
            }
        }
        assert!(speaker.database().len() <= LIMIT + OWN_LSAS, "{}", speaker.database().len());
        if speaker.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        assert!(call < 10, "it wants to be called again and again at {now:?}");
    }
}
