//! Transfers without a network: the messages of a source, given to receivers that join and end at any of them.

use proptest::prelude::*;
use srdma_directory::{ChunkDigest, Chunks, Error, FileList, Message, Next, Pull, Rounds, Status, Target};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CHUNK: u32 = 4096;

/// A directory with files of these lengths.
fn source(lengths: &[usize]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("empty")).unwrap();
    for (index, length) in lengths.iter().enumerate() {
        let path = directory.path().join(format!("part {}/{index:02}.safetensors", index % 3));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let octets: Vec<u8> = (0..*length).map(|at| (at * 31 + index * 7 + at / 4096) as u8).collect();
        fs::write(path, octets).unwrap();
    }
    directory
}

/// Paths and contents of all files.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let list = FileList::scan(directory, CHUNK).unwrap();
    let read = |index: usize| fs::read(list.place(directory, index).unwrap()).unwrap();
    let files = list.files().iter().enumerate().map(|(index, file)| (file.path.clone(), read(index)));
    let empty = list.empty_directories().iter().map(|path| (format!("{path}/"), Vec::new()));
    files.chain(empty).collect()
}

/// A message with octets of its own.
enum Sent {
    List(Vec<u8>),
    Chunk(u32, Vec<u8>),
    Digests(Vec<u8>),
}

/// A source and its endless rounds.
struct Sender {
    chunks: Chunks,
    round: Rounds,
}

impl Sender {
    fn new(directory: &Path) -> Self {
        let list = FileList::scan(directory, CHUNK).unwrap();
        Sender { round: Rounds::new(list.chunks()), chunks: Chunks::new(directory, list) }
    }

    fn next(&mut self) -> Sent {
        let next = self.round.next().unwrap_or_else(|| {
            self.round = Rounds::new(self.chunks.list().chunks());
            self.round.next().unwrap()
        });
        match next {
            Next::List => Sent::List(self.chunks.list().octets().to_vec()),
            Next::Chunk(index) => Sent::Chunk(index, self.chunks.read(index).unwrap()),
            Next::Digests => Sent::Digests(self.chunks.digests().expect("each chunk was read")),
        }
    }

    fn give_next(&mut self, pull: &mut Pull) -> Status {
        let sent = self.next();
        self.give(&sent, pull)
    }

    /// Through the names of buffers, as over a network.
    fn give(&self, sent: &Sent, pull: &mut Pull) -> Status {
        let of = self.chunks.list().id();
        let message = match sent {
            Sent::List(octets) => Message::List(octets),
            Sent::Chunk(index, octets) => Message::Chunk { of, index: *index, octets },
            Sent::Digests(octets) => Message::Digests { of, octets },
        };
        let names = message.names();
        let content: &[u8] = match message {
            Message::List(octets) | Message::Chunk { octets, .. } | Message::Digests { octets, .. } => octets,
        };
        let buffers = [(names[0].as_str(), &of.0[..]), (names[1].as_str(), content)];
        pull.take(Message::of_buffers(&buffers).unwrap()).unwrap()
    }
}

fn begin(target: &Path) -> Pull {
    Pull::begin(&Target::Directory { path: target.to_owned(), replaces: false }, &mut |_| {}).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// D180: A receiver that joins at any message and is ended at any messages has the directory after two rounds at
    /// most, and sees none of it before.
    #[test]
    fn a_receiver_joins_and_ends_at_any_message(
        lengths in prop::collection::vec(prop_oneof![Just(0_usize), 1_usize..30_000], 0..8),
        joins_at in 0_usize..30,
        ends_at in prop::collection::vec(0_usize..60, 0..3),
    ) {
        let directory = source(&lengths);
        let mut sender = Sender::new(directory.path());
        let round = Rounds::new(sender.chunks.list().chunks()).count();
        (0..joins_at).for_each(|_| drop(sender.next()));
        let receiver = tempfile::tempdir().unwrap();
        let target = receiver.path().join("copy");
        let mut pull = begin(&target);
        let mut messages = 0;
        loop {
            let status = sender.give_next(&mut pull);
            prop_assert!(!target.exists());
            if status.is_complete {
                break;
            }
            messages += 1;
            prop_assert!(messages <= 3 * round + ends_at.len(), "{status:?}");
            if ends_at.contains(&messages) {
                drop(pull);
                pull = begin(&target);
                prop_assert_eq!(pull.status().octets_there, status.octets_there);
            }
        }
        pull.finish().unwrap();
        prop_assert_eq!(contents(&target), contents(directory.path()));
        prop_assert_eq!(fs::read_dir(receiver.path()).unwrap().count(), 1, "nothing else is left");
    }

    /// No buffers of a version are taken for a message by panic.
    #[test]
    fn any_buffers_are_refused_or_taken(name in "chunk [0-9]{0,12}|list|digests|of list|x", octets in prop::collection::vec(any::<u8>(), 0..80)) {
        let of = ChunkDigest::of(&octets);
        let mut pull = Pull::begin(&Target::Discard, &mut |_| {}).unwrap();
        if let Ok(message) = Message::of_buffers(&[("of list", &of.0), (&name, &octets)]) {
            let _ = pull.take(message);
        }
    }
}

/// D180: A chunk with wrong octets is found when the digests come, and is taken from the next round.
#[test]
fn damaged_chunks_come_again() {
    let directory = source(&[10_000, 20_000]);
    let mut sender = Sender::new(directory.path());
    let receiver = tempfile::tempdir().unwrap();
    let target = receiver.path().join("copy");
    let mut pull = begin(&target);
    let mut damaged = 0;
    let status = loop {
        let mut sent = sender.next();
        if let Sent::Chunk(3, octets) = &mut sent
            && damaged == 0
        {
            octets[17] ^= 1;
            damaged += 1;
        }
        let status = sender.give(&sent, &mut pull);
        if status.is_complete {
            break status;
        }
    };
    assert_eq!((damaged, status.damaged_chunks), (1, 1));
    pull.finish().unwrap();
    assert_eq!(contents(&target), contents(directory.path()));
}

/// D182: What is damaged on the disk between two processes is received again.
#[test]
fn a_resumed_receiver_verifies_what_is_there() {
    let directory = source(&[40_000]);
    let mut sender = Sender::new(directory.path());
    let receiver = tempfile::tempdir().unwrap();
    let target = receiver.path().join("copy");
    let mut pull = begin(&target);
    (0..7).for_each(|_| {
        sender.give_next(&mut pull);
    });
    assert_eq!(pull.status().octets_there, 6 * u64::from(CHUNK));
    drop(pull);
    let part = receiver.path().join("copy.partial/files/part 0/00.safetensors");
    let mut octets = fs::read(&part).unwrap();
    octets[5000] ^= 1;
    fs::write(&part, octets).unwrap();
    let mut verified = 0;
    let mut pull =
        Pull::begin(&Target::Directory { path: target.clone(), replaces: false }, &mut |octets| verified = octets)
            .unwrap();
    assert_eq!((pull.status().octets_there, verified), (5 * u64::from(CHUNK), 6 * u64::from(CHUNK)));
    while !sender.give_next(&mut pull).is_complete {}
    pull.finish().unwrap();
    assert_eq!(contents(&target), contents(directory.path()));
}

/// D181: A source that was started again with other files: what was there of the former ones is gone.
#[test]
fn another_list_replaces_what_was_there_in_part() {
    let (first, second) = (source(&[9_000, 9_000]), source(&[5_000]));
    let receiver = tempfile::tempdir().unwrap();
    let target = receiver.path().join("copy");
    let mut pull = begin(&target);
    let mut sender = Sender::new(first.path());
    (0..4).for_each(|_| {
        sender.give_next(&mut pull);
    });
    let mut sender = Sender::new(second.path());
    while !sender.give_next(&mut pull).is_complete {}
    pull.finish().unwrap();
    assert_eq!(contents(&target), contents(second.path()));
}

/// D182.
#[test]
fn an_existing_target_is_kept_unless_it_is_to_be_replaced() {
    let directory = source(&[100]);
    let receiver = tempfile::tempdir().unwrap();
    let target = receiver.path().join("copy");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("old"), "old").unwrap();
    let to = |replaces| Target::Directory { path: target.clone(), replaces };
    let error = Pull::begin(&to(false), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Exists(_)) && error.to_string().contains("--replace"), "{error}");
    let mut pull = Pull::begin(&to(true), &mut |_| {}).unwrap();
    let second = Pull::begin(&to(true), &mut |_| {}).unwrap_err();
    assert!(matches!(second, Error::Locked(_)), "{second}");
    let mut sender = Sender::new(directory.path());
    while !sender.give_next(&mut pull).is_complete {
        assert!(target.join("old").exists());
    }
    pull.finish().unwrap();
    assert_eq!(contents(&target), contents(directory.path()));
    assert!(!receiver.path().join("copy.partial").exists());
}

/// D182.
#[test]
fn an_incomplete_directory_is_not_finished() {
    let receiver = tempfile::tempdir().unwrap();
    let target = receiver.path().join("copy");
    assert!(matches!(begin(&target).finish(), Err(Error::Incomplete)));
    assert!(!target.exists());
}

/// A file that is cut or rewritten while it is sent is named.
#[test]
fn files_that_change_are_named() {
    let directory = source(&[20_000]);
    let file = directory.path().join("part 0/00.safetensors");
    let list = FileList::scan(directory.path(), CHUNK).unwrap();
    let mut chunks = Chunks::new(directory.path(), list.clone());
    chunks.read(0).unwrap();
    let before = fs::read(&file).unwrap();
    fs::write(&file, [&[9], &before[1..]].concat()).unwrap();
    let error = chunks.read(0).unwrap_err();
    assert!(matches!(&error, Error::Changed(path) if *path == file), "{error}");
    fs::write(&file, &before[..10_000]).unwrap();
    let error = Chunks::new(directory.path(), list).read(3).unwrap_err();
    assert!(matches!(&error, Error::Changed(path) if *path == file), "{error}");
}

/// Nothing is written when files are only verified.
#[test]
fn discarded_files_are_verified() {
    let directory = source(&[10_000, 0, 5_000]);
    let mut sender = Sender::new(directory.path());
    let mut pull = Pull::begin(&Target::Discard, &mut |_| {}).unwrap();
    while !sender.give_next(&mut pull).is_complete {}
    assert_eq!(pull.status().octets_there, 15_000);
    pull.finish().unwrap();
}
