//! Prefixes from another level: the up/down bit (RFC 5308 section 2, RFC 9352 section 7.1), and R of the Prefix
//! Attribute Flags (RFC 7794 section 2.1).
//!
//! ```text
//! sub-TLV 4: | X R N … 1 or more |
//! ```

use super::{Tlvs, put};

const SUB_ATTRIBUTE_FLAGS: u8 = 4;
const FLAG_READVERTISED: u8 = 0x40;

/// Whether a prefix comes from the other level, by a system that is at both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leak {
    /// The system's own.
    #[default]
    None,
    /// From level 1 up into level 2.
    Up,
    /// From level 2 down into level 1, from where it must not go up again.
    Down,
}

impl Leak {
    /// By the up/down bit and the sub-TLVs of a prefix.
    pub(super) fn parse(is_down: bool, subs: Tlvs<'_>) -> Self {
        let flags = subs.of_kind(SUB_ATTRIBUTE_FLAGS).find_map(|value| value.first().copied()).unwrap_or(0);
        match (is_down, flags & FLAG_READVERTISED != 0) {
            (true, _) => Leak::Down,
            (false, true) => Leak::Up,
            (false, false) => Leak::None,
        }
    }

    /// The up/down bit.
    pub(super) const fn is_down(self) -> bool {
        matches!(self, Leak::Down)
    }

    /// Appends the sub-TLV, if a flag is set.
    pub(super) fn emit(self, subs: &mut Vec<u8>) {
        if self != Leak::None {
            put(subs, SUB_ATTRIBUTE_FLAGS, &[FLAG_READVERTISED]);
        }
    }
}
