//! The reader of either format.

use crate::error::{ReadError, Reason};
use crate::packet::{Interface, Packet};
use crate::pcap::Pcap;
use crate::pcapng::{self, Pcapng};
use crate::source::Source;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Reads the packets of a pcap or pcapng file from its first to its last.
///
/// As an iterator it yields each packet, and an error for each that is damaged. It continues after the damage if the
/// start of the next packet can be found, and always ends.
pub struct Reader<R> {
    source: Source<R>,
    format: Format,
    ended: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> Reader<R> {
    /// Reads the file's header. Buffers what it reads.
    ///
    /// # Errors
    ///
    /// [`Reason::NotACapture`] if the file begins like neither format, else what is wrong with its header.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut source = Source::new(input);
        let mut beginning = Vec::new();
        source.append(4, &mut beginning)?;
        let format = match beginning.as_array::<4>() {
            Some(&pcapng::MAGIC) => Format::Pcapng(Pcapng::open(&mut source)?),
            Some(&magic) if is_pcap(magic) => Format::Pcap(Pcap::open(&mut source, magic)?),
            _ => return Err(source.error(Reason::NotACapture(beginning))),
        };
        Ok(Reader { source, format, ended: false })
    }

    /// The interfaces that have been described so far; a pcap file has one.
    pub fn interfaces(&self) -> &[Arc<Interface>] {
        match &self.format {
            Format::Pcap(pcap) => std::slice::from_ref(&pcap.interface),
            Format::Pcapng(pcapng) => &pcapng.interfaces,
        }
    }
}

impl Reader<File> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// As [`Reader::new`], and [`Reason::Io`] if the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|error| ReadError { frame: 1, offset: 0, reason: error.into() })?;
        Reader::new(file)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Packet, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.source),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.source),
        };
        self.ended = !matches!(next, Ok(Some(_)));
        next.unwrap_or_else(|error| Some(Err(error)))
    }
}

/// Whether a file that begins so is a pcap: either byte order, microseconds or nanoseconds.
fn is_pcap(magic: [u8; 4]) -> bool {
    matches!(u32::from_be_bytes(magic), 0xA1B2_C3D4 | 0xA1B2_3C4D | 0xD4C3_B2A1 | 0x4D3C_B2A1)
}
