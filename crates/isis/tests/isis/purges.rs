//! Purges where PDUs are signed: a lifetime of zero, which no digest covers, purges nothing by itself (RFC 5304, RFC 6232,
//! RFC 6233; D93). The PDUs are scapy's (`testdata/golden/README.md`).

use srdma_capture::Reader;
use srdma_isis::tlv::{AdjacencyState, PurgeOriginator, kind};
use srdma_isis::{
    CircuitConfig, CircuitId, Config, IsisDrop, Key, Level, Lsp, LspId, NodeId, Pdu, PduKind, Speaker, SystemId, frame,
};
use srdma_wire::{Instant, MacAddress};
use std::path::Path;

const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);
const NINE: SystemId = SystemId([0, 0, 0, 0, 0, 9]);
const LSP: LspId = LspId { node: NodeId { system: NINE, pseudonode: 0 }, fragment: 0 };
const START: Instant = Instant::from_ns(1_000_000_000);

/// A frame of the capture, by its number from 1.
fn golden(number: usize) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_09_isis_purges.pcap");
    Reader::open(&path).unwrap().nth(number - 1).unwrap().unwrap().octets
}

fn pdu(frame: &[u8]) -> Vec<u8> {
    let octets = frame::unwrap(frame).unwrap();
    Pdu::parse(octets).unwrap().octets.to_vec()
}

/// System 1 with neighbour 9 at circuit 0 and neighbour 8 at circuit 1, and the LSP of 9 with sequence number 5.
struct Bench {
    speaker: Speaker,
    now: Instant,
    sent: Vec<(CircuitId, Vec<u8>)>,
}

impl Bench {
    fn new(key: Key, frames: &[usize]) -> Self {
        let config = Config { key: Some(key), ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own") };
        let mut bench = Bench { speaker: Speaker::new(config, 1, 1), now: START, sent: Vec::new() };
        for number in [1, 2] {
            bench.speaker.add_circuit(START, CircuitConfig::new(MacAddress([2, 0, 0, 0, 1, number])));
        }
        for number in frames {
            bench.receive(0, &golden(*number));
        }
        bench.receive(1, &golden(2));
        bench.pass_s(1);
        bench.sent.clear();
        bench
    }

    fn with_md5() -> Self {
        let bench = Bench::new(Key::Md5 { secret: b"srdma-wan".to_vec().into() }, &[1, 3]);
        let up = |circuit| bench.speaker.adjacency(Level::Two, CircuitId(circuit)).unwrap().state == AdjacencyState::Up;
        assert!(up(0) && up(1));
        assert_eq!(bench.routes(), ["5f00:0:9::/48 15"]);
        bench
    }

    fn receive(&mut self, circuit: usize, frame: &[u8]) {
        self.speaker.receive(self.now, CircuitId(circuit), frame);
        self.pass_s(0);
    }

    fn pass_s(&mut self, seconds: u64) {
        let end = self.now.after_ns(seconds * 1_000_000_000);
        while let Some(next) = self.speaker.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.speaker.tick(self.now);
            self.sent.extend(std::iter::from_fn(|| self.speaker.poll_transmit()));
        }
        self.now = end;
    }

    fn routes(&self) -> Vec<String> {
        let paths = self.speaker.shortest_paths(self.now);
        paths.prefixes.iter().map(|(prefix, reached)| format!("{prefix} {}", reached.distance)).collect()
    }

    fn stored(&self, id: LspId) -> &Lsp {
        self.speaker.database(Level::Two).get(id).unwrap().lsp()
    }

    /// The LSPs sent by a circuit.
    fn lsps_sent_by(&self, circuit: usize) -> Vec<Vec<u8>> {
        let of_circuit = self.sent.iter().filter(|(by, _)| *by == CircuitId(circuit));
        let pdus = of_circuit.map(|(_, frame)| pdu(frame));
        pdus.filter(|octets| matches!(Pdu::parse(octets).unwrap().kind, PduKind::Lsp(_))).collect()
    }
}

/// The LSP of 9 with another lifetime, as an attacker on the link without the key sends it.
fn with_lifetime(number: usize, lifetime_s: u16) -> Vec<u8> {
    let mut frame = golden(number);
    let at = frame::FRAME_HEADER_LEN + 10;
    frame[at..at + 2].copy_from_slice(&lifetime_s.to_be_bytes());
    frame
}

/// D93.
#[test]
fn a_signed_lsp_whose_lifetime_was_set_to_zero_is_no_purge() {
    let mut bench = Bench::with_md5();
    let before = bench.speaker.database(Level::Two).get(LSP).unwrap().clone();
    bench.speaker.take_changes();
    for circuit in [0, 1] {
        bench.receive(circuit, &with_lifetime(3, 0));
    }
    bench.pass_s(2);
    assert_eq!(bench.speaker.drops().get(&IsisDrop::PurgeTlvs), Some(&2));
    assert_eq!(bench.routes(), ["5f00:0:9::/48 15"]);
    assert_eq!(bench.stored(LSP), before.lsp());
    assert!(!bench.speaker.take_changes().database);
    assert_eq!(bench.lsps_sent_by(0).len() + bench.lsps_sent_by(1).len(), 0, "it is not flooded");
}

#[test]
fn the_own_lsp_whose_lifetime_was_set_to_zero_is_no_purge() {
    let mut bench = Bench::with_md5();
    let own = LspId { node: NodeId::of(OWN), fragment: 0 };
    let before = bench.stored(own).clone();
    let mut replayed = before.clone();
    replayed.set_lifetime(0);
    bench.receive(0, &frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), replayed.octets()).unwrap());
    bench.pass_s(2);
    assert_eq!(bench.speaker.drops().get(&IsisDrop::PurgeTlvs), Some(&1));
    assert_eq!((bench.stored(own), bench.speaker.counters().own_from_elsewhere), (&before, 0));
}

/// RFC 6232 section 3: a purge without its generator gets the TLV, with the neighbour that has sent it.
#[test]
fn a_signed_purge_is_taken_and_flooded_with_its_generator() {
    let mut bench = Bench::with_md5();
    bench.receive(0, &golden(4));
    assert!(bench.routes().is_empty());
    assert_eq!(bench.lsps_sent_by(1), [pdu(&golden(6))]);
    assert_eq!(bench.lsps_sent_by(0).len(), 0);
    let generator = PurgeOriginator { system: OWN, received_from: Some(NINE) };
    assert_eq!(bench.stored(LSP).purge_originator(), Some(generator));
    assert_eq!(bench.speaker.drops().len(), 0);
}

#[test]
fn a_purge_that_states_its_generator_is_flooded_as_it_came() {
    let mut bench = Bench::with_md5();
    bench.receive(0, &golden(9));
    assert!(bench.routes().is_empty());
    assert_eq!(bench.lsps_sent_by(1), [pdu(&golden(9))], "with the host name (RFC 6233)");
    let generator = PurgeOriginator { system: NINE, received_from: None };
    assert_eq!(bench.stored(LSP).purge_originator(), Some(generator));
}

/// D93.
#[test]
fn a_purge_without_or_with_another_signature_is_refused() {
    let mut bench = Bench::with_md5();
    let unsigned = Lsp::parse(&Pdu::parse(&pdu(&golden(4))).unwrap(), Level::Two).unwrap();
    let unsigned = Lsp::new(unsigned.level, unsigned.entry, unsigned.flags, &[]);
    bench.receive(0, &frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), unsigned.octets()).unwrap());
    bench.receive(0, &golden(13));
    assert_eq!(bench.speaker.drops().get(&IsisDrop::NotAuthentic), Some(&2));
    assert_eq!(bench.routes(), ["5f00:0:9::/48 15"]);
}

#[test]
fn an_expired_lsp_is_purged_in_the_own_name() {
    let sha256 = Key::Sha256 { key_id: 7, secret: b"srdma-wan".to_vec().into() };
    for (key, frames, purge) in [
        (Key::Md5 { secret: b"srdma-wan".to_vec().into() }, [1, 3], 5),
        // Circuit 1 has no neighbour: the second hello is not signed by this key.
        (sha256, [11, 12], 13),
    ] {
        let mut bench = Bench::new(key.clone(), &frames);
        bench.pass_s(1_200);
        assert_eq!(bench.stored(LSP).octets(), pdu(&golden(purge)), "{key:?}");
        assert_eq!(bench.stored(LSP).tlvs().of_kind(kind::PURGE_ORIGINATOR).count(), 1);
    }
}

#[test]
fn confused_lsps_are_purged_in_the_own_name_and_that_of_the_neighbour() {
    let mut bench = Bench::with_md5();
    bench.receive(0, &golden(7));
    assert_eq!(bench.speaker.counters().confusions, 1);
    assert_eq!(bench.stored(LSP).octets(), pdu(&golden(8)));
    assert_eq!(bench.lsps_sent_by(1), [pdu(&golden(8))]);
}

/// ISO 10589 section 7.3.16.1: another system may purge our LSP; we originate it again above that number.
#[test]
fn the_own_lsp_purged_by_another_system_is_originated_again() {
    let mut bench = Bench::with_md5();
    bench.receive(0, &golden(10));
    bench.pass_s(1);
    let own = bench.stored(LspId { node: NodeId::of(OWN), fragment: 0 });
    assert_eq!((own.entry.sequence, own.is_purge()), (0x101, false));
    let octets = own.octets().to_vec();
    assert_eq!(bench.routes(), ["5f00:0:9::/48 15"]);
    assert_eq!(bench.speaker.counters().own_from_elsewhere, 1);
    assert!([0, 1].iter().all(|circuit| bench.lsps_sent_by(*circuit).contains(&octets)));
}
