//! The tests of `srdma-sim`.

mod hosts;
mod invariants;
mod learning;
mod network;
mod seeds;
