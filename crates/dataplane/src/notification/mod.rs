//! Congestion notification between domains (draft-hu-acn-rocev2, D60–D67): what the nodes of a WAN remember for it.
//!
//! ```text
//!   gateway ◀─ PAUSE ─ ingress PE ◀──────── notification to END.C ──────── congested node
//!                      holds: what is asked, by whom, until when           told: who was asked, for which queue
//!   sender ◀───────────────┴◀──────────────── Fast CNP to END.E ──────────────┘
//! ```
//!
//! Nothing here forwards a packet: that is the node's.

mod config;
mod counters;
mod holds;
mod origins;
mod phase;
mod sids;
mod told;

pub use config::{NotificationConfig, NotificationConfigError, PriorityMapping};
pub use counters::NotificationCounters;
pub(crate) use holds::Holds;
pub(crate) use origins::{Origins, Refusal};
pub use sids::NotificationSids;
pub(crate) use sids::SidTable;
pub(crate) use told::Told;
