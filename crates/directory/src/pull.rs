//! The receiver's side: messages come in any part of a round; what is there survives the end of the process.

use crate::digests::ChunkDigest;
use crate::error::{Error, Result};
use crate::list::FileList;
use crate::message::Message;
use crate::partial::Partial;
use std::path::PathBuf;

/// Where the files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A directory, which is there when everything is.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Whether one that exists is replaced.
        replaces: bool,
    },
    /// Nowhere: they are verified only.
    Discard,
}

/// How far a receiver is.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether the list is known.
    pub is_listed: bool,
    pub octets_there: u64,
    pub total_octets: u64,
    /// Octets of chunks that were there already when they came.
    pub octets_repeated: u64,
    /// Chunks whose digests were not those of the source: they have to come again.
    pub damaged_chunks: u64,
    /// Everything is there, and has the source's digests.
    pub is_complete: bool,
}

/// A directory that is being received.
#[derive(Debug)]
pub struct Pull {
    partial: Option<Partial>,
    state: Option<State>,
    octets_repeated: u64,
    damaged_chunks: u64,
}

#[derive(Debug)]
struct State {
    list: FileList,
    there: Vec<Option<ChunkDigest>>,
    octets_there: u64,
    /// The source's.
    digests: Option<Vec<ChunkDigest>>,
}

impl State {
    fn is_complete(&self) -> bool {
        let there = self.there.iter().copied();
        let is_there = |(there, digest): (Option<ChunkDigest>, &ChunkDigest)| there == Some(*digest);
        self.digests.as_ref().is_some_and(|digests| there.zip(digests).all(is_there))
    }
}

impl Pull {
    /// Receives into a target. What a former process has received is verified; `progress` gets the octets that are.
    ///
    /// # Errors
    ///
    /// If the target exists, or files cannot be read or written.
    pub fn begin(target: &Target, progress: &mut dyn FnMut(u64)) -> Result<Self> {
        let mut pull = Pull { partial: None, state: None, octets_repeated: 0, damaged_chunks: 0 };
        if let Target::Directory { path, replaces } = target {
            let mut partial = Partial::open(path, *replaces)?;
            if let Some(list) = partial.stored_list() {
                let there = partial.resume(&list, progress)?;
                pull.state = Some(State::new(list, there));
            }
            pull.partial = Some(partial);
        }
        Ok(pull)
    }

    /// A message has come.
    ///
    /// # Errors
    ///
    /// If the list is malformed, or a file cannot be written.
    pub fn take(&mut self, message: Message<'_>) -> Result<Status> {
        match message {
            Message::List(octets) => self.take_list(octets)?,
            Message::Chunk { of, index, octets } => self.take_chunk(of, index, octets)?,
            Message::Digests { of, octets } => self.take_digests(of, octets),
        }
        Ok(self.status())
    }

    fn take_list(&mut self, octets: &[u8]) -> Result<()> {
        let id = ChunkDigest::of(octets);
        if self.state.as_ref().is_some_and(|state| state.list.id() == id) {
            return Ok(());
        }
        let list = FileList::parse(octets)?;
        if let Some(partial) = &mut self.partial {
            partial.begin(&list)?;
        }
        let there = vec![None; list.chunks() as usize];
        self.state = Some(State::new(list, there));
        Ok(())
    }

    fn take_chunk(&mut self, of: ChunkDigest, index: u32, octets: &[u8]) -> Result<()> {
        let Some(state) = self.state.as_mut().filter(|state| state.list.id() == of) else { return Ok(()) };
        let length = octets.len() as u64;
        let Some(there) = state.there.get_mut(index as usize).filter(|_| state.list.octets_of(index) == length) else {
            self.damaged_chunks += 1;
            return Ok(());
        };
        if there.is_some() {
            self.octets_repeated += length;
            return Ok(());
        }
        let digest = ChunkDigest::of(octets);
        if state.digests.as_ref().is_some_and(|digests| digests.get(index as usize) != Some(&digest)) {
            self.damaged_chunks += 1;
            return Ok(());
        }
        if let Some(partial) = &mut self.partial {
            partial.write(&state.list, index, octets, digest)?;
        }
        *there = Some(digest);
        state.octets_there += length;
        Ok(())
    }

    fn take_digests(&mut self, of: ChunkDigest, octets: &[u8]) {
        let Some(state) = self.state.as_mut().filter(|state| state.list.id() == of) else { return };
        if octets.len() != state.there.len() * ChunkDigest::LEN {
            self.damaged_chunks += 1;
            return;
        }
        let digests: Vec<_> = octets.chunks_exact(ChunkDigest::LEN).filter_map(ChunkDigest::from_slice).collect();
        for ((index, there), digest) in (0..).zip(&mut state.there).zip(&digests) {
            if there.is_some_and(|there| there != *digest) {
                *there = None;
                state.octets_there -= state.list.octets_of(index);
                self.damaged_chunks += 1;
            }
        }
        state.digests = Some(digests);
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        let Pull { octets_repeated, damaged_chunks, .. } = *self;
        let state = self.state.as_ref();
        Status {
            is_listed: state.is_some(),
            octets_there: state.map_or(0, |state| state.octets_there),
            total_octets: state.map_or(0, |state| state.list.total_octets()),
            octets_repeated,
            damaged_chunks,
            is_complete: state.is_some_and(State::is_complete),
        }
    }

    /// The list, when it is known.
    pub fn list(&self) -> Option<&FileList> {
        self.state.as_ref().map(|state| &state.list)
    }

    /// Everything is there: it becomes the target, at once.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or the target exists meanwhile.
    pub fn finish(self) -> Result<()> {
        match (self.partial, self.state) {
            (Some(partial), Some(state)) if state.is_complete() => partial.finish(&state.list),
            (Some(_), _) => Err(Error::Incomplete),
            (None, _) => Ok(()),
        }
    }
}

impl State {
    fn new(list: FileList, there: Vec<Option<ChunkDigest>>) -> Self {
        let octets = (0..).zip(&there).filter(|(_, there)| there.is_some()).map(|(index, _)| list.octets_of(index));
        let octets_there = octets.sum();
        State { list, there, octets_there, digests: None }
    }
}
