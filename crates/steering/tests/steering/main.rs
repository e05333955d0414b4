//! The tests of `srdma-steering`.

mod bursts;
mod model;
