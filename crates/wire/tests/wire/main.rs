//! The tests of `srdma-wire`.

mod golden;
mod properties;
