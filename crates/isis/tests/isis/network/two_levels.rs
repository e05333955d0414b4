//! Systems at levels 1 and 2 (D263, D264): adjacencies of both on one circuit, what each level announces of the other, and
//! random networks against a slow model.

use super::net::{Net, config, locator, system};
use super::{all_distances, chance, random_links};
use srdma_isis::tlv::{AdjacencyState, Leak, Locator, Reachability, TopologyId};
use srdma_isis::{
    CircuitId, Config, Hello, Level, Levels, LspId, NodeId, Pdu, PduKind, RouteKind, ShortestPaths, frame,
};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

const LINK: CircuitId = CircuitId(0);

fn area(number: u8) -> Vec<Vec<u8>> {
    vec![vec![0x49, 0, number]]
}

/// A system whose start is over at once: circuits without neighbours are wanted here.
fn of(number: usize, area_number: u8, levels: Levels) -> Config {
    let mut config = Config { levels, areas: area(area_number), ..config(number) };
    config.timers.startup_s = 0;
    config
}

fn everything() -> Prefix {
    Prefix::new(Ipv6Addr::UNSPECIFIED, 0).unwrap()
}

fn states(net: &Net, at: usize, circuit: CircuitId) -> [Option<AdjacencyState>; 2] {
    [Level::One, Level::Two].map(|level| Some(net.speakers[at].adjacency(level, circuit)?.state))
}

fn paths(net: &Net, at: usize) -> ShortestPaths {
    net.speakers[at].shortest_paths(net.now)
}

/// Whether the LSP of a system at level 1 has the attached bit, as another one has it.
fn is_attached(net: &Net, at: usize, of: usize) -> bool {
    let id = LspId { node: NodeId::of(system(of)), fragment: 0 };
    net.speakers[at].database(Level::One).get(id).expect("its LSP").lsp().flags.is_attached
}

/// A row: level 1, both, both of another area, level 1 there.
fn two_areas() -> Net {
    let mut net = Net::default();
    net.add(of(0, 1, Levels::One));
    net.add(of(1, 1, Levels::Both));
    net.add(of(2, 2, Levels::Both));
    net.add(of(3, 2, Levels::One));
    (1..4).for_each(|number| net.join(number - 1, number, 10));
    net
}

#[test]
fn a_link_has_an_adjacency_of_each_common_level() {
    const UP: Option<AdjacencyState> = Some(AdjacencyState::Up);
    let mut net = Net::default();
    net.add(of(0, 1, Levels::Both));
    net.add(of(1, 1, Levels::Both));
    net.add(of(2, 1, Levels::One));
    net.add(of(3, 1, Levels::Two));
    net.add(of(4, 2, Levels::Both));
    (1..5).for_each(|other| net.join(0, other, 10));
    net.run_ms(2000);
    let found: Vec<_> = (0..4).map(|circuit| states(&net, 0, CircuitId(circuit))).collect();
    assert_eq!(found, [[UP, UP], [UP, None], [None, UP], [None, UP]]);
    assert!(net.speakers.iter().all(|speaker| speaker.drops().is_empty()), "{:?}", net.speakers[0].drops());
    // BFD loses the neighbour at both levels, and counts it once.
    let now = net.now;
    net.speakers[0].lose_neighbour(now, LINK, system(1));
    assert_eq!(states(&net, 0, LINK), [None, None]);
    assert_eq!(net.speakers[0].counters().neighbours_lost, 1);
    net.run_ms(5000);
    assert_eq!(states(&net, 0, LINK), [UP, UP]);
}

/// One hello for both levels, with circuit type 3 (ISO 10589 section 9.7), and no more of them than of one level.
#[test]
fn a_link_has_one_hello_for_both_levels() {
    let mut speaker = srdma_isis::Speaker::new(of(0, 1, Levels::Both), 1, 1);
    let mut now = srdma_wire::Instant::ZERO;
    speaker.add_circuit(now, srdma_isis::CircuitConfig::new(srdma_wire::MacAddress([2; 6])));
    let mut hellos = 0;
    while now < srdma_wire::Instant::from_ns(31_000_000_000) {
        speaker.tick(now);
        while let Some((_, octets)) = speaker.poll_transmit() {
            let pdu = Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap();
            assert_eq!(pdu.kind, PduKind::Hello);
            assert_eq!(Hello::parse(&pdu).unwrap().levels, [Level::One, Level::Two]);
            assert_eq!(octets[17 + 8], 3);
            hellos += 1;
        }
        now = speaker.next_deadline().expect("the next hello").max(now);
    }
    assert!((10..=15).contains(&hellos), "{hellos} hellos in 31 s, of 2.25 to 3 s each");
}

#[test]
fn another_neighbour_at_one_level_ends_the_adjacency_of_the_other() {
    let mut net = Net::default();
    net.add(of(0, 1, Levels::Both));
    net.add(of(1, 1, Levels::Both));
    net.join(0, 1, 10);
    net.run_ms(2000);
    assert!(states(&net, 0, LINK).iter().all(Option::is_some));
    net.restart(1, of(1, 1, Levels::One));
    net.run_ms(5000);
    assert_eq!(states(&net, 0, LINK), [Some(AdjacencyState::Up), None]);
    assert_eq!(paths(&net, 0).prefixes[&locator(1)].level, Level::One);
}

#[test]
fn areas_reach_each_other_by_level_2() {
    let mut net = two_areas();
    net.run_ms(3000);
    // Level 1 has the way out, level 2 the prefixes.
    let of_0 = paths(&net, 0);
    assert_eq!(of_0.prefixes.keys().collect::<Vec<_>>(), [&everything(), &locator(1)]);
    assert_eq!((of_0.prefixes[&everything()].kind, is_attached(&net, 0, 1)), (RouteKind::OutOfArea, true));
    let route = paths(&net, 1).prefixes[&locator(3)].clone();
    assert_eq!((route.level, route.kind, route.distance), (Level::Two, RouteKind::Up, 20));
    assert_eq!(paths(&net, 1).prefixes[&locator(0)].level, Level::One);
    // No area is left: the bit goes, and so does the way out.
    net.cut.push((1, 2));
    net.run_ms(31_000);
    assert!(!is_attached(&net, 0, 1) && !paths(&net, 0).prefixes.contains_key(&everything()));
    assert!(!paths(&net, 1).prefixes.contains_key(&locator(3)));
    net.cut.clear();
    net.run_ms(5000);
    assert!(is_attached(&net, 0, 1) && paths(&net, 1).prefixes.contains_key(&locator(3)));
}

/// What an LSP at a level has: prefixes, and locators with the number of their SIDs.
fn announced(net: &Net, at: usize, level: Level) -> (Vec<Reachability>, Vec<(Locator, usize)>) {
    let id = LspId { node: NodeId::of(system(at)), fragment: 0 };
    let lsp = net.speakers[at].database(level).get(id).expect("its own").lsp();
    let prefixes = Reachability::of_topology(lsp.tlvs(), TopologyId::STANDARD).collect();
    let locators = Locator::of_topology(lsp.tlvs(), TopologyId::STANDARD).map(|mut locator| {
        let count = std::mem::take(&mut locator.sids).len();
        (locator, count)
    });
    (prefixes, locators.collect())
}

/// D263: what comes from another level has the bits of that; what came down does not go up again.
#[test]
fn leaks_are_marked_and_do_not_go_up_again() {
    let mut net = two_areas();
    // A second way out of area 1.
    net.add(of(4, 1, Levels::Both));
    net.join(0, 4, 10);
    let block = Prefix::new(Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 32).unwrap();
    net.speakers[1].reconfigure(|config| config.leak_down = vec![block]);
    net.run_ms(5000);
    let of = |number, leak, metric| Reachability { metric, leak, is_external: false, prefix: locator(number) };
    let (prefixes, locators) = announced(&net, 1, Level::Two);
    assert_eq!(prefixes, [of(0, Leak::Up, 10), of(4, Leak::Up, 20)]);
    let shown: Vec<_> = locators.iter().map(|(it, sids)| (it.prefix, it.metric, it.leak, *sids)).collect();
    let expected = [(1, 0, Leak::None), (0, 10, Leak::Up), (4, 20, Leak::Up)];
    assert_eq!(shown, expected.map(|(number, metric, leak)| (locator(number), metric, leak, 1)));
    let (prefixes, _) = announced(&net, 1, Level::One);
    assert_eq!(prefixes, [of(2, Leak::Down, 10), of(3, Leak::Down, 20)]);
    // System 4 has routes that came down, and does not announce them at level 2.
    let route = paths(&net, 4).prefixes[&locator(3)].clone();
    assert_eq!((route.level, route.kind, route.distance), (Level::One, RouteKind::Down, 40));
    assert_eq!(announced(&net, 4, Level::Two).0, [of(0, Leak::Up, 10), of(1, Leak::Up, 20)]);
    assert!(!is_attached(&net, 0, 4));
    // The SIDs are those of the systems that have them (D264).
    let learned = net.speakers[2].learned(net.now);
    assert_eq!((&learned[&system(1)].locators, learned.get(&system(0))), (&vec![locator(1)], None));
    let learned = net.speakers[0].learned(net.now);
    assert_eq!(learned[&system(1)].locators, [locator(1)]);
    net.speakers[1].reconfigure(|config| config.leak_down.clear());
    net.run_ms(2000);
    assert_eq!(announced(&net, 1, Level::One).0, []);
    assert!(!paths(&net, 4).prefixes.contains_key(&locator(3)));
}

/// Each level elects a designated system of its own.
#[test]
fn a_lan_has_a_designated_system_of_each_level() {
    let mut net = Net::default();
    net.add(of(0, 1, Levels::Both));
    net.add(of(1, 1, Levels::One));
    net.add(of(2, 1, Levels::Two));
    net.add(of(3, 1, Levels::Both));
    net.join_lan(&[(0, 64), (1, 100), (2, 90), (3, 64)], 10);
    net.run_ms(20_000);
    let designated = |level| net.speakers[3].designated(level, LINK).map(|pseudonode| pseudonode.system);
    assert_eq!((designated(Level::One), designated(Level::Two)), (Some(system(1)), Some(system(2))));
    let found = paths(&net, 0).prefixes;
    let levels: BTreeMap<Prefix, (Level, u64)> =
        found.iter().map(|(prefix, route)| (*prefix, (route.level, route.distance))).collect();
    let expected = [(1, Level::One), (2, Level::Two), (3, Level::One)];
    assert_eq!(levels, expected.map(|(number, level)| (locator(number), (level, 10))).into());
    let hops = |level, to| net.speakers[0].circuits_to(level, system(to)).count();
    assert_eq!((hops(Level::One, 1), hops(Level::Two, 1), hops(Level::One, 2), hops(Level::Two, 2)), (1, 0, 0, 1));
}

const COUNT: usize = 10;
const FAR: u64 = u64::MAX / 4;

/// What the slow model knows of a random network.
struct Model {
    configs: Vec<(u8, Levels, bool)>,
    one: [[u64; COUNT]; COUNT],
    two: [[u64; COUNT]; COUNT],
}

impl Model {
    fn works_at(&self, at: usize, level: Level) -> bool {
        self.configs[at].1.contains(level)
    }

    fn are_adjacent(configs: &[(u8, Levels, bool)], a: usize, b: usize, level: Level) -> bool {
        let both = configs[a].1.contains(level) && configs[b].1.contains(level);
        both && (level == Level::Two || configs[a].0 == configs[b].0)
    }

    fn is_attached(&self, at: usize) -> bool {
        let elsewhere = |to: &usize| self.two[at][*to] < FAR && self.configs[*to].0 != self.configs[at].0;
        self.configs[at].1 == Levels::Both && (0..COUNT).any(|to| elsewhere(&to))
    }

    /// What a system announces of another one's locator at level 2.
    fn announces_up(&self, at: usize, to: usize) -> u64 {
        match self.configs[at].1 {
            Levels::One => FAR,
            Levels::Two | Levels::Both if at == to => 0,
            Levels::Two => FAR,
            Levels::Both => self.one[at][to],
        }
    }

    fn up(&self, from: usize, to: usize) -> u64 {
        let by = (0..COUNT).filter(|by| *by != from && self.two[from][*by] < FAR);
        by.map(|by| self.two[from][by] + self.announces_up(by, to)).min().unwrap_or(FAR)
    }

    /// What a system announces of another one's locator at level 1, beside its own.
    fn announces_down(&self, at: usize, to: usize) -> u64 {
        let (_, levels, leaks) = self.configs[at];
        if levels == Levels::Both && leaks && self.one[at][to] >= FAR { self.up(at, to) } else { FAR }
    }

    fn route(&self, from: usize, to: usize) -> Option<(Level, RouteKind, u64)> {
        let near = |distance: u64| Some(distance).filter(|distance| *distance < FAR);
        let at_one = self.works_at(from, Level::One);
        let one = near(self.one[from][to]).filter(|_| at_one && self.works_at(to, Level::One));
        let two = near(self.up(from, to)).filter(|_| self.works_at(from, Level::Two));
        let by = (0..COUNT).filter(|by| *by != from && at_one && self.one[from][*by] < FAR);
        let down = by.map(|by| self.one[from][by] + self.announces_down(by, to)).min().and_then(near);
        one.map(|distance| (Level::One, RouteKind::Up, distance))
            .or(two.map(|distance| (Level::Two, RouteKind::Up, distance)))
            .or(down.map(|distance| (Level::One, RouteKind::Down, distance)))
    }

    fn out(&self, from: usize) -> Option<u64> {
        let may_use = self.works_at(from, Level::One) && !self.is_attached(from);
        let attached = (0..COUNT).filter(|by| *by != from && self.one[from][*by] < FAR && self.is_attached(*by));
        attached.map(|by| self.one[from][by]).min().filter(|_| may_use)
    }
}

/// Some 10 systems in up to three areas, some links, and a LAN within an area.
fn random(seed: u64) -> (Net, Model) {
    let mut below = chance(seed);
    let mut net = Net::default();
    let areas = 1 + below(3) as u8;
    let configs: Vec<(u8, Levels, bool)> = (0..COUNT)
        .map(|_| {
            let levels = [Levels::One, Levels::Two, Levels::Both, Levels::Both][below(4) as usize];
            (below(areas.into()) as u8, levels, below(3) == 0)
        })
        .collect();
    let block = Prefix::new(Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 32).unwrap();
    for (number, (area, levels, leaks)) in configs.iter().enumerate() {
        let leak_down = if *leaks { vec![block] } else { Vec::new() };
        net.add(Config { leak_down, ..of(number, *area, *levels) });
    }
    let mut links = random_links(COUNT, 30, &mut below);
    links.iter().for_each(|(one, other, metric)| net.join(*one, *other, *metric));
    let members: Vec<usize> = (0..COUNT).filter(|at| configs[*at].0 == 0 && below(2) == 0).collect();
    if members.len() > 1 {
        let metric = 1 + below(30) as u32;
        net.join_lan(&members.iter().map(|at| (*at, below(3) as u8)).collect::<Vec<_>>(), metric);
        let pairs = members.iter().flat_map(|one| members.iter().map(|other| (*one, *other)));
        links.extend(pairs.filter(|(one, other)| one < other).map(|(one, other)| (one, other, metric)));
    }
    let at = |level| {
        let links = links.iter().copied().filter(|(a, b, _)| Model::are_adjacent(&configs, *a, *b, level));
        all_distances::<COUNT>(&links.collect::<Vec<_>>())
    };
    let (one, two) = (at(Level::One), at(Level::Two));
    (net, Model { configs, one, two })
}

fn number(node: NodeId) -> usize {
    usize::from(u16::from_be_bytes([node.system.0[4], node.system.0[5]]))
}

#[test]
fn routes_over_two_levels_are_those_of_a_slow_model() {
    let mut kinds: BTreeMap<(Level, RouteKind), usize> = BTreeMap::new();
    for seed in 0..40 {
        let (mut net, model) = random(seed);
        net.run_ms(40_000);
        let tables: Vec<ShortestPaths> = (0..COUNT).map(|at| paths(&net, at)).collect();
        for (from, table) in tables.iter().enumerate() {
            let out = table.prefixes.get(&everything());
            assert_eq!(out.map(|out| out.distance), model.out(from), "seed {seed}, out of {from}");
            assert!(out.is_none_or(|out| out.kind == RouteKind::OutOfArea));
            *kinds.entry((Level::One, RouteKind::OutOfArea)).or_default() += out.iter().count();
            for to in (0..COUNT).filter(|to| *to != from) {
                let found = table.prefixes.get(&locator(to));
                let shown = found.map(|route| (route.level, route.kind, route.distance));
                assert_eq!(shown, model.route(from, to), "seed {seed}, {from} to {to}: {:?}", model.configs);
                let Some(route) = found else { continue };
                *kinds.entry((route.level, route.kind)).or_default() += 1;
                // By any of its first hops a packet arrives.
                let mut ahead: Vec<(usize, BTreeSet<usize>)> = vec![(from, BTreeSet::new())];
                while let Some((at, passed)) = ahead.pop() {
                    if at == to {
                        continue;
                    }
                    assert!(!passed.contains(&at), "seed {seed}, {from} to {to}: a loop at {at}");
                    let next = tables[at].prefixes.get(&locator(to)).expect("a route on the way");
                    let passed: BTreeSet<usize> = passed.into_iter().chain([at]).collect();
                    for hop in &next.first_hops {
                        let adjacent = net.speakers[at].circuits_to(next.level, hop.system).count();
                        assert!(adjacent > 0, "seed {seed}, {at} has no adjacency with {hop:?}");
                        ahead.push((number(*hop), passed.clone()));
                    }
                    assert!(!next.first_hops.is_empty());
                }
            }
        }
    }
    let expected = [
        (Level::One, RouteKind::Up),
        (Level::One, RouteKind::Down),
        (Level::One, RouteKind::OutOfArea),
        (Level::Two, RouteKind::Up),
    ];
    assert!(expected.iter().all(|kind| kinds.get(kind).is_some_and(|count| *count > 10)), "{kinds:?}");
}
