//! A receiver's decisions, without I/O: messages of its rails in, whole versions out, in order (D197).
//!
//! ```text
//!   layout ─► is there memory? ─ no ─► held: the rail waits, and its group's source with it
//!                 │ yes
//!                 ▼
//!   chunk ──► in its place, if it is missing ──► all are there ─► Whole, after those before it
//!                                                     │ no, and every rail has gone on to a later version
//!                                                     └─► Rejected: the receiver joined in the middle of it
//! ```

use super::message::{Chunks, Piece, RailHeader, RailMessageError, RailPart};
use crate::manifest::{Manifest, Message, Slots};
use crate::subscriber::Rejection;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is not needed any more.
    Taken,
    /// It is to be offered again when memory is released, or another version is resolved. Later messages of the rail
    /// wait.
    Held,
}

/// Why a version is never visible to a receiver of rails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RailRejection {
    /// The receiver has joined in the middle of it, or has been evicted from all rails that had the rest.
    #[error("the receiver does not have all of it: it has joined in the middle, or was evicted")]
    Incomplete,
    /// A message of a rail was rejected: its octets were changed while they were sent, or on their way.
    #[error("a part of it was rejected: {0}")]
    Part(#[from] Rejection),
    /// A message is malformed, or does not follow from those before.
    #[error("{0}")]
    Message(#[from] RailMessageError),
    /// There is no memory of so many octets.
    #[error("there is no memory of {0} octets")]
    NoMemory(u64),
    /// The slots are not those of the versions before.
    #[error("{} slots of {} octets are not those of the version before", .0.count, .0.octets)]
    Slots(Slots),
}

/// What has become of versions.
#[derive(Debug)]
pub(crate) enum Assembled {
    Whole { manifest: Arc<Manifest>, memory: Vec<u8> },
    Rejected { version: u64, why: RailRejection },
}

/// The buffers of a message, but for its header.
pub(crate) trait Buffers {
    /// How many there are.
    fn count(&self) -> usize;
    /// The octets of one.
    fn octets(&self, index: usize) -> Option<&[u8]>;
}

#[derive(Debug, Default)]
struct Rail {
    is_over: bool,
    /// The version whose layout was its last one, by its sequence number.
    layout: Option<u64>,
    /// The version whose layout is held.
    held: Option<u64>,
}

impl Rail {
    /// Whether nothing comes any more of a version.
    fn is_beyond(&self, sequence: u64) -> bool {
        self.is_over || self.held.max(self.layout).is_some_and(|newest| newest > sequence)
    }
}

/// Rejected versions that are known, while versions before them are not whole.
const MAX_REJECTED: usize = 64;

/// A version that is not whole, or behind one that is not.
#[derive(Debug)]
struct Assembling {
    manifest: Arc<Manifest>,
    header: RailHeader,
    chunks: Chunks,
    is_there: Vec<bool>,
    missing: u32,
    memory: Vec<u8>,
}

/// The rails of a receiver.
#[derive(Debug)]
pub(crate) struct Assembler {
    rails: Vec<Rail>,
    slots: Option<Slots>,
    /// Memory of slots that are free, and the number of those that have none yet.
    free: Vec<Vec<u8>>,
    unused: u16,
    /// By their sequence numbers.
    assembling: VecDeque<Assembling>,
    /// Versions before this one are whole or rejected.
    next_sequence: u64,
    /// Later ones that are rejected.
    rejected: BTreeSet<u64>,
    /// Why a message was rejected of the oldest version, or of one behind it.
    damage: Option<Rejection>,
    events: VecDeque<Assembled>,
}

impl Assembler {
    pub(crate) fn new(rails: usize) -> Self {
        Assembler {
            rails: (0..rails).map(|_| Rail::default()).collect(),
            slots: None,
            free: Vec::new(),
            unused: 0,
            assembling: VecDeque::new(),
            next_sequence: 0,
            rejected: BTreeSet::new(),
            damage: None,
            events: VecDeque::new(),
        }
    }

    /// The oldest event not yet fetched.
    pub(crate) fn poll_event(&mut self) -> Option<Assembled> {
        self.events.pop_front()
    }

    /// The application has dropped a version.
    pub(crate) fn release(&mut self, memory: Vec<u8>) {
        self.free.push(memory);
    }

    /// A message of a rail was rejected. Which one, is not known.
    pub(crate) fn damaged(&mut self, why: Rejection) {
        self.damage.get_or_insert(why);
    }

    /// A rail is over, and all its messages were taken.
    pub(crate) fn over(&mut self, rail: usize) {
        if let Some(rail) = self.rails.get_mut(rail) {
            rail.is_over = true;
        }
        self.resolve();
    }

    /// Offers the oldest message of a rail that is not taken.
    pub(crate) fn offer(&mut self, rail: usize, header: &[u8], buffers: &dyn Buffers) -> Verdict {
        let header = match RailHeader::parse(header) {
            Ok(header) => header,
            // Of which version it is, is not known: that one never becomes whole.
            Err(_) => return Verdict::Taken,
        };
        let verdict = match header.part {
            _ if header.sequence < self.next_sequence || self.rejected.contains(&header.sequence) => Ok(Verdict::Taken),
            // It would have no successor.
            _ if header.sequence == u64::MAX => Ok(Verdict::Taken),
            RailPart::Layout => self.layout(header, buffers),
            RailPart::Chunk(number) => self.chunk(rail, header, number, buffers),
        };
        let verdict = verdict.unwrap_or_else(|why| {
            self.reject(header, why);
            Verdict::Taken
        });
        if let (RailPart::Layout, Some(rail)) = (header.part, self.rails.get_mut(rail)) {
            (rail.held, rail.layout) = match verdict {
                Verdict::Held => (Some(header.sequence), rail.layout),
                Verdict::Taken => (None, rail.layout.max(Some(header.sequence))),
            };
        }
        self.resolve();
        verdict
    }

    fn layout(&mut self, header: RailHeader, buffers: &dyn Buffers) -> Result<Verdict, RailRejection> {
        if let Some(known) = self.find(header.sequence) {
            let is_same = RailHeader { rail: header.rail, ..known.header } == header;
            return if is_same { Ok(Verdict::Taken) } else { Err(RailMessageError::Manifest.into()) };
        }
        let message = buffers.octets(0).filter(|_| buffers.count() == 1).map(Message::parse);
        let Some(Ok(Message::Begin(manifest))) = message else { return Err(RailMessageError::Manifest.into()) };
        let (number, chunks) = (header.sequence, Chunks::cut(&manifest, header.chunk_octets));
        let chunks = chunks.filter(|chunks| chunks.count() == header.chunks).ok_or(RailMessageError::Manifest)?;
        let is_of_it = (manifest.version(), manifest.sequence()) == (header.version, number);
        if !is_of_it || !manifest.regions().more_octets().is_empty() {
            return Err(RailMessageError::Manifest.into());
        }
        let slots = *self.slots.get_or_insert_with(|| {
            self.unused = manifest.slots().count;
            manifest.slots()
        });
        if slots != manifest.slots() {
            return Err(RailRejection::Slots(manifest.slots()));
        }
        let Some(memory) = self.memory(slots)? else { return Ok(Verdict::Held) };
        let count = chunks.count();
        let at = self.assembling.partition_point(|one| one.header.sequence < number);
        let is_there = vec![false; count as usize];
        let manifest = Arc::new(manifest);
        self.assembling.insert(at, Assembling { manifest, header, chunks, is_there, missing: count, memory });
        Ok(Verdict::Taken)
    }

    /// Memory of a slot that is free.
    fn memory(&mut self, slots: Slots) -> Result<Option<Vec<u8>>, RailRejection> {
        if let Some(memory) = self.free.pop() {
            return Ok(Some(memory));
        }
        if self.unused == 0 {
            return Ok(None);
        }
        let no_memory = RailRejection::NoMemory(slots.octets);
        let octets = usize::try_from(slots.octets).map_err(|_| no_memory.clone())?;
        let mut memory = Vec::<u8>::new();
        memory.try_reserve_exact(octets).map_err(|_| no_memory)?;
        drop(memory);
        self.unused -= 1;
        // Zeroed by the allocator, which does not touch fresh pages.
        Ok(Some(vec![0; octets]))
    }

    fn chunk(
        &mut self,
        rail: usize,
        header: RailHeader,
        number: u32,
        buffers: &dyn Buffers,
    ) -> Result<Verdict, RailRejection> {
        // The rail was joined in the middle of the version.
        if self.rails.get(rail).and_then(|rail| rail.layout) != Some(header.sequence) {
            return Ok(Verdict::Taken);
        }
        let Some(version) = self.find(header.sequence) else { return Ok(Verdict::Taken) };
        let is_of_it = RailHeader { rail: header.rail, part: header.part, ..version.header } == header;
        let pieces = version.chunks.pieces(number);
        if !is_of_it || buffers.count() != pieces.len() {
            return Err(RailMessageError::Pieces.into());
        }
        let Some(is_there) = version.is_there.get_mut(number as usize) else {
            return Err(RailMessageError::Pieces.into());
        };
        if *is_there {
            return Ok(Verdict::Taken);
        }
        for (index, piece) in pieces.iter().enumerate() {
            let place = place_in(&mut version.memory, piece).zip(buffers.octets(index));
            let (place, octets) =
                place.filter(|(place, octets)| place.len() == octets.len()).ok_or(RailMessageError::Pieces)?;
            place.copy_from_slice(octets);
        }
        *is_there = true;
        version.missing -= 1;
        Ok(Verdict::Taken)
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Assembling> {
        self.assembling.iter_mut().find(|version| version.header.sequence == sequence)
    }

    /// A version that has a message which does not fit.
    fn reject(&mut self, header: RailHeader, why: RailRejection) {
        let at = self.assembling.iter().position(|version| version.header.sequence == header.sequence);
        self.free.extend(at.and_then(|at| self.assembling.remove(at)).map(|version| version.memory));
        self.rejected.insert(header.sequence);
        if self.rejected.len() > MAX_REJECTED {
            self.rejected.pop_first();
        }
        self.events.push_back(Assembled::Rejected { version: header.version, why });
    }

    /// Passes on what is whole, and rejects what will never be, in order.
    fn resolve(&mut self) {
        while let Some(front) = self.assembling.front() {
            let sequence = front.header.sequence;
            if front.missing > 0 && !self.rails.iter().all(|rail| rail.is_beyond(sequence)) {
                return;
            }
            let Some(Assembling { manifest, missing, memory, .. }) = self.assembling.pop_front() else { return };
            self.next_sequence = sequence + 1;
            self.rejected = self.rejected.split_off(&self.next_sequence);
            let damage = self.damage.take();
            if missing == 0 {
                self.events.push_back(Assembled::Whole { manifest, memory });
            } else {
                self.free.push(memory);
                let why = damage.map_or(RailRejection::Incomplete, RailRejection::Part);
                self.events.push_back(Assembled::Rejected { version: manifest.version(), why });
            }
        }
    }
}

/// The place of a piece in the memory of its slot.
fn place_in<'a>(memory: &'a mut [u8], piece: &Piece) -> Option<&'a mut [u8]> {
    let start = usize::try_from(piece.offset).ok()?;
    let end = start.checked_add(usize::try_from(piece.length_octets()).ok()?)?;
    memory.get_mut(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DigestKind;
    use crate::manifest::Entry;

    const CHUNK_OCTETS: u32 = 4;

    impl Buffers for Vec<Vec<u8>> {
        fn count(&self) -> usize {
            self.len()
        }

        fn octets(&self, index: usize) -> Option<&[u8]> {
            self.get(index).map(Vec::as_slice)
        }
    }

    /// A version of ten octets in two buffers: three chunks.
    fn manifest(sequence: u64) -> Manifest {
        let entry =
            |name: &str, offset, length_octets| Entry { name: name.to_owned(), region: 0, offset, length_octets };
        let entries = vec![entry("a", 0, 3), entry("b", 64, 7)];
        let slots = Slots { count: 2, octets: 100 };
        Manifest::new(sequence + 10, sequence, slots, DigestKind::Crc32, entries).expect("fits")
    }

    fn header(sequence: u64, part: RailPart) -> RailHeader {
        RailHeader { version: sequence + 10, sequence, part, chunks: 3, chunk_octets: CHUNK_OCTETS, rail: 0 }
    }

    fn layout(assembler: &mut Assembler, rail: usize, sequence: u64) -> Verdict {
        let header = header(sequence, RailPart::Layout).emit();
        assembler.offer(rail, &header, &vec![manifest(sequence).emit()])
    }

    fn chunk(assembler: &mut Assembler, rail: usize, sequence: u64, number: u32) -> Verdict {
        let octet = sequence as u8 + 1;
        let pieces = [vec![vec![octet; 3], vec![octet; 1]], vec![vec![octet; 4]], vec![vec![octet; 2]]];
        assembler.offer(rail, &header(sequence, RailPart::Chunk(number)).emit(), &pieces[number as usize])
    }

    /// Whole versions with their memory, and rejected ones with the text.
    fn events(assembler: &mut Assembler) -> Vec<(u64, Result<Vec<u8>, String>)> {
        let event = |event| match event {
            Assembled::Whole { manifest, memory } => (manifest.version(), Ok(memory)),
            Assembled::Rejected { version, why } => (version, Err(why.to_string())),
        };
        std::iter::from_fn(|| assembler.poll_event()).map(event).collect()
    }

    #[test]
    fn versions_are_whole_in_order_and_wait_for_memory() {
        let mut assembler = Assembler::new(2);
        for rail in 0..2 {
            assert_eq!(layout(&mut assembler, rail, 0), Verdict::Taken);
        }
        for (rail, number) in [(1, 2), (0, 0), (0, 2), (1, 1)] {
            assert!(events(&mut assembler).is_empty());
            assert_eq!(chunk(&mut assembler, rail, 0, number), Verdict::Taken);
        }
        let [(version, Ok(first))] = &mut events(&mut assembler)[..] else { panic!("one is whole") };
        assert_eq!((*version, &first[..3], &first[64..71], first[71]), (10, &[1; 3][..], &[1; 7][..], 0));
        layout(&mut assembler, 0, 1);
        for number in 0..3 {
            chunk(&mut assembler, 0, 1, number);
        }
        assert!(matches!(&events(&mut assembler)[..], [(11, Ok(_))]));
        assert_eq!(layout(&mut assembler, 0, 2), Verdict::Held, "the application has both");
        assembler.release(std::mem::take(first));
        assert_eq!(layout(&mut assembler, 0, 2), Verdict::Taken);
    }

    /// D197: a receiver that has joined a rail in the middle of a version.
    #[test]
    fn a_version_that_will_not_be_whole_is_rejected_when_all_rails_have_gone_on() {
        let mut assembler = Assembler::new(3);
        assert_eq!(chunk(&mut assembler, 0, 4, 0), Verdict::Taken);
        layout(&mut assembler, 1, 4);
        chunk(&mut assembler, 1, 4, 1);
        for rail in [1, 0] {
            layout(&mut assembler, rail, 5);
            for number in 0..3 {
                chunk(&mut assembler, rail, 5, number);
            }
            assert!(events(&mut assembler).is_empty(), "rail 2 may have the rest");
        }
        assembler.over(2);
        let found = events(&mut assembler);
        assert!(matches!(&found[..], [(14, Err(_)), (15, Ok(_))]), "{found:?}");
        assert!(chunk(&mut assembler, 1, 4, 2) == Verdict::Taken && events(&mut assembler).is_empty());
    }

    /// The memory of a version that is not whole is that of the next one, which waits for it.
    #[test]
    fn versions_that_are_held_count_as_gone_on() {
        let mut assembler = Assembler::new(2);
        for sequence in 0..2 {
            layout(&mut assembler, 0, sequence);
        }
        assert_eq!(layout(&mut assembler, 0, 2), Verdict::Held);
        assert_eq!(layout(&mut assembler, 1, 2), Verdict::Held);
        let found = events(&mut assembler);
        assert!(matches!(&found[..], [(10, Err(_)), (11, Err(_))]), "{found:?}");
        assert_eq!(layout(&mut assembler, 1, 2), Verdict::Taken);
    }

    /// D171: a chunk that its source has changed.
    #[test]
    fn a_part_that_was_rejected_is_named() {
        let mut assembler = Assembler::new(1);
        layout(&mut assembler, 0, 0);
        (0..2).for_each(|number| assert_eq!(chunk(&mut assembler, 0, 0, number), Verdict::Taken));
        assembler.damaged(Rejection::Damaged("1".to_owned()));
        for sequence in [1, 2] {
            layout(&mut assembler, 0, sequence);
        }
        let found: Vec<_> = events(&mut assembler).into_iter().map(|(_, event)| event.expect_err("rejected")).collect();
        assert_eq!(found[0], "a part of it was rejected: the digest of buffer \"1\" is wrong");
        assert!(found[1].starts_with("the receiver does not have all of it"), "{found:?}");
    }

    #[test]
    fn messages_that_do_not_follow_reject_their_version_once() {
        let rejected = |message: &dyn Fn(&mut Assembler) -> Verdict| {
            let mut assembler = Assembler::new(2);
            layout(&mut assembler, 0, 0);
            layout(&mut assembler, 1, 0);
            assert_eq!(message(&mut assembler), Verdict::Taken);
            let found = events(&mut assembler);
            for number in 0..3 {
                chunk(&mut assembler, 1, 0, number);
            }
            layout(&mut assembler, 1, 0);
            assert!(events(&mut assembler).is_empty());
            found
        };
        let pieces = |assembler: &mut Assembler, header: RailHeader, pieces: Vec<Vec<u8>>| {
            assembler.offer(0, &header.emit(), &pieces)
        };
        let good = header(0, RailPart::Chunk(1));
        for (header, octets) in [
            (good, vec![vec![0; 3]]),
            (good, vec![vec![0; 4], vec![]]),
            (good, vec![]),
            (RailHeader { version: 11, ..good }, vec![vec![0; 4]]),
            (RailHeader { chunks: 4, ..good }, vec![vec![0; 4]]),
            (RailHeader { chunk_octets: 5, ..good }, vec![vec![0; 4]]),
        ] {
            let found = rejected(&|assembler| pieces(assembler, header, octets.clone()));
            let [(_, Err(why))] = &found[..] else { panic!("{header:?}: {found:?}") };
            assert_eq!(why, "the message has other buffers than its chunk");
        }
        let other = RailHeader { chunk_octets: 5, ..header(0, RailPart::Layout) };
        let found = rejected(&|assembler| assembler.offer(1, &other.emit(), &vec![manifest(0).emit()]));
        assert!(matches!(&found[..], [(10, Err(_))]), "{found:?}");
        // Without effect: whose they are is not known.
        let mut assembler = Assembler::new(1);
        assert_eq!(assembler.offer(0, b"SRVX", &Vec::new()), Verdict::Taken);
        assert_eq!(assembler.offer(7, &header(0, RailPart::Layout).emit(), &vec![manifest(0).emit()]), Verdict::Taken);
        assert!(events(&mut assembler).is_empty());
    }

    #[test]
    fn layouts_are_checked() {
        let rejected = |header: RailHeader, message: Vec<u8>| {
            let mut assembler = Assembler::new(1);
            layout(&mut assembler, 0, 0);
            assembler.offer(0, &header.emit(), &vec![message]);
            let (version, why) = events(&mut assembler).swap_remove(0);
            assert!([11, 99].contains(&version));
            why.expect_err("rejected")
        };
        let good = header(1, RailPart::Layout);
        let no_manifest = "the message has no manifest of the version that its header names";
        assert_eq!(rejected(good, manifest(2).emit()), no_manifest);
        assert_eq!(rejected(good, manifest(1).emit()[1..].to_vec()), no_manifest);
        assert_eq!(rejected(RailHeader { chunks: 2, ..good }, manifest(1).emit()), no_manifest);
        assert_eq!(rejected(RailHeader { version: 99, ..good }, manifest(1).emit()), no_manifest);
        let slots = Slots { count: 2, octets: 1 << 62 };
        let other = Manifest::new(11, 1, slots, DigestKind::Crc32, manifest(1).buffers().to_vec()).expect("fits");
        let why = rejected(good, other.emit());
        assert_eq!(why, "2 slots of 4611686018427387904 octets are not those of the version before");
        let mut assembler = Assembler::new(1);
        assembler.offer(0, &good.emit(), &vec![other.emit()]);
        assert_eq!(events(&mut assembler), [(11, Err("there is no memory of 4611686018427387904 octets".to_owned()))]);
    }
}
