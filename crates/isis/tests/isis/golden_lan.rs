//! A LAN of three systems of FRR 8.4 (`testdata/golden/README.md`): F1 and F2 start, F3 with a higher priority joins them, is
//! designated, and is killed. A speaker in the place of F1, and of F3, makes of it what FRR makes.

use srdma_capture::Reader;
use srdma_isis::tlv::{AdjacencyState, EndXSid, Neighbour, SidStructure, TopologyId, kind};
use srdma_isis::{
    CircuitConfig, CircuitId, CircuitType, Config, LanHello, Level, Lsp, LspId, NodeId, Pdu, PduKind, Speaker,
    SystemId, frame,
};
use srdma_wire::{Instant, MacAddress};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const LAN: CircuitId = CircuitId(0);
const IPV6: TopologyId = TopologyId::IPV6_UNICAST;

fn system(number: u8) -> SystemId {
    SystemId([0, 0, 0, 0, 0, number])
}

fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0x0F, number])
}

/// All frames, with their times in milliseconds since the first.
fn frames() -> Vec<(u64, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/frr84_isis_lan.pcap");
    let packets: Vec<_> = Reader::open(&path).unwrap().map(Result::unwrap).collect();
    let first = packets[0].time_ns;
    packets.into_iter().map(|packet| ((packet.time_ns - first) / 1_000_000, packet.octets)).collect()
}

fn pdu(octets: &[u8]) -> Pdu<'_> {
    Pdu::parse(frame::unwrap(octets).unwrap()).unwrap()
}

/// The last LSP of a node in the capture before a time.
fn lsp_of(node: NodeId, before_ms: u64) -> Lsp {
    let id = LspId { node, fragment: 0 };
    let frames = frames();
    let mut lsps = frames.iter().filter(|(at, _)| *at < before_ms).filter_map(|(_, octets)| {
        let pdu = pdu(octets);
        let PduKind::Lsp(level) = pdu.kind else { return None };
        Some(Lsp::parse(&pdu, level).unwrap()).filter(|lsp| lsp.entry.id == id && !lsp.is_purge())
    });
    lsps.next_back().expect("it has one")
}

/// Its values of a kind, without the MT ID.
fn values(lsp: &Lsp, of: u8) -> Vec<Vec<u8>> {
    lsp.tlvs().of_kind(of).map(<[u8]>::to_vec).collect()
}

#[test]
fn hellos_of_frr_are_parsed_and_emitted_again() {
    let mut heard = BTreeMap::new();
    for (_, octets) in frames() {
        let pdu = pdu(&octets);
        if let PduKind::LanHello(level) = pdu.kind {
            let hello = LanHello::parse(&pdu).unwrap();
            assert_eq!(hello.emit(level, &[]), pdu.octets);
            assert_eq!(octets[..6], frame::group_of(level).0);
            assert_eq!(frame::source_of(&octets).map(|mac| mac.0[5]), Some(hello.source.0[5]));
            *heard.entry(hello.heard.len()).or_insert(0) += 1;
        }
    }
    assert!(heard.keys().eq([0, 1, 2].iter()), "{heard:?}");
}

/// A speaker in the place of a system of the LAN, which the others hear.
struct Place {
    speaker: Speaker,
    now: Instant,
    number: u8,
    frames: Vec<(u64, Vec<u8>)>,
}

impl Place {
    fn of(number: u8, priority: u8, from_ms: u64) -> Self {
        let mut config = Config::new(system(number), vec![vec![0x49, 0, 1]], "own");
        config.topology = IPV6;
        (config.timers.hello_ms, config.timers.jitter_percent, config.timers.startup_s) = (1_000, 0, 0);
        let mut speaker = Speaker::new(config, 1, 1);
        let now = at(from_ms);
        let kind = CircuitType::Broadcast { priority };
        speaker.add_circuit(now, CircuitConfig { kind, metric: 7, ..CircuitConfig::new(mac(number)) });
        let frames = frames().into_iter().filter(|(at, _)| *at >= from_ms).collect();
        Place { speaker, now, number, frames }
    }

    /// Up to a time of the capture.
    fn run_to(&mut self, ms: u64) {
        let frames = std::mem::take(&mut self.frames);
        let (due, later) = frames.into_iter().partition(|(at, _)| *at <= ms);
        self.frames = later;
        for (at_ms, octets) in due {
            self.pass(at(at_ms));
            if frame::source_of(&octets) != Some(mac(self.number)) {
                self.speaker.receive(self.now, LAN, &octets);
            }
        }
        self.pass(at(ms));
    }

    fn pass(&mut self, to: Instant) {
        while let Some(next) = self.speaker.next_deadline().filter(|next| *next <= to) {
            self.now = self.now.max(next);
            self.speaker.tick(self.now);
            while self.speaker.poll_transmit().is_some() {}
        }
        self.now = self.now.max(to);
    }

    fn own(&self, pseudonode: u8) -> Lsp {
        let id = LspId { node: NodeId { system: system(self.number), pseudonode }, fragment: 0 };
        self.speaker.database(Level::Two).get(id).expect("its own").lsp().clone()
    }

    fn neighbours_up(&self) -> Vec<u8> {
        let up = self.speaker.adjacencies(Level::Two, LAN).filter(|adjacency| adjacency.state == AdjacencyState::Up);
        up.map(|adjacency| adjacency.neighbour.0[5]).collect()
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_ns(1_000_000_000 + ms * 1_000_000)
}

#[test]
fn a_speaker_in_the_place_of_f1_follows_the_elections() {
    let mut place = Place::of(1, 60, 0);
    let designated = |number: u8| Some(NodeId { system: system(number), pseudonode: 2 });
    for (ms, number, up) in [(9_000, 2, vec![2]), (22_000, 3, vec![2, 3]), (33_500, 2, vec![2])] {
        place.run_to(ms);
        assert_eq!(
            (place.speaker.designated(Level::Two, LAN), place.neighbours_up()),
            (designated(number), up),
            "{ms} ms"
        );
        // As F1 has announced it.
        let of_f1 = lsp_of(NodeId::of(system(1)), ms);
        let links = |lsp: &Lsp| values(lsp, kind::MT_IS_REACHABILITY);
        assert_eq!((links(&place.own(0)), links(&of_f1).len()), (links(&of_f1), 1), "{ms} ms");
        assert_eq!(values(&place.own(0), kind::EXTENDED_IS_REACHABILITY), [[0_u8; 0]; 0]);
        let paths = place.speaker.shortest_paths(place.now);
        let found = paths.prefixes.iter().map(|(prefix, reached)| (prefix.to_string(), reached));
        let found: BTreeMap<_, _> = found.collect();
        // A metric of 7 to the LAN, and of 10 at the loopbacks.
        let expected = place.neighbours_up();
        assert_eq!(found.len(), expected.len(), "{ms} ms");
        for number in expected {
            let reached = found[&format!("2001:db8:ff:{number}::1/128")];
            let hops = BTreeSet::from([NodeId::of(system(number))]);
            assert_eq!((reached.distance, &reached.first_hops), (17, &hops), "{ms} ms");
        }
    }
    assert!(place.speaker.drops().is_empty());
}

#[test]
fn a_speaker_in_the_place_of_f3_is_designated_as_f3_is() {
    let mut place = Place::of(3, 80, 10_600);
    place.run_to(12_000);
    assert_eq!(place.speaker.designated(Level::Two, LAN), None, "F2 has given up, and two hellos are not over");
    place.run_to(14_000);
    let own = NodeId { system: system(3), pseudonode: 1 };
    assert_eq!(place.speaker.designated(Level::Two, LAN), Some(own));
    // F3's own pseudonode has number 2.
    let of_f3 = lsp_of(NodeId { system: system(3), pseudonode: 2 }, 22_000);
    let entries = |lsp: &Lsp| {
        let members: Vec<Neighbour> = Neighbour::of_topology(lsp.tlvs(), TopologyId::STANDARD).collect();
        members.iter().map(|member| (member.node, member.metric)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(entries(&place.own(1)), entries(&of_f3));
    assert_eq!(entries(&of_f3).len(), 3);
    let kinds = |lsp: &Lsp| lsp.tlvs().map(|tlv| tlv.unwrap().kind).collect::<Vec<_>>();
    assert_eq!(kinds(&place.own(1)), kinds(&of_f3), "nothing but its members");
    assert_eq!(place.own(1).flags, of_f3.flags);
    let links = |lsp: &Lsp| Neighbour::of_topology(lsp.tlvs(), IPV6).collect::<Vec<_>>();
    assert_eq!(links(&place.own(0)), [Neighbour { node: own, metric: 7, end_x: Vec::new() }]);
}

/// By the figure of RFC 9352 section 8.2: the neighbour is in front of what a point-to-point link has.
#[test]
fn a_sid_on_a_lan_has_its_neighbour_in_front() {
    let (system, sid) = (SystemId([0, 0, 0, 0, 0, 7]), "5f00:0:1:e007::".parse().unwrap());
    let structure = Some(SidStructure { block: 32, node: 16, function: 16, argument: 0 });
    let of_lan = EndXSid { neighbour: Some(system), flags: 0, algorithm: 0, weight: 0, behavior: 5, sid, structure };
    let node = NodeId { system: SystemId([0, 0, 0, 0, 0, 9]), pseudonode: 3 };
    let mut octets = Vec::new();
    let link = Neighbour { node, metric: 10, end_x: vec![of_lan; 7] };
    Neighbour::emit_all(std::slice::from_ref(&link), TopologyId::STANDARD, &mut octets);
    let expected: Vec<u8> = [
        &[22, 227][..],
        &[0, 0, 0, 0, 0, 9, 3, 0, 0, 10, 216],
        &[44, 34, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 5],
        &[0x5F, 0, 0, 0, 0, 1, 0xE0, 7, 0, 0, 0, 0, 0, 0, 0, 0],
        &[6, 1, 4, 32, 16, 16, 0],
    ]
    .concat();
    assert_eq!(octets[..expected.len()], expected);
    let parsed = Neighbour::parse_all(&octets[2..]).unwrap();
    assert_eq!(parsed, [Neighbour { end_x: vec![of_lan; 6], ..link }], "six have room");
    let cut = [&[0, 0, 0, 0, 0, 9, 3, 0, 0, 10, 7][..], &[44, 5, 0, 0, 0, 0, 0]].concat();
    assert_eq!(Neighbour::parse_all(&cut).unwrap()[0].end_x, []);
}
