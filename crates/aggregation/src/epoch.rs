//! The epoch of a response between two nodes.
//!
//! When an existing part of the group moves below a node (re-homing), the node's earlier responses do not hold for it.
//! So responses between nodes carry the low 14 bits of the sender's epoch in their UDP source port, and a node drops
//! responses that a child sent before its branch was renewed. Responses of receivers carry no epoch, for a receiver
//! responds for itself alone.
//!
//! ```text
//!   UDP source port    1 1 e e e e e e e e e e e e e e        e: epoch mod 2^14
//! ```

/// Ports from here on are dynamic (RFC 6335 section 6).
const FIRST_PORT: u16 = 0xC000;
/// Bits of the tag.
const BITS: u32 = 14;

/// The low 14 bits of an epoch, ordered serially.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochTag(u16);

impl EpochTag {
    /// The tag of a node's responses in this epoch.
    pub const fn of(epoch: u32) -> Self {
        EpochTag((epoch & ((1 << BITS) - 1)) as u16)
    }

    /// The tag that a UDP source port carries.
    pub const fn from_port(port: u16) -> Self {
        EpochTag(port & !FIRST_PORT)
    }

    /// The UDP source port that carries the tag.
    pub const fn port(self) -> u16 {
        FIRST_PORT | self.0
    }

    /// The epoch that the tag stands for at a node in the epoch `near`: the one within half a window of it.
    const fn near(self, near: u32) -> u32 {
        let ahead = (((self.0 as u32).wrapping_sub(near) << (32 - BITS)) as i32) >> (32 - BITS);
        near.wrapping_add_signed(ahead)
    }

    /// Whether a child sent this before its branch was last renewed, for a node in epoch `epoch`. Responses of a branch
    /// that was never renewed (0) are accepted in every epoch.
    pub const fn is_before(self, renewed: u32, epoch: u32) -> bool {
        renewed != 0 && is_older(self.near(epoch), renewed)
    }
}

/// Whether one epoch is serially before another: half a window of 2^31.
pub const fn is_older(epoch: u32, than: u32) -> bool {
    (epoch.wrapping_sub(than) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A renewal in this epoch or shortly before separates accepted from rejected tags, wherever the 14 bits wrap.
    #[test]
    fn tags_are_compared_serially() {
        for renewed in [1_u32, 7, 0x1FFF, 0x2000, 0x3FFF, 0x4000, 0x4001, 0x1_2345] {
            for since in [0, 1, 100, 5_000] {
                let epoch = renewed + since;
                for before in 1..=renewed.min(100) {
                    assert!(EpochTag::of(renewed - before).is_before(renewed, epoch), "{renewed} {since} {before}");
                }
                for after in 0..100 {
                    assert!(!EpochTag::of(renewed + after).is_before(renewed, epoch), "{renewed} {since} {after}");
                }
            }
        }
    }

    /// A renewal long ago must not silence a branch when 2^13 epochs have passed since.
    #[test]
    fn an_old_renewal_makes_no_branch_unknown() {
        for epoch in [10_000, 100_000, 1 << 30] {
            assert!(!EpochTag::of(epoch).is_before(3, epoch));
            assert!(!EpochTag::of(epoch).is_before(0, epoch));
        }
        assert!(!EpochTag::of(0).is_before(0, 1));
    }

    #[test]
    fn a_port_carries_the_tag() {
        assert_eq!(EpochTag::of(0x1_2345).port(), 0xE345);
        assert_eq!(EpochTag::from_port(0xE345), EpochTag::of(0x1_2345));
        assert_eq!(EpochTag::of(0).port(), 0xC000);
    }

    #[test]
    fn epochs_are_serial() {
        assert!(is_older(1, 2) && !is_older(2, 2) && !is_older(3, 2) && is_older(u32::MAX, 0));
    }
}
