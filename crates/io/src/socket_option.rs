//! Options of sockets whose value the kernel takes as a number or a plain structure.

use libc::{c_int, socklen_t};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Numbers, and structures of numbers.
///
/// # Safety
///
/// Any octets are a value, and none is an address.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => {$(
        // SAFETY: a number, or a structure of numbers.
        unsafe impl Plain for $name {}
    )*};
}

plain!(c_int, u32, libc::tpacket_req, libc::tpacket_stats, libc::packet_mreq, libc::ipv6_mreq);
plain!(libc::xdp_options, libc::xdp_statistics, libc::xdp_mmap_offsets);

pub(crate) fn set<T: Plain>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: there are no addresses in the value.
    unsafe { set_with_pointers(socket, level, option, value) }
}

/// Sets an option whose value has addresses.
///
/// # Safety
///
/// They are those of memory that the kernel may use as this option does.
pub(crate) unsafe fn set_with_pointers<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of::<T>() as socklen_t;
    // SAFETY: the value has the length given, and lives through the call; the caller answers for its addresses.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), len) })
}

/// Reads an option.
pub(crate) fn get<T: Plain>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &mut T) -> io::Result<()> {
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `len` octets, which the value has; plain values take any.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut *value).cast(), &raw mut len) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
