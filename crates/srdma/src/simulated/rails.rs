//! Versions over several rails, each a network of its own, of which some are lost: at the source, or at one receiver.
//! The checkers compute what they expect from the numbers of versions alone.

use super::network::{Faults, Network};
use crate::manifest::{Manifest, Slots};
use crate::memory::Octets;
use crate::publisher::{PublisherEvent, layout};
use crate::rails::{
    Action, Assembled, Assembler, Buffers, Chunks, HEADER, Host, LAYOUT, RailHeader, RailPart, Striper, Verdict,
    slot_octets,
};
use crate::subscriber::{SubscriberEvent, WholeVersion};
use crate::{Buffer, DigestKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_wire::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const CHUNK_OCTETS: u32 = 1500;
const RING: u16 = 4;
const SLOTS: Slots = Slots { count: 2, octets: 1 << 16 };
/// Between two looks at the rails.
const STEP_NS: u64 = 5_000;
/// From the loss of a receiver's link to its eviction, and from the loss of a rail to the source's notice.
const STALL_NS: u64 = 2_000_000;

/// The buffers of a version, which depend on its number alone.
fn content(version: u64) -> Vec<Vec<u8>> {
    let lengths = [version * 977 % 9000, 0, 1, version * 4999 % 7000, 300];
    let octet = |buffer: u64, place: u64| {
        ((version << 40 ^ buffer << 32 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    };
    (0..).zip(lengths).map(|(buffer, length)| (0..length).map(|place| octet(buffer, place)).collect()).collect()
}

fn buffers(version: u64) -> Vec<Buffer> {
    (0..).zip(content(version)).map(|(number, octets): (u32, _)| Buffer::new(format!("b{number}"), octets)).collect()
}

/// A version at the source.
struct Job {
    manifest: Manifest,
    chunks: Chunks,
    buffers: Vec<Arc<Octets>>,
}

impl Job {
    fn new(version: u64, sequence: u64) -> Self {
        let buffers = buffers(version);
        let manifest = Manifest::new(version, sequence, SLOTS, DigestKind::Crc32, layout(&buffers)).expect("fits");
        let chunks = Chunks::cut(&manifest, CHUNK_OCTETS).expect("few");
        Job { manifest, chunks, buffers: buffers.into_iter().map(|buffer| Arc::new(buffer.octets)).collect() }
    }

    fn message(&self, rail: usize, part: RailPart) -> Vec<Buffer> {
        let header = RailHeader {
            version: self.manifest.version(),
            sequence: self.manifest.sequence(),
            part,
            chunks: self.chunks.count(),
            chunk_octets: CHUNK_OCTETS,
            rail: rail as u16,
        };
        let header = Buffer::new(HEADER, header.emit());
        let rest = match part {
            RailPart::Layout => vec![Buffer::new(LAYOUT, self.manifest.emit())],
            RailPart::Chunk(number) => {
                let piece = |piece: &crate::rails::Piece| self.buffers[piece.buffer].part(piece.range.clone());
                let octets = self.chunks.pieces(number).iter().map(piece);
                octets
                    .enumerate()
                    .map(|(index, octets)| Buffer { name: index.to_string(), octets, region: 0 })
                    .collect()
            }
        };
        std::iter::once(header).chain(rest).collect()
    }
}

/// A message in a receiver's slot.
struct Message(WholeVersion);

impl Message {
    fn buffer(&self, index: usize) -> Option<&[u8]> {
        let entry = self.0.manifest.buffers().get(index)?;
        self.0.octets.buffer(entry)
    }
}

impl Buffers for Message {
    fn count(&self) -> usize {
        self.0.manifest.buffers().len() - 1
    }

    fn octets(&self, index: usize) -> Option<&[u8]> {
        self.buffer(index + 1)
    }
}

/// A receiver on all rails.
struct Machine {
    assembler: Assembler,
    /// Messages of each rail that are not taken.
    messages: Vec<VecDeque<Message>>,
    lost: Vec<bool>,
    seen: Vec<u64>,
    rejected: Vec<u64>,
    /// Versions that the application reads, and until when.
    held: Vec<(Vec<u8>, Instant)>,
}

/// What happens to a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The source's link breaks behind this packet.
    Source { rail: usize, packet: u64 },
    /// The link of a receiver breaks at this time.
    Receiver { rail: usize, receiver: usize, at_ns: u64 },
}

struct Rails {
    now: Instant,
    networks: Vec<Network>,
    striper: Striper,
    jobs: VecDeque<Job>,
    hosts: Vec<Machine>,
    members: Vec<BTreeSet<Host>>,
    rng: Pcg64Mcg,
    /// What is to happen: evictions, notices, and answers.
    due: BTreeMap<(Instant, u64), Due>,
    due_made: u64,
    numbers: Vec<u64>,
    published: Vec<u64>,
    reading_ns: u64,
}

enum Due {
    Answer,
    Leaves { rail: usize, receiver: usize },
    SourceNotices { rail: usize },
    ReceiverNotices { rail: usize, receiver: usize },
}

impl Rails {
    fn new(seed: u64, rails: usize, receivers: usize, faults: Faults, reading_ns: u64) -> Self {
        let slots = Slots { count: RING, octets: slot_octets(CHUNK_OCTETS) };
        let network = |rail| Network::with_digest(seed * 16 + rail, slots, receivers, faults, DigestKind::Crc32);
        let host = |_| Machine {
            assembler: Assembler::new(rails),
            messages: (0..rails).map(|_| VecDeque::new()).collect(),
            lost: vec![false; rails],
            seen: Vec::new(),
            rejected: Vec::new(),
            held: Vec::new(),
        };
        let members: BTreeSet<Host> = (0..receivers as u64).map(Host::Number).collect();
        let mut striper = Striper::new(rails);
        striper.start();
        Rails {
            now: Instant::ZERO,
            networks: (0..rails as u64).map(network).collect(),
            striper,
            jobs: VecDeque::new(),
            hosts: (0..receivers).map(host).collect(),
            members: vec![members; rails],
            rng: Pcg64Mcg::seed_from_u64(seed ^ 0x5A5A),
            due: BTreeMap::new(),
            due_made: 0,
            numbers: vec![0; rails],
            published: Vec::new(),
            reading_ns,
        }
    }

    fn publish(&mut self, version: u64, sequence: u64) {
        let job = Job::new(version, sequence);
        self.striper.publish(version, job.chunks.count());
        self.jobs.push_back(job);
    }

    fn schedule(&mut self, after_ns: u64, due: Due) {
        self.due_made += 1;
        self.due.insert((self.now.after_ns(after_ns), self.due_made), due);
    }

    /// Runs until all versions are published, or a time; then the source vanishes, and what it has reported as
    /// published must be there.
    fn run(&mut self, losses: &[Loss], versions: usize, end: Instant) {
        for loss in losses {
            if let Loss::Source { rail, packet } = loss {
                self.networks[*rail].crash_after_packets = Some(*packet);
            }
        }
        let mut losses: Vec<Loss> = losses.to_vec();
        while self.now < end && self.published.len() < versions {
            losses.retain(|loss| !self.happens(*loss));
            self.step();
        }
        self.networks.iter_mut().for_each(|network| network.source.has_crashed = true);
        let end = self.now.after_ns(5 * STALL_NS + 4 * self.reading_ns);
        while self.now < end {
            self.step();
        }
    }

    /// Whether a loss has happened.
    fn happens(&mut self, loss: Loss) -> bool {
        match loss {
            Loss::Source { rail, .. } => {
                let is_lost = self.networks[rail].source.has_crashed;
                if is_lost {
                    let after_ns = self.rng.random_range(1..=STALL_NS);
                    self.schedule(after_ns, Due::SourceNotices { rail });
                }
                is_lost
            }
            Loss::Receiver { at_ns, .. } if self.now < Instant::from_ns(at_ns) => false,
            Loss::Receiver { rail, receiver, .. } => {
                self.networks[rail].receivers[receiver].is_cut = true;
                self.schedule(STALL_NS, Due::Leaves { rail, receiver });
                true
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now.after_ns(STEP_NS);
        for rail in 0..self.networks.len() {
            let hosts = &mut self.hosts;
            self.networks[rail].run_until(self.now, &mut |_, _, events| {
                for (receiver, event) in events {
                    match event {
                        SubscriberEvent::Whole(whole) => hosts[receiver].messages[rail].push_back(Message(whole)),
                        // A rail that was lost in the middle of a message.
                        SubscriberEvent::Rejected { .. } => panic!("rail {rail}, receiver {receiver}: rejected"),
                        SubscriberEvent::Failed(error) => panic!("rail {rail}, receiver {receiver}: {error}"),
                    }
                }
                None
            });
            for (_, event) in std::mem::take(&mut self.networks[rail].source.events) {
                match event {
                    PublisherEvent::Published { .. } => self.striper.acknowledged(rail),
                    PublisherEvent::Slow { .. } => {}
                    PublisherEvent::Failed { failure, .. } => panic!("rail {rail}: {failure}"),
                }
            }
        }
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Due::Answer => self.striper.members(&self.members),
                Due::Leaves { rail, receiver } => {
                    // The controller knows before the nodes do.
                    self.members[rail].remove(&Host::Number(receiver as u64));
                    self.networks[rail].evict(receiver);
                    let after_ns = self.rng.random_range(1..=STALL_NS);
                    self.schedule(after_ns, Due::ReceiverNotices { rail, receiver });
                }
                Due::SourceNotices { rail } => {
                    self.striper.over(rail);
                    self.members[rail].clear();
                    for receiver in 0..self.hosts.len() {
                        let after_ns = self.rng.random_range(1..=STALL_NS);
                        self.schedule(after_ns, Due::ReceiverNotices { rail, receiver });
                    }
                }
                Due::ReceiverNotices { rail, receiver } => self.hosts[receiver].lost[rail] = true,
            }
        }
        for receiver in 0..self.hosts.len() {
            self.work_at_receiver(receiver);
        }
        while let Some(action) = self.striper.poll_action() {
            match action {
                Action::Query => {
                    let after_ns = self.rng.random_range(1..100_000);
                    self.schedule(after_ns, Due::Answer);
                }
                Action::Send { rail, part } => {
                    let message = self.jobs[0].message(rail, part);
                    self.numbers[rail] += 1;
                    self.networks[rail].source.publisher.publish(self.numbers[rail], message).expect("taken");
                }
                Action::Published { version } => {
                    assert_eq!(self.jobs.pop_front().expect("sent").manifest.version(), version);
                    self.published.push(version);
                }
            }
        }
    }

    fn work_at_receiver(&mut self, receiver: usize) {
        let Rails { hosts, networks, now, rng, reading_ns, .. } = self;
        let host = &mut hosts[receiver];
        let (done, held) = std::mem::take(&mut host.held).into_iter().partition(|(_, until)| *until <= *now);
        host.held = held;
        let done: Vec<(Vec<u8>, Instant)> = done;
        done.into_iter().for_each(|(memory, _)| host.assembler.release(memory));
        // As long as something changes: what is held may be taken when another rail has gone on.
        loop {
            let mut is_taken = false;
            for (rail, network) in networks.iter_mut().enumerate() {
                while let Some(message) = host.messages[rail].front() {
                    let header = message.buffer(0).expect("a header");
                    if host.assembler.offer(rail, header, message) == Verdict::Held {
                        break;
                    }
                    let Message(whole) = host.messages[rail].pop_front().expect("there");
                    let version = whole.manifest.version();
                    drop(whole);
                    network.receivers[receiver].subscriber.release(version);
                    is_taken = true;
                }
                if host.lost[rail] && host.messages[rail].is_empty() {
                    host.assembler.over(rail);
                }
            }
            if !is_taken {
                break;
            }
        }
        while let Some(event) = host.assembler.poll_event() {
            match event {
                Assembled::Whole { manifest, memory } => {
                    let found: Vec<Vec<u8>> = manifest
                        .buffers()
                        .iter()
                        .map(|entry| memory[entry.offset as usize..][..entry.length_octets as usize].to_vec())
                        .collect();
                    assert_eq!(found, content(manifest.version()), "receiver {receiver}");
                    host.seen.push(manifest.version());
                    host.held.push((memory, now.after_ns(rng.random_range(0..=*reading_ns))));
                }
                Assembled::Rejected { version, .. } => host.rejected.push(version),
            }
        }
    }
}

const MINUTE: Instant = Instant::from_ns(60_000_000_000);

#[track_caller]
fn check(rails: &Rails, versions: &[u64], case: &str) {
    assert_eq!(rails.published, versions, "{case}");
    for (receiver, host) in rails.hosts.iter().enumerate() {
        assert_eq!((&host.seen[..], &host.rejected[..]), (versions, &[][..]), "{case}, receiver {receiver}");
    }
}

/// Runs a case with three versions; returns the packets that have left each rail's source.
fn three_versions(seed: u64, rails: usize, receivers: usize, faults: Faults, losses: &[Loss]) -> Vec<u64> {
    let mut run = Rails::new(seed, rails, receivers, faults, 300_000);
    (0..3).for_each(|sequence| run.publish(5 + 3 * sequence, sequence));
    run.run(losses, 3, MINUTE);
    check(&run, &[5, 8, 11], &format!("seed {seed}, {rails} rails, {losses:?}"));
    run.networks.iter().map(|network| network.packets_of_source).collect()
}

/// D197: without a loss each rail sends its part, and every chunk is sent once.
#[test]
fn rails_share_a_version() {
    for rails in 1..=4 {
        let packets = three_versions(1, rails, 2, Faults::default(), &[]);
        let (least, most) = (packets.iter().min().expect("rails"), packets.iter().max().expect("rails"));
        // The versions have a few chunks each, the first one of each on the first rail: one more of a dozen packets.
        assert!(most - least <= 3 * 16, "{packets:?}");
        let all: u64 = packets.iter().sum();
        let of_data: usize = [5, 8, 11].into_iter().flat_map(content).map(|buffer| buffer.len()).sum();
        let chunks = of_data as u64 / u64::from(CHUNK_OCTETS) + 3;
        // 256 octets a packet, and for each message begin, end, header and a packet of each of a few buffers.
        assert!(all < of_data as u64 / 256 + (chunks + 3 * rails as u64) * 12, "{packets:?}");
    }
}

/// D197: a rail dies behind each packet of the source.
#[test]
fn a_rail_dies_anywhere() {
    let whole = three_versions(1, 2, 2, Faults::default(), &[]);
    let step = if srdma_testkit::seeds::count(200) < 100 { 7 } else { 1 };
    for packet in (1..=whole[0]).step_by(step) {
        three_versions(1, 2, 2, Faults::default(), &[Loss::Source { rail: 0, packet }]);
    }
}

/// D197: two of four rails die, one of them perhaps while its part of the other's is sent.
#[test]
fn two_of_four_rails_die() {
    for seed in 0..srdma_testkit::seeds::count(100) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let loss = [0.0, 0.01][rng.random_range(0..2)];
        let first = rng.random_range(0..4);
        let second = (first + rng.random_range(1..4)) % 4;
        let losses = [first, second].map(|rail| Loss::Source { rail, packet: rng.random_range(1..120) });
        three_versions(seed, 4, 3, Faults { loss, ..Faults::default() }, &losses);
    }
}

/// D198: a receiver loses a rail that the source and the other receivers have; the same receiver, or another one, loses
/// another rail, so that no rail has all; and the source loses a rail as well.
#[test]
fn receivers_lose_rails_alone() {
    for seed in 0..srdma_testkit::seeds::count(150) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let loss = [0.0, 0.01][rng.random_range(0..2)];
        let rails = rng.random_range(2..=4);
        let mut losses = vec![Loss::Receiver { rail: 0, receiver: 0, at_ns: rng.random_range(0..1_500_000) }];
        if rng.random_bool(0.6) {
            // One that keeps a rail.
            let receiver = if rails > 2 { rng.random_range(0..3) } else { 1 };
            losses.push(Loss::Receiver { rail: 1, receiver, at_ns: rng.random_range(0..4_000_000) });
        }
        if rails > 2 && rng.random_bool(0.5) {
            // Perhaps that of the receiver: what it had acknowledged before.
            let rail = if rng.random_bool(0.5) { 0 } else { rails - 1 };
            losses.push(Loss::Source { rail, packet: rng.random_range(1..150) });
        }
        if rails == 3 && losses.len() == 3 && !matches!(losses[2], Loss::Source { rail: 0, .. }) {
            // Both receivers' losses and the source's may leave one without a rail.
            losses.remove(0);
        }
        three_versions(seed, rails, 3, Faults { loss, ..Faults::default() }, &losses);
    }
}

/// A receiver that dies on all rails is evicted from one after the other: the others have all versions.
#[test]
fn a_receiver_that_dies_holds_nothing() {
    for seed in 0..srdma_testkit::seeds::count(50) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut run = Rails::new(seed, 2, 3, Faults::default(), 300_000);
        (0..3).for_each(|sequence| run.publish(5 + 3 * sequence, sequence));
        let at_ns = rng.random_range(0..1_500_000);
        let losses = [0, 1].map(|rail| Loss::Receiver { rail, receiver: 2, at_ns: at_ns + rail as u64 * 400_000 });
        run.run(&losses, 3, MINUTE);
        assert_eq!(run.published, [5, 8, 11], "seed {seed}");
        for receiver in 0..2 {
            assert_eq!(run.hosts[receiver].seen, [5, 8, 11], "seed {seed}, receiver {receiver}");
        }
        let seen = &run.hosts[2].seen;
        assert!([5, 8, 11].starts_with(seen), "seed {seed}: {seen:?}");
    }
}

/// An application that reads for long holds the source, and nothing is lost.
#[test]
fn a_slow_application_holds_all_rails() {
    let mut run = Rails::new(1, 3, 2, Faults::default(), 20_000_000);
    (0..8).for_each(|sequence| run.publish(sequence + 1, sequence));
    run.run(&[Loss::Source { rail: 1, packet: 100 }], 8, MINUTE);
    check(&run, &[1, 2, 3, 4, 5, 6, 7, 8], "slow");
}
