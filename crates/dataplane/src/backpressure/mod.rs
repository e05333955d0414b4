//! Backpressure between domains (draft-hu-acn-rocev2, D60–D67): a congested node of a WAN notifies the ingress PEs of
//! its traffic, which pause the gateways and notify the senders.
//!
//! ```text
//!   gateway ◀─ PAUSE ─ ingress PE ◀──────── notification to END.C ──────── congested node
//!                      received pauses: class, origin, end                 sent pauses: PE, class, queue
//!   sender ◀───────────────┴◀──────────────── Fast CNP to END.E ──────────────┘
//! ```

mod config;
mod counters;
mod origins;
mod pauses;
mod phase;
mod received;
mod sent;
mod sids;

pub use config::{BackpressureConfig, BackpressureConfigError, PriorityMapping};
pub use counters::BackpressureCounters;
pub(crate) use origins::{Origins, Refusal};
pub use pauses::ReceivedPause;
pub(crate) use pauses::{Backpressure, Message};
pub(crate) use received::ReceivedPauses;
pub(crate) use sent::SentPauses;
pub use sids::BackpressureSids;
pub(crate) use sids::SidTable;
