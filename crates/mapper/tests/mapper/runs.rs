//! Runs of a mapper in fabrics whose links fail, flap and lose packets (D256).

use crate::checker::Checker;
use crate::network::{Fate, Network};
use srdma_fabric::{Encoding, FatTree, HostId, LeafSpine, LinkId, NodeId, Planes, SidPlan, Speeds, Template, Topology};
use srdma_mapper::{Config, Mapper, Paths};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const MS: u64 = 1_000_000;
const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 0, 0, 0, 1);

struct Run<'t> {
    topology: &'t Topology,
    paths: Paths,
    mapper: Mapper,
    network: Network<'t>,
    checker: Checker,
    now_ns: u64,
    /// Probes on their way back, by time and number.
    returning: BTreeMap<(u64, u64), Vec<u8>>,
}

fn config(seed: u64) -> Config {
    let (interval_ns, timeout_ns, gap_ns) = (10 * MS, 2 * MS, 20_000);
    Config { interval_ns, timeout_ns, gap_ns, flap_window_ns: 2_000 * MS, seed, ..Config::new(ADDRESS) }
}

impl<'t> Run<'t> {
    fn new(topology: &'t Topology, seed: u64) -> Self {
        let sids = SidPlan::new(topology, SidPlan::BLOCK).unwrap();
        let paths = Paths::new(topology, &sids, HostId(0), Encoding::Nodes).unwrap();
        let mapper = Mapper::new(Instant::ZERO, config(seed), &paths).unwrap();
        let checker = Checker::new(&config(seed), paths.iter().map(|path| path.links.clone()));
        let network = Network::new(topology, HostId(0), ADDRESS.octets(), seed);
        Run { topology, paths, mapper, network, checker, now_ns: 0, returning: BTreeMap::new() }
    }

    /// Goes on to a time, checking on the way.
    fn until(&mut self, end_ns: u64) {
        let mut check_at = self.now_ns;
        loop {
            let due = self.mapper.next_deadline().map_or(u64::MAX, |due| due.as_ns());
            let arrival = self.returning.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
            let next = due.max(self.now_ns).min(arrival).min(check_at);
            if next > end_ns {
                self.now_ns = end_ns;
                return;
            }
            self.now_ns = next;
            let now = Instant::from_ns(next);
            while let Some(entry) = self.returning.first_entry().filter(|entry| entry.key().0 <= next) {
                let change = self.mapper.receive(now, &entry.remove());
                change.iter().for_each(|change| self.checker.changed(change));
            }
            self.mapper.tick(now).iter().for_each(|change| self.checker.changed(change));
            while let Some((path, packet)) = self.mapper.poll(now) {
                let fate = self.network.carry(next, &packet);
                self.checker.sent(next, path, &fate);
                if let Fate::Returns(at, packet) = fate {
                    self.returning.insert((at, self.checker.sent), packet);
                }
            }
            if next == check_at {
                self.checker.check(next, &self.network, |path| self.mapper.is_denied(path));
                check_at += 5 * MS;
            }
        }
    }

    fn link(&self, name: &str) -> LinkId {
        self.topology.links_named(name).unwrap()[0]
    }

    fn failed_links(&self) -> Vec<LinkId> {
        self.paths.failed_links(|path| self.mapper.is_denied(path))
    }

    fn host(&self, name: &str) -> HostId {
        let Some(NodeId::Host(host)) = self.topology.node(name) else { panic!("{name} is no host") };
        host
    }

    /// The values to a host that are excluded.
    fn excluded(&self, to: &str) -> Vec<u32> {
        let values = self.paths.excluded(self.host(to), |path| self.mapper.is_denied(path)).unwrap();
        values.into_iter().filter(|(_, is_excluded)| *is_excluded).map(|(value, _)| value.0).collect()
    }
}

fn leaf_spine() -> Topology {
    LeafSpine { leaves: 3, spines: 3, hosts_per_leaf: 2, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn planes() -> Topology {
    Planes { planes: 2, leaves: 3, spines: 2, hosts_per_leaf: 1, speeds: Speeds::DEFAULT }.topology().unwrap()
}

/// Paths between pods need an SRH there and back.
fn fat_tree() -> Topology {
    FatTree { tiers: 3, k: 4, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap()
}

#[test]
fn all_paths_and_the_switches_on_the_way_are_probed() {
    for (topology, expected) in [
        // Leaf 1; 3 spines; 2 leaves by each.
        (leaf_spine(), 1 + 3 + 6),
        // In each plane: a leaf, 2 spines, 2 leaves by each.
        (planes(), 2 * (1 + 2 + 4)),
        // An edge; 2 aggregation switches, and by each 1 edge, 2 cores, 3 pods by each core, 2 edges in each.
        (fat_tree(), 1 + 2 * (1 + 1 + 2 * (1 + 3 * (1 + 2)))),
    ] {
        let run = Run::new(&topology, 1);
        assert_eq!(run.paths.len(), expected);
        let template = Template::new(&topology).unwrap();
        // Every path to every host ends at one that is probed.
        for to in topology.host_ids().skip(1) {
            for (_, path) in template.paths(HostId(0), to).unwrap() {
                let links = &path.links[..path.links.len() - 1];
                assert!(run.paths.iter().any(|own| own.links == links && own.is_whole));
            }
        }
    }
}

#[test]
fn without_failures_nothing_is_denied() {
    for topology in [leaf_spine(), planes(), fat_tree()] {
        let mut run = Run::new(&topology, 2);
        run.until(1_000 * MS);
        assert_eq!((run.checker.denied, run.failed_links()), (0, Vec::new()));
        let counters = *run.mapper.counters();
        assert_eq!((counters.probes_sent, counters.probes_lost), (run.checker.sent, 0));
        assert!(counters.probes_returned + run.returning.len() as u64 == run.checker.returned);
        // A hundred intervals.
        let expected = 100 * run.paths.len() as u64;
        assert!((expected * 9 / 10..expected * 11 / 10).contains(&counters.probes_sent), "{counters:?}");
        assert!(run.mapper.reports().all(|path| path.round_trip_ns.is_some_and(|ns| ns < MS)));
    }
}

/// A cut link is found, whichever it is, its paths are denied in time, and allowed after it works again.
#[test]
fn every_failed_link_is_found() {
    for topology in [leaf_spine(), planes(), fat_tree()] {
        let used: Vec<LinkId> = {
            let run = Run::new(&topology, 3);
            let mut links: Vec<LinkId> = run.paths.iter().flat_map(|path| path.links.clone()).collect();
            links.sort_unstable();
            links.dedup();
            links
        };
        for link in used {
            let mut run = Run::new(&topology, 3);
            run.network.fail(link, 100 * MS, 600 * MS);
            run.until(100 * MS + run.checker.deny_within_ns());
            assert_eq!(run.failed_links(), [link], "{}", topology.link_name(link));
            run.until(590 * MS);
            assert_eq!(run.failed_links(), [link], "{}", topology.link_name(link));
            run.until(600 * MS + run.checker.allow_within_ns());
            assert_eq!(run.failed_links(), [], "{}", topology.link_name(link));
            assert_eq!(run.checker.denied, run.checker.allowed);
            assert!(run.checker.denied > 0);
        }
    }
}

/// Steering excludes the values of denied paths, and none when all are denied.
#[test]
fn values_of_denied_paths_are_excluded() {
    let topology = leaf_spine();
    let mut run = Run::new(&topology, 4);
    let [up, far, own] = ["leaf1-spine2", "leaf3-spine3", "h1.1-leaf1"].map(|name| run.link(name));
    run.network.fail(up, 100 * MS, 5_000 * MS);
    run.network.fail(far, 500 * MS, 5_000 * MS);
    run.network.fail(own, 1_000 * MS, 1_300 * MS);
    run.until(400 * MS);
    assert_eq!((run.excluded("h2.1"), run.excluded("h3.2")), (vec![1], vec![1]));
    assert_eq!(run.excluded("h1.2"), [], "the path within the leaf");
    run.until(900 * MS);
    assert_eq!((run.excluded("h2.1"), run.excluded("h3.2")), (vec![1], vec![1, 2]));
    run.until(1_300 * MS);
    assert_eq!((run.excluded("h2.1"), run.excluded("h1.2")), (Vec::new(), Vec::new()), "all are denied");
    assert_eq!(run.failed_links(), [own]);
    run.until(3_900 * MS);
    assert_eq!((run.excluded("h2.1"), run.excluded("h3.2")), (vec![1], vec![1, 2]));
    assert_eq!(run.failed_links(), [up, far]);
}

/// Each denial soon after the one before doubles the probes that must return.
#[test]
fn a_flapping_link_stays_out() {
    let topology = leaf_spine();
    let mut run = Run::new(&topology, 5);
    let link = run.link("leaf1-spine1");
    (0..40).for_each(|flap| run.network.fail(link, flap * 250 * MS, flap * 250 * MS + 50 * MS));
    run.until(10_000 * MS);
    let early = run.checker.denied;
    // 40 flaps of three paths; without damping each would deny and allow all.
    assert!((3..40).contains(&early), "{early} denials");
    run.until(10_000 * MS + run.checker.allow_within_ns());
    assert_eq!((run.failed_links(), run.checker.denied - run.checker.allowed), (Vec::new(), 0));
}

/// Single losses deny nothing; the checker sees that what is denied had losses in a row.
#[test]
fn random_failures_flaps_and_losses_are_judged() {
    let seeds = srdma_testkit::seeds::count(60);
    let mut denied = 0;
    for seed in 0..seeds {
        let topology = match seed % 3 {
            0 => leaf_spine(),
            1 => planes(),
            _ => fat_tree(),
        };
        let mut run = Run::new(&topology, seed);
        let mut random = Stream::new(seed, "failures");
        for link in topology.link_ids() {
            match random.below(6) {
                0 => {
                    let from = random.below(2_000 * MS);
                    run.network.fail(link, from, from + random.below(1_500 * MS));
                }
                1 => {
                    let (mut at, length) = (random.below(1_000 * MS), 1 + random.below(100 * MS));
                    while at < 2_500 * MS {
                        run.network.fail(link, at, at + length);
                        at += length + random.below(300 * MS);
                    }
                }
                2 => run.network.lose(link, 0.02),
                _ => {}
            }
        }
        for step in 1..=40 {
            run.until(step * 100 * MS);
            for to in topology.host_ids().skip(1) {
                let values = run.paths.excluded(to, |path| run.mapper.is_denied(path)).unwrap();
                let template = Template::new(&topology).unwrap();
                let dead = |value| {
                    let links = template.expand(HostId(0), to, value).unwrap().links;
                    run.checker.is_dead(run.now_ns, &run.network, &links[..links.len() - 1])
                };
                if values.iter().any(|(value, _)| !dead(*value)) {
                    // A packet takes no path that has been dead for long while another may work.
                    let taken = values.iter().filter(|(_, is_excluded)| !is_excluded).map(|(value, _)| *value);
                    let taken: Vec<_> = taken.collect();
                    assert!(taken.len() == values.len() || !taken.into_iter().any(dead), "seed {seed}");
                }
            }
        }
        denied += run.checker.denied;
        let counters = run.mapper.counters();
        assert_eq!((counters.denied, counters.allowed), (run.checker.denied, run.checker.allowed), "seed {seed}");
        assert_eq!((counters.probes_sent, counters.probes_late), (run.checker.sent, 0), "seed {seed}");
        assert_eq!(counters.probes_foreign, 0, "seed {seed}");
    }
    assert!(denied > seeds, "links fail in these runs: {denied} denials");
}
