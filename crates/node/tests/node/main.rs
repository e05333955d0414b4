//! The tests of `srdma-node`, one binary: linking is most of what building tests costs.

mod configuration;
mod daemon;
mod watching;
