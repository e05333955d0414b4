//! A file that is sent.

use super::{BLOCK_OCTETS, FileError};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Blocks that are kept for retransmissions: more than the default window.
const KEPT: usize = 64;

/// Blocks that wait to be digested, at most.
const WAITING: usize = 128;

/// A file that is sent: read by blocks as packets need them, and digested by a thread of its own.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    octets: u64,
    // The endpoint reads through a shared reference.
    reading: RefCell<Reading>,
}

/// A block, which the packets and the digest share.
type Block = Arc<Vec<u8>>;

#[derive(Debug)]
struct Reading {
    /// Blocks by their number.
    kept: VecDeque<(u64, Block)>,
    /// The next block that the digest needs.
    next: u64,
    digest: Digesting,
    failure: Option<FileError>,
}

/// The digest of the blocks.
#[derive(Debug)]
enum Digesting {
    Running { blocks: SyncSender<Block>, thread: JoinHandle<[u8; 32]> },
    Done([u8; 32]),
    Failed,
}

impl FileSource {
    /// Opens a regular file; `None` for anything else, which has no length.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, FileError> {
        let opened = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
        let (file, metadata) = opened.map_err(|error| FileError::open(path, &error))?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let (blocks, waiting) = sync_channel(WAITING);
        let thread = thread::Builder::new().name("digest".to_owned()).spawn(move || digest(&waiting));
        let thread = thread.map_err(|error| FileError::open(path, &error))?;
        Ok(Some(FileSource {
            file,
            path: path.to_owned(),
            octets: metadata.len(),
            reading: RefCell::new(Reading {
                kept: VecDeque::new(),
                next: 0,
                digest: Digesting::Running { blocks, thread },
                failure: None,
            }),
        }))
    }

    /// Length of the file when it was opened.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Copies what is at `offset` to `into`. After a failure zeros are copied.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let mut reading = self.reading.borrow_mut();
        let (mut offset, mut into) = (offset, into);
        while !into.is_empty() {
            let number = offset / BLOCK_OCTETS as u64;
            let start = (offset % BLOCK_OCTETS as u64) as usize;
            let block = match reading.block(number, self) {
                Ok(block) => block,
                Err(error) => {
                    reading.failure.get_or_insert(error);
                    into.fill(0);
                    return;
                }
            };
            // The endpoint stays inside the registered length, so that a block has an octet there.
            let len = into.len().min(block.len() - start);
            let (now, later) = into.split_at_mut(len);
            now.copy_from_slice(&block[start..start + len]);
            (offset, into) = (offset + len as u64, later);
        }
    }

    /// What has failed.
    pub(crate) fn failure(&self) -> Option<FileError> {
        self.reading.borrow().failure.clone()
    }

    /// The digest of the file, once all of it has been read.
    pub(crate) fn sha256(&self) -> Option<[u8; 32]> {
        let mut reading = self.reading.borrow_mut();
        if reading.next < self.blocks() {
            return None;
        }
        match std::mem::replace(&mut reading.digest, Digesting::Failed) {
            Digesting::Running { blocks, thread } => {
                drop(blocks);
                // The thread cannot fail: it receives and computes.
                reading.digest = Digesting::Done(thread.join().ok()?);
            }
            other => reading.digest = other,
        }
        match reading.digest {
            Digesting::Done(sha256) => Some(sha256),
            Digesting::Running { .. } | Digesting::Failed => None,
        }
    }

    fn blocks(&self) -> u64 {
        self.octets.div_ceil(BLOCK_OCTETS as u64)
    }

    /// Reads a block from the file.
    fn load(&self, number: u64) -> Result<Block, FileError> {
        let offset = number * BLOCK_OCTETS as u64;
        let mut octets = vec![0; (self.octets - offset).min(BLOCK_OCTETS as u64) as usize];
        let mut filled = 0;
        while filled < octets.len() {
            let at = offset + filled as u64;
            match self.file.read_at(&mut octets[filled..], at) {
                Ok(0) => {
                    let path = self.path.display().to_string();
                    return Err(FileError::Shrunk { path, end: at, octets: self.octets });
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::read(&self.path, at, &error)),
            }
        }
        Ok(Arc::new(octets))
    }
}

impl Reading {
    /// A block: one that is kept, or that is read, again or with all before it for the first time.
    fn block(&mut self, number: u64, source: &FileSource) -> Result<&Block, FileError> {
        let found = self.kept.iter().rposition(|(kept, _)| *kept == number);
        let place = match found {
            Some(place) => place,
            None => {
                while self.next < number {
                    self.load_next(source)?;
                }
                if self.next == number {
                    self.load_next(source)?;
                } else {
                    let block = source.load(number)?;
                    self.keep(number, block);
                }
                self.kept.len() - 1
            }
        };
        Ok(&self.kept[place].1)
    }

    fn load_next(&mut self, source: &FileSource) -> Result<(), FileError> {
        let block = source.load(self.next)?;
        if let Digesting::Running { blocks, .. } = &self.digest {
            // Only a thread that has ended refuses it, and `sha256` finds that.
            let _ = blocks.send(Arc::clone(&block));
        }
        self.keep(self.next, block);
        self.next += 1;
        Ok(())
    }

    fn keep(&mut self, number: u64, block: Block) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((number, block));
    }
}

fn digest(blocks: &Receiver<Block>) -> [u8; 32] {
    let mut sha256 = Sha256::new();
    while let Ok(block) = blocks.recv() {
        sha256.update(block.as_slice());
    }
    sha256.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(len: usize) -> Vec<u8> {
        (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    fn source(data: &[u8]) -> (tempfile::NamedTempFile, FileSource) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), data).unwrap();
        let source = FileSource::open(file.path()).unwrap().expect("a regular file");
        (file, source)
    }

    #[test]
    fn a_file_is_read_in_pieces_again_and_digested_once() {
        let data = octets(BLOCK_OCTETS * (KEPT + 3) + 17);
        let (_file, source) = source(&data);
        let mut copy = vec![0; data.len()];
        for (number, piece) in copy.chunks_mut(4096).enumerate() {
            assert_eq!(source.sha256(), None);
            source.read(number as u64 * 4096, piece);
        }
        assert!(copy == data);
        // A block that is no longer kept, and a piece that lies in two.
        let mut piece = vec![0; 5000];
        source.read(BLOCK_OCTETS as u64 - 2500, &mut piece);
        assert!(piece == data[BLOCK_OCTETS - 2500..][..5000]);
        let expected: [u8; 32] = Sha256::digest(&data).into();
        assert_eq!((source.sha256(), source.sha256()), (Some(expected), Some(expected)));
        assert_eq!(source.failure(), None);
    }

    #[test]
    fn an_empty_file_has_a_digest_at_once() {
        let (_file, source) = source(&[]);
        assert_eq!(source.sha256(), Some(Sha256::digest([]).into()));
    }

    #[test]
    fn a_file_that_shrinks_is_named() {
        let (file, source) = source(&octets(3 * BLOCK_OCTETS));
        let mut piece = vec![0; 4096];
        source.read(0, &mut piece);
        file.as_file().set_len(BLOCK_OCTETS as u64 + 10).unwrap();
        source.read(BLOCK_OCTETS as u64, &mut piece);
        let error = source.failure().expect("it is too short").to_string();
        assert!(error.contains("ends at octet 65546 and had 196608"), "{error}");
        assert!(error.contains(&file.path().display().to_string()), "{error}");
        assert_eq!((source.sha256(), piece), (None, vec![0; 4096]));
    }

    #[test]
    fn what_has_no_length_is_no_source() {
        assert!(FileSource::open(Path::new("/dev/null")).unwrap().is_none());
        let missing = FileSource::open(Path::new("/nowhere/data")).expect_err("there is none").to_string();
        assert!(missing.starts_with("cannot read /nowhere/data: "), "{missing}");
    }
}
