//! The node's side of the controller protocol, as values without I/O: no socket, no clock.
//!
//! ```text
//!   controller ◄── register, sync ── ControllerSession ◄── answers, eviction requests, status ──┐
//!              ─── orders ─────────────────────────────► Agent ── plan ──► commands ──► node ───┘
//! ```
//!
//! A daemon and a simulator drive the same values: they send the requests of [`ControllerSession`], hand orders to the
//! [`Agent`]'s [`GroupTable`], give the node the commands of each [`Change`], and then apply the change.

mod agent;
mod eviction_requests;
mod group_table;
mod lease;
mod session;

pub use agent::{Agent, Report};
pub use eviction_requests::EvictionRequests;
pub use group_table::{AllowedSids, Change, GroupTable, Plan};
pub use session::{ControllerSession, Failure, ProtocolError, Request};
