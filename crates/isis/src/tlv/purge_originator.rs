//! Purge Originator Identification (RFC 6232): the system that has generated a purge, and the neighbour that has caused
//! it, if one has.
//!
//! ```text
//! | number of systems 1: 1 or 2 | System ID of the generator 6 | System ID of the neighbour 6 |
//! ```

use super::{kind, put};
use crate::id::SystemId;
use crate::reader::{Malformed, Reader};

/// Generator of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeOriginator {
    /// The system that has added the TLV.
    pub system: SystemId,
    /// The neighbour from which that system has received the purge, or the LSP that it purges.
    pub received_from: Option<SystemId>,
}

impl PurgeOriginator {
    /// The TLV's fields.
    ///
    /// # Errors
    ///
    /// A number of systems other than 1 and 2, or another length.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the purge originator", value);
        let count = reader.u8()?;
        let wrong = |field, found, expected| Err(Malformed::Value { field, found, expected });
        if !(1..=2).contains(&count) {
            return wrong("the number of purge originators", u32::from(count), "1 or 2");
        }
        let system = reader.system()?;
        let received_from = if count == 2 { Some(reader.system()?) } else { None };
        if !reader.is_empty() {
            return wrong("the length of the purge originator", value.len() as u32, "7 or 13");
        }
        Ok(PurgeOriginator { system, received_from })
    }

    /// Appends the TLV.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let systems: Vec<SystemId> = std::iter::once(self.system).chain(self.received_from).collect();
        let octets = systems.iter().flat_map(|system| system.0);
        let value: Vec<u8> = std::iter::once(systems.len() as u8).chain(octets).collect();
        put(out, kind::PURGE_ORIGINATOR, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lengths_are_malformed() {
        let value = [2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2];
        let (system, neighbour) = (SystemId([0, 0, 0, 0, 0, 1]), SystemId([0, 0, 0, 0, 0, 2]));
        assert_eq!(PurgeOriginator::parse(&value), Ok(PurgeOriginator { system, received_from: Some(neighbour) }));
        for count in [0, 1, 3, 255] {
            let mut other = value;
            other[0] = count;
            assert!(PurgeOriginator::parse(&other).is_err(), "{count}");
        }
        assert!((0..value.len()).all(|len| PurgeOriginator::parse(&value[..len]).is_err()));
    }
}
