//! Errors as negative errno values, with a sentence for the thread.

use srdma::{Error, ManifestError, Over, ProblemType, VerbsError, WireError};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a function fails.
pub(crate) struct Failure {
    /// A positive errno.
    errno: c_int,
    message: String,
}

impl Failure {
    pub(crate) fn new(errno: c_int, message: impl Into<String>) -> Self {
        Failure { errno, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Failure::new(libc::EINVAL, message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { errno: errno_of(&error), message: error.to_string() }
    }
}

fn errno_of(error: &Error) -> c_int {
    match error {
        Error::UnknownProvider(_) => libc::ENODEV,
        Error::Verbs(error) => verbs_errno(error),
        Error::TokenFile(_) => libc::EACCES,
        Error::Controller(error) => match error.problem().map(|problem| problem.problem_type()) {
            None => libc::ECONNREFUSED,
            Some(Some(ProblemType::UnknownGroup | ProblemType::UnknownReceiver)) => libc::ENOENT,
            Some(Some(ProblemType::MissingToken | ProblemType::InvalidToken)) => libc::EACCES,
            Some(_) => libc::EPERM,
        },
        Error::NoAddress => libc::EADDRNOTAVAIL,
        Error::Wire(WireError::InUse(_)) => libc::EADDRINUSE,
        Error::Wire(WireError::NoRoute { .. } | WireError::NotIpv6 { .. }) => libc::EHOSTUNREACH,
        Error::Wire(WireError::NotAvailable(_)) => libc::EADDRNOTAVAIL,
        Error::Wire(_) => libc::EIO,
        Error::DeviceMemory(_) => libc::EOPNOTSUPP,
        Error::QueuePair(_) | Error::System { .. } => libc::EIO,
        Error::InvalidGroup(_) | Error::NoRegion(_) => libc::EPROTO,
        Error::Slots(_) | Error::OutOfRange { .. } | Error::SharedRegion => libc::EINVAL,
        Error::RuntimeDirectory { .. } => libc::EACCES,
        Error::RegionTooSmall { .. } => libc::ENOSPC,
        Error::RegionCount { .. } | Error::SharedRegions(_) => libc::EINVAL,
        Error::NoMemory(_) => libc::ENOMEM,
        Error::StillMember { .. } | Error::NotReady { .. } | Error::NoOwner | Error::Timeout => libc::ETIMEDOUT,
        Error::NotCommitted(_) | Error::LastReceiver { .. } => libc::EPERM,
        Error::AlreadyCommitted | Error::NotNewer { .. } => libc::EALREADY,
        Error::QueueFull => libc::EAGAIN,
        Error::Manifest(ManifestError::BeyondSlot { .. }) => libc::ENOSPC,
        Error::Manifest(_) => libc::EINVAL,
        Error::UnknownVersion(_) => libc::ENOENT,
        Error::Over(over) => over_errno(over),
        Error::Forked => libc::ECHILD,
        Error::Shard { error, .. } | Error::Rail { error, .. } => errno_of(error),
        Error::Count { .. } | Error::NotOnRails(_) => libc::EINVAL,
        _ => libc::EIO,
    }
}

fn verbs_errno(error: &VerbsError) -> c_int {
    match error {
        VerbsError::LibraryMissing { .. }
        | VerbsError::LibraryTooOld { .. }
        | VerbsError::NoRdmaInKernel
        | VerbsError::NoDevice
        | VerbsError::NoSuchDevice { .. } => libc::ENODEV,
        VerbsError::NoSuchAddress { .. } => libc::EADDRNOTAVAIL,
        VerbsError::PortDown { .. } => libc::ENETDOWN,
        VerbsError::NotPermitted { .. } => libc::EACCES,
        VerbsError::LockedMemory { .. } => libc::ENOMEM,
        VerbsError::NotSupported { .. } => libc::EOPNOTSUPP,
        VerbsError::DestinationUnresolved { .. } | VerbsError::DestinationUnreachable { .. } => libc::EHOSTUNREACH,
        VerbsError::PathMtu { .. } => libc::EMSGSIZE,
        VerbsError::Forked => libc::ECHILD,
        VerbsError::QueueFull { .. }
        | VerbsError::NotInRegion { .. }
        | VerbsError::TooLarge { .. }
        | VerbsError::DeviceGone { .. }
        | VerbsError::System { .. } => libc::EIO,
    }
}

/// A positive errno for the end of a handle.
pub(crate) fn over_errno(over: &Over) -> c_int {
    match over {
        Over::GroupClosed | Over::Closed => libc::ESHUTDOWN,
        Over::Evicted | Over::Detached(_) | Over::NoOwner(_) => libc::ECONNRESET,
        Over::Refused(_) => libc::EPERM,
        _ => libc::EIO,
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// The thread's last sentence.
pub(crate) fn last_message() -> *const c_char {
    LAST.with_borrow(|message| message.as_ptr())
}

/// Calls the library: 0, or a negative errno with a sentence for the thread.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    number(|| body().map(|()| 0))
}

/// The same, for a result that is not negative.
pub(crate) fn number(body: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    // What a panic leaves behind is used by no later call: the library's locks are valid after panics.
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let failure = match outcome {
        Ok(Ok(number)) => return number,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(libc::EIO, "a defect of the library: it has panicked"),
    };
    let message = failure.message.replace('\0', " ");
    LAST.with_borrow_mut(|last| *last = CString::new(message).unwrap_or_default());
    -failure.errno
}
