//! The tests of `srdma-host`.

mod lossy;
mod pauses;
mod transfer;
