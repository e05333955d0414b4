//! libibverbs as this crate uses it. All `unsafe` of the crate is here; each block states why it is sound.
//!
//! * [`layout`] has structures and constants of `infiniband/verbs.h`. Tests compare them with values that a C compiler
//!   has printed from that header.
//! * [`library`] has the functions, found by their names when the library is loaded. It is never unloaded.
//! * Handles own what libibverbs has returned: [`Context`], [`Domain`], [`Region`], [`Completions`], [`Pair`]. A handle
//!   keeps those alive that it was made from, so that they are destroyed in the order that libibverbs requires. They
//!   are `Send` and `Sync` because libibverbs locks inside (ibv_post_send(3) and others: thread safe).
//! * A handle belongs to the process that opened the device. After fork(2) the child shares the parent's descriptors:
//!   its calls fail by [`Error::Forked`], and dropping a handle there destroys nothing.
//! * The device reads and writes only registered memory, by keys that it checks itself. So posting requests is safe,
//!   whatever they name; what must hold is the contract of [`Memory`]. Inline data, which a provider reads without a
//!   key, is never used.

#![allow(unsafe_code)]

mod completions;
mod context;
pub(crate) mod layout;
mod library;
mod memory;
mod pair;
mod region;

pub(crate) use completions::Completions;
pub(crate) use context::{Context, RawEvent, device_names};
pub(crate) use library::{LIBRARY_NAME, Library, LoadError};
pub use memory::{Buffer, Memory, RawMemory};
pub(crate) use pair::{Pair, SendWork};
pub(crate) use region::{Domain, Region};

use std::ffi::c_int;
use std::io;

/// Failure of a call.
#[derive(Debug)]
pub(crate) enum Error {
    /// The device was opened by another process, which has forked this one.
    Forked,
    /// What libibverbs or the kernel returned.
    System(io::Error),
}

type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// That of a call that has set `errno`.
    fn last() -> Self {
        Error::System(io::Error::last_os_error())
    }
}

/// Result of a call that returns 0, an error number, or -1 with `errno` set.
fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        1.. => Err(Error::System(io::Error::from_raw_os_error(code))),
        _ => Err(Error::last()),
    }
}

/// Makes reads of a descriptor return `EAGAIN` instead of blocking.
fn set_nonblocking(descriptor: c_int) -> Result<()> {
    // SAFETY: fcntl(2) with numbers only; it fails for a descriptor that is not open.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        return Err(Error::last());
    }
    // SAFETY: as above.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) })
}

/// The limit of locked memory of this process, in octets; `None` without a limit.
pub(crate) fn locked_memory_limit_octets() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) writes the structure that it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
