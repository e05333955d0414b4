//! What controller, nodes, sources and clients say to each other, as JSON over HTTP.
//!
//! ```text
//!   client ── groups, receivers, jobs ──►┐            ┌──► node: what it prepares, commits, removes
//!   source ── may I send? ──────────────►│ controller │
//!   page   ◄── events, topology ─────────┤            │◄── node: what it has, what it has done, how it fares
//! ```
//!
//! Nodes and sources ask, and wait for the answer: the controller opens no connection. [`Client`] speaks for all.

#[cfg(feature = "client")]
mod client;
mod event;
mod group;
mod job;
mod node;
mod problem;
mod source;
mod topology;

#[cfg(feature = "client")]
pub use client::{Client, ClientError, Reply};
pub use event::{AuditEntry, AuditPage, EVENT_PULSE, EVENT_SILENCE, Event, News};
pub use group::{
    BranchView, CommitRequest, Group, GroupPage, GroupState, GroupSummary, MemoryRegion, NewGroup, NewReceiver,
    OverheadView, Receiver, ReceiverState, SourceAddress, SourceRegion, TreeNodeView, TreeView,
};
pub use job::{DrainLinks, Job, JobPage, NewJob, PlacedFlow, WhatIf, WhatIfAnswer};
pub use node::{
    BranchStatus, DrainRequest, GroupStatus, Held, Hello, Link, Node, NodeAnswer, NodeOrder, NodePage, NodeStatus,
    PortStatus, Prefix, Session, Sync, SyncAnswer, Wish,
};
pub use problem::{Problem, ProblemType};
pub use source::{SourceOrder, SourceReport, SourceState};
pub use topology::{Topology, TopologyLink, TopologyNode};
