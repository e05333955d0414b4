//! IS-IS for SRv6 (ISO 10589, RFC 5305, RFC 5308, RFC 9352) as a value: no sockets, no clock, no threads.
//!
//! ```text
//!   frames ──▶ Speaker ──▶ frames
//!     time ──▶  │ at each of its levels, 1, 2 or both:
//!               │   Adjacency of each circuit: the neighbour
//!               │   Database: the LSPs of all systems, and the circuits that need them
//!               │ what each level announces of the other
//!               │ shortest paths: where each locator is, by which circuit
//!               └▶ Learned: END.C and END.E of each node, and its C-flag
//! ```
//!
//! Circuits are point-to-point or LANs. LSPs of other nodes are stored as received, and flooded octet for octet.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod adjacency;
pub mod authentication;
pub mod checksum;
pub mod config;
pub mod database;
mod flooding;
pub mod frame;
pub mod graph;
pub mod id;
mod jitter;
mod lan;
mod leaks;
pub mod learned;
mod level;
mod origin;
pub mod pdu;
pub mod reader;
mod repair;
pub mod shortest_paths;
mod speaker;
pub mod tlv;

pub use adjacency::{Adjacency, HelloRefusal};
pub use authentication::{Key, Secret};
pub use config::{CircuitConfig, CircuitType, Config, Timers};
pub use database::Database;
pub use id::{LspId, NodeId, SystemId};
pub use lan::LanNeighbour;
pub use learned::{Behaviors, LearnedNode, NotificationSids};
pub use pdu::{Hello, LanHello, Level, Levels, Lsp, LspFlags, Pdu, PduKind};
pub use reader::Malformed;
pub use repair::{Protection, Repair, Repairs};
pub use shortest_paths::{Reached, Route, RouteKind, ShortestPaths};
pub use speaker::{Changes, CircuitId, Counters, IsisDrop, Overload, Speaker};
