//! Discrete-event simulation of links, nodes and hosts: virtual time, link faults and transfers, all from one seed.
//!
//! A [`Network`] connects elements, nodes of the dataplane and hosts with an RC endpoint, by links with a rate, a delay
//! and faults. The elements run the same code as in production; none of it depends on time being virtual.

pub mod addressing;
pub mod baseline;
mod capture;
pub mod description;
pub mod event_queue;
pub mod fabric;
pub mod host;
mod impairment;
mod in_flight;
pub mod invariants;
pub mod ipv4_host;
pub mod link;
pub mod multicast;
pub mod network;
pub mod node_or_host;
pub mod observer;
pub mod program;
mod replay_buffer;
pub mod replica;
pub mod retransmission;
pub mod setup;
pub mod slices;
pub mod snapshot;
pub mod timing;
pub mod topology;
pub mod transfer;

pub use description::RunDescription;
pub use link::{Counters, LinkFaults, LinkModel};
pub use multicast::Multicast;
pub use network::{Direction, ElementId, ElementPort, LinkId, Network, SimElement};
pub use observer::{Observer, PeriodicObserver, SnapshotInterval};
pub use setup::SetupError;
pub use snapshot::Snapshot;
