//! The tests of `srdma-isis`, one binary: linking is most of what building tests costs.

mod bad_input;
mod golden;
mod network;
mod ospfv3;
mod recorded;
