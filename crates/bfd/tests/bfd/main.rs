//! The tests of `srdma-bfd`.

mod golden;
mod support;
