//! The octets of a file, with their offset and bounded lengths.

use crate::error::{ReadError, Reason};
use std::io::{BufReader, Read};

/// The longest record that is read, in octets. Capture programs cut packets off at 262,144 octets.
pub const MAX_BLOCK_LEN: usize = 16 << 20;

/// Memory that a record's length alone may claim before its octets are there.
const FIRST_ALLOCATION: usize = 64 << 10;

/// A file being read from its first octet to its last.
pub(crate) struct Source<R> {
    input: BufReader<R>,
    offset: u64,
    /// Offset of the record being read.
    record: u64,
    /// Number of the packet to be read next.
    frame: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(input: R) -> Self {
        Source { input: BufReader::with_capacity(FIRST_ALLOCATION, input), offset: 0, record: 0, frame: 1 }
    }

    pub(crate) fn begin_record(&mut self) {
        self.record = self.offset;
    }

    /// Offset of the record being read.
    pub(crate) fn record_offset(&self) -> u64 {
        self.record
    }

    /// The number of the packet being read; the next one gets the next number.
    pub(crate) fn count_frame(&mut self) -> u64 {
        let frame = self.frame;
        self.frame += 1;
        frame
    }

    /// The error for the record being read.
    pub(crate) fn error(&self, reason: impl Into<Reason>) -> ReadError {
        ReadError { frame: self.frame, offset: self.record, reason: reason.into() }
    }

    /// Appends the next `len` octets to `into`, or the rest of the file; returns how many.
    pub(crate) fn append(&mut self, len: usize, into: &mut Vec<u8>) -> Result<usize, ReadError> {
        into.reserve(len.min(FIRST_ALLOCATION));
        let read = (&mut self.input).take(len as u64).read_to_end(into).map_err(|error| self.error(error))?;
        self.offset += read as u64;
        Ok(read)
    }

    /// The next `N` octets: `None` at the end of the file, an error when it ends within them.
    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<Option<[u8; N]>, ReadError> {
        let mut octets = Vec::new();
        let found = self.append(N, &mut octets)?;
        if found == 0 {
            return Ok(None);
        }
        let array =
            <[u8; N]>::try_from(octets).map_err(|_| self.error(Reason::Truncated { what, needed: N, found }))?;
        Ok(Some(array))
    }
}

/// `u32` in the byte order of a file.
pub(crate) fn u32_of(order: pcap_file::Endianness, octets: [u8; 4]) -> u32 {
    if order.is_big() { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
}

/// `u16` in the byte order of a file.
pub(crate) fn u16_of(order: pcap_file::Endianness, octets: [u8; 2]) -> u16 {
    if order.is_big() { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
}
