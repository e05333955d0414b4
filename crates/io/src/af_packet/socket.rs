//! A packet socket at one interface.

use crate::packet_socket;
use crate::share::FanoutGroup;
use crate::socket_option::{self, Plain};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Missing in the libc crate (linux/if_packet.h).
pub(super) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Missing in the libc crate (linux/if_packet.h): the kernel chooses the number of the group.
const PACKET_FANOUT_FLAG_UNIQUEID: libc::c_uint = 0x2000;

/// Missing in the libc crate (linux/if_packet.h): the sockets get no frames that leave by the interface.
/// `PACKET_IGNORE_OUTGOING` has no effect in a group.
const PACKET_FANOUT_FLAG_IGNORE_OUTGOING: libc::c_uint = 0x4000;

/// How a fanout group distributes frames.
const FANOUT: libc::c_uint = libc::PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_IGNORE_OUTGOING;

/// A raw packet socket that never waits.
#[derive(Debug)]
pub(super) struct Socket {
    descriptor: OwnedFd,
}

impl Socket {
    /// A socket that receives nothing yet.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Socket { descriptor: packet_socket::open()? })
    }

    /// Ties the socket to an interface. With a protocol, such as `ETH_P_ALL`, it receives from now on; with 0 it only
    /// sends.
    pub(super) fn bind(&self, index: i32, protocol: u16) -> io::Result<()> {
        packet_socket::bind(self.as_fd(), index, protocol)
    }

    /// Sets an option whose value the kernel reads as a plain structure.
    pub(super) fn set<T: Plain>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        socket_option::set(self.as_fd(), level, option, value)
    }

    /// Sets an option of packet sockets.
    pub(super) fn set_packet<T: Plain>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        self.set(libc::SOL_PACKET, option, value)
    }

    /// Makes a fanout group of its own for the socket, which is bound: others that join it have their part of the flows.
    pub(super) fn begin_fanout(&self) -> io::Result<FanoutGroup> {
        let unique = (FANOUT | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
        self.set_packet(libc::PACKET_FANOUT, &unique)?;
        let mut group: libc::c_int = 0;
        socket_option::get(self.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, &mut group)?;
        // Its number is in the lower half.
        Ok(FanoutGroup(group as u16))
    }

    /// Joins a fanout group.
    pub(super) fn join_fanout(&self, group: FanoutGroup) -> io::Result<FanoutGroup> {
        self.set_packet(libc::PACKET_FANOUT, &((FANOUT << 16) | u32::from(group.0)))?;
        Ok(group)
    }

    /// Frames that found no free slot since the last call.
    pub(super) fn take_losses(&self) -> io::Result<u64> {
        let mut losses = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        socket_option::get(self.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut losses)?;
        Ok(u64::from(losses.tp_drops))
    }

    /// The error that waits at the socket since the last call.
    pub(super) fn take_error(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        socket_option::get(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
        match error {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Whether an interface of that number is still there, in the namespace of the socket.
    pub(super) fn knows_interface(&self, index: i32) -> bool {
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_ifru.ifru_ifindex = index;
        // SAFETY: the request is what this ioctl reads and writes, and lives through the call.
        unsafe { libc::ioctl(self.raw(), libc::SIOCGIFNAME, &raw mut request) == 0 }
    }

    /// The MTU of an interface.
    pub(super) fn mtu(&self, name: &str) -> io::Result<usize> {
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, octet) in request.ifr_name.iter_mut().zip(name.as_bytes()).take(libc::IFNAMSIZ - 1) {
            *place = octet.cast_signed();
        }
        // SAFETY: the request is what this ioctl reads and writes, and lives through the call.
        check(unsafe { libc::ioctl(self.raw(), libc::SIOCGIFMTU, &raw mut request) })?;
        // SAFETY: this ioctl has written the MTU.
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.try_into().unwrap_or(0))
    }

    pub(super) fn raw(&self) -> libc::c_int {
        self.descriptor.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
