//! The controller's API: messages of controller, nodes, sources and clients, as JSON over HTTP.
//!
//! ```text
//!   client ── groups, receivers, jobs ──►┐            ┌──► node: prepare, commit, remove
//!   source ── state ────────────────────►│ controller │
//!   page   ◄── events, topology ─────────┤            │◄── node: registration, answers, status
//! ```
//!
//! Nodes and sources poll with long requests: the controller opens no connection. `Client` (feature `client`)
//! serves all of them.

mod address;
#[cfg(feature = "client")]
mod client;
mod event;
mod group;
mod identity;
mod job;
mod node;
pub mod prefix;
mod problem;
mod protocol;
mod reservation;
mod source;
mod topology;
mod unreadable;

#[cfg(feature = "client")]
pub use client::{Client, ClientError, Reply, is_loopback_host};
pub use event::{AuditEntry, AuditPage, EVENT_KEEP_ALIVE, EVENT_TIMEOUT, Event, EventKind};
pub use group::{
    BranchView, CommitRequest, Group, GroupPage, GroupState, GroupSummary, MemoryRegion, NewGroup, NewReceiver,
    OverheadView, Receiver, ReceiverState, SourceAddress, SourceRegion, SourceTransport, TreeNodeView, TreeView,
};
pub use identity::{NodeIdentity, RenameRequest};
pub use job::{DrainLinks, Job, JobPage, NewJob, PlacedFlow, WhatIf, WhatIfAnswer};
pub use node::{
    BranchStatus, DrainRequest, EvictionRequest, ForeignGroup, ForeignGroups, GroupRepairStatus, GroupStatus,
    HeldGroup, Link, MAX_EVICTION_REQUESTS, Node, NodeAnswer, NodeOrder, NodePage, NodeStatus, POLL_INTERVAL_MS,
    PortStatus, Registration, Session, Sync, SyncAnswer, UnreachableReport, store_identity,
};
pub use problem::{Problem, ProblemType};
pub use protocol::{FIRST_PROTOCOL, PROTOCOL, Protocols};
pub use reservation::{ReceiverOrder, ReceiverReport};
pub use source::{SourceOrder, SourceReport, SourceService, SourceState};
pub use topology::{Topology, TopologyLink, TopologyNode};
pub use unreadable::UnreadableOrder;
