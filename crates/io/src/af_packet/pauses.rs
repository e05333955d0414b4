//! Reception of pauses: they are sent to a group address (IEEE 802.1Q clause 36), whose frames an interface drops
//! unless a socket joins the group.

use super::socket::Socket;
use std::io;

/// Destination of pauses.
const GROUP: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];

/// Has an interface take frames to the group of pauses while they are wanted. The kernel leaves the group when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Pauses {
    socket: Socket,
    index: i32,
    are_wanted: bool,
}

impl Pauses {
    /// For an interface of the namespace that the calling thread is in.
    ///
    /// # Errors
    ///
    /// If the interface is gone, or its addresses have other than six octets.
    pub(crate) fn new(index: i32, are_wanted: bool) -> io::Result<Self> {
        let mut pauses = Pauses { socket: Socket::new()?, index, are_wanted: false };
        pauses.set(are_wanted)?;
        Ok(pauses)
    }

    /// Joins or leaves the group.
    ///
    /// # Errors
    ///
    /// Those of [`Pauses::new`].
    pub(crate) fn set(&mut self, are_wanted: bool) -> io::Result<()> {
        if are_wanted == self.are_wanted {
            return Ok(());
        }
        let mut address = [0; 8];
        address[..GROUP.len()].copy_from_slice(&GROUP);
        let request = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: GROUP.len() as u16,
            mr_address: address,
        };
        let change = if are_wanted { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
        self.socket.set_packet(change, &request)?;
        self.are_wanted = are_wanted;
        Ok(())
    }
}
