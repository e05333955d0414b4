//! A source that gives up when its group does not respond (D197), and not before.

use super::network::{Faults, Network};
use crate::publisher::PublisherEvent;
use crate::subscriber::SubscriberEvent;
use crate::{Buffer, Failure, Slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_wire::Instant;
use std::time::Duration;

const SLOTS: Slots = Slots { count: 2, octets: 20_000 };
const PATIENCE: Duration = Duration::from_secs(1);

fn publish(network: &mut Network, versions: u64) {
    for version in 1..=versions {
        let buffer = Buffer::new("a", vec![version as u8; 20_000]);
        network.source.publisher.publish(version, vec![buffer]).expect("taken");
    }
}

/// Wherever the link is cut, the source notices after that time, and the versions fail by name.
#[test]
fn a_link_that_is_cut_is_noticed() {
    for seed in 0..50 {
        let mut network = Network::new(seed, SLOTS, 2, Faults::default());
        network.gives_up_after(PATIENCE);
        publish(&mut network, 60);
        let cut_at = Instant::from_ns(Pcg64Mcg::seed_from_u64(seed).random_range(1_000..1_000_000));
        let release =
            |_: Instant, receivers: &mut [super::network::Receiver], events: Vec<(usize, SubscriberEvent)>| {
                for (receiver, event) in events {
                    if let SubscriberEvent::Whole(whole) = event {
                        let version = whole.manifest.version();
                        drop(whole);
                        receivers[receiver].subscriber.release(version);
                    }
                }
                None
            };
        network.run_until(cut_at, &mut { release });
        network.faults.loss = 1.0;
        network.run_until(Instant::from_ns(60_000_000_000), &mut { release });
        let failed = network.source.events.iter().filter_map(|(at, event)| match event {
            PublisherEvent::Failed { failure, .. } => Some((*at, *failure)),
            PublisherEvent::Published { .. } | PublisherEvent::Slow { .. } => None,
        });
        let failed: Vec<(Instant, Failure)> = failed.collect();
        assert!(!failed.is_empty(), "seed {seed}: the run is too short");
        for (at, failure) in failed {
            assert_eq!(failure, Failure::Silent, "seed {seed}");
            // The last response has come a little before the cut, or after it.
            let late = at.since(cut_at).abs_diff(PATIENCE);
            assert!(late < Duration::from_millis(50), "seed {seed}: {late:?}");
        }
    }
}

/// A receiver without a free slot responds: it is waited for, however long.
#[test]
fn a_slow_receiver_is_no_silence() {
    let mut network = Network::new(1, SLOTS, 2, Faults::default());
    network.gives_up_after(PATIENCE);
    publish(&mut network, 4);
    let mut held = Vec::new();
    network.run_until(Instant::from_ns(30_000_000_000), &mut |_, _, events| {
        held.extend(events);
        None
    });
    assert_eq!(held.len(), 4, "two versions at each receiver");
    assert_eq!(network.source.publisher.failure(), None);
}

/// So is a source that has nothing to send.
#[test]
fn a_quiet_source_does_not_give_up() {
    let mut network = Network::new(1, SLOTS, 2, Faults::default());
    network.gives_up_after(PATIENCE);
    publish(&mut network, 1);
    network.run_until(Instant::from_ns(10_000_000_000), &mut |_, _, _| None);
    assert_eq!((network.source.publisher.is_idle(), network.source.publisher.failure()), (true, None));
}
