//! `srdma explain` over captures that simulated nodes made at their own ports.

#[path = "explain/bad_input.rs"]
mod bad_input;
#[path = "explain/cases.rs"]
mod cases;
#[path = "explain/network.rs"]
mod network;
