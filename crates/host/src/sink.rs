//! What a receiver does with the octets that come in: they are digested in their order, and written to a file or
//! discarded.
//!
//! ```text
//!   packets ──► block being filled ──► blocks that wait ──► digest, file
//!                                       │                    when nothing else is to be done,
//!                                       └ at most so many    or when too many wait
//! ```
//!
//! So a burst is taken as fast as it comes, and a stream of any length takes the same memory.

use crate::blocks::{Block, Blocks};
use crate::files::{BLOCK_OCTETS, FileError, OutputFile};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// Octets that come in, of which none are kept in memory for longer than they wait.
#[derive(Debug)]
pub struct Sink {
    limit_octets: u64,
    output: Option<OutputFile>,
    /// `None` once octets came in another order.
    sha256: Option<Sha256>,
    blocks: Blocks,
    filling: Option<Run>,
    waiting: VecDeque<Run>,
    /// The end of all octets that came.
    end: u64,
    failure: Option<FileError>,
}

/// Octets in a block, and their place in the stream.
#[derive(Debug)]
struct Run {
    start: u64,
    block: Block,
    len: usize,
}

/// What came in.
#[derive(Debug)]
pub struct Stored {
    /// The SHA-256; `None` when the octets came in another order than their places have, and there is no file to read
    /// them from.
    pub sha256: Option<[u8; 32]>,
    /// The file, which has its name when it is kept.
    pub output: Option<OutputFile>,
}

impl Sink {
    /// A sink for at most `limit_octets`, of which `waiting_octets`, and two blocks at least, may wait in memory.
    pub fn new(limit_octets: u64, waiting_octets: usize, output: Option<OutputFile>) -> Self {
        Sink {
            limit_octets,
            output,
            sha256: Some(Sha256::new()),
            blocks: Blocks::new(waiting_octets),
            filling: None,
            waiting: VecDeque::new(),
            end: 0,
            failure: None,
        }
    }

    /// Takes the memory for all that may wait from the kernel now, as that of an RDMA device is when it is registered.
    pub fn populate(&mut self) {
        self.blocks.populate(self.limit_octets);
    }

    /// The most octets that it takes.
    pub fn limit_octets(&self) -> u64 {
        self.limit_octets
    }

    /// The end of the octets that came.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What has failed. Nothing is taken from then on.
    pub fn failure(&self) -> Option<&FileError> {
        self.failure.as_ref()
    }

    /// Takes octets at their place in the stream. Those beyond the limit are dropped.
    pub fn write(&mut self, offset: u64, octets: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let room = self.limit_octets.saturating_sub(offset);
        let mut octets = &octets[..octets.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        if octets.is_empty() {
            return;
        }
        if self.filling.as_ref().is_some_and(|run| offset != run.start + run.len as u64) {
            self.pass_on();
        }
        if offset != self.end {
            self.sha256 = None;
        }
        let mut start = offset;
        while !octets.is_empty() {
            let Some(mut run) = self.filling.take().or_else(|| self.begin(start)) else {
                self.failure = Some(FileError::NoMemory);
                return;
            };
            let (now, later) = octets.split_at(octets.len().min(BLOCK_OCTETS - run.len));
            self.blocks.write(&run.block, run.len, now);
            run.len += now.len();
            start += now.len() as u64;
            octets = later;
            let is_full = run.len == BLOCK_OCTETS;
            self.filling = Some(run);
            if is_full {
                self.pass_on();
            }
        }
        self.end = self.end.max(start);
    }

    /// Takes octets that follow all others.
    pub fn append(&mut self, octets: &[u8]) {
        self.write(self.end, octets);
    }

    /// Digests and writes the oldest block that waits; `false` if none does.
    pub fn settle(&mut self) -> bool {
        let Some(Run { start, block, len }) = self.waiting.pop_front() else { return false };
        let octets = self.blocks.octets(&block, len);
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(octets);
        }
        if let (Some(output), None) = (&mut self.output, &self.failure) {
            self.failure = output.write(start, octets).err();
        }
        self.blocks.put_back(block);
        true
    }

    /// Ends the stream: digests and writes all that waits.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or read where the octets came in another order.
    pub fn finish(mut self) -> Result<Stored, FileError> {
        self.pass_on();
        while self.settle() {}
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let sha256 = match (self.sha256, &self.output) {
            (Some(sha256), _) => Some(sha256.finalize().into()),
            (None, Some(output)) if output.is_regular() => Some(digest_of(output, self.end)?),
            (None, _) => None,
        };
        Ok(Stored { sha256, output: self.output })
    }

    /// The block being filled waits.
    fn pass_on(&mut self) {
        self.waiting.extend(self.filling.take());
    }

    /// A block for octets from `start` on. When too many wait, the oldest is settled for it.
    fn begin(&mut self, start: u64) -> Option<Run> {
        let block = self.blocks.take().or_else(|| {
            self.settle();
            self.blocks.take()
        })?;
        Some(Run { start, block, len: 0 })
    }
}

/// The digest of a file that was not written in order.
fn digest_of(output: &OutputFile, octets: u64) -> Result<[u8; 32], FileError> {
    let mut sha256 = Sha256::new();
    let mut block = vec![0; BLOCK_OCTETS];
    let mut offset = 0;
    while offset < octets {
        let len = (octets - offset).min(BLOCK_OCTETS as u64);
        let block = &mut block[..len as usize];
        output.read(offset, block)?;
        sha256.update(block);
        offset += len;
    }
    Ok(sha256.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn octets(len: usize) -> Vec<u8> {
        (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    fn sha256(octets: &[u8]) -> Option<[u8; 32]> {
        Some(Sha256::digest(octets).into())
    }

    #[test]
    fn a_stream_is_digested_however_much_of_it_may_wait() {
        let data = octets(5 * BLOCK_OCTETS + 100);
        for waiting_octets in [0, 2 * BLOCK_OCTETS, 1 << 30] {
            let mut sink = Sink::new(1 << 20, waiting_octets, None);
            for (number, piece) in data.chunks(4095).enumerate() {
                sink.write(number as u64 * 4095, piece);
                assert!(sink.waiting.len() <= (waiting_octets / BLOCK_OCTETS).max(2));
            }
            while sink.settle() {}
            assert_eq!(sink.end(), data.len() as u64);
            assert_eq!(sink.finish().unwrap().sha256, sha256(&data));
        }
    }

    #[test]
    fn a_limit_is_kept() {
        let mut sink = Sink::new(6, 1 << 20, None);
        sink.append(&[1, 2, 3, 4]);
        sink.append(&[5, 6, 7]);
        sink.append(&[8]);
        assert_eq!((sink.end(), sink.limit_octets()), (6, 6));
        assert_eq!(sink.finish().unwrap().sha256, sha256(&[1, 2, 3, 4, 5, 6]));
    }

    /// A region that is written to in any order, with a gap and octets that are written twice.
    #[test]
    fn a_file_gets_its_octets_in_any_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let data = octets(3 * BLOCK_OCTETS);
        let mut expected = data.clone();
        expected[100..200].fill(0);
        for waiting_octets in [0, 1 << 20] {
            let mut sink = Sink::new(1 << 20, waiting_octets, Some(OutputFile::create(&path).unwrap()));
            sink.write(70_000, &data[70_000..]);
            sink.write(0, &data[..100]);
            sink.write(200, &octets(50));
            sink.write(200, &data[200..70_000]);
            let end = sink.end();
            let stored = sink.finish().unwrap();
            assert_eq!((stored.sha256, end), (sha256(&expected), data.len() as u64));
            stored.output.unwrap().keep(end).unwrap();
            assert!(std::fs::read(&path).unwrap() == expected);
        }
    }

    #[test]
    fn octets_out_of_order_have_no_digest_without_a_file() {
        let mut sink = Sink::new(100, 1 << 20, None);
        sink.write(1, &[1]);
        sink.write(0, &[0]);
        assert_eq!(sink.end(), 2);
        assert_eq!(sink.finish().unwrap().sha256, None);
    }

    #[test]
    fn a_full_disk_ends_the_stream() {
        let mut sink = Sink::new(1 << 20, 0, Some(OutputFile::create(Path::new("/dev/full")).unwrap()));
        sink.append(&octets(3 * BLOCK_OCTETS));
        sink.append(&octets(BLOCK_OCTETS));
        assert!(matches!(sink.failure(), Some(FileError::Write { is_full: true, offset: 0, .. })));
        assert!(sink.finish().is_err());
    }
}
