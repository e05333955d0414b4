//! Options of sockets whose value the kernel takes as a number or a plain structure.

use libc::{c_int, socklen_t};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(crate) fn set<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as socklen_t;
    // SAFETY: the value has the length given, and lives through the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), len) })
}

/// Reads an option, whose value consists of numbers only.
pub(crate) fn get<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &mut T) -> io::Result<()> {
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `len` octets, which the value has; numbers take any.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut *value).cast(), &raw mut len) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
