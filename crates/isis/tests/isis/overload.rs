//! The overload bit while the database is incomplete (D94, D95), and the jitter of timers.

use crate::network::net::{Net, config, locator, system};
use srdma_isis::pdu::{Complete, Range};
use srdma_isis::tlv::{AdjacencyState, LspEntry, ThreeWay, Topologies};
use srdma_isis::{
    CircuitConfig, CircuitId, Config, Hello, IsisDrop, Level, Lsp, LspFlags, LspId, NodeId, Overload, Pdu, PduKind,
    Speaker, SystemId, frame,
};
use srdma_wire::{Instant, MacAddress};

const START: Instant = Instant::from_ns(1_000_000_000);
const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);

fn framed(pdu: &[u8]) -> Vec<u8> {
    frame::wrap(MacAddress([2, 0, 0, 0, 0, 2]), pdu).unwrap()
}

fn lsp(number: usize, sequence: u32) -> Lsp {
    let id = LspId { node: NodeId::of(system(number)), fragment: 0 };
    let entry = LspEntry { lifetime_s: 1200, id, sequence, checksum: 0 };
    Lsp::new(Level::Two, entry, LspFlags { is_level_2: true, ..LspFlags::default() }, &[])
}

/// System 1, and what its neighbours say.
struct Bench {
    speaker: Speaker,
    now: Instant,
    sent: Vec<(Instant, Vec<u8>)>,
}

impl Bench {
    fn new(config: Config, circuits: u8, seed: u64) -> Self {
        let mut bench = Bench { speaker: Speaker::new(config, 1, seed), now: START, sent: Vec::new() };
        for number in 0..circuits {
            bench.speaker.add_circuit(START, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, number])));
        }
        bench.pass_ms(0);
        bench
    }

    fn starting(circuits: u8) -> Self {
        let bench = Bench::new(Config::new(OWN, vec![vec![0x49, 0, 1]], "own"), circuits, 1);
        assert_eq!(bench.overload(), (Some(Overload::Starting), true));
        bench
    }

    /// Hello of the neighbour at a circuit, which is system 10 plus the circuit's number. It holds for all of the test.
    fn neighbour(&mut self, circuit: usize) {
        let three_way =
            ThreeWay { state: AdjacencyState::Up, circuit: Some(9), neighbour: Some((OWN, circuit as u32 + 1)) };
        let hello = Hello {
            levels: vec![Level::Two],
            source: system(10 + circuit),
            holding_time_s: 10_000,
            circuit: 0,
            areas: vec![vec![0x49, 0, 1]],
            addresses: Vec::new(),
            three_way: Some(three_way),
            topologies: Topologies::default(),
        };
        self.receive(circuit, &hello.emit(&[]));
        assert_eq!(self.speaker.adjacency(Level::Two, CircuitId(circuit)).unwrap().state, AdjacencyState::Up);
    }

    fn complete(&mut self, circuit: usize, first: LspId, last: LspId, lsps: &[Lsp]) {
        let entries = lsps.iter().map(|lsp| lsp.entry).collect();
        let source = NodeId::of(system(10 + circuit));
        let complete = Complete { source, range: Range { first, last }, entries };
        self.receive(circuit, &complete.emit(Level::Two, &[]));
    }

    fn receive(&mut self, circuit: usize, pdu: &[u8]) {
        self.speaker.receive(self.now, CircuitId(circuit), &framed(pdu));
        // A new version of our LSP comes 100 ms after the last one.
        self.pass_ms(100);
    }

    fn pass_ms(&mut self, ms: u64) {
        let end = self.now.after_ns(ms * 1_000_000);
        while let Some(next) = self.speaker.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.speaker.tick(self.now);
            let now = self.now;
            self.sent.extend(std::iter::from_fn(|| self.speaker.poll_transmit()).map(|(_, frame)| (now, frame)));
        }
        self.now = end;
    }

    /// The cause, and the bit of our LSP.
    fn overload(&self) -> (Option<Overload>, bool) {
        let own = LspId { node: NodeId::of(OWN), fragment: 0 };
        (self.speaker.overload(), self.speaker.database(Level::Two).get(own).unwrap().lsp().flags.is_overloaded)
    }

    /// Times of the frames of a kind in milliseconds since the start, in pairs: the gaps between them.
    fn gaps_ms(&self, wanted: impl Fn(PduKind) -> bool) -> Vec<u64> {
        let is_wanted = |frame: &[u8]| wanted(Pdu::parse(frame::unwrap(frame).unwrap()).unwrap().kind);
        let times: Vec<Instant> = self.sent.iter().filter(|(_, frame)| is_wanted(frame)).map(|(at, _)| *at).collect();
        times.windows(2).map(|pair| pair[1].since(pair[0]).as_millis() as u64).collect()
    }
}

/// D94.
#[test]
fn the_bit_is_set_until_all_neighbours_have_sent_their_databases() {
    let mut bench = Bench::starting(2);
    bench.neighbour(0);
    bench.complete(0, LspId::FIRST, LspId::LAST, &[lsp(7, 3)]);
    assert_eq!(bench.overload(), (Some(Overload::Starting), true), "an LSP is missing, and neighbour 11");
    bench.receive(0, lsp(7, 2).octets());
    bench.neighbour(1);
    let middle = lsp(7, 1).entry.id;
    bench.complete(1, LspId::FIRST, middle, &[]);
    assert_eq!(bench.overload(), (Some(Overload::Starting), true), "an old LSP, and half a database");
    let behind = LspId { fragment: 1, ..middle };
    bench.complete(1, behind, LspId::LAST, &[]);
    assert_eq!(bench.overload(), (Some(Overload::Starting), true), "LSP 7 is still old");
    bench.receive(1, lsp(7, 3).octets());
    assert_eq!(bench.overload(), (None, false));
    // Another neighbour later is no start.
    bench.neighbour(0);
    bench.pass_ms(1000);
    assert_eq!(bench.overload(), (None, false));
}

#[test]
fn a_gap_between_csnps_is_no_whole_database() {
    let mut bench = Bench::starting(1);
    bench.neighbour(0);
    bench.complete(0, LspId { fragment: 1, ..lsp(7, 1).entry.id }, LspId::LAST, &[]);
    bench.complete(0, LspId::FIRST, LspId { fragment: 7, ..LspId::FIRST }, &[]);
    assert_eq!(bench.overload(), (Some(Overload::Starting), true));
    bench.complete(0, LspId::FIRST, LspId::LAST, &[]);
    assert_eq!(bench.overload(), (None, false));
}

/// FRR sends a CSNP when its side of the adjacency comes up, and no further one.
#[test]
fn a_neighbour_without_csnps_is_done_ten_seconds_after_its_last_newer_lsp() {
    let mut bench = Bench::starting(1);
    bench.neighbour(0);
    bench.pass_ms(9_000);
    bench.receive(0, lsp(7, 1).octets());
    bench.pass_ms(9_700);
    bench.receive(0, lsp(7, 1).octets());
    assert_eq!(bench.overload(), (Some(Overload::Starting), true));
    bench.pass_ms(200);
    assert_eq!(bench.overload(), (None, false), "the same version again does not count");
}

#[test]
fn a_start_without_a_neighbour_is_bounded() {
    let mut bench = Bench::starting(2);
    bench.neighbour(0);
    bench.complete(0, LspId::FIRST, LspId::LAST, &[]);
    bench.pass_ms(59_500);
    assert_eq!(bench.overload(), (Some(Overload::Starting), true));
    bench.pass_ms(500);
    assert_eq!(bench.overload(), (None, false));
    let mut config = Config::new(OWN, vec![vec![0x49, 0, 1]], "own");
    config.timers.startup_s = 0;
    assert_eq!(Bench::new(config, 2, 1).overload(), (None, false));
}

#[test]
fn circuits_without_a_link_are_not_waited_for() {
    let mut bench = Bench::starting(2);
    bench.speaker.set_link(bench.now, CircuitId(1), false);
    bench.neighbour(0);
    bench.complete(0, LspId::FIRST, LspId::LAST, &[]);
    assert_eq!(bench.overload(), (None, false));
}

/// D95.
#[test]
fn the_bit_is_set_while_lsps_are_refused_for_want_of_room() {
    let config = Config { limit_lsps: 4, ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own") };
    let mut bench = Bench::new(config, 1, 1);
    bench.neighbour(0);
    bench.complete(0, LspId::FIRST, LspId::LAST, &[]);
    (20..23).for_each(|number| bench.receive(0, lsp(number, 1).octets()));
    assert_eq!(bench.overload(), (None, false), "full, and nothing is missing");
    bench.receive(0, lsp(23, 1).octets());
    assert_eq!(bench.speaker.drops()[&IsisDrop::DatabaseFull], 1);
    assert_eq!(bench.overload(), (Some(Overload::DatabaseFull), true));
    bench.pass_ms(59_000);
    bench.receive(0, lsp(24, 1).octets());
    bench.pass_ms(59_000);
    assert_eq!(bench.overload(), (Some(Overload::DatabaseFull), true));
    // There is room: the LSP is stored when the neighbour sends it again, and none is refused for a minute.
    bench.speaker.reconfigure(|config| config.limit_lsps = 16);
    bench.receive(0, lsp(23, 1).octets());
    bench.pass_ms(1_000);
    assert_eq!(bench.overload(), (None, false));
}

#[test]
fn the_configured_bit_stays() {
    let config = Config { is_overloaded: true, ..Config::new(OWN, vec![vec![0x49, 0, 1]], "own") };
    let mut bench = Bench::new(config, 1, 1);
    bench.pass_ms(100_000);
    assert_eq!(bench.overload(), (Some(Overload::Configured), true));
}

/// Others send nothing through a system that starts, and reach the system itself.
#[test]
fn no_path_leads_through_a_system_whose_database_is_incomplete() {
    let mut net = Net::default();
    (0..5).for_each(|number| assert_eq!(net.add(config(number)), number));
    for (one, other, metric) in [(0, 1, 10), (1, 2, 10), (1, 4, 10), (0, 3, 100), (3, 2, 100), (3, 4, 100)] {
        net.join(one, other, metric);
    }
    // System 1 has no adjacency with 2, so that it does not know what it lacks.
    net.cut.push((1, 2));
    net.run_ms(5_000);
    let distances = |net: &Net| {
        let paths = net.speakers[0].shortest_paths(net.now);
        [1, 2, 4].map(|to| paths.prefixes[&locator(to)].distance)
    };
    assert_eq!(distances(&net), [10, 200, 200]);
    net.cut.clear();
    let mut has_led_through = false;
    for _ in 0..5_000 {
        net.run_ms(1);
        let found = distances(&net);
        assert!(found == [10, 200, 200] || found == [10, 20, 20], "{found:?}");
        if found == [10, 20, 20] {
            has_led_through = true;
            assert_eq!(net.speakers[1].overload(), None);
            assert_eq!(net.speakers[1].shortest_paths(net.now).prefixes[&locator(2)].distance, 10);
        }
    }
    assert!(has_led_through);
}

/// ISO 10589 section 10.1: intervals are shortened by at most a quarter, so that systems do not stay in step.
#[test]
fn timers_have_jitter() {
    let run = |seed| {
        let mut bench = Bench::new(Config::new(OWN, vec![vec![0x49, 0, 1]], "own"), 1, seed);
        bench.neighbour(0);
        bench.complete(0, LspId::FIRST, LspId::LAST, &[]);
        bench.pass_ms(500);
        bench.sent.clear();
        bench.pass_ms(9_000_000);
        let hellos = bench.gaps_ms(|kind| kind == PduKind::Hello);
        let csnps = bench.gaps_ms(|kind| matches!(kind, PduKind::Complete(_)));
        (hellos, csnps, bench.gaps_ms(|kind| matches!(kind, PduKind::Lsp(_))))
    };
    let (hellos, csnps, lsps) = run(1);
    let lies = |gaps: &[u64], low, high| gaps.len() > 2 && gaps.iter().all(|gap| (low..=high).contains(gap));
    let differ = |gaps: &[u64]| gaps.iter().any(|gap| *gap != gaps[0]);
    assert!(lies(&hellos, 2_250, 3_000) && differ(&hellos));
    assert!(lies(&csnps, 22_500, 30_000) && differ(&csnps));
    // Our LSP is not acknowledged, and is sent every 5 s.
    assert!(lies(&lsps, 1, 5_000) && lsps.iter().filter(|gap| **gap >= 3_750).count() > 1_000);
    assert_eq!(run(1).0, hellos, "the same seed");
    assert_ne!(run(2).0, hellos, "another one");
}
