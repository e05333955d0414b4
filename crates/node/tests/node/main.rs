//! The tests of `srdma-node`.

mod configuration;
mod daemon;
mod fast_path;
mod watching;
