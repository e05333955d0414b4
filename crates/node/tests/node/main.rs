//! The tests of `srdma-node`.

mod configuration;
mod daemon;
mod watching;
