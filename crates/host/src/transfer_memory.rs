//! Memory that a transfer reads from or writes to.

use srdma_rc::Memory;
use std::collections::TryReserveError;

/// A memory region of an endpoint.
#[derive(Debug)]
pub enum TransferMemory {
    /// Data to send.
    Source(Vec<u8>),
    /// Target of WRITEs. Memory is used up to the last octet that was written.
    Region {
        /// Received octets; zeros in gaps.
        octets: Vec<u8>,
        /// Length of the region.
        length: usize,
    },
    /// Target of SENDs: messages are appended, since their lengths are not known in advance.
    Stream {
        /// Received octets.
        octets: Vec<u8>,
        /// Maximum length.
        limit: usize,
        /// Octets received beyond the limit.
        excess: u64,
    },
}

impl TransferMemory {
    /// The length of a stream as a region: that of the longest message, 2^31 octets.
    const LONGEST_MESSAGE: u64 = srdma_rc::MAX_MESSAGE_OCTETS as u64;

    /// A region of `length` octets.
    ///
    /// # Errors
    ///
    /// If the memory cannot be reserved.
    pub fn region(length: usize) -> Result<Self, TryReserveError> {
        Ok(TransferMemory::Region { octets: reserved(length)?, length })
    }

    /// A stream of at most `limit` octets.
    ///
    /// # Errors
    ///
    /// If the memory cannot be reserved.
    pub fn stream(limit: usize) -> Result<Self, TryReserveError> {
        Ok(TransferMemory::Stream { octets: reserved(limit)?, limit, excess: 0 })
    }

    /// The octets so far.
    pub fn octets(&self) -> &[u8] {
        match self {
            TransferMemory::Source(octets)
            | TransferMemory::Region { octets, .. }
            | TransferMemory::Stream { octets, .. } => octets,
        }
    }

    /// Takes the octets out.
    pub fn take(&mut self) -> Vec<u8> {
        match self {
            TransferMemory::Source(octets)
            | TransferMemory::Region { octets, .. }
            | TransferMemory::Stream { octets, .. } => std::mem::take(octets),
        }
    }

    /// Octets beyond the limit of a stream.
    pub fn excess(&self) -> u64 {
        match self {
            TransferMemory::Source(_) | TransferMemory::Region { .. } => 0,
            TransferMemory::Stream { excess, .. } => *excess,
        }
    }
}

/// Reserved address space, without pages yet.
fn reserved(length: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut octets = Vec::new();
    octets.try_reserve_exact(length)?;
    Ok(octets)
}

impl Memory for TransferMemory {
    fn len(&self) -> u64 {
        match self {
            TransferMemory::Source(octets) => octets.len() as u64,
            TransferMemory::Region { length, .. } => *length as u64,
            TransferMemory::Stream { .. } => Self::LONGEST_MESSAGE,
        }
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        match self {
            TransferMemory::Source(source) => source.write(offset, octets),
            TransferMemory::Region { octets: region, length } => {
                let (start, end) = (offset as usize, offset as usize + octets.len());
                if start == region.len() && end <= *length {
                    region.extend_from_slice(octets);
                    return;
                }
                if end > region.len() {
                    region.resize(end.min(*length), 0);
                }
                region.write(offset, octets);
            }
            TransferMemory::Stream { octets: stream, limit, excess } => {
                let room = (*limit - stream.len()).min(octets.len());
                stream.extend_from_slice(&octets[..room]);
                *excess += (octets.len() - room) as u64;
            }
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        match self {
            TransferMemory::Source(source) => source.read(offset, into),
            // Neither readable by the peer nor a source of SENDs.
            TransferMemory::Region { .. } | TransferMemory::Stream { .. } => into.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_keeps_its_order_and_its_limit() {
        let mut stream = TransferMemory::stream(5).unwrap();
        stream.write(0, &[1, 2]);
        stream.write(0, &[3]);
        stream.write(9, &[4, 5, 6]);
        assert_eq!((stream.octets(), stream.excess()), (&[1, 2, 3, 4, 5][..], 1));
        assert_eq!(stream.len(), 1 << 31);
    }

    #[test]
    fn a_region_grows_to_its_length() {
        let mut region = TransferMemory::region(6).unwrap();
        region.write(0, &[1, 2]);
        region.write(4, &[5]);
        region.write(1, &[9]);
        assert_eq!((region.octets(), region.len()), (&[1, 9, 0, 0, 5][..], 6));
        region.write(5, &[6]);
        region.write(6, &[7]);
        assert_eq!(region.octets(), [1, 9, 0, 0, 5, 6], "nothing behind its end");
        assert!(TransferMemory::region(usize::MAX).is_err());
    }
}
