//! The native half of the Python package `srdma`: the module `srdma._native`.
//!
//! Waiting calls release the interpreter's lock, and look for signals ten times a second. Memory of Python objects is
//! kept by the objects themselves, or by their exports, until the library has dropped it.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod device;
mod errors;
mod event;
mod handle;
mod memory;
mod receiver;
mod source;

use pyo3::prelude::*;

/// Native half of the package `srdma`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::device::Device;
    #[pymodule_export]
    use crate::event::Event;
    #[pymodule_export]
    use crate::handle::close_all;
    #[pymodule_export]
    use crate::memory::View;
    #[pymodule_export]
    use crate::receiver::{Receiver, Version};
    #[pymodule_export]
    use crate::source::Source;

    /// Version of the library.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Names of all exceptions that the native half raises from `srdma.errors`.
    #[pyo3::pyfunction]
    fn error_names() -> Vec<&'static str> {
        crate::errors::NAMES.to_vec()
    }
}
