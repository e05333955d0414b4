//! Sources that die at any packet, and receivers that follow to the group that resumes theirs (D193), in virtual time.

use super::network::{Faults, Network, Receiver};
use super::versions::{MINUTE, SLOT_OCTETS, buffers, content, found, seeds};
use crate::Slots;
use crate::subscriber::{Rejection, SubscriberEvent, WholeVersion};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_host::SessionState;
use srdma_wire::Instant;

const VERSIONS: u64 = 12;

/// How an application uses versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It drops each at once.
    Drops,
    /// It reads the newest one in place until it has the next.
    Serves,
}

/// A receiver's application, as it outlives sources.
struct Application {
    of: Use,
    whole: Vec<u64>,
    rejected: Vec<(Option<u64>, Rejection)>,
    held: Option<WholeVersion>,
}

impl Application {
    fn new(of: Use) -> Self {
        Application { of, whole: Vec::new(), rejected: Vec::new(), held: None }
    }

    fn newest(&self) -> u64 {
        self.whole.last().copied().unwrap_or(0)
    }

    fn take(&mut self, event: SubscriberEvent, receiver: &mut Receiver) {
        match event {
            SubscriberEvent::Whole(whole) => {
                let version = whole.manifest.version();
                assert_eq!(found(&whole), content(version), "version {version}");
                assert!(self.newest() < version, "{:?}, then {version}", self.whole);
                self.whole.push(version);
                let former = match self.of {
                    Use::Drops => Some(whole),
                    Use::Serves => self.held.replace(whole),
                };
                if let Some(former) = former {
                    let version = former.manifest.version();
                    assert_eq!(found(&former), content(version), "version {version} was overwritten");
                    drop(former);
                    receiver.subscriber.release(version);
                }
            }
            SubscriberEvent::Rejected { version, why } => self.rejected.push((version, why)),
            SubscriberEvent::Failed(error) => panic!("{error}"),
        }
    }
}

fn run(network: &mut Network, applications: &mut [Application], end: Instant) {
    network.run_until(end, &mut |_, receivers, events| {
        for (index, event) in events {
            applications[index].take(event, &mut receivers[index]);
        }
        None
    });
}

fn publish(network: &mut Network, versions: std::ops::RangeInclusive<u64>) {
    for version in versions {
        network.source.publisher.publish(version, buffers(version)).expect("taken");
    }
}

fn applications(rng: &mut Pcg64Mcg, slots: Slots) -> Vec<Application> {
    let uses: &[Use] = if slots.count == 1 { &[Use::Drops] } else { &[Use::Drops, Use::Serves, Use::Serves] };
    (0..rng.random_range(1..=3)).map(|_| Application::new(uses[rng.random_range(0..uses.len())])).collect()
}

/// What may not be visible: a version in whose middle the source has died, and one that is published again.
fn check_rejected(applications: &[Application], deaths: usize, seed: u64) {
    for one in applications {
        let interrupted = one.rejected.iter().filter(|(_, why)| *why == Rejection::Interrupted).count();
        assert!(interrupted <= deaths, "seed {seed}: {:?}", one.rejected);
        for (version, why) in &one.rejected {
            match why {
                Rejection::Interrupted => {}
                Rejection::NotNewer(newest) => assert!(version.is_some_and(|version| version <= *newest), "{seed}"),
                other => panic!("seed {seed}: {version:?}: {other}"),
            }
        }
    }
}

/// A source that dies after any packet is resumed, again and again, over links with faults: receivers see all versions
/// that the last source has published and they lack, in order and whole; versions that they serve are not overwritten,
/// and do not hold the source.
#[test]
fn receivers_follow_a_source_that_dies_at_any_packet() {
    let (mut interrupted, mut repeated) = (0, 0);
    for seed in 0..seeds() {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let slots = Slots { count: rng.random_range(1..=4), octets: SLOT_OCTETS };
        let mut applications = applications(&mut rng, slots);
        let faults = Faults {
            loss: [0.0, 0.02][rng.random_range(0..2)],
            duplicate: [0.0, 0.05][rng.random_range(0..2)],
            delay: [0.0, 0.1][rng.random_range(0..2)],
        };
        let mut network = Network::new(seed, slots, applications.len(), faults);
        let deaths = rng.random_range(1..=3);
        let mut first = 1;
        for death in 1..=deaths {
            publish(&mut network, first..=VERSIONS);
            network.crash_after_packets = Some(rng.random_range(1..=200));
            // The receivers learn it at any time, before or after the last packet has come.
            let learned = network.now.after_ns(rng.random_range(50_000..3_000_000));
            run(&mut network, &mut applications, learned);
            network.source.has_crashed = true;
            network = network.resumed(seed * 10 + death as u64, 0).0;
            // The application goes on behind what it knows to be published, or before that.
            let known = applications.iter().map(Application::newest).min().unwrap_or(0);
            first = rng.random_range(1..=known + 1);
        }
        publish(&mut network, first..=VERSIONS + 3);
        let had: Vec<u64> = applications.iter().map(Application::newest).collect();
        run(&mut network, &mut applications, MINUTE);
        for (one, had) in applications.iter().zip(had) {
            let since: Vec<u64> = one.whole.iter().copied().filter(|version| *version > had).collect();
            assert_eq!(since, (had + 1..=VERSIONS + 3).collect::<Vec<_>>(), "seed {seed}, {:?}", one.of);
            interrupted += one.rejected.iter().filter(|(_, why)| *why == Rejection::Interrupted).count();
            repeated += one.rejected.iter().filter(|(_, why)| matches!(why, Rejection::NotNewer(_))).count();
        }
        check_rejected(&applications, deaths, seed);
    }
    assert!(interrupted > 0 && repeated > 0, "{interrupted} and {repeated}");
}

/// Each packet of a version is the last one of a source once.
#[test]
fn a_source_dies_after_each_packet() {
    let slots = Slots { count: 2, octets: SLOT_OCTETS };
    let mut is_over = false;
    for packets in 1.. {
        let mut applications = [Application::new(Use::Serves), Application::new(Use::Drops)];
        let mut network = Network::new(1, slots, 2, Faults::default());
        publish(&mut network, 998..=1001);
        network.crash_after_packets = Some(packets);
        run(&mut network, &mut applications, Instant::from_ns(20_000_000));
        is_over |= !network.source.has_crashed;
        network = network.resumed(2, 0).0;
        publish(&mut network, applications[0].newest().max(997) + 1..=1003);
        run(&mut network, &mut applications, MINUTE);
        for one in &applications {
            assert_eq!(one.whole, [998, 999, 1000, 1001, 1002, 1003], "{packets} packets, {:?}", one.of);
        }
        check_rejected(&applications, 1, packets);
        if is_over {
            assert!(packets > 150, "only {packets} packets");
            return;
        }
    }
}

/// A receiver that follows when the next source has begun already does not know where its next version comes: one may
/// come to the slot of a version that it serves, and is rejected for that, and all that follow are whole.
#[test]
fn receivers_that_follow_late_go_on_as_well() {
    let mut in_use = 0;
    for seed in 0..seeds() {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let slots = Slots { count: rng.random_range(2..=3), octets: SLOT_OCTETS };
        let mut applications = [Application::new(Use::Serves), Application::new(Use::Serves)];
        let mut network = Network::new(seed, slots, 2, Faults::default());
        publish(&mut network, 1..=VERSIONS);
        network.crash_after_packets = Some(rng.random_range(30..=200));
        run(&mut network, &mut applications, Instant::from_ns(3_000_000));
        let (next, late) = network.resumed(seed, 1);
        network = next;
        publish(&mut network, applications[0].newest() + 1..=VERSIONS + 3);
        let begins = network.now.after_ns(rng.random_range(50_000..200_000));
        run(&mut network, &mut applications, begins);
        network.source.control.state = SessionState::Draining;
        let quiet = network.now.after_ns(50_000_000);
        run(&mut network, &mut applications, quiet);
        let published = applications[0].newest();
        network.admit(late);
        network.source.control.state = SessionState::Sending;
        run(&mut network, &mut applications, MINUTE);
        let had = applications[1].whole.iter().copied().filter(|version| *version <= published).count();
        let since = &applications[1].whole[had..];
        let mut rejected: Vec<u64> = Vec::new();
        for (version, why) in &applications[1].rejected {
            match why {
                Rejection::SlotInUse => rejected.extend(version),
                Rejection::Interrupted => {}
                other => panic!("seed {seed}: {version:?}: {other}"),
            }
        }
        in_use += rejected.len();
        assert!(rejected.is_empty() || rejected == [published + 1], "seed {seed}: {rejected:?}");
        let first = published + 1 + rejected.len() as u64;
        assert_eq!(since, (first..=VERSIONS + 3).collect::<Vec<_>>(), "seed {seed}");
    }
    assert!(in_use > 0);
}
