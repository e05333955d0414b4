//! Sources that do not keep the rules: what they send is named, nothing of it is visible, and what is visible stays.

use crate::digest::Hasher;
use crate::manifest::{End, Entry, Manifest};
use crate::memory::{HostMemory, Region};
use crate::provider::udp::{EndpointReceiver, ReceiverMemory};
use crate::subscriber::{Rejection, Subscriber, SubscriberEvent};
use crate::{DigestKind, ManifestError, Slots};
use srdma_rc::{
    Access, Endpoint, EndpointConfig, LocalRange, MemoryKey, Operation, QueuePairConfig, RemoteAddress, WorkRequest,
};
use srdma_wire::{Instant, Qpn};
use std::net::Ipv6Addr;

const BASE: u64 = 0x1000;
const SLOTS: Slots = Slots { count: 2, octets: 100 };

/// A receiver, and a source whose every message is the test's.
struct Rig {
    now: Instant,
    source: Endpoint,
    receiver: Endpoint<HostMemory>,
    subscriber: Subscriber,
    memory: ReceiverMemory,
}

const ADDRESSES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

impl Rig {
    fn new() -> Self {
        let mut source = Endpoint::new(EndpointConfig::new(ADDRESSES[0]));
        source.add_queue_pair(QueuePairConfig::new(qpn(0x11), ADDRESSES[1], qpn(0x22))).expect("good");
        let mut receiver = Endpoint::new(EndpointConfig::new(ADDRESSES[1]));
        let slots = Region::new(200).expect("memory").into_slots();
        let memory = ReceiverMemory::register(&mut receiver, vec![slots], |_| (BASE, 7));
        receiver.add_queue_pair(QueuePairConfig::new(qpn(0x22), ADDRESSES[0], qpn(0x11))).expect("good");
        let subscriber = Subscriber::new(vec![200]);
        let mut rig = Rig { now: Instant::ZERO, source, receiver, subscriber, memory };
        rig.work();
        rig
    }

    fn work(&mut self) {
        let Rig { receiver, subscriber, memory, .. } = self;
        subscriber.work(&mut EndpointReceiver { endpoint: receiver, qpn: qpn(0x22), memory });
    }

    fn post(&mut self, octets: &[u8], operation: Operation) {
        let key = self.source.register_memory(octets.to_vec(), 0, Access::LOCAL, 0);
        let local = LocalRange { key, offset: 0, length_octets: octets.len() as u32 };
        let request = WorkRequest { wr_id: 0, operation, local, signalled: false };
        self.source.post_send(qpn(0x11), request).expect("posted");
    }

    fn send(&mut self, octets: &[u8]) {
        self.post(octets, Operation::Send { immediate: None });
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        let remote = RemoteAddress { virtual_address: BASE + offset, rkey: self.memory.regions()[0].1 };
        self.post(octets, Operation::Write { remote, immediate: None });
    }

    /// Carries packets to and fro for a second, and returns the receiver's events.
    fn run(&mut self) -> Vec<SubscriberEvent> {
        let end = self.now.after_ns(1_000_000_000);
        let mut events = Vec::new();
        let mut packet = vec![0; 5000];
        while self.now < end {
            while let Some(length) = self.source.poll_transmit(self.now, &mut packet) {
                let _ = self.receiver.receive(self.now, &[&packet[..length]]);
            }
            self.work();
            events.extend(std::iter::from_fn(|| self.subscriber.poll_event()));
            while let Some(length) = self.receiver.poll_transmit(self.now, &mut packet) {
                let _ = self.source.receive(self.now, &[&packet[..length]]);
            }
            self.now = self.now.after_ns(1_000_000);
            self.source.tick(self.now);
            self.receiver.tick(self.now);
        }
        events
    }
}

fn manifest(version: u64, sequence: u64) -> Manifest {
    let buffers = vec![Entry { name: "a".to_owned(), region: 0, offset: 0, length_octets: 50 }];
    Manifest::new(version, sequence, SLOTS, DigestKind::Crc32, buffers).expect("it fits")
}

fn end(version: u64, octets: &[u8]) -> Vec<u8> {
    let mut hasher = Hasher::new(DigestKind::Crc32);
    hasher.update(octets);
    End { version, digest: DigestKind::Crc32, digests: vec![hasher.finish()] }.emit()
}

impl Rig {
    fn version(&mut self, version: u64, sequence: u64, octets: &[u8; 50]) {
        self.send(&manifest(version, sequence).emit());
        self.write(sequence % 2 * 100, octets);
        self.send(&end(version, octets));
    }
}

fn rejections(events: Vec<SubscriberEvent>) -> Vec<(Option<u64>, Rejection)> {
    let rejection = |event| match event {
        SubscriberEvent::Rejected { version, why } => (version, why),
        SubscriberEvent::Whole(_) | SubscriberEvent::Failed(_) => panic!("{event:?}"),
    };
    events.into_iter().map(rejection).collect()
}

#[track_caller]
fn whole(events: &[SubscriberEvent]) -> &crate::subscriber::WholeVersion {
    match events {
        [SubscriberEvent::Whole(whole)] => whole,
        _ => panic!("{events:?}"),
    }
}

/// The octets of the buffer of the only version.
#[track_caller]
fn octets_of(events: &[SubscriberEvent]) -> Option<&[u8]> {
    let whole = whole(events);
    whole.octets.buffer(&whole.manifest.buffers()[0])
}

/// D173: a receiver whose first message is an end has joined in the middle.
#[test]
fn the_version_that_was_on_its_way_at_the_join_is_skipped() {
    let mut rig = Rig::new();
    rig.write(0, &[9; 50]);
    rig.send(&end(4, &[9; 50]));
    assert_eq!(rejections(rig.run()), [(Some(4), Rejection::Skipped)]);
    rig.version(5, 7, &[5; 50]);
    let events = rig.run();
    assert_eq!(octets_of(&events), Some(&[5; 50][..]), "the seventh, in slot 1");
}

/// D175: octets written outside of the slot have no effect, least of all on a version that the application reads.
#[test]
fn what_is_written_outside_of_the_slot_is_a_stray() {
    let mut rig = Rig::new();
    rig.version(1, 0, &[1; 50]);
    let first = rig.run();
    rig.send(&manifest(2, 1).emit());
    rig.write(100, &[2; 50]);
    rig.write(0, &[0xBA; 50]);
    rig.send(&end(2, &[2; 50]));
    assert_eq!(rejections(rig.run()), [(Some(2), Rejection::Stray)]);
    assert_eq!(octets_of(&first), Some(&[1; 50][..]));
    // Slot 0 is held: the next version waits for it, and is whole then.
    rig.version(3, 2, &[3; 50]);
    assert!(rig.run().is_empty());
    drop(first);
    rig.subscriber.release(1);
    let third = rig.run();
    assert_eq!(octets_of(&third), Some(&[3; 50][..]));
}

/// A source that begins a version with the receive of another's end, whose slot is in use.
#[test]
fn a_second_begin_takes_no_slot_that_is_in_use() {
    let mut rig = Rig::new();
    rig.version(1, 0, &[1; 50]);
    let first = rig.run();
    rig.send(&manifest(2, 1).emit());
    assert!(rig.run().is_empty());
    rig.version(3, 2, &[0xBA; 50]);
    let rejected = rejections(rig.run());
    assert_eq!(rejected, [(Some(2), Rejection::End), (Some(3), Rejection::SlotInUse)]);
    assert_eq!(octets_of(&first), Some(&[1; 50][..]), "not overwritten");
}

#[test]
fn messages_out_of_order_or_range_are_named() {
    let mut rig = Rig::new();
    rig.send(b"hello");
    rig.send(&[]);
    rig.send(&manifest(1, 0).emit());
    rig.send(&end(2, &[0; 50]));
    let mut expected = vec![
        (None, Rejection::Message(ManifestError::Length { found: 5, needed: 6 })),
        (None, Rejection::Message(ManifestError::Length { found: 0, needed: 4 })),
        (Some(1), Rejection::End),
    ];
    let octets = |slots: Slots| Manifest::new(2, 1, slots, DigestKind::Crc32, Vec::new()).expect("it fits").emit();
    for slots in [Slots { count: 2, octets: 101 }, Slots { count: 1, octets: 100 }] {
        rig.send(&octets(slots));
        let why = Rejection::Slots { slots: slots.count, slot_octets: slots.octets, region_octets: 200 };
        expected.push((Some(2), why));
    }
    rig.version(3, 5, &[3; 50]);
    expected.push((Some(3), Rejection::Sequence { found: 5, expected: 1 }));
    rig.version(1, 6, &[3; 50]);
    expected.push((Some(1), Rejection::NotNewer(1)));
    let remote = RemoteAddress { virtual_address: 0, rkey: MemoryKey(0) };
    rig.post(&[], Operation::Write { remote, immediate: Some([0; 4]) });
    expected.push((None, Rejection::Operation));
    assert_eq!(rejections(rig.run()), expected);
    rig.version(9, 7, &[9; 50]);
    let events = rig.run();
    assert_eq!(octets_of(&events), Some(&[9; 50][..]), "a good one is whole after all that");
}

#[test]
fn the_last_sequence_number_has_no_successor() {
    let mut rig = Rig::new();
    rig.version(1, u64::MAX, &[1; 50]);
    let rejected = rejections(rig.run());
    assert_eq!(rejected, [(Some(1), Rejection::Sequence { found: u64::MAX, expected: 0 })]);
}
