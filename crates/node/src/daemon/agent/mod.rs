//! The node's side of a controller: what it holds of the controller's groups, and what they say to each other.
//!
//! ```text
//!  controller ←─ hello, answers, wishes, status ─┐                          ┌─────────┐
//!             ── orders ──────────────────────→  │ thread ←── channel ──→   │ control │ → data thread
//!                                                └ one request at a time    └─────────┘
//! ```
//!
//! A thread, because the controller lets a question wait until it has an order. It asks again only when the orders of
//! the last answer were carried out, so that nothing overtakes anything.

mod courier;
mod ledger;
mod status;
mod wishes;

pub(super) use courier::{Call, Courier, Report};
pub(super) use ledger::{Change, Ledger, Rules, Verdict};
pub(super) use status::status_of;
pub(super) use wishes::Wishes;
