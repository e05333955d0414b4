//! The IS-IS speaker: frames by two circuits, with a neighbour at one of them, and time that passes. Its database keeps
//! its limit, it never requests an immediate call for ever, and it sends valid PDUs.

use crate::choices::Choices;
use srdma_isis::tlv::{AdjacencyState, Member, ThreeWay, Topologies, TopologyId};
use srdma_isis::{
    CircuitConfig, CircuitId, CircuitType, Config, Hello, LanHello, Level, Levels, Lsp, NodeId, Pdu, PduKind, Speaker,
    SystemId, frame,
};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::net::Ipv6Addr;

const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);
const NEIGHBOUR: SystemId = SystemId([0, 0, 0, 0, 0, 2]);
const LIMIT: usize = 5;
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const NEIGHBOUR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const START: Instant = Instant::from_ns(1);

/// PDUs of point-to-point circuits, and those of LANs: type, length of the header, offset of the PDU's own length.
const KINDS: &[(u8, usize, usize)] = &[(17, 20, 17), (20, 27, 8), (25, 33, 8), (27, 17, 8)];
const BOTH_KINDS: &[(u8, usize, usize)] =
    &[(17, 20, 17), (18, 27, 8), (20, 27, 8), (24, 33, 8), (25, 33, 8), (26, 17, 8), (27, 17, 8)];
const LAN_KINDS: &[(u8, usize, usize)] = &[(16, 27, 17), (20, 27, 8), (25, 33, 8), (27, 17, 8), (15, 27, 17)];

/// Each step: the time to wait, the circuit, the length of a PDU, the PDU. They are those of point-to-point circuits,
/// then of LANs with multi-topology, and then of point-to-point circuits of a system at both levels.
pub fn isis(input: &[u8]) {
    steps(adjacent(Levels::Two), input, KINDS);
    steps(on_a_lan(), input, LAN_KINDS);
    steps(adjacent(Levels::Both), input, BOTH_KINDS);
}

fn steps(mut speaker: Speaker, input: &[u8], kinds: &[(u8, usize, usize)]) {
    let mut choices = Choices::new(input);
    let mut now = START;
    while !choices.is_empty() {
        now = now.after_ns(u64::from(choices.octet()).pow(3) * 50_000);
        let circuit = CircuitId(choices.below(2));
        let length = usize::from(choices.u16() % 512);
        let mends = choices.rarely(2);
        let mut pdu: Vec<u8> = (0..length).map(|_| choices.octet()).collect();
        if mends {
            mend(&mut pdu, kinds);
        }
        if let Some(octets) = frame::wrap(NEIGHBOUR_MAC, &pdu) {
            speaker.receive(now, circuit, &octets);
        }
        settle(&mut speaker, now);
        assert!(speaker.adjacencies(Level::Two, circuit).count() <= 128);
    }
    let _ = (speaker.shortest_paths(now), speaker.learned(now));
}

/// A speaker with a neighbour at circuit 0.
fn adjacent(levels: Levels) -> Speaker {
    let areas = vec![vec![0x49, 0, 1]];
    let config = Config { limit_lsps: LIMIT, levels, ..Config::new(OWN, areas.clone(), "own") };
    let config = Config { leak_down: Prefix::new(Ipv6Addr::UNSPECIFIED, 0).into_iter().collect(), ..config };
    let mut speaker = Speaker::new(config, 1, 1);
    let circuits = [0, 1].map(|_| speaker.add_circuit(START, CircuitConfig::new(MAC)));
    let three_way = ThreeWay { state: AdjacencyState::Initializing, circuit: Some(1), neighbour: Some((OWN, 1)) };
    let hello = Hello {
        levels: levels.as_slice().to_vec(),
        source: NEIGHBOUR,
        holding_time_s: u16::MAX,
        circuit: 0,
        areas,
        addresses: Vec::new(),
        three_way: Some(three_way),
        topologies: Topologies::default(),
    };
    if let Some(octets) = frame::wrap(NEIGHBOUR_MAC, &hello.emit(&[])) {
        speaker.receive(START, circuits[0], &octets);
    }
    settle(&mut speaker, START);
    speaker
}

/// A speaker of the topology of IPv6 on two LANs, with a neighbour at the first.
fn on_a_lan() -> Speaker {
    let config = Config {
        limit_lsps: LIMIT,
        topology: TopologyId::IPV6_UNICAST,
        ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own")
    };
    let mut speaker = Speaker::new(config, 1, 1);
    let circuit = CircuitConfig { kind: CircuitType::Broadcast { priority: 64 }, ..CircuitConfig::new(MAC) };
    let circuits = [0, 1].map(|_| speaker.add_circuit(START, circuit.clone()));
    let hello = LanHello {
        levels: vec![Level::Two],
        source: NEIGHBOUR,
        holding_time_s: u16::MAX,
        priority: 1,
        lan_id: NodeId::default(),
        areas: Vec::new(),
        addresses: Vec::new(),
        heard: vec![MAC],
        topologies: Topologies::only(Member { topology: TopologyId::IPV6_UNICAST, ..Member::default() }),
    };
    if let Some(octets) = frame::wrap(NEIGHBOUR_MAC, &hello.emit(Level::Two, &[])) {
        speaker.receive(START, circuits[0], &octets);
    }
    settle(&mut speaker, START);
    speaker
}

/// Writes the octets of the common header that are always the same, and the PDU's own length; of an LSP its checksum.
fn mend(pdu: &mut Vec<u8>, kinds: &[(u8, usize, usize)]) {
    let (kind, header_len, length_at) = kinds[pdu.first().map_or(0, |octet| usize::from(*octet) % kinds.len())];
    if pdu.len() < header_len {
        pdu.resize(header_len, 0);
    }
    pdu[..8].copy_from_slice(&[0x83, header_len as u8, 1, 0, kind, 1, 0, 0]);
    let length = (pdu.len() as u16).to_be_bytes();
    pdu[length_at..length_at + 2].copy_from_slice(&length);
    if kind == 18 || kind == 20 {
        let fields = |at: usize, len: usize| &pdu[at..at + len];
        let id: [u8; 8] = fields(12, 8).try_into().expect("eight octets");
        let entry = srdma_isis::tlv::LspEntry {
            lifetime_s: u16::from_be_bytes([pdu[10], pdu[11]]),
            id: srdma_isis::LspId::from(id),
            sequence: u32::from_be_bytes([pdu[20], pdu[21], pdu[22], pdu[23]]),
            checksum: 0,
        };
        let level = if kind == 18 { Level::One } else { Level::Two };
        *pdu = Lsp::new(level, entry, srdma_isis::LspFlags::default(), &pdu[27..]).octets().to_vec();
    }
}

fn settle(speaker: &mut Speaker, now: Instant) {
    // Due work is done by one call; work that becomes due by it, such as the rest of a window, by a few more.
    for call in 0.. {
        speaker.tick(now);
        while let Some((_, octets)) = speaker.poll_transmit() {
            let pdu = Pdu::parse(frame::unwrap(&octets).expect("a frame of IS-IS")).expect("a sound PDU");
            if let PduKind::Lsp(level) = pdu.kind {
                Lsp::parse(&pdu, level).expect("a sound LSP");
            }
        }
        // Our own LSP has a place in any case, and so have those of our pseudonodes.
        for level in [Level::One, Level::Two] {
            assert!(speaker.database(level).len() <= LIMIT + 1 + 2);
        }
        if speaker.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        assert!(call < 10, "it wants to be called again and again at {now:?}");
    }
}
