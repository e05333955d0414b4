//! Versions in several regions of memory, through the nodes of a network (D191, D192).

use super::{MIB, Network, PATIENCE, content, events};
use srdma::{Buffer, Error, Event, GroupOptions, JoinOptions, Over, Region, Version};

/// Octets of each buffer, and its region.
const BUFFERS: [(usize, u8); 5] = [(MIB, 0), (2 * MIB + 5, 1), (7, 2), (300_000, 0), (60_000, 2)];

fn options() -> GroupOptions {
    let of = |region| BUFFERS.iter().filter(move |(_, of)| *of == region).map(|(octets, _)| *octets as u64);
    let slot_octets = |region| GroupOptions::for_buffers(of(region)).slots.octets;
    GroupOptions {
        more_slot_octets: vec![slot_octets(1), slot_octets(2)],
        keeps_current: true,
        ..GroupOptions::for_buffers(of(0))
    }
}

fn buffers(version: u64) -> Vec<Buffer> {
    let buffer = |(number, (octets, region)): (usize, &(usize, u8))| {
        Buffer::new(format!("b{number}"), content(version, number as u64, *octets)).in_region(*region)
    };
    BUFFERS.iter().enumerate().map(buffer).collect()
}

#[track_caller]
fn check(version: &Version) {
    for (number, (octets, region)) in BUFFERS.iter().enumerate() {
        let entry = &version.manifest().buffers()[number];
        assert_eq!(entry.region, *region);
        let found = version.buffer(&entry.name).expect("a buffer of this name");
        assert!(found == content(version.number(), number as u64, *octets), "{version:?}, buffer {number}");
    }
}

/// Three receivers see each version whole; one leaves in the middle of a version and keeps what it has; a late one gets
/// the version that was published last, and the next.
#[test]
#[ignore = "needs root"]
fn versions_in_several_regions_reach_every_receiver() {
    let network = Network::start();
    let source = network.source(&options());
    let region = || Region::new(16 * MIB).expect("memory");
    let two = JoinOptions { region: Some(region()), more_regions: vec![region()], ..JoinOptions::default() };
    let refused = network.at("R1", |device| device.join(source.group(), two)).err();
    assert!(matches!(refused, Some(Error::RegionCount { found: 2, needed: 3, .. })), "{refused:?}");
    let own = JoinOptions { region: Some(region()), more_regions: vec![region(), region()], ..JoinOptions::default() };
    let first = network.at("R1", |device| device.join(source.group(), own)).expect("a receiver");
    let shared = JoinOptions { shared: true, ..JoinOptions::default() };
    let refused = network.at("R2", |device| device.join(source.group(), shared)).err();
    assert!(matches!(refused, Some(Error::SharedRegions(_))), "{refused:?}");
    let second = network.receiver("R2", &source);
    let leaves = network.receiver("R5", &source);
    network.commit(&source, 3);
    for version in 1..=5 {
        source.publish(version, buffers(version)).expect("taken");
    }
    for number in 1..=5 {
        for receiver in [&first, &second] {
            check(&receiver.wait(number, PATIENCE).expect("whole"));
        }
        if number == 1 {
            check(&leaves.wait(1, PATIENCE).expect("whole"));
        }
        if number == 3 {
            let kept = leaves.wait(2, PATIENCE).expect("whole");
            leaves.leave().expect("left");
            let over = loop {
                match leaves.next_version(PATIENCE) {
                    Ok(version) => check(&version),
                    Err(error) => break error,
                }
            };
            assert!(matches!(over, Error::Over(Over::Evicted)), "{over}");
            check(&kept);
        }
    }
    source.wait(5, PATIENCE).expect("published");

    let late = network.receiver("R4", &source);
    let current = late.next_version(PATIENCE).expect("by unicast");
    assert_eq!(current.number(), 5);
    check(&current);
    drop(current);
    source.publish(6, buffers(6)).expect("taken");
    source.wait(6, PATIENCE).expect("published");
    for receiver in [&first, &second, &late] {
        check(&receiver.wait(6, PATIENCE).expect("whole"));
        let rejected = events(|| receiver.next_event());
        assert!(!rejected.iter().any(|event| matches!(event, Event::Rejected { .. })), "{rejected:?}");
    }
    network.at("S1", |_| source.close()).expect("closed");
}
