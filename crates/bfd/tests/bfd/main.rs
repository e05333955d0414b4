//! The tests of `srdma-bfd`.

mod golden;
mod session;
mod support;
