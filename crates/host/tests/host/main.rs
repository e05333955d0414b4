//! The tests of `srdma-host`, one binary: linking is most of what building tests costs.

mod lossy;
mod pauses;
mod transfer;
