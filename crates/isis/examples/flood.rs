//! Time to learn a thousand systems: their LSPs come in by one circuit, are acknowledged, sent on by
//! another, and shortest paths are computed over them.
//!
//! ```sh
//! cargo run --release -p srdma-isis --example flood
//! ```

use srdma_isis::tlv::{AdjacencyState, Leak, Locator, LspEntry, Neighbour, ThreeWay, Topologies, TopologyId};
use srdma_isis::{
    CircuitConfig, Config, Hello, Level, Lsp, LspFlags, LspId, NodeId, Pdu, PduKind, Speaker, SystemId, frame,
};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::net::Ipv6Addr;

const SYSTEMS: usize = 1000;
const RUNS: usize = 11;

fn system(number: usize) -> SystemId {
    let [high, low] = (number as u16).to_be_bytes();
    SystemId([0, 0, 0, 0, high, low])
}

/// A grid of systems, each with two to four neighbours and a locator. Ours is system 0, its neighbours 1 and 2 stand in
/// for the circuits.
fn lsps() -> Vec<Lsp> {
    let width = 32;
    (1..=SYSTEMS)
        .map(|number| {
            let beside = [number.wrapping_sub(1), number + 1, number.wrapping_sub(width), number + width];
            let neighbours: Vec<Neighbour> = beside
                .into_iter()
                .filter(|other| (1..=SYSTEMS).contains(other))
                .chain((number <= 2).then_some(0))
                .map(|other| Neighbour { node: NodeId::of(system(other)), metric: 10, end_x: Vec::new() })
                .collect();
            let mut tlvs = Vec::new();
            Neighbour::emit_all(&neighbours, TopologyId::STANDARD, &mut tlvs);
            let address = Ipv6Addr::new(0x5f00, 0, number as u16, 0, 0, 0, 0, 0);
            let prefix = Prefix::new(address, 48).expect("a prefix of 48 bits");
            Locator {
                topology: TopologyId::STANDARD,
                metric: 0,
                leak: Leak::None,
                algorithm: 0,
                prefix,
                sids: Vec::new(),
            }
            .emit(&mut tlvs);
            let id = LspId { node: NodeId::of(system(number)), fragment: 0 };
            let entry = LspEntry { lifetime_s: 1200, id, sequence: 1, checksum: 0 };
            Lsp::new(Level::Two, entry, LspFlags { is_level_2: true, ..LspFlags::default() }, &tlvs)
        })
        .collect()
}

fn main() {
    let frames: Vec<Vec<u8>> =
        lsps().iter().filter_map(|lsp| frame::wrap(MacAddress([2, 0, 0, 0, 0, 2]), lsp.octets())).collect();
    let mut flooding_ms = Vec::new();
    let mut paths_ms = Vec::new();
    for _ in 0..RUNS {
        let now = Instant::from_ns(1);
        let mut speaker = Speaker::new(Config::new(system(0), vec![vec![0x49, 0, 1]], "own"), 1, 1);
        let circuits: Vec<_> = (1..=2)
            .map(|number| {
                let circuit = speaker.add_circuit(now, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, number])));
                let neighbour = Some((system(0), u32::from(number)));
                let three_way = ThreeWay { state: AdjacencyState::Initializing, circuit: Some(1), neighbour };
                let hello = Hello {
                    levels: vec![Level::Two],
                    source: system(usize::from(number)),
                    holding_time_s: 30,
                    circuit: 0,
                    areas: vec![vec![0x49, 0, 1]],
                    addresses: Vec::new(),
                    three_way: Some(three_way),
                    topologies: Topologies::default(),
                };
                let frame = frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), &hello.emit(&[])).expect("a hello is short");
                speaker.receive(now, circuit, &frame);
                circuit
            })
            .collect();
        let begun = std::time::Instant::now();
        let mut sent_on = 0;
        for octets in &frames {
            speaker.receive(now, circuits[0], octets);
            speaker.tick(now);
            while let Some((circuit, octets)) = speaker.poll_transmit() {
                let pdu = frame::unwrap(&octets).and_then(|octets| Pdu::parse(octets).ok());
                if let Some(pdu) = pdu.filter(|pdu| matches!(pdu.kind, PduKind::Lsp(_)) && circuit == circuits[1]) {
                    sent_on += 1;
                    let lsp = Lsp::parse(&pdu, Level::Two).expect("what it sends is sound");
                    let source = NodeId::of(system(2));
                    let partial = srdma_isis::pdu::Partial { source, entries: vec![lsp.entry] };
                    let pdu = partial.emit(Level::Two, &[]);
                    let frame = frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), &pdu).expect("an entry is short");
                    speaker.receive(now, circuit, &frame);
                }
            }
        }
        flooding_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(sent_on >= SYSTEMS, "{sent_on} were sent on");
        let begun = std::time::Instant::now();
        let paths = speaker.shortest_paths(now);
        paths_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        assert_eq!(paths.prefixes.len(), SYSTEMS);
    }
    for (what, values) in [("received, sent on, acknowledged", &mut flooding_ms), ("shortest paths", &mut paths_ms)] {
        values.sort_by(f64::total_cmp);
        println!("{SYSTEMS} systems, {what}: least {:.2} ms, median {:.2} ms", values[0], values[values.len() / 2]);
    }
}
