//! The tests of `srdma-ospf`.

mod bad_input;
mod golden;
mod net;
mod network;
mod paths;
mod srv6;
