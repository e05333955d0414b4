//! Errors of capture files.

use std::fmt;

/// A part of a capture that could not be read.
///
/// The reader continues behind a damaged packet when the beginning of the next one is known; otherwise the error is its
/// last item.
#[derive(Debug, thiserror::Error)]
#[error("packet {frame} at offset {offset}: {reason}")]
pub struct ReadError {
    /// The number of the packet that was to be read, from 1.
    pub frame: u64,
    /// Offset of the damaged record from the start of the file, in octets.
    pub offset: u64,
    /// Cause of the error.
    pub reason: Reason,
}

/// The reason why a record of a capture could not be read.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The file itself could not be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file begins like no capture.
    #[error("expected a pcap or pcapng capture, found {}", Beginning(.0))]
    NotACapture(Vec<u8>),
    /// The file ends within a record.
    #[error("{what} needs {needed} octets, {found} left in the file")]
    Truncated {
        /// The record.
        what: &'static str,
        /// Octets that it occupies.
        needed: usize,
        /// Octets that were there.
        found: usize,
    },
    /// A length that no sane writer would write.
    #[error("{what} of {length} octets, expected at most {limit}")]
    TooLong {
        /// The record.
        what: &'static str,
        length: u32,
        /// The longest that is read.
        limit: usize,
    },
    /// A pcapng block length that cannot be.
    #[error("block length must be a multiple of 4 and at least 12, found {0}")]
    BlockLength(u32),
    /// A pcapng block whose length is another at its end than at its beginning.
    #[error("block length is {length} at its beginning, {trailer} at its end")]
    BlockTrailer {
        /// The length at its beginning.
        length: u32,
        /// The length at its end.
        trailer: u32,
    },
    /// A pcapng block that contradicts itself.
    #[error("{0}")]
    Block(String),
    /// A pcapng packet of an interface that was not described.
    #[error("interface {interface} is not described, the section has {known}")]
    UnknownInterface {
        /// The number that the packet names.
        interface: u32,
        /// Number of interfaces that the section has described so far.
        known: usize,
    },
    /// A pcap time stamp whose fraction is a second or more.
    #[error("fraction of a second must be below {limit}, found {found}")]
    TimeFraction {
        /// The fraction.
        found: u32,
        /// Units in a second.
        limit: u32,
    },
    /// A time that does not fit 64 bits of nanoseconds since 1970.
    #[error("time stamp lies before 1970 or after 2554")]
    TimeRange,
}

impl Reason {
    /// The reason for a block that `pcap-file` refuses.
    pub(crate) fn block(error: &pcap_file::PcapError) -> Self {
        Reason::Block(error.to_string())
    }
}

/// The first octets of a file, shown for what they are.
struct Beginning<'a>(&'a [u8]);

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => return f.write_str("an empty file"),
            [0x1F, 0x8B, ..] => return f.write_str("a gzip file; decompress it first"),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => return f.write_str("a zstd file; decompress it first"),
            _ => f.write_str("a file that begins with")?,
        }
        self.0.iter().try_for_each(|octet| write!(f, " {octet:02x}"))
    }
}
