//! OSPFv3 for SRv6 (RFC 5340, RFC 2328, RFC 8362, RFC 9513) as a value: no sockets, no clock, no threads.
//!
//! ```text
//!   packets ──▶ Speaker ──▶ packets, each with its destination
//!      time ──▶  │ Neighbour of each circuit: hellos, and the exchange of databases
//!                │ Database: the LSAs of all routers; each circuit has a list of those to retransmit
//!                │ shortest paths: where each prefix and locator is, by which neighbours
//!                └▶ learned: END.C and END.E of each router, and its C-flag
//! ```
//!
//! One area, 0.0.0.0, and circuits that are point-to-point (D276). LSAs of other routers are stored as received, and
//! flooded octet for octet but for their age.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod config;
pub mod database;
pub mod id;
mod learned;
pub mod lsa;
mod neighbour;
mod origin;
pub mod packet;
mod paths;
mod speaker;
pub mod srv6;
mod tlv;

pub use config::{CircuitConfig, Config, Timers};
pub use database::{Database, Place};
pub use id::RouterId;
pub use lsa::{LsType, Lsa, LsaHeader, LsaKey};
pub use neighbour::{Neighbour, NeighbourState};
pub use packet::{Body, Description, Hello, Packet};
pub use paths::{Paths, Vertex};
pub use speaker::{Changes, CircuitId, Counters, OspfDrop, Speaker, Transmission};
