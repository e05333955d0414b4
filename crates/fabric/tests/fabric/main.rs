//! The tests of `srdma-fabric`, one binary: linking is most of what building tests costs.

mod addresses;
mod counted;
mod kinds;
mod programs;
mod provision;
mod refusals;
