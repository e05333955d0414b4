//! Speakers joined by links in virtual time; a link may lose frames.

use srdma_isis::tlv::{AdjacencyState, EndSid, Locator};
use srdma_isis::{Adjacency, CircuitConfig, CircuitId, Config, Pdu, PduKind, Speaker, SystemId, frame};
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
    peers: BTreeMap<End, End>,
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
        if pdu.kind == PduKind::Hello {
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
    config.locators = vec![Locator { metric: 0, is_down: false, algorithm: 0, prefix, sids }];
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
            (at, self.speakers[at].add_circuit(self.now, circuit))
        });
        self.peers.insert(a, b);
        self.peers.insert(b, a);
    }

    /// Replaces a speaker by one without state, with the same circuits.
    pub(crate) fn restart(&mut self, at: usize, config: Config, metric: u32) {
        self.speakers[at] = Speaker::new(config, 1, at as u64);
        for _ in self.peers.keys().filter(|(speaker, _)| *speaker == at) {
            let mut circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, at as u8, 0]));
            circuit.metric = metric;
            self.speakers[at].add_circuit(self.now, circuit);
        }
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
                let to = self.peers[&(at, circuit)];
                let is_cut = self.cut.contains(&(at, to.0)) || self.cut.contains(&(to.0, at));
                let is_lost =
                    self.lost_one_in > 0 && ((self.frames * 2_654_435_761) >> 7).is_multiple_of(self.lost_one_in);
                if !is_cut && !is_lost {
                    if let Some(tap) = &mut self.tap {
                        tap.record(&frame);
                    }
                    for (number, ahead) in self.overtake.iter().flat_map(|overtake| overtake(&frame)).enumerate() {
                        let at = self.now.after_ns(DELAY_NS / 2);
                        self.on_wire.insert((at, self.frames << 8 | number as u64), (to, ahead));
                    }
                    self.on_wire.insert((self.now.after_ns(DELAY_NS), self.frames << 8), (to, frame));
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
        self.on_wire.insert((self.now, self.frames << 8), (to, frame));
    }

    /// Whether every circuit of a speaker has its adjacency.
    pub(crate) fn is_adjacent(&self, at: usize) -> bool {
        let circuits = self.peers.keys().filter(|(speaker, _)| *speaker == at);
        let up = |adjacency: &Adjacency| adjacency.state == AdjacencyState::Up;
        circuits.clone().all(|(_, circuit)| self.speakers[at].adjacency(*circuit).is_some_and(up))
    }

    /// The database of a speaker: every LSP's id, number and checksum.
    pub(crate) fn has(&self, at: usize) -> Vec<(String, u32, u16)> {
        let stored = self.speakers[at].database().iter().filter(|(_, stored)| stored.lifetime_s(self.now) > 0);
        stored.map(|(id, stored)| (id.to_string(), stored.lsp().entry.sequence, stored.lsp().entry.checksum)).collect()
    }
}
