//! The tests of `srdma-bfd`.

mod bad_input;
mod golden;
mod link;
mod refusals;
mod session;
mod sessions;
mod support;
