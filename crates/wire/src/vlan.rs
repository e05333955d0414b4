//! 802.1Q tag, as it follows EtherType 0x8100 (IEEE 802.1Q section 9.6).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | PCP |D|    VLAN Identifier    |           EtherType           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::ethernet::EtherType;
use crate::view::{Truncated, View};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// 802.1Q tag as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanView {
    control: U16,
    ethertype: U16,
}

impl View for VlanView {
    const NAME: &'static str = "802.1Q";
    const LEN: usize = 2 + 2;
}

impl VlanView {
    /// The fields.
    pub fn value(&self) -> Vlan {
        let control = self.control.get();
        Vlan {
            priority: (control >> 13) as u8,
            drop_eligible: control & 0x1000 != 0,
            id: control & 0x0FFF,
            ethertype: EtherType(self.ethertype.get()),
        }
    }
}

/// 802.1Q tag as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// Priority code point, 0–7.
    pub priority: u8,
    pub drop_eligible: bool,
    /// VLAN identifier, 12 bits; 0 is a priority tag.
    pub id: u16,
    pub ethertype: EtherType,
}

impl Vlan {
    /// Length in octets.
    pub const LEN: usize = VlanView::LEN;

    /// The tag at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = VlanView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The tag's octets; priority and identifier are cut to their widths.
    pub fn emit(&self) -> VlanView {
        let control = u16::from(self.priority & 7) << 13 | u16::from(self.drop_eligible) << 12 | self.id & 0x0FFF;
        VlanView { control: U16::new(control), ethertype: U16::new(self.ethertype.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// Priority 3, not drop eligible, VLAN 100, made by scapy; and all bits set.
    #[test]
    fn fields_of_made_tags() {
        let tag = Vlan { priority: 3, drop_eligible: false, id: 100, ethertype: EtherType::IPV6 };
        assert_eq!(Vlan::parse(&[0x60, 0x64, 0x86, 0xDD, 9]), Ok((tag, &[9][..])));
        assert_eq!(tag.emit().as_bytes(), [0x60, 0x64, 0x86, 0xDD]);
        let full = Vlan { priority: 7, drop_eligible: true, id: 0xFFF, ethertype: EtherType(0xFFFF) };
        assert_eq!(Vlan::parse(&[0xFF; 4]), Ok((full, &[][..])));
        assert_eq!(full.emit().as_bytes(), [0xFF; 4]);
    }

    #[test]
    fn fields_are_cut_to_their_widths() {
        let wide = Vlan { priority: 0xFF, drop_eligible: false, id: 0xFFFF, ethertype: EtherType(0) };
        assert_eq!(wide.emit().as_bytes(), [0xEF, 0xFF, 0, 0]);
    }
}
