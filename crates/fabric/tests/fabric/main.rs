//! The tests of `srdma-fabric`.

mod addresses;
mod counted;
mod kinds;
mod programs;
mod provision;
mod refusals;
