//! `srdma explain` over captures that simulated nodes made at their own ports.

mod bad_input;
mod cases;
mod network;
