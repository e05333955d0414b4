//! The owner's sockets toward real ranks and hostile peers, and ranks toward hostile owners, without a group: the test
//! publishes.

use super::*;
use crate::device::{Device, DeviceOptions};
use crate::engine::Wake;
use crate::error::Over;
use crate::event::Shared;
use crate::manifest::Manifest;
use crate::memory::{Region, SharedRange, SlotMemory};
use crate::ranks::attached::Attached;
use crate::ranks::message::{End, ToOwner};
use crate::ranks::place::{Place, tests::place};
use crate::ranks::{Context, Outcome, RankEnd};
use crate::receiver::{Version, Versions};
use crate::{DigestKind, Entry, Slots};
use nix::sys::eventfd::EventFd;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const SLOTS: Slots = Slots { count: 2, octets: 4096 };
const PATIENCE: Duration = Duration::from_secs(60);

/// An owner, whose versions are octets of their number.
struct Owner {
    server: Server<SharedRange>,
    slots: SlotMemory,
    /// Always readable, so that nothing blocks.
    at_once: EventFd,
    events: Vec<Event>,
}

fn manifest(version: u64) -> Arc<Manifest> {
    let entry = Entry { name: "data".to_owned(), region: 0, offset: 0, length_octets: 4096 };
    Arc::new(Manifest::new(version, version - 1, SLOTS, DigestKind::Crc32, vec![entry]).expect("it fits"))
}

impl Owner {
    fn new(directory: &Path) -> Self {
        let place = place(directory);
        let listener = place.listen(place.try_lock().expect("no error").expect("free")).expect("a socket");
        let (region, file) = Region::in_file(8192).expect("memory");
        let server = Server::new(8192, file, listener);
        let at_once = EventFd::from_value(1).expect("an eventfd");
        Owner { server, slots: region.into_slots(), at_once, events: Vec::new() }
    }

    fn turn(&mut self) {
        let readable = self.server.wait(&[self.at_once.as_fd()]);
        self.events.extend(self.server.work(readable));
    }

    #[track_caller]
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begin = std::time::Instant::now();
        loop {
            self.turn();
            if is_so(self) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "in vain: {:?}", self.events);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A version that the owner's application does not want.
    fn publish(&mut self, version: u64) {
        let manifest = manifest(version);
        let start = manifest.slots().offset_of(manifest.slot()) as usize;
        self.slots.deliver(start as u64, &[version as u8; 4096]);
        let token = Arc::new(self.slots.share(start..start + 4096).expect("closed"));
        assert_eq!(token.octets(0, 4096), Some(&[version as u8; 4096][..]), "the slot is free");
        let now = self.server.now();
        self.server.table().version(now, &manifest, &token);
    }

    fn is_free(&mut self, version: u64) -> bool {
        let start = SLOTS.offset_of(manifest(version).slot()) as usize;
        self.slots.open(std::iter::once(start..start + 4096)) && self.slots.open([])
    }

    fn ends(&self) -> Vec<RankEnd> {
        let end = |event: &Event| match event {
            Event::RankDetached { why, .. } => Some(*why),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    fn attached(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::RankAttached { .. })).count()
    }

    /// Attaches peers that are the test's.
    fn connect(&mut self, place: &Place) -> UnixStream {
        let mut peer = place.connect().expect("no error").expect("it listens");
        peer.set_nonblocking(false).expect("a socket");
        peer.write_all(&ToOwner::Attach.emit()).expect("sent");
        let before = self.attached();
        self.until(|owner| owner.attached() > before);
        peer
    }
}

/// A rank of this library, in a thread.
struct Rank {
    shared: Arc<Shared<Versions>>,
    wake: Arc<Wake>,
    thread: JoinHandle<Outcome>,
}

impl Rank {
    fn attach(place: &Place) -> Self {
        let device = Device::open(&DeviceOptions::new("http://[::1]:1")).expect("a device");
        let shared = Arc::new(Shared::new("a rank".to_owned(), Versions::new()).expect("an eventfd"));
        let wake = Wake::new().expect("an eventfd");
        let context = Context {
            device,
            group: 7,
            region_octets: 8192,
            place: place.clone(),
            shared: Arc::clone(&shared),
            wake: Arc::clone(&wake),
            counts: Mutex::default(),
        };
        let run = move || {
            let socket = context.place.connect().expect("no error").expect("it listens");
            let mut attached = Attached::attach(socket).expect("a good owner").expect("it answers");
            attached.run(&context, &mut None)
        };
        Rank { shared, wake, thread: std::thread::spawn(run) }
    }

    fn events(&self) -> Vec<Event> {
        std::iter::from_fn(|| self.shared.next_event().expect("this process")).collect()
    }

    #[track_caller]
    fn takes(&self, owner: &mut Owner, number: u64) -> Version {
        let mut found = None;
        owner.until(|_| {
            found = self.shared.lock().own.pop_front();
            found.is_some()
        });
        let version = found.expect("found");
        assert_eq!((version.number(), version.buffer("data")), (number, Some(&[number as u8; 4096][..])));
        version
    }
}

#[test]
fn ranks_read_versions_in_place_and_free_their_slots() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut owner, place) = (Owner::new(directory.path()), place(directory.path()));
    let ranks = [Rank::attach(&place), Rank::attach(&place)];
    owner.until(|owner| owner.attached() == 2);
    owner.server.table().joined();
    for version in 1..=20 {
        owner.publish(version);
        let taken = ranks.each_ref().map(|rank| rank.takes(&mut owner, version));
        let [first, second] = taken;
        drop(first);
        owner.turn();
        assert!(!owner.is_free(version), "the other one reads it");
        drop(second);
        owner.until(|owner| owner.is_free(version));
    }
    assert_eq!(ranks[0].events().first(), Some(&Event::Joined));

    // One leaves with a version, which it still reads.
    owner.publish(21);
    let kept = ranks[0].takes(&mut owner, 21);
    drop(ranks[1].takes(&mut owner, 21));
    ranks[0].wake.close();
    owner.until(|owner| owner.ends() == [RankEnd::Left]);
    owner.publish(22);
    drop(ranks[1].takes(&mut owner, 22));
    owner.until(|owner| owner.is_free(22));
    assert!(!owner.is_free(21));
    drop(kept);
    owner.until(|owner| owner.is_free(21));

    owner.server.table().over(&End::Evicted);
    owner.turn();
    let [first, second] = ranks;
    assert!(matches!(first.thread.join().expect("no panic"), Outcome::Closed(Ok(()))));
    assert!(matches!(second.thread.join().expect("no panic"), Outcome::Over(Over::Evicted)));
}

#[test]
fn what_the_owner_has_offered_before_its_end_is_the_ranks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut owner, place) = (Owner::new(directory.path()), place(directory.path()));
    let rank = Rank::attach(&place);
    owner.until(|owner| owner.attached() == 1);
    owner.publish(1);
    let kept = rank.takes(&mut owner, 1);
    owner.publish(2);
    owner.server.table().ended();
    owner.server.flush();
    drop(owner);
    assert!(matches!(rank.thread.join().expect("no panic"), Outcome::OwnerLost));
    let version = rank.shared.lock().own.pop_front().expect("delivered");
    assert_eq!(version.buffer("data"), Some(&[2; 4096][..]));
    assert_eq!(kept.buffer("data"), Some(&[1; 4096][..]), "after the end of the owner");
}

#[test]
fn a_peer_that_dies_frees_its_slots_and_one_that_does_not_read_is_detached() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut owner, place) = (Owner::new(directory.path()), place(directory.path()));
    let mut dies = owner.connect(&place);
    owner.publish(1);
    dies.write_all(&ToOwner::Taken(1).emit()).expect("sent");
    owner.turn();
    assert!(!owner.is_free(1));
    drop(dies);
    owner.until(|owner| owner.is_free(1) && owner.ends() == [RankEnd::Ended]);

    let mut silent = owner.connect(&place);
    owner.publish(2);
    silent.write_all(&ToOwner::Taken(2).emit()).expect("sent");
    owner.until(|owner| {
        owner.server.table().source_is_silent();
        owner.ends().len() == 2
    });
    assert_eq!(owner.ends()[1], Detach::QueueFull.into());
    assert!(silent.write_all(&ToOwner::Released(2).emit()).is_err(), "it is cut off");
    owner.turn();
    assert!(!owner.is_free(2), "it reads the version, as far as the owner knows");
    // It reads on: the last message says why.
    let mut frames = Frames::of_owner();
    let mut last = None;
    owner.until(|_| {
        let mut octets = [0; 4096];
        let length = silent.read(&mut octets).expect("there");
        frames.push(&octets[..length]);
        while let Some(message) = frames.next_to_rank().expect("well-formed") {
            last = Some(message);
        }
        last == Some(ToRank::Detached(Detach::QueueFull))
    });
    drop(silent);
    owner.until(|owner| owner.is_free(2) && owner.server.connections.is_empty());
    assert_eq!(owner.ends().len(), 2);
}

#[test]
fn hostile_peers_harm_nobody_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut owner, place) = (Owner::new(directory.path()), place(directory.path()));
    let rank = Rank::attach(&place);
    owner.until(|owner| owner.attached() == 1);
    // One that says nothing, one that is of another kind, one that dies in the middle of its first message.
    let _mute = place.connect().expect("no error").expect("it listens");
    place.connect().expect("no error").expect("it listens").write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    place.connect().expect("no error").expect("it listens").write_all(&[0, 0, 0]).expect("sent");
    let wrong: [&[u8]; 4] =
        [&ToOwner::Released(9).emit(), &ToRank::Joined.emit(), &[0xFF; 8192], &ToOwner::Attach.emit()];
    for (index, octets) in wrong.into_iter().enumerate() {
        let version = index as u64 + 1;
        let mut peer = owner.connect(&place);
        owner.publish(version);
        peer.write_all(octets).expect("sent");
        drop(rank.takes(&mut owner, version));
        owner.until(|owner| owner.ends().len() == index + 1 && owner.is_free(version));
        assert_eq!(owner.ends()[index], Detach::Protocol.into(), "{octets:?}");
        // It is closed, though the peer lives.
        owner.until(|owner| owner.server.connections.len() == 2);
    }
    rank.wake.close();
    assert!(matches!(rank.thread.join().expect("no panic"), Outcome::Closed(Ok(()))));
}

#[test]
fn there_are_so_many_ranks_at_most() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut owner, place) = (Owner::new(directory.path()), place(directory.path()));
    let mut peers: Vec<UnixStream> = (0..128).map(|_| owner.connect(&place)).collect();
    let socket = place.connect().expect("no error").expect("it listens");
    let attach = std::thread::spawn(|| Attached::attach(socket).map(|_| ()));
    owner.until(|_| attach.is_finished());
    let error = attach.join().expect("no panic").expect_err("refused").to_string();
    assert!(error.ends_with("the host has too many ranks"), "{error}");
    peers.pop();
    owner.until(|owner| owner.ends() == [RankEnd::Ended]);
    owner.connect(&place);
}

/// An owner that the test speaks for; returns how the rank ended.
fn with_owner(message: impl FnOnce(&mut UnixStream)) -> String {
    let (mut owner, socket) = UnixStream::pair().expect("sockets");
    let directory = tempfile::tempdir().expect("a directory");
    let place = place(directory.path());
    let run = move || {
        let device = Device::open(&DeviceOptions::new("http://[::1]:1")).expect("a device");
        let shared = Arc::new(Shared::new("a rank".to_owned(), Versions::new()).expect("an eventfd"));
        let wake = Wake::new().expect("an eventfd");
        let context = Context { device, group: 7, region_octets: 8192, place, shared, wake, counts: Mutex::default() };
        match Attached::attach(socket) {
            Ok(Some(mut attached)) => match attached.run(&context, &mut None) {
                Outcome::Over(over) => over.to_string(),
                Outcome::OwnerLost => "lost".to_owned(),
                Outcome::Closed(_) => "closed".to_owned(),
            },
            Ok(None) => "no answer".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let rank = std::thread::spawn(run);
    message(&mut owner);
    drop(owner);
    rank.join().expect("no panic")
}

#[test]
fn what_an_owner_says_is_checked() {
    let region = |owner: &mut UnixStream, octets: u64| {
        let (_region, file) = Region::in_file(8192).expect("memory");
        send_descriptor(owner, &ToRank::Region { octets }.emit(), file.as_fd()).expect("sent");
    };
    let after = |message: &[u8]| {
        with_owner(|owner| {
            region(owner, 8192);
            owner.write_all(message).expect("sent");
        })
    };
    assert_eq!(with_owner(|_| {}), "no answer");
    let text = with_owner(|owner| owner.write_all(&ToRank::Region { octets: 8192 }.emit()).expect("sent"));
    assert!(text.ends_with("it has passed no descriptor"), "{text}");
    let text = with_owner(|owner| region(owner, 1 << 40));
    assert!(text.contains("the region does not have the length"), "{text}");
    let text = with_owner(|owner| owner.write_all(&ToRank::Joined.emit()).expect("sent"));
    assert!(text.ends_with("it has not begun with its region"), "{text}");
    assert_eq!(after(&[]), "lost");
    let text = after(&ToOwner::Leave.emit());
    assert!(text.ends_with("message 4 is not known"), "{text}");
    let text = after(&ToRank::Region { octets: 8192 }.emit());
    assert!(text.ends_with("a second region"), "{text}");
    let slots = Slots { count: 3, octets: 4096 };
    let beyond = Manifest::new(1, 2, slots, DigestKind::Crc32, Vec::new()).expect("it fits");
    let text = after(&ToRank::Version(Arc::new(beyond)).emit());
    assert!(text.ends_with("version 1 has no place in the region"), "{text}");
    // More versions than there can be slots, of which none is dropped.
    let many: Vec<u8> = (1..=65).flat_map(|version| ToRank::Version(manifest(version)).emit()).collect();
    let text = after(&many);
    assert!(text.ends_with("version 65 has no place in the region"), "{text}");
}
