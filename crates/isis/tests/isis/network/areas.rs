//! The way out of a level-1 area: the nearest system whose attached bit is set (ISO 10589 section 7.2.9, D249).

use super::net::{Net, config, config_of_ipv6, locator, system};
use srdma_isis::tlv::{
    AdjacencyState, Leak, LspEntry, Member, Neighbour, Reachability, ThreeWay, Topologies, TopologyId,
};
use srdma_isis::{CircuitId, Config, Hello, Level, Levels, Lsp, LspFlags, LspId, NodeId, frame};
use srdma_wire::{MacAddress, Prefix};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const LEVEL: Level = Level::One;

fn everything() -> Prefix {
    Prefix::new(Ipv6Addr::UNSPECIFIED, 0).unwrap()
}

/// Systems 0 to 2 of an area in a row, and what systems 10 and 11 behind systems 0 and 2 announce.
struct Area {
    net: Net,
    sequence: u32,
    topology: TopologyId,
}

impl Area {
    fn new(of: fn(usize) -> Config) -> Self {
        let mut net = Net::default();
        (0..3).for_each(|number| assert_eq!(net.add(Config { levels: Levels::One, ..of(number) }), number));
        (1..3).for_each(|number| net.join(number - 1, number, 10));
        let topology = of(0).topology;
        let mut area = Area { net, sequence: 0, topology };
        for at in [0, 2] {
            let end = area.net.open_end(at);
            let neighbour = Some((system(at), end.1.0 as u32 + 1));
            let hello = Hello {
                levels: vec![Level::One, Level::Two],
                source: system(10 + at),
                holding_time_s: u16::MAX,
                circuit: 0,
                areas: vec![vec![0x49, 0, 1]],
                addresses: Vec::new(),
                three_way: Some(ThreeWay { state: AdjacencyState::Initializing, circuit: Some(1), neighbour }),
                topologies: Topologies::only(Member { topology, ..Member::default() }),
            };
            area.net.inject(end, frame::wrap(MacAddress([2; 6]), &hello.emit(&[])).unwrap());
        }
        // No CSNP comes from there: the starts are over after ten seconds (D94).
        area.net.run_ms(20_000);
        area
    }

    /// The LSP of the system behind another, with the bits of the header, and those of TLV 229.
    fn announce(&mut self, at: usize, flags: LspFlags, member: Member, prefixes: &[Reachability]) {
        self.sequence += 1;
        let mut tlvs = Vec::new();
        Topologies::only(Member { topology: self.topology, ..member }).emit(&mut tlvs);
        let neighbour = Neighbour { node: NodeId::of(system(at)), metric: 10, end_x: Vec::new() };
        Neighbour::emit_all(&[neighbour], self.topology, &mut tlvs);
        Reachability::emit_all(prefixes, self.topology, &mut tlvs);
        let id = LspId { node: NodeId::of(system(10 + at)), fragment: 0 };
        let entry = LspEntry { lifetime_s: 1200, id, sequence: self.sequence, checksum: 0 };
        let lsp = Lsp::new(LEVEL, entry, flags, &tlvs);
        let circuit = CircuitId(1);
        self.net.inject((at, circuit), frame::wrap(MacAddress([2; 6]), lsp.octets()).unwrap());
        self.net.run_ms(500);
    }

    /// Distance and first hops of the way out from a system, by numbers.
    fn out_of(&self, at: usize) -> Option<(u64, BTreeSet<u8>)> {
        let paths = self.net.speakers[at].shortest_paths(self.net.now);
        let reached = paths.prefixes.get(&everything())?;
        Some((reached.distance, reached.first_hops.iter().map(|hop| hop.system.0[5]).collect()))
    }
}

const ATTACHED: LspFlags = LspFlags { is_attached: true, is_overloaded: false, is_level_2: true };

fn by(distance: u64, hops: &[u8]) -> Option<(u64, BTreeSet<u8>)> {
    Some((distance, hops.iter().copied().collect()))
}

/// D249.
#[test]
fn the_nearest_attached_system_leads_out() {
    let mut area = Area::new(config);
    area.announce(0, LspFlags { is_attached: false, ..ATTACHED }, Member::default(), &[]);
    assert_eq!((area.out_of(0), area.out_of(2)), (None, None));
    area.announce(0, ATTACHED, Member::default(), &[]);
    assert_eq!((area.out_of(0), area.out_of(2)), (by(10, &[10]), by(30, &[1])));
    area.announce(2, ATTACHED, Member::default(), &[]);
    assert_eq!((area.out_of(1), area.out_of(2)), (by(20, &[0, 2]), by(10, &[12])), "equal ones stand side by side");
    area.announce(2, LspFlags { is_overloaded: true, ..ATTACHED }, Member::default(), &[]);
    assert_eq!(area.out_of(2), by(30, &[1]), "no path leads through an overloaded system");
    // A default among its prefixes is one that was announced.
    let default = Reachability { metric: 5, leak: Leak::None, is_external: false, prefix: everything() };
    area.announce(2, LspFlags { is_attached: false, ..ATTACHED }, Member::default(), &[default]);
    assert_eq!(area.out_of(0), by(35, &[1]));
    assert!(area.net.speakers[0].shortest_paths(area.net.now).prefixes.contains_key(&locator(2)));
}

/// D249: either bit counts, and the overload bit of the topology.
#[test]
fn in_the_topology_of_ipv6_as_well() {
    let mut area = Area::new(config_of_ipv6);
    let with = |is_overloaded, is_attached| Member { is_overloaded, is_attached, ..Member::default() };
    let none = LspFlags { is_attached: false, ..ATTACHED };
    area.announce(0, none, with(false, false), &[]);
    assert_eq!(area.out_of(2), None);
    area.announce(0, none, with(false, true), &[]);
    assert_eq!(area.out_of(2), by(30, &[1]));
    area.announce(0, ATTACHED, with(false, false), &[]);
    assert_eq!(area.out_of(2), by(30, &[1]), "FRR");
    area.announce(0, ATTACHED, with(true, true), &[]);
    assert_eq!(area.out_of(2), None);
}

/// At level 2 the bit has no meaning.
#[test]
fn between_areas_there_is_no_default() {
    let mut net = Net::default();
    (0..2).for_each(|number| assert_eq!(net.add(config(number)), number));
    net.join(0, 1, 10);
    net.run_ms(1_000);
    let id = LspId { node: NodeId::of(system(1)), fragment: 0 };
    let sequence = net.speakers[0].database(Level::Two).get(id).unwrap().lsp().entry.sequence;
    let mut tlvs = Vec::new();
    let neighbour = Neighbour { node: NodeId::of(system(0)), metric: 10, end_x: Vec::new() };
    Neighbour::emit_all(&[neighbour], TopologyId::STANDARD, &mut tlvs);
    let entry = LspEntry { lifetime_s: 1200, id, sequence: sequence + 1, checksum: 0 };
    let lsp = Lsp::new(Level::Two, entry, ATTACHED, &tlvs);
    net.speakers[0].receive(net.now, CircuitId(0), &frame::wrap(MacAddress([2; 6]), lsp.octets()).unwrap());
    assert!(net.speakers[0].database(Level::Two).get(id).unwrap().lsp().flags.is_attached);
    assert!(net.speakers[0].shortest_paths(net.now).prefixes.is_empty());
}
