//! The C interface of the host library: `include/srdma.h` documents each function.
//!
//! Each function checks its pointers for NULL, copies what it is given, and calls the library; nothing else happens
//! here. A panic does not reach the caller: it is `-EIO`.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(unsafe_code, reason = "pointers of C programs")]

mod errors;
mod functions;
mod log;
mod structures;
mod text;

pub use functions::*;
pub use log::{SrdmaLogFunction, srdma_set_log};
pub use structures::{
    SrdmaBuffer, SrdmaEvent, SrdmaGroupOptions, SrdmaJoinOptions, SrdmaOptions, SrdmaRegion, SrdmaStatistics,
};
