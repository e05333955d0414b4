//! Versions in several regions (D191, D192): sources that do not keep the rules, and memory of the application.

use super::network::{Faults, Network, region};
use crate::memory::{Region, WatchedMemory};
use crate::subscriber::{Rejection, SubscriberEvent, WholeVersion};
use crate::{Buffer, SlotRegions, Slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_wire::Instant;

const SLOTS: Slots = Slots { count: 2, octets: 4 << 10 };
const MINUTE: Instant = Instant::from_ns(60_000_000_000);

fn regions() -> SlotRegions {
    SlotRegions::new(SLOTS, vec![1 << 10, 8 << 10])
}

/// A buffer in each region, as long as its slot.
fn buffers(version: u64) -> Vec<Buffer> {
    let of = |(region, slots): (u8, Slots)| {
        Buffer::new(format!("b{region}"), content(version, region, slots.octets as usize)).in_region(region)
    };
    (0..).zip(regions().each()).map(of).collect()
}

fn content(version: u64, region: u8, octets: usize) -> Vec<u8> {
    (0..octets).map(|place| (version * 7 + u64::from(region) * 101 + place as u64 * 13 / 5) as u8).collect()
}

#[track_caller]
fn check(whole: &WholeVersion) {
    let entries = whole.manifest.buffers();
    assert_eq!(entries.iter().map(|entry| entry.region).collect::<Vec<_>>(), [0, 1, 2]);
    for entry in entries {
        let expected = content(whole.manifest.version(), entry.region, entry.length_octets as usize);
        assert!(
            whole.octets.buffer(entry) == Some(&expected[..]),
            "{} of version {}",
            entry.name,
            whole.manifest.version()
        );
    }
}

/// Memory of a receiver, and what a test sees of it.
fn memory() -> (Vec<Region>, Vec<WatchedMemory>) {
    let octets = |slots: Slots| slots.region_octets().expect("in range") as usize;
    let regions: Vec<Region> = regions().each().map(|slots| region(octets(slots))).collect();
    let watched = regions.iter().map(Region::watch).collect();
    (regions, watched)
}

fn octets(watched: &[WatchedMemory]) -> Vec<Vec<u8>> {
    watched.iter().map(WatchedMemory::octets).collect()
}

/// D191: a receiver that is evicted while the source writes gets its memory back in all regions with the end of its
/// queue pair: nothing is written afterwards, however long packets are on their way, and a version that it still has
/// stays as it is. The others get all versions.
#[test]
fn memory_of_an_evicted_receiver_is_not_written_after_its_end() {
    let mut in_the_middle = 0;
    for seed in 0..60 {
        let (memory, watched) = memory();
        let faults = Faults { loss: 0.02, duplicate: 0.05, delay: 0.3 };
        let mut network = Network::new(seed, regions(), 2, faults);
        network.replace_memory(1, memory);
        for version in 1..=12 {
            network.source.publisher.publish(version, buffers(version)).expect("taken");
        }
        let mut whole = [0, 0];
        let mut held = None;
        let mut act = |receivers: &mut [super::network::Receiver], events: Vec<(usize, SubscriberEvent)>| {
            for (index, event) in events {
                let SubscriberEvent::Whole(version) = event else { panic!("{event:?}") };
                check(&version);
                whole[index] += 1;
                let number = version.manifest.version();
                // The evicted receiver keeps its second version.
                if index == 1 && number == 2 {
                    held = Some(version);
                } else {
                    drop(version);
                    receivers[index].subscriber.release(number);
                }
            }
            None
        };
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let ends_at = Instant::from_ns(rng.random_range(20_000..400_000));
        network.run_until(ends_at, &mut |_, receivers, events| act(receivers, events));
        network.evict(1);
        // Data are still on their way to it, before and after its end.
        network.run_until(ends_at.after_ns(rng.random_range(0..5_000)), &mut |_, receivers, events| {
            act(receivers, events)
        });
        network.end_receiver(1);
        let at_end = octets(&watched);
        in_the_middle += u32::from(at_end.iter().flatten().any(|octet| *octet != 0));
        network.run_until(MINUTE, &mut |_, receivers, events| act(receivers, events));
        assert!(octets(&watched) == at_end, "seed {seed}: written after the end");
        assert_eq!(whole[0], 12, "seed {seed}");
        held.iter().for_each(check);
    }
    assert!(in_the_middle > 30, "it has received nothing in most runs: {in_the_middle}");
}

/// D192: versions of another number of regions than the group has, or of longer slots in one, are refused by name.
#[test]
fn a_version_of_other_regions_is_refused() {
    let rejected = |of_source: SlotRegions| {
        let mut network = Network::new(1, of_source, 1, Faults::default());
        network.replace_memory(0, memory().0);
        network.source.publisher.publish(1, vec![Buffer::new("a", vec![1; 64])]).expect("taken");
        let mut rejected = Vec::new();
        network.run_until(Instant::from_ns(1_000_000_000), &mut |_, _, events| {
            rejected.extend(events.into_iter().map(|(_, event)| match event {
                SubscriberEvent::Rejected { version: Some(1), why } => why,
                SubscriberEvent::Rejected { .. } | SubscriberEvent::Whole(_) | SubscriberEvent::Failed(_) => {
                    panic!("{event:?}")
                }
            }));
            None
        });
        rejected
    };
    let longer = SlotRegions::new(SLOTS, vec![1 << 10, (8 << 10) + 1]);
    let beyond = Rejection::Slots { slots: 2, slot_octets: (8 << 10) + 1, region_octets: 16 << 10 };
    assert_eq!(rejected(longer), [beyond]);
    assert_eq!(rejected(SLOTS.into()), [Rejection::Regions { found: 1, expected: 3 }]);
}
