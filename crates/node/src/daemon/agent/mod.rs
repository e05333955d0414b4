//! Connection to the controller: the thread with the HTTP client, and the reported status. The decisions are in
//! `srdma-agent`.
//!
//! ```text
//!  controller ◄── register, sync ──┐                           ┌─────────┐
//!             ─── orders ────────► │ thread ◄── channel ─────► │ control │ ──► data thread
//!                                  └ one request at a time     │         │ ◄── BFD
//!             ◄── unreachable ────── thread ◄───────────────── │         │
//!                                                              └─────────┘
//! ```
//!
//! Threads, since the controller delays its response until it has an order.

mod client;
mod hints;
mod status;

pub(super) use client::{ControllerClient, ControllerEvent};
pub(super) use hints::{Hint, HintClient};
pub(super) use status::{lost_hosts, neighbour_of, status_of};
