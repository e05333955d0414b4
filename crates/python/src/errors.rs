//! Errors of the library as exceptions of `srdma.errors`, which have its names and sentences.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use srdma::{Error, Over};
use std::time::{Duration, Instant};

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        /// Names of exceptions.
        #[allow(non_upper_case_globals, reason = "they are names of classes")]
        pub(crate) mod name {
            $(pub(crate) const $name: &str = stringify!($name);)*
        }

        /// All of them.
        pub(crate) const NAMES: &[&str] = &[$(name::$name),*];
    };
}

names! {
    Error, UnknownProvider, TokenFile, Controller, NoAddress, Wire, Verbs, BufferMoves, DeviceMemory, NotContiguous,
    QueuePair, InvalidGroup, InvalidSlots, OutOfRange, NoRegion, RegionTooSmall, RuntimeDirectory, NoOwner, NoMemory,
    System, StillMember,
    LastReceiver, NotReady, NotCommitted, AlreadyCommitted, NotNewer, QueueFull, InvalidManifest, UnknownVersion,
    Timeout, Forked, Over, GroupClosed, Closed, Evicted, Refused, Detached, OwnerLost, QueuePairFailed, SocketFailed,
    DeviceFailed,
}

fn name_of(error: &Error) -> &'static str {
    match error {
        Error::UnknownProvider(_) => name::UnknownProvider,
        Error::TokenFile(_) => name::TokenFile,
        Error::Controller(_) => name::Controller,
        Error::NoAddress => name::NoAddress,
        Error::Wire(_) => name::Wire,
        Error::Verbs(_) => name::Verbs,
        Error::BufferMoves(_) => name::BufferMoves,
        Error::DeviceMemory(_) => name::DeviceMemory,
        Error::QueuePair(_) => name::QueuePair,
        Error::InvalidGroup(_) => name::InvalidGroup,
        Error::Slots(_) => name::InvalidSlots,
        Error::OutOfRange { .. } => name::OutOfRange,
        Error::NoRegion(_) => name::NoRegion,
        Error::RegionTooSmall { .. } => name::RegionTooSmall,
        Error::RuntimeDirectory { .. } => name::RuntimeDirectory,
        Error::NoOwner => name::NoOwner,
        Error::NoMemory(_) => name::NoMemory,
        Error::System { .. } => name::System,
        Error::StillMember { .. } => name::StillMember,
        Error::LastReceiver { .. } => name::LastReceiver,
        Error::NotReady { .. } => name::NotReady,
        Error::NotCommitted(_) => name::NotCommitted,
        Error::AlreadyCommitted => name::AlreadyCommitted,
        Error::NotNewer { .. } => name::NotNewer,
        Error::QueueFull => name::QueueFull,
        Error::Manifest(_) => name::InvalidManifest,
        Error::UnknownVersion(_) => name::UnknownVersion,
        Error::Timeout => name::Timeout,
        Error::Forked => name::Forked,
        Error::Over(over) => name_of_over(over),
        _ => name::Error,
    }
}

pub(crate) fn name_of_over(over: &Over) -> &'static str {
    match over {
        Over::GroupClosed => name::GroupClosed,
        Over::Closed => name::Closed,
        Over::Evicted => name::Evicted,
        Over::Refused(_) => name::Refused,
        Over::Detached(_) => name::Detached,
        Over::NoOwner(_) => name::OwnerLost,
        Over::QueuePair(_) => name::QueuePairFailed,
        Over::Socket(_) => name::SocketFailed,
        Over::Device(_) => name::DeviceFailed,
        _ => name::Over,
    }
}

/// An exception of `srdma.errors`.
pub(crate) fn exception(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = py.import("srdma.errors").and_then(|module| module.getattr(name)?.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        // As while the interpreter ends.
        Err(_) => PyRuntimeError::new_err(format!("{name}: {message}")),
    }
}

pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, name_of(error), &error.to_string())
}

/// Longest wait between two looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Calls something that waits for a time at most, without the interpreter's lock, and again until the whole timeout, in
/// seconds, is over; `None`: none.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    call: impl Fn(Duration) -> srdma::Result<T> + Sync,
) -> PyResult<T> {
    let begin = Instant::now();
    // Negative values and NaN are no time at all.
    let whole = timeout.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
    loop {
        let left = whole.map_or(Duration::MAX, |whole| whole.saturating_sub(begin.elapsed()));
        let step = left.min(SIGNAL_INTERVAL);
        match py.detach(|| call(step)) {
            Err(Error::Timeout | Error::NotReady { .. }) if left > step => py.check_signals()?,
            Err(error) => return Err(raised(py, &error)),
            Ok(value) => return Ok(value),
        }
    }
}

/// Calls something that may wait for the controller, without the interpreter's lock.
pub(crate) fn released<T: Send>(py: Python<'_>, call: impl FnOnce() -> srdma::Result<T> + Send) -> PyResult<T> {
    py.detach(call).map_err(|error| raised(py, &error))
}
