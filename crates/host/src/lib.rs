//! RC endpoints on sockets and interfaces: what `srdma send` and `srdma recv` do.
//!
//! ```text
//!   Sending, Receiving      what is posted, and when it is done
//!        │
//!   run ─┼─ Endpoint        the protocol, without I/O
//!        │
//!      Wire                 UdpWire: a UDP socket · RawWire: a packet driver · SteeredWire: a headend before it
//! ```
//!
//! What both ends of a transfer agree upon is in `docs/endpoints.md`.

mod congestion;
mod connection;
mod event_loop;
mod failure;
mod fields;
mod gate;
mod group_file;
mod landing;
mod peer_info;
mod raw_wire;
mod receiving;
mod sending;
mod steered_wire;
mod trailer;
mod udp_wire;
mod wire;

pub use congestion::{Congestion, Met};
pub use connection::Connection;
pub use event_loop::{Clock, Program, run};
pub use failure::Failure;
pub use gate::{Gate, Passage, SourceState};
pub use group_file::{GroupFile, GroupRegion, GroupSource};
pub use landing::Landing;
pub use peer_info::PeerInfo;
pub use raw_wire::{RawWire, RawWireConfig};
pub use receiving::{Lingering, Received, Receiving, ReceivingConfig};
pub use sending::{Carriage, Sending, SendingConfig};
pub use srdma_rc::PathMtu;
pub use steered_wire::SteeredWire;
pub use trailer::{Trailer, TrailerError};
pub use udp_wire::{UdpWire, UdpWireConfig};
pub use wire::{Wire, WireStatistics};
