//! Reception of frames that an interface drops unless a socket asks for them: pauses, which are sent to a group address
//! (IEEE 802.1Q clause 36), and frames to other MAC addresses.

use super::socket::Socket;
use crate::interest::Interest;
use std::io;

/// Destination of pauses.
const GROUP: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];

/// Has an interface take the frames of an interest while they are wanted. The kernel ends the memberships when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Memberships {
    socket: Socket,
    index: i32,
    has_pauses: bool,
    is_promiscuous: bool,
}

impl Memberships {
    /// For an interface of the namespace that the calling thread is in.
    ///
    /// # Errors
    ///
    /// If the interface is gone, or its addresses have other than six octets.
    pub(crate) fn new(index: i32, interest: &Interest) -> io::Result<Self> {
        let socket = Socket::new()?;
        let mut memberships = Memberships { socket, index, has_pauses: false, is_promiscuous: false };
        memberships.set(interest)?;
        Ok(memberships)
    }

    /// Joins and leaves what the interest demands.
    ///
    /// # Errors
    ///
    /// Those of [`Memberships::new`].
    pub(crate) fn set(&mut self, interest: &Interest) -> io::Result<()> {
        if interest.pfc != self.has_pauses {
            self.change(libc::PACKET_MR_MULTICAST, &GROUP, interest.pfc)?;
            self.has_pauses = interest.pfc;
        }
        if interest.everything != self.is_promiscuous {
            self.change(libc::PACKET_MR_PROMISC, &[], interest.everything)?;
            self.is_promiscuous = interest.everything;
        }
        Ok(())
    }

    fn change(&self, kind: libc::c_int, group: &[u8], is_member: bool) -> io::Result<()> {
        let mut address = [0; 8];
        address[..group.len()].copy_from_slice(group);
        let request = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: kind as u16,
            mr_alen: group.len() as u16,
            mr_address: address,
        };
        let change = if is_member { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
        self.socket.set_packet(change, &request)
    }
}
