//! Memory that a transfer reads from or writes to.

use crate::files::FileSource;
use crate::sink::Sink;
use srdma_rc::Memory;

/// A memory region of an endpoint.
#[derive(Debug)]
pub enum TransferMemory {
    /// Data to send.
    Source(Vec<u8>),
    /// A file to send.
    File(Box<FileSource>),
    /// Target of WRITEs.
    Region(Box<Sink>),
    /// Target of SENDs: messages are appended, since their lengths are not known in advance. The program takes them out
    /// after each batch of packets.
    Stream(Vec<u8>),
}

impl TransferMemory {
    /// The length of a stream as a region: that of the longest message, 2^31 octets.
    const LONGEST_MESSAGE: u64 = srdma_rc::MAX_MESSAGE_OCTETS as u64;
}

impl Memory for TransferMemory {
    fn len(&self) -> u64 {
        match self {
            TransferMemory::Source(octets) => octets.len() as u64,
            TransferMemory::File(file) => file.octets(),
            TransferMemory::Region(sink) => sink.limit_octets(),
            TransferMemory::Stream(_) => Self::LONGEST_MESSAGE,
        }
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        match self {
            TransferMemory::Source(source) => source.write(offset, octets),
            // No peer may write to it, and nothing is received into it.
            TransferMemory::File(_) => {}
            TransferMemory::Region(sink) => sink.write(offset, octets),
            TransferMemory::Stream(stream) => stream.extend_from_slice(octets),
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        match self {
            TransferMemory::Source(source) => source.read(offset, into),
            TransferMemory::File(file) => file.read(offset, into),
            // Neither readable by the peer nor a source of SENDs.
            TransferMemory::Region(_) | TransferMemory::Stream(_) => into.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_keeps_its_order() {
        let mut stream = TransferMemory::Stream(Vec::new());
        stream.write(0, &[1, 2]);
        stream.write(0, &[3]);
        stream.write(9, &[4, 5, 6]);
        assert!(matches!(&stream, TransferMemory::Stream(octets) if octets == &[1, 2, 3, 4, 5, 6]));
        assert_eq!(stream.len(), 1 << 31);
    }

    #[test]
    fn what_comes_in_cannot_be_read() {
        let mut region = TransferMemory::Region(Box::new(Sink::new(6, 0, None)));
        region.write(0, &[1, 2]);
        let mut octets = [9; 2];
        region.read(0, &mut octets);
        assert_eq!((octets, region.len()), ([0; 2], 6));
    }
}
