//! End.MT TLV (multicast draft, section 7.2; MT-7.2-1). An MR TLV (D27) begins alike.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      Type     |     Length    |            Reserved           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +                       Edge Node Address                       +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Num Receivers |                    Reserved                   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :                     Num Receivers entries                     :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! An entry of an End.MT TLV:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +                        Receiver Address                       +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                  Receiver QPN                 |    Reserved   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::psn::Qpn;
use crate::view::View;
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Receivers that one End.MT TLV can name: its Length has eight bits (D7).
pub const MAX_RECEIVERS: usize = 11;

/// End.MT TLV without its receivers, or MR TLV without its regions. Reserved octets are sent as zero and ignored on
/// receipt (MT-7.2-2).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EdgeListView {
    kind: u8,
    length: u8,
    reserved: U16,
    edge: [u8; 16],
    count: u8,
    reserved2: [u8; 3],
}

impl View for EdgeListView {
    const NAME: &'static str = "End.MT TLV";
    const LEN: usize = 1 + 1 + 2 + 16 + 1 + 3;
}

impl EdgeListView {
    /// The edge node that the list is for.
    pub fn edge(&self) -> Ipv6Addr {
        self.edge.into()
    }

    /// The edge node as it lies.
    pub fn edge_octets(&self) -> &[u8; 16] {
        &self.edge
    }

    /// Num Receivers: the number of entries according to the TLV.
    pub fn count(&self) -> u8 {
        self.count
    }

    pub(super) fn new(kind: u8, edge: Ipv6Addr, count: usize, entry_len: usize) -> Option<Self> {
        let length = Self::LEN - 2 + count * entry_len;
        Some(EdgeListView {
            kind,
            length: u8::try_from(length).ok()?,
            reserved: U16::ZERO,
            edge: edge.octets(),
            count: u8::try_from(count).ok()?,
            reserved2: [0; 3],
        })
    }
}

/// One receiver of an End.MT TLV.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ReceiverView {
    address: [u8; 16],
    qpn: [u8; 3],
    reserved: u8,
}

impl View for ReceiverView {
    const NAME: &'static str = "End.MT receiver";
    const LEN: usize = 16 + 3 + 1;
}

impl ReceiverView {
    /// An entry.
    pub fn new(address: Ipv6Addr, qpn: Qpn) -> Self {
        ReceiverView { address: address.octets(), qpn: qpn.to_octets(), reserved: 0 }
    }

    /// Unicast address of the receiver.
    pub fn address(&self) -> Ipv6Addr {
        self.address.into()
    }

    /// The receiver's own queue pair.
    pub fn qpn(&self) -> Qpn {
        Qpn::from_octets(self.qpn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first TLV of a packet that scapy made (MT-7.2-1).
    #[test]
    fn fields_have_their_places() {
        let edge = "2001:db8:a::1".parse().unwrap();
        let view = EdgeListView::new(124, edge, 2, ReceiverView::LEN).unwrap();
        let mut octets = [0; 24];
        (octets[0], octets[1], octets[20]) = (0x7C, 0x3E, 2);
        octets[4..20].copy_from_slice(&[0x20, 0x01, 0x0D, 0xB8, 0, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(view.as_bytes(), octets);
        assert_eq!((view.edge(), view.count()), (edge, 2));

        let address = "2001:db8:2::1".parse().unwrap();
        let receiver = ReceiverView::new(address, Qpn::new(0x111).unwrap());
        assert_eq!(receiver.as_bytes(), [0x20, 0x01, 0x0D, 0xB8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x11, 0]);
        assert_eq!((receiver.address(), receiver.qpn().get()), (address, 0x111));
    }

    /// Eleven receivers make a Length of 242, twelve would need more than eight bits (D7).
    #[test]
    fn a_list_has_at_most_eleven_receivers() {
        let list = |count| EdgeListView::new(124, Ipv6Addr::LOCALHOST, count, ReceiverView::LEN);
        assert_eq!(list(MAX_RECEIVERS).unwrap().as_bytes()[1], 242);
        assert!(list(MAX_RECEIVERS + 1).is_none());
    }
}
