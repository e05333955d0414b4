//! Versions over links that lose, duplicate and delay; slow receivers, crashes, joins. The checkers compute what they
//! expect from the numbers of versions alone.

use super::network::{Faults, Network, Receiver, SLOW_AFTER, Source, region, source_queue};
use crate::publisher::{Failure, PublisherEvent};
use crate::subscriber::{Rejection, SubscriberEvent, WholeVersion};
use crate::{Buffer, DigestKind, SlotRegions, Slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_host::SessionState;
use srdma_wire::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const SLOT_OCTETS: u64 = 16 << 10;
const TWO: Slots = Slots { count: 2, octets: SLOT_OCTETS };
pub(super) const MINUTE: Instant = Instant::from_ns(60_000_000_000);

/// From this number on versions are longer than the source's window.
const LONG: u64 = 1000;

/// The buffers of a version: names and octets, which depend on its number alone.
pub(super) fn content(version: u64) -> Vec<(String, Vec<u8>)> {
    let mut state = version.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    if version >= LONG {
        return vec![("long".to_owned(), (0..12_000).map(|_| next() as u8).collect())];
    }
    let count = next() % 5;
    (0..count)
        .map(|index| {
            let length = [0, 1, next() % 300, next() % 3000][next() as usize % 4];
            (format!("buffer {version}.{index}"), (0..length).map(|_| next() as u8).collect())
        })
        .collect()
}

pub(super) fn buffers(version: u64) -> Vec<Buffer> {
    content(version).into_iter().map(|(name, octets)| Buffer::new(name, octets)).collect()
}

pub(super) fn found(whole: &WholeVersion) -> Vec<(String, Vec<u8>)> {
    let buffers = whole.manifest.buffers().iter();
    buffers.map(|entry| (entry.name.clone(), whole.octets.buffer(entry).expect("inside").to_vec())).collect()
}

/// What one receiver has seen.
#[derive(Default)]
struct Seen {
    whole: Vec<u64>,
    rejected: Vec<(Option<u64>, Rejection)>,
    /// Versions that it reads, and until when.
    held: Vec<(WholeVersion, Instant)>,
}

/// Receivers that read each version for a time, and check it at both ends of it.
struct Applications {
    seen: Vec<Seen>,
    rng: Pcg64Mcg,
    /// Longest time of reading for each receiver, in nanoseconds.
    reading_ns: Vec<u64>,
}

impl Applications {
    fn new(seed: u64, reading_ns: &[u64]) -> Self {
        Applications {
            seen: reading_ns.iter().map(|_| Seen::default()).collect(),
            rng: Pcg64Mcg::seed_from_u64(seed ^ 0xA5),
            reading_ns: reading_ns.to_vec(),
        }
    }

    fn act(
        &mut self,
        now: Instant,
        receivers: &mut [Receiver],
        events: Vec<(usize, SubscriberEvent)>,
    ) -> Option<Instant> {
        for (index, event) in events {
            match event {
                SubscriberEvent::Whole(whole) => {
                    let version = whole.manifest.version();
                    assert_eq!(found(&whole), content(version), "receiver {index}, version {version}");
                    let newest = self.seen[index].whole.last().copied();
                    assert!(newest.is_none_or(|newest| newest < version), "{newest:?}, then {version}");
                    self.seen[index].whole.push(version);
                    let until = now.after_ns(self.rng.random_range(0..=self.reading_ns[index]));
                    self.seen[index].held.push((whole, until));
                }
                SubscriberEvent::Rejected { version, why } => self.seen[index].rejected.push((version, why)),
                SubscriberEvent::Failed(status) => panic!("receiver {index}: {status:?}"),
            }
        }
        for (index, seen) in self.seen.iter_mut().enumerate() {
            for (whole, _) in seen.held.extract_if(.., |(_, until)| *until <= now) {
                let version = whole.manifest.version();
                assert_eq!(found(&whole), content(version), "receiver {index}, version {version} was overwritten");
                drop(whole);
                receivers[index].subscriber.release(version);
            }
        }
        self.seen.iter().flat_map(|seen| &seen.held).map(|(_, until)| *until).min()
    }

    fn run(&mut self, network: &mut Network, end: Instant) {
        network.run_until(end, &mut |now, receivers, events| self.act(now, receivers, events));
    }
}

fn published(network: &Network) -> Vec<u64> {
    let number = |(_, event): &(Instant, PublisherEvent)| match event {
        PublisherEvent::Published { version } => Some(*version),
        PublisherEvent::Slow { .. } | PublisherEvent::Failed { .. } => None,
    };
    network.source.events.iter().filter_map(number).collect()
}

pub(super) fn seeds() -> u64 {
    srdma_testkit::seeds::count(200)
}

/// D170, D172: whatever the links do, each receiver sees every version whole, in order, and with its octets, and
/// nothing is overwritten while it is read; the source learns of each.
#[test]
fn every_receiver_sees_every_version_whole_and_in_order() {
    for seed in 0..seeds() {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let faults = Faults {
            loss: [0.0, 0.01, 0.1][rng.random_range(0..3)],
            duplicate: [0.0, 0.05][rng.random_range(0..2)],
            delay: [0.0, 0.1][rng.random_range(0..2)],
        };
        let receivers = rng.random_range(1..=4);
        let slots = Slots { count: rng.random_range(1..=4), octets: SLOT_OCTETS };
        let regions = rng.random_range(1..=3);
        let slots = SlotRegions::new(slots, vec![SLOT_OCTETS / 2; regions - 1]);
        let digest = if rng.random_bool(0.5) { DigestKind::Sha256 } else { DigestKind::Crc32 };
        let mut network = Network::with_digest(seed, slots, receivers, faults, digest);
        let mut applications = Applications::new(seed, &vec![3_000_000; receivers]);
        // Numbers with gaps, as an application may choose them.
        let versions: Vec<u64> = (1..=12).map(|number| number * 3 + seed % 2).collect();
        for version in &versions {
            let in_turn = buffers(*version).into_iter().zip((0..regions as u8).cycle().skip(seed as usize % 3));
            let buffers = in_turn.map(|(buffer, region)| buffer.in_region(region)).collect();
            network.source.publisher.publish(*version, buffers).expect("taken");
        }
        applications.run(&mut network, MINUTE);
        assert_eq!(published(&network), versions, "seed {seed}");
        for (index, seen) in applications.seen.iter().enumerate() {
            assert_eq!((&seen.whole, &seen.rejected), (&versions, &Vec::new()), "seed {seed}, receiver {index}");
        }
        assert!(network.source.publisher.is_idle(), "seed {seed}");
    }
}

/// D172: one receiver that reads on holds the source, which reports it once, and goes on when it is released. The
/// others are at most its window ahead.
#[test]
fn a_slow_receiver_holds_the_source() {
    let mut network = Network::new(1, TWO, 3, Faults::default());
    let second_ns = 1_000_000_000;
    let mut applications = Applications::new(1, &[0; 3]);
    let numbers: Vec<u64> = (LONG..LONG + 6).collect();
    for version in numbers.iter().copied() {
        network.source.publisher.publish(version, buffers(version)).expect("taken");
    }
    let mut slow = Vec::new();
    network.run_until(Instant::from_ns(second_ns), &mut |now, receivers, events| {
        let (of_slow, others): (Vec<_>, Vec<_>) = events.into_iter().partition(|(index, _)| *index == 1);
        slow.extend(of_slow.into_iter().map(|(_, event)| event));
        applications.act(now, receivers, others)
    });
    let versions = |events: &[SubscriberEvent]| -> Vec<u64> {
        let whole = |event: &SubscriberEvent| match event {
            SubscriberEvent::Whole(whole) => Some(whole.manifest.version()),
            SubscriberEvent::Rejected { .. } | SubscriberEvent::Failed(_) => None,
        };
        events.iter().filter_map(whole).collect()
    };
    assert_eq!(versions(&slow), numbers[..2], "it has both slots, and nothing more is sent to it");
    assert_eq!(published(&network), numbers[..2]);
    for other in [0, 2] {
        assert_eq!(applications.seen[other].whole, numbers[..2], "the third is not complete: the window is shorter");
    }
    let at: Vec<Instant> = network
        .source
        .events
        .iter()
        .filter_map(|(at, event)| {
            matches!(event, PublisherEvent::Slow { version } if *version == numbers[2]).then_some(*at)
        })
        .collect();
    assert_eq!(at.len(), 1, "{:?}", network.source.events);
    assert!(at[0] >= Instant::ZERO + SLOW_AFTER && at[0] < Instant::ZERO + 2 * SLOW_AFTER, "{at:?}");

    let events = slow.into_iter().map(|event| (1, event)).collect();
    let now = network.now;
    applications.act(now, &mut network.receivers, events);
    applications.run(&mut network, MINUTE);
    assert_eq!(published(&network), numbers);
    assert!(applications.seen.iter().all(|seen| seen.whole == numbers && seen.rejected.is_empty()));
}

/// Wherever the source dies, nothing of the version on its way is visible; what was whole stays.
#[test]
fn a_source_that_dies_in_the_middle_leaves_nothing_visible() {
    let mut in_the_middle = 0;
    for seed in 0..seeds() {
        let mut network = Network::new(seed, TWO, 2, Faults { loss: 0.02, ..Faults::default() });
        let mut applications = Applications::new(seed, &[100_000; 2]);
        for version in 1..=6 {
            network.source.publisher.publish(version, buffers(version)).expect("taken");
        }
        let dies_at = Instant::from_ns(Pcg64Mcg::seed_from_u64(seed).random_range(1_000..400_000));
        applications.run(&mut network, dies_at);
        network.source.has_crashed = true;
        applications.run(&mut network, MINUTE);
        for (index, seen) in applications.seen.iter().enumerate() {
            // `act` has compared every octet of these.
            let count = seen.whole.len() as u64;
            assert_eq!(seen.whole, (1..=count).collect::<Vec<_>>(), "seed {seed}, receiver {index}");
            assert!(count >= published(&network).len() as u64, "seed {seed}: reported and not there");
            assert!(seen.rejected.is_empty(), "seed {seed}: {:?}", seen.rejected);
            in_the_middle += u64::from(count < 6);
        }
    }
    assert!(in_the_middle > 0, "no run has tested it");
}

/// D30, D174: joins wait for the end of a version, and the new receiver begins with the next one.
#[test]
fn a_receiver_that_restarts_gets_the_next_whole_version() {
    for seed in 0..seeds().min(50) {
        let mut network = Network::new(seed, TWO, 3, Faults { loss: 0.01, ..Faults::default() });
        let mut applications = Applications::new(seed, &[0; 3]);
        for version in 1..=40 {
            network.source.publisher.publish(version, buffers(version)).expect("taken");
        }
        let dies_at = Instant::from_ns(Pcg64Mcg::seed_from_u64(seed).random_range(1_000..300_000));
        applications.run(&mut network, dies_at);
        network.evict(1);
        network.source.control.state = SessionState::Draining;
        applications.run(&mut network, dies_at.after_ns(1_000_000_000));
        let progress = network.source.control.progress;
        assert!(progress.is_drained, "seed {seed}: the source stays between versions");
        let before = published(&network);
        assert!(before.len() < 40, "seed {seed}: nothing is left to see");
        for index in [0, 2] {
            assert_eq!(applications.seen[index].whole, before, "seed {seed}: the pause is between versions");
        }
        applications.seen[1] = Seen::default();
        network.replace_receiver(1, vec![region(TWO.region_octets().expect("in range") as usize)]);
        network.source.control.state = SessionState::Sending;
        applications.run(&mut network, MINUTE);
        let next = before.len() as u64 + 1;
        assert_eq!(applications.seen[1].whole, (next..=40).collect::<Vec<_>>(), "seed {seed}");
        assert!(applications.seen.iter().all(|seen| seen.rejected.is_empty()), "seed {seed}");
        assert_eq!(applications.seen[0].whole, (1..=40).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// D171: a buffer that the application changes after it was published: its receivers name it, and never show it.
#[test]
fn a_buffer_that_changes_while_it_is_sent_is_damaged() {
    struct Changing(Arc<AtomicBool>);
    impl AsRef<[u8]> for Changing {
        fn as_ref(&self) -> &[u8] {
            if self.0.load(Ordering::Relaxed) { &[1; 600] } else { &[0; 600] }
        }
    }
    let mut network = Network::new(1, TWO, 2, Faults::default());
    let mut applications = Applications::new(1, &[0; 2]);
    let is_changed = Arc::new(AtomicBool::new(false));
    let changing = Changing(Arc::clone(&is_changed));
    let still = Buffer::new("still", vec![5; 700]);
    network.source.publisher.publish(1, vec![still, Buffer::new("changing", changing)]).expect("taken");
    network.source.publisher.publish(2, buffers(2)).expect("taken");
    let Source { endpoint, publisher, control, .. } = &mut network.source;
    publisher.work(network.now, &mut source_queue(endpoint), control);
    // Posted, and its digest computed; no packet has left.
    is_changed.store(true, Ordering::Relaxed);
    applications.run(&mut network, MINUTE);
    for seen in &applications.seen {
        assert_eq!(seen.rejected, [(Some(1), Rejection::Damaged("changing".to_owned()))]);
        assert_eq!(seen.whole, [2], "and the next one is fine");
    }
}

/// D175: the memory of buffers is the application's again when the version is published, and not before.
#[test]
fn buffers_return_when_the_version_is_published_or_has_failed() {
    let memory: Arc<[u8]> = Arc::from(vec![3; 5000]);
    let mut network = Network::new(1, Slots { count: 1, octets: SLOT_OCTETS }, 1, Faults::default());
    network.source.publisher.publish(1, vec![Buffer::new("a", Arc::clone(&memory))]).expect("taken");
    network.source.publisher.publish(2, vec![Buffer::new("a", Arc::clone(&memory))]).expect("taken");
    network.source.publisher.publish(3, vec![Buffer::new("a", Arc::clone(&memory))]).expect("taken");
    assert_eq!(Arc::strong_count(&memory), 4);
    let mut held = Vec::new();
    network.run_until(Instant::from_ns(1_000_000_000), &mut |_, _, events| {
        held.extend(events);
        None
    });
    assert_eq!((published(&network), Arc::strong_count(&memory)), (vec![1], 3), "the second waits for the slot");
    assert!(matches!(&held[..], [(0, SubscriberEvent::Whole(_))]), "{held:?}");
    network.source.control.state = SessionState::Ended;
    network.run_until(MINUTE, &mut |_, _, _| None);
    let failed = |(_, event): &(Instant, PublisherEvent)| match event {
        PublisherEvent::Failed { version, failure } => Some((*version, *failure)),
        PublisherEvent::Published { .. } | PublisherEvent::Slow { .. } => None,
    };
    let failed: Vec<_> = network.source.events.iter().filter_map(failed).collect();
    assert_eq!(failed, [(2, Failure::Closed), (3, Failure::Closed)]);
    assert_eq!(Arc::strong_count(&memory), 1);
    let refused = network.source.publisher.publish(4, Vec::new()).expect_err("it is over");
    assert_eq!(refused.to_string(), "the group is closed");
}

#[test]
fn versions_that_cannot_be_published_are_refused() {
    let mut network = Network::new(1, TWO, 1, Faults::default());
    let publisher = &mut network.source.publisher;
    publisher.publish(5, buffers(5)).expect("taken");
    let refused = |result: Result<(), crate::publisher::PublishError>| result.expect_err("refused").to_string();
    assert_eq!(refused(publisher.publish(5, Vec::new())), "version 5 is not after version 5");
    let long = vec![Buffer::new("long", vec![0; SLOT_OCTETS as usize]), Buffer::new("more", vec![0])];
    assert_eq!(refused(publisher.publish(6, long)), "buffer 1 ends beyond its slot of 16384 octets");
    let twice = vec![Buffer::new("a", vec![0]), Buffer::new("a", vec![0])];
    assert_eq!(refused(publisher.publish(6, twice)), "buffer 1 has the name of an earlier one");
    for version in 6..69 {
        publisher.publish(version, Vec::new()).expect("taken");
    }
    assert_eq!(refused(publisher.publish(69, Vec::new())), "64 versions wait already");
}
