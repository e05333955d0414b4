//! The tests of `srdma-fabric`.

mod addresses;
mod counted;
mod entropy;
mod kinds;
mod programs;
mod provision;
mod refusals;
