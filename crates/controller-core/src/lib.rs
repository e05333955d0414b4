//! Decisions of a controller, as values without I/O: no socket, no file, no clock (D25, D30, D31).
//!
//! ```text
//!   request ──► Pipeline ──► Core ── group lifecycles, network, trees, jobs
//!                  │
//!                  ├──► writes, numbered ──► store ──┐
//!                  └◄── durable(number) ◄────────────┘
//!                  └──► answers, orders and events, now that all writes before them are durable
//! ```
//!
//! A server and a simulator drive the same [`Pipeline`]: they make its writes durable in order, and report how far they
//! are.
//!
//! **Architectural Invariant:** no answer, order or event leaves before all writes that precede it are durable.

mod core;
mod event_log;
mod identity;
mod jobs;
mod migration;
mod network;
mod pipeline;
mod prefix_set;
mod principal;
mod refusal;
mod reports;
mod rows;
mod settings;
mod tree;

pub use crate::core::{Core, JobOutcome, JobRequest, JobTask, SEARCH_INTERVAL, Time};
pub use event_log::{EventBatch, EventCursor, EventLog, EventPosition, KeptEvent};
pub use jobs::{Evaluated, JobError, JobRow, JobRows, Jobs, MAX_FLOWS};
pub use migration::migrate;
pub use pipeline::{Answer, Pipeline, Released, Transaction};
pub use principal::{Principal, Role};
pub use refusal::Refusal;
pub use reports::is_printable;
pub use rows::{
    AUDIT_PREFIX, AnswerRow, FORMAT, FORMAT_KEY, Row, RowError, STATE_PREFIXES, Write, audit_entry, audit_key,
    format_of,
};
pub use settings::{DEFAULT_TENANT, MAX_NODES, Settings, StatedNode, Tenant, check_nodes};
pub use srdma_placement::{Deadline, Phase};
