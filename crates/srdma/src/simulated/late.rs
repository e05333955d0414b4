//! A receiver that joins late, and gets the version before its first one by unicast (D190), in virtual time: at any
//! time beside the versions that come with the group.

use super::network::{Faults, Network, region};
use crate::current::{Current, FetchError, Piece};
use crate::publisher::PublisherEvent;
use crate::subscriber::{Rejection, SubscriberEvent};
use crate::{Buffer, DigestKind, Slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_host::SessionState;
use srdma_wire::Instant;

const SLOT_OCTETS: u64 = 16 << 10;
const MINUTE: Instant = Instant::from_ns(60_000_000_000);
const VERSIONS: u64 = 40;
const SEEDS: u64 = 300;

fn octets(version: u64) -> Vec<u8> {
    (0..9_000_u64).map(|place| (version * 31 + place * 7 / 3) as u8).collect()
}

fn slots(count: u16) -> Slots {
    Slots { count, octets: SLOT_OCTETS }
}

/// What the late receiver has seen, and how its fetch goes on.
struct Late {
    rng: Pcg64Mcg,
    pieces: Vec<Piece>,
    at: Instant,
    whole: Vec<u64>,
    rejected: Vec<(Option<u64>, Rejection)>,
}

impl Late {
    fn new(rng: Pcg64Mcg, pieces: Vec<Piece>, at: Instant) -> Self {
        Late { rng, pieces, at, whole: Vec::new(), rejected: Vec::new() }
    }

    /// Runs the network, in which receiver 1 is the late one; both drop versions at once.
    fn run(&mut self, network: &mut Network, end: Instant, apart_ns: u64) {
        network.run_until(end, &mut |now, receivers, events| {
            for (index, event) in events {
                match event {
                    SubscriberEvent::Whole(whole) => {
                        let version = whole.manifest.version();
                        let entry = &whole.manifest.buffers()[0];
                        let found = whole.octets.buffer(entry).expect("inside");
                        assert!(found == octets(version), "version {version} at receiver {index}");
                        if index == 1 {
                            self.whole.push(version);
                        }
                        drop(whole);
                        receivers[index].subscriber.release(version);
                    }
                    SubscriberEvent::Rejected { version, why } => {
                        assert_eq!(index, 1, "version {version:?}: {why}");
                        self.rejected.push((version, why));
                    }
                    SubscriberEvent::Failed(error) => panic!("receiver {index}: {error}"),
                }
            }
            while now >= self.at && !self.pieces.is_empty() {
                if !receivers[1].take_piece(self.pieces.remove(0)) {
                    self.pieces.clear();
                }
                self.at = now.after_ns(self.rng.random_range(0..=apart_ns));
            }
            (!self.pieces.is_empty()).then_some(self.at)
        });
    }
}

fn pieces(current: &Current) -> Vec<Piece> {
    let entry = &current.manifest.buffers()[0];
    let octets = octets(current.manifest.version());
    let parts = octets.chunks(1_000).enumerate();
    let parts = parts.map(|(index, part)| Piece::Octets {
        region: 0,
        offset: entry.offset + 1_000 * index as u64,
        octets: part.into(),
    });
    [Piece::Begin(current.manifest.clone())].into_iter().chain(parts).chain([Piece::End]).collect()
}

/// A network in which receiver 1 has joined after some versions, the version before, and the number of that.
fn joined_late(seed: u64, count: u16) -> (Network, Current, u64) {
    let faults = Faults { loss: 0.01, ..Faults::default() };
    let mut network = Network::with_current(seed, slots(count), 2, faults, DigestKind::Sha256, true);
    for version in 1..=VERSIONS {
        network.source.publisher.publish(version, vec![Buffer::new("a", octets(version))]).expect("taken");
    }
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut all = Late::new(rng.clone(), Vec::new(), MINUTE);
    let dies_at = Instant::from_ns(rng.random_range(50_000..400_000));
    all.run(&mut network, dies_at, 0);
    network.evict(1);
    network.source.control.state = SessionState::Draining;
    all.run(&mut network, dies_at.after_ns(1_000_000_000), 0);
    assert!(network.source.control.progress.is_drained, "seed {seed}");
    let published = network.source.events.iter().filter_map(|(_, event)| match event {
        PublisherEvent::Published { version } => Some(*version),
        PublisherEvent::Slow { .. } | PublisherEvent::Failed { .. } => None,
    });
    let before = published.max().expect("a version was published before");
    assert!(before < VERSIONS, "seed {seed}: nothing is left to see");
    let current = network.source.publisher.take_current().expect("it is kept");
    assert_eq!(current.manifest.version(), before, "seed {seed}");
    network.replace_receiver(1, vec![region(slots(count).region_octets().expect("in range") as usize)]);
    network.source.control.state = SessionState::Sending;
    (network, current, before)
}

/// However fast it comes, the versions are in order, all that follow are seen, and none is seen twice: the one before
/// is whole before the next one, or overtaken by it.
#[test]
fn the_version_before_comes_first_or_not_at_all() {
    let (mut first, mut overtaken) = (0, 0);
    for seed in 0..SEEDS {
        let (mut network, current, before) = joined_late(seed, [2, 3, 5][seed as usize % 3]);
        let mut rng = Pcg64Mcg::seed_from_u64(seed + 1_000);
        let at = network.now.after_ns(rng.random_range(0..30_000));
        let apart_ns = [0, 300, 3_000, 60_000][rng.random_range(0..4)];
        let mut late = Late::new(rng, pieces(&current), at);
        late.run(&mut network, MINUTE, apart_ns);
        let following: Vec<u64> = (before + 1..=VERSIONS).collect();
        if late.whole.first() == Some(&before) {
            first += 1;
            assert_eq!(late.whole[1..], following, "seed {seed}");
            assert_eq!(late.rejected, [], "seed {seed}");
        } else {
            overtaken += 1;
            assert_eq!(late.whole, following, "seed {seed}");
            assert!(
                late.rejected.iter().all(|one| *one == (Some(before), Rejection::Overtaken)),
                "{:?}",
                late.rejected
            );
        }
    }
    assert!(first > 0 && overtaken > 0, "{first} and {overtaken}");
}

/// A fetch that breaks costs its version only, and nothing of it stays in the way.
#[test]
fn a_fetch_that_breaks_is_named() {
    for seed in 0..20 {
        let (mut network, current, before) = joined_late(seed, 2);
        let mut pieces = pieces(&current);
        pieces.truncate(1 + seed as usize % 8);
        pieces.push(Piece::Failed(Some(FetchError::Broken("reset".to_owned()))));
        let (at, rng) = (network.now, Pcg64Mcg::seed_from_u64(seed));
        let mut late = Late::new(rng, pieces, at);
        late.run(&mut network, MINUTE, 0);
        assert_eq!(late.whole, (before + 1..=VERSIONS).collect::<Vec<_>>(), "seed {seed}");
        let why = Rejection::Fetch(FetchError::Broken("reset".to_owned()));
        assert_eq!(late.rejected, [(Some(before), why)], "seed {seed}");
    }
}

/// A version that the receiver has already, one of another form, and one for which there is no second slot.
#[test]
fn other_versions_are_not_taken() {
    let (mut network, current, before) = joined_late(1, 2);
    let mut late = Late::new(Pcg64Mcg::seed_from_u64(1), Vec::new(), MINUTE);
    late.run(&mut network, MINUTE, 0);
    assert_eq!(late.whole.len() as u64, VERSIONS - before);
    let newest = network.source.publisher.take_current().expect("it is kept");
    for current in [newest, current] {
        assert!(!network.receivers[1].take_piece(Piece::Begin(current.manifest)), "it has this or a later one");
    }
    let (mut network, current, _) = joined_late(2, 1);
    assert!(!network.receivers[1].take_piece(Piece::Begin(current.manifest)));
    let mut late = Late::new(Pcg64Mcg::seed_from_u64(1), Vec::new(), MINUTE);
    late.run(&mut network, MINUTE, 0);
    assert_eq!(late.rejected[0].1, Rejection::Fetch(FetchError::OneSlot));
}
