//! Speakers joined by links in virtual time; all of them may lose packets.

use srdma_isis::tlv::{CapabilityFlags, EndSid};
use srdma_ospf::lsa::{LsType, PrefixEntry, PrefixOptions};
use srdma_ospf::srv6::{Locator, RouteType};
use srdma_ospf::{CircuitConfig, CircuitId, Config, LsaHeader, RouterId, Speaker};
use srdma_wire::{Instant, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const DELAY_NS: u64 = 1_000_000;

/// One end of a link.
pub(crate) type End = (usize, CircuitId);

/// Numbers below a limit, by chance.
pub(crate) fn chance(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    }
}

/// A packet on its way.
struct OnWire {
    to: End,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    octets: Vec<u8>,
}

pub(crate) struct Net {
    pub(crate) speakers: Vec<Speaker>,
    peers: BTreeMap<End, End>,
    circuits: BTreeMap<End, CircuitConfig>,
    on_wire: BTreeMap<(Instant, u64), OnWire>,
    pub(crate) now: Instant,
    packets: u64,
    below: Box<dyn FnMut(u64) -> u64>,
    /// Packets in a thousand that are lost, and as many that are doubled and late.
    pub(crate) lost_per_mille: u64,
    pub(crate) cut: Vec<(usize, usize)>,
    /// Speakers that neither send nor receive.
    pub(crate) dead: Vec<usize>,
}

pub(crate) fn router(number: usize) -> RouterId {
    RouterId(0x0A00_0000 + number as u32 + 1)
}

pub(crate) fn locator(number: usize) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x5f00, 0, number as u16, 0, 0, 0, 0, 0), 48).unwrap()
}

pub(crate) fn loopback(number: usize) -> Prefix {
    Prefix::host(Ipv6Addr::new(0x2001, 0xdb8, 0xff, number as u16, 0, 0, 0, 1))
}

/// A router whose locator has one uN.
pub(crate) fn config(number: usize) -> Config {
    let prefix = locator(number);
    let sids = vec![EndSid { behavior: 48, sid: prefix.address(), structure: None }];
    let route_type = RouteType::IntraArea;
    let options = PrefixOptions::LOCAL_ADDRESS;
    Config {
        srv6: Some(CapabilityFlags::OAM),
        locators: vec![Locator { route_type, algorithm: 0, options: 0, metric: 0, prefix, sids }],
        prefixes: vec![PrefixEntry { prefix: loopback(number), options, metric: 0 }],
        ..Config::new(router(number), &format!("node{number}"))
    }
}

impl Net {
    pub(crate) fn new(seed: u64) -> Self {
        Net {
            speakers: Vec::new(),
            peers: BTreeMap::new(),
            circuits: BTreeMap::new(),
            on_wire: BTreeMap::new(),
            now: Instant::from_ns(1_000_000_000),
            packets: 0,
            below: Box::new(chance(seed)),
            lost_per_mille: 0,
            cut: Vec::new(),
            dead: Vec::new(),
        }
    }

    pub(crate) fn row(count: usize) -> Self {
        let mut net = Net::new(1);
        (0..count).for_each(|number| {
            net.add(config(number));
        });
        (1..count).for_each(|number| net.join(number - 1, number, 10));
        net
    }

    pub(crate) fn add(&mut self, config: Config) -> usize {
        self.speakers.push(Speaker::new(config));
        self.speakers.len() - 1
    }

    pub(crate) fn join(&mut self, one: usize, other: usize, metric: u16) {
        let [a, b] = [one, other].map(|at| {
            let number = self.circuits.len() as u16;
            let address = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, at as u16, number);
            let circuit = CircuitConfig { metric, ..CircuitConfig::new(address) };
            let end = (at, self.speakers[at].add_circuit(self.now, circuit.clone()));
            self.circuits.insert(end, circuit);
            end
        });
        self.peers.insert(a, b);
        self.peers.insert(b, a);
    }

    /// Replaces a speaker by one without state, with the same circuits.
    pub(crate) fn restart(&mut self, at: usize, config: Config) {
        self.speakers[at] = Speaker::new(config);
        for (_, circuit) in self.circuits.iter().filter(|((speaker, _), _)| *speaker == at) {
            self.speakers[at].add_circuit(self.now, circuit.clone());
        }
    }

    pub(crate) fn run_s(&mut self, seconds: u64) {
        let end = self.now.after_ns(seconds * 1_000_000_000);
        loop {
            self.collect();
            let deadlines = self.speakers.iter().filter_map(Speaker::next_deadline);
            let arrival = self.on_wire.keys().next().map(|(at, _)| *at);
            let Some(next) = deadlines.chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.on_wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let OnWire { to: (at, circuit), source, destination, octets } = entry.remove();
                if !self.dead.contains(&at) {
                    self.speakers[at].receive(self.now, circuit, source, destination, &octets);
                }
            }
            for speaker in &mut self.speakers {
                if speaker.next_deadline().is_some_and(|at| at <= self.now) {
                    speaker.tick(self.now);
                }
            }
        }
        self.now = end;
    }

    fn collect(&mut self) {
        for at in 0..self.speakers.len() {
            while let Some(sent) = self.speakers[at].poll_transmit() {
                let Some(to) = self.peers.get(&(at, sent.circuit)).copied() else { continue };
                let is_cut = self.cut.contains(&(at, to.0)) || self.cut.contains(&(to.0, at));
                let copies = match (self.below)(1000) {
                    _ if is_cut || self.dead.contains(&at) => 0,
                    draw if draw < self.lost_per_mille => 0,
                    draw if draw < 2 * self.lost_per_mille => 2,
                    _ => 1,
                };
                let source = self.circuits[&(at, sent.circuit)].address;
                for copy in 0..copies {
                    // A second copy is overtaken by what follows.
                    let late_ns = copy * (self.below)(2_000_000_000);
                    self.packets += 1;
                    let (destination, octets) = (sent.destination, sent.octets.clone());
                    let on_wire = OnWire { to, source, destination, octets };
                    self.on_wire.insert((self.now.after_ns(DELAY_NS + late_ns), self.packets), on_wire);
                }
            }
        }
    }

    pub(crate) fn is_full(&self, end: End) -> bool {
        self.speakers[end.0].neighbour(end.1).is_some_and(|neighbour| neighbour.is_full())
    }

    /// The LSAs of the area at a speaker, without their ages.
    pub(crate) fn has(&self, at: usize) -> Vec<LsaHeader> {
        let of_area = self.speakers[at].database().iter().filter(|(place, _)| place.circuit.is_none());
        of_area.map(|(_, stored)| LsaHeader { age_s: 0, ..stored.lsa().header() }).collect()
    }

    /// The routers whose LSAs of one kind are at a speaker.
    pub(crate) fn routers(&self, at: usize, kind: LsType) -> Vec<RouterId> {
        let of_kind = self.speakers[at].database().valid().filter(|(place, _)| place.key.kind == kind);
        of_kind.map(|(place, _)| place.key.router).collect()
    }
}
