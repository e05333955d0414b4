//! Speakers joined by links and LANs in virtual time; all of them may lose frames.

use srdma_isis::tlv::{AdjacencyState, EndSid, Leak, Locator, TopologyId};
use srdma_isis::{CircuitConfig, CircuitId, CircuitType, Config, Level, Pdu, PduKind, Speaker, SystemId, frame};
use srdma_wire::{Instant, MacAddress, Prefix};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

const DELAY_NS: u64 = 1_000_000;

/// One end of a link.
pub(crate) type End = (usize, CircuitId);

/// The frames to send ahead of a frame.
pub(crate) type Overtake = fn(&[u8]) -> Vec<Vec<u8>>;

#[derive(Default)]
pub(crate) struct Net {
    pub(crate) speakers: Vec<Speaker>,
    /// The ends that hear each end.
    peers: BTreeMap<End, Vec<End>>,
    circuits: BTreeMap<End, CircuitConfig>,
    lans: u8,
    /// Speakers that neither send nor receive.
    pub(crate) dead: Vec<usize>,
    on_wire: BTreeMap<(Instant, u64), (End, Vec<u8>)>,
    pub(crate) now: Instant,
    frames: u64,
    /// One frame in so many is lost; 0: none.
    pub(crate) lost_one_in: u64,
    pub(crate) cut: Vec<(usize, usize)>,
    /// LSPs and SNPs that an attacker on all links has recorded, the last ones; `None` without an attacker.
    pub(crate) tap: Option<Tap>,
    /// Frames that an attacker sends on a link ahead of one that it has seen there.
    pub(crate) overtake: Option<Overtake>,
}

/// LSPs and SNPs of a recording, in their order.
#[derive(Default)]
pub(crate) struct Tap(VecDeque<Vec<u8>>);

impl Tap {
    /// So many are kept.
    const KEPT: usize = 500;

    fn record(&mut self, frame: &[u8]) {
        let pdu = Pdu::parse(frame::unwrap(frame).expect("IS-IS")).expect("a PDU");
        if matches!(pdu.kind, PduKind::Hello | PduKind::LanHello(_)) {
            return;
        }
        self.0.push_back(frame.to_vec());
        if self.0.len() > Self::KEPT {
            self.0.pop_front();
        }
    }
}

pub(crate) fn system(number: usize) -> SystemId {
    let [high, low] = (number as u16).to_be_bytes();
    SystemId([0, 0, 0, 0, high, low])
}

pub(crate) fn locator(number: usize) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x5f00, 0, number as u16, 0, 0, 0, 0, 0), 48).unwrap()
}

/// A system whose locator has one uN.
pub(crate) fn config(number: usize) -> Config {
    let mut config = Config::new(system(number), vec![vec![0x49, 0, 1]], &format!("node{number}"));
    let prefix = locator(number);
    let sids = vec![EndSid { behavior: 48, sid: prefix.address(), structure: None }];
    let topology = TopologyId::STANDARD;
    config.locators = vec![Locator { topology, metric: 0, leak: Leak::None, algorithm: 0, prefix, sids }];
    config
}

/// The same system in the topology of IPv6.
pub(crate) fn config_of_ipv6(number: usize) -> Config {
    let mut config = config(number);
    config.topology = TopologyId::IPV6_UNICAST;
    config.locators.iter_mut().for_each(|locator| locator.topology = TopologyId::IPV6_UNICAST);
    config
}

impl Net {
    pub(crate) fn add(&mut self, config: Config) -> usize {
        self.speakers.push(Speaker::new(config, 1, self.speakers.len() as u64));
        self.speakers.len() - 1
    }

    pub(crate) fn join(&mut self, one: usize, other: usize, metric: u32) {
        let [a, b] = [one, other].map(|at| {
            let mut circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, at as u8, other as u8]));
            circuit.metric = metric;
            self.add_circuit(at, circuit)
        });
        self.peers.insert(a, vec![b]);
        self.peers.insert(b, vec![a]);
    }

    /// A LAN of speakers with their priorities; the last octet of a MAC address is the speaker's number.
    pub(crate) fn join_lan(&mut self, members: &[(usize, u8)], metric: u32) {
        let lan = self.lans;
        self.lans += 1;
        let ends: Vec<End> = members
            .iter()
            .map(|(at, priority)| {
                let mut circuit = CircuitConfig::new(MacAddress([2, 0, 1, lan, 0, *at as u8]));
                circuit.kind = CircuitType::Broadcast { priority: *priority };
                circuit.metric = metric;
                self.add_circuit(*at, circuit)
            })
            .collect();
        for end in &ends {
            self.peers.insert(*end, ends.iter().copied().filter(|other| other != end).collect());
        }
    }

    /// A circuit without a system at its other end.
    pub(crate) fn open_end(&mut self, at: usize) -> End {
        let circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, at as u8, 0xFF]));
        self.add_circuit(at, circuit)
    }

    /// Replaces a speaker by one without state, with the same circuits.
    pub(crate) fn restart(&mut self, at: usize, config: Config) {
        self.speakers[at] = Speaker::new(config, 1, at as u64);
        for (_, circuit) in self.circuits.iter().filter(|((speaker, _), _)| *speaker == at) {
            self.speakers[at].add_circuit(self.now, circuit.clone());
        }
    }

    fn add_circuit(&mut self, at: usize, circuit: CircuitConfig) -> End {
        let end = (at, self.speakers[at].add_circuit(self.now, circuit.clone()));
        self.circuits.insert(end, circuit);
        end
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        let end = self.now.after_ns(ms * 1_000_000);
        loop {
            self.collect();
            let deadlines = self.speakers.iter().filter_map(Speaker::next_deadline);
            let arrival = self.on_wire.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = deadlines.chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.on_wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let ((at, circuit), frame) = entry.remove();
                self.speakers[at].receive(self.now, circuit, &frame);
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
        for (at, speaker) in self.speakers.iter_mut().enumerate() {
            while let Some((circuit, frame)) = speaker.poll_transmit() {
                self.frames += 1;
                // An end without a peer is that of a test.
                let Some(peers) = self.peers.get(&(at, circuit)) else { continue };
                for (copy, to) in peers.iter().enumerate() {
                    let number = self.frames << 16 | (copy as u64) << 8;
                    let is_cut = self.cut.contains(&(at, to.0)) || self.cut.contains(&(to.0, at));
                    let is_dead = self.dead.contains(&at) || self.dead.contains(&to.0);
                    let chance = (self.frames + copy as u64 * 7_919) * 2_654_435_761;
                    let is_lost = self.lost_one_in > 0 && (chance >> 7).is_multiple_of(self.lost_one_in);
                    if is_cut || is_dead || is_lost {
                        continue;
                    }
                    if let Some(tap) = &mut self.tap {
                        tap.record(&frame);
                    }
                    for (ahead, octets) in self.overtake.iter().flat_map(|overtake| overtake(&frame)).enumerate() {
                        let at = self.now.after_ns(DELAY_NS / 2);
                        self.on_wire.insert((at, number | ahead as u64), (*to, octets));
                    }
                    self.on_wire.insert((self.now.after_ns(DELAY_NS), number), (*to, frame.clone()));
                }
            }
        }
    }

    /// The frames that an attacker has recorded.
    pub(crate) fn recorded(&self) -> Vec<Vec<u8>> {
        self.tap.iter().flat_map(|tap| tap.0.iter().cloned()).collect()
    }

    /// All ends of links.
    pub(crate) fn ends(&self) -> Vec<End> {
        self.peers.keys().copied().collect()
    }

    /// A frame of an attacker arrives at an end of a link.
    pub(crate) fn inject(&mut self, to: End, frame: Vec<u8>) {
        self.frames += 1;
        self.on_wire.insert((self.now, self.frames << 16), (to, frame));
    }

    /// Whether every circuit of a speaker has its adjacency.
    pub(crate) fn is_adjacent(&self, at: usize) -> bool {
        let circuits = self.peers.keys().filter(|(speaker, _)| *speaker == at);
        let up = |adjacency: &srdma_isis::Adjacency| adjacency.state == AdjacencyState::Up;
        circuits.clone().all(|(_, circuit)| self.speakers[at].adjacency(Level::Two, *circuit).is_some_and(up))
    }

    /// The database of a speaker: every LSP's id, number and checksum.
    pub(crate) fn has(&self, at: usize) -> Vec<(String, u32, u16)> {
        let stored =
            self.speakers[at].database(Level::Two).iter().filter(|(_, stored)| stored.lifetime_s(self.now) > 0);
        stored.map(|(id, stored)| (id.to_string(), stored.lsp().entry.sequence, stored.lsp().entry.checksum)).collect()
    }
}
