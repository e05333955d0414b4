//! Memory that a stream is sent from or lands in.

use srdma_rc::Memory;
use std::collections::TryReserveError;

/// A memory region of an endpoint.
#[derive(Debug)]
pub enum Landing {
    /// What is sent.
    Source(Vec<u8>),
    /// Octets by their offset, for WRITEs. Memory is used as far as something was written.
    Region {
        /// What has come; zeros where nothing has.
        octets: Vec<u8>,
        /// Octets that it may have.
        length: usize,
    },
    /// The messages of SENDs, one behind the other wherever the receives lie: nobody knows before how long each is.
    Stream {
        /// What has come.
        octets: Vec<u8>,
        /// More is not kept.
        limit: usize,
        /// Octets that came beyond the limit.
        excess: u64,
    },
}

impl Landing {
    /// The length of a stream as a region: that of the longest message, 2^31 octets.
    const LONGEST_MESSAGE: u64 = srdma_rc::MAX_MESSAGE_OCTETS as u64;

    /// A region of so many octets.
    ///
    /// # Errors
    ///
    /// When there is no such memory.
    pub fn region(length: usize) -> Result<Self, TryReserveError> {
        Ok(Landing::Region { octets: reserved(length)?, length })
    }

    /// A stream of at most `limit` octets.
    ///
    /// # Errors
    ///
    /// When there is no such memory.
    pub fn stream(limit: usize) -> Result<Self, TryReserveError> {
        Ok(Landing::Stream { octets: reserved(limit)?, limit, excess: 0 })
    }

    /// The octets that there are.
    pub fn octets(&self) -> &[u8] {
        match self {
            Landing::Source(octets) | Landing::Region { octets, .. } | Landing::Stream { octets, .. } => octets,
        }
    }

    /// The octets that there are, taken out.
    pub fn take(&mut self) -> Vec<u8> {
        match self {
            Landing::Source(octets) | Landing::Region { octets, .. } | Landing::Stream { octets, .. } => {
                std::mem::take(octets)
            }
        }
    }

    /// Octets that a stream had no room for.
    pub fn excess(&self) -> u64 {
        match self {
            Landing::Source(_) | Landing::Region { .. } => 0,
            Landing::Stream { excess, .. } => *excess,
        }
    }
}

/// Memory that the kernel has promised and not yet given.
fn reserved(length: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut octets = Vec::new();
    octets.try_reserve_exact(length)?;
    Ok(octets)
}

impl Memory for Landing {
    fn len(&self) -> u64 {
        match self {
            Landing::Source(octets) => octets.len() as u64,
            Landing::Region { length, .. } => *length as u64,
            Landing::Stream { .. } => Self::LONGEST_MESSAGE,
        }
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        match self {
            Landing::Source(source) => source.write(offset, octets),
            Landing::Region { octets: region, length } => {
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
            Landing::Stream { octets: stream, limit, excess } => {
                let room = (*limit - stream.len()).min(octets.len());
                stream.extend_from_slice(&octets[..room]);
                *excess += (octets.len() - room) as u64;
            }
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        match self {
            Landing::Source(source) => source.read(offset, into),
            // No peer may read them, and nothing is sent from them.
            Landing::Region { .. } | Landing::Stream { .. } => into.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_keeps_its_order_and_its_limit() {
        let mut stream = Landing::stream(5).unwrap();
        stream.write(0, &[1, 2]);
        stream.write(0, &[3]);
        stream.write(9, &[4, 5, 6]);
        assert_eq!((stream.octets(), stream.excess()), (&[1, 2, 3, 4, 5][..], 1));
        assert_eq!(stream.len(), 1 << 31);
    }

    #[test]
    fn a_region_grows_to_its_length() {
        let mut region = Landing::region(6).unwrap();
        region.write(0, &[1, 2]);
        region.write(4, &[5]);
        region.write(1, &[9]);
        assert_eq!((region.octets(), region.len()), (&[1, 9, 0, 0, 5][..], 6));
        region.write(5, &[6]);
        region.write(6, &[7]);
        assert_eq!(region.octets(), [1, 9, 0, 0, 5, 6], "nothing behind its end");
        assert!(Landing::region(usize::MAX).is_err());
    }
}
