//! Packet sockets: opening, binding to an interface, and reading.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) const ADDRESS_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// A non-blocking raw packet socket, which receives nothing before it is bound.
pub(crate) fn open() -> io::Result<OwnedFd> {
    open_of(libc::AF_PACKET, 0)
}

/// A non-blocking raw socket of a family and a protocol.
pub(crate) fn open_of(family: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes no pointers, and the descriptor that it gives is ours alone.
    unsafe {
        match libc::socket(family, kind, protocol) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Ties a socket to an interface; 0 stands for every one. With a protocol, such as `ETH_P_ALL`, it receives from now
/// on; with 0 it only sends.
pub(crate) fn bind(socket: BorrowedFd<'_>, index: i32, protocol: u16) -> io::Result<()> {
    let address = address(index, protocol);
    // SAFETY: the descriptor is open, and the address is a sockaddr_ll of the length that is given.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), ADDRESS_OCTETS) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the next frame: its ingress interface, its packet type, and its length.
pub(crate) fn receive(socket: BorrowedFd<'_>, frame: &mut [u8]) -> io::Result<(libc::sockaddr_ll, usize)> {
    let mut from = address(0, 0);
    let mut length = ADDRESS_OCTETS;
    // SAFETY: `frame` and `from` can be written for the lengths that are given, and outlive the call.
    let result = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            frame.as_mut_ptr().cast(),
            frame.len(),
            0,
            (&raw mut from).cast(),
            &raw mut length,
        )
    };
    let len = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    Ok((from, len))
}

/// Sends a whole frame by a socket that is bound to an interface, so that no address is needed.
pub(crate) fn send(socket: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: `frame` can be read for the length that is given, and outlives the call.
    let result = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A protocol at an interface.
pub(crate) fn address(index: i32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [0; 8],
    }
}
