//! The distance between the PSNs of a receiver and those of its group (D270).

use serde::{Deserialize, Serialize};
use srdma_wire::Psn;

/// What an edge adds to the group's PSNs in a receiver's copies, and subtracts from those of its responses: a number of
/// 24 bits. It is zero where the receiver's queue pair expects the group's PSNs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct PsnOffset(u32);

impl PsnOffset {
    /// The same PSNs.
    pub const ZERO: PsnOffset = PsnOffset(0);

    /// From the group's PSN of a packet to the receiver's.
    pub const fn between(group: Psn, receiver: Psn) -> Self {
        PsnOffset(receiver.minus(group.get()).get())
    }

    /// `None` where the number has more than 24 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number < 1 << 24 { Some(PsnOffset(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether the receiver has the group's PSNs.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The receiver's PSN for one of the group.
    pub const fn of_receiver(self, group: Psn) -> Psn {
        group.plus(self.0)
    }

    /// The group's PSN for one of the receiver.
    pub const fn of_group(self, receiver: Psn) -> Psn {
        receiver.minus(self.0)
    }
}

impl TryFrom<u32> for PsnOffset {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        PsnOffset::new(number).ok_or_else(|| format!("PSN offset {number} exceeds 24 bits"))
    }
}

impl From<PsnOffset> for u32 {
    fn from(offset: PsnOffset) -> u32 {
        offset.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_across_zero() {
        for (group, receiver) in [(0, 0), (5, 3), (0xFF_FFFF, 0), (0, 0xFF_FFFF), (0x80_0000, 0x7F_FFFF)] {
            let (group, receiver) = (Psn::new(group), Psn::new(receiver));
            let offset = PsnOffset::between(group, receiver);
            assert_eq!(offset.of_receiver(group), receiver);
            assert_eq!(offset.of_group(receiver), group);
            assert_eq!(offset.of_receiver(group.plus(9)), receiver.plus(9));
        }
    }

    #[test]
    fn has_24_bits_in_documents() {
        assert_eq!(serde_json::from_str::<PsnOffset>("16777215").unwrap(), PsnOffset::new(0xFF_FFFF).unwrap());
        let refused = serde_json::from_str::<PsnOffset>("16777216").unwrap_err().to_string();
        assert!(refused.contains("exceeds 24 bits"), "{refused}");
    }
}
