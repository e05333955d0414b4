//! RC endpoints on sockets and interfaces, and the transfers of `srdma send` and `srdma recv`.
//!
//! ```text
//!   Sending, Receiving      post work requests, and end
//!        │
//!   run ─┼─ Endpoint        the protocol, without I/O
//!        │
//!      Wire                 UdpWire: a UDP socket · RawWire: a packet driver · SteeredWire: with placed paths
//! ```
//!
//! `docs/endpoints.md` describes the protocol between both ends of a transfer.

mod blocks;
mod congestion;
mod connection;
mod counters;
mod device;
mod event_loop;
mod fields;
mod files;
mod group_file;
mod open;
mod peer_info;
mod raw_wire;
mod receiving;
mod sending;
mod sink;
mod source_control;
mod steered_wire;
mod trailer;
mod transfer_error;
mod transfer_memory;
mod udp_wire;
mod wire;

pub use congestion::{Congestion, CongestionStats};
pub use connection::Connection;
pub use counters::TransferCounters;
pub use device::{DeviceError, DeviceName, DeviceReceiver, DeviceSender, Sent};
pub use event_loop::{Clock, Program, run};
pub use files::{FileError, FileSource, OutputFile};
pub use group_file::{GroupFile, GroupSource};
pub use open::{RawInterface, WireError, WireOptions, only_address, parse_mac, source_address};
pub use peer_info::PeerInfo;
pub use raw_wire::{RawWire, RawWireConfig};
pub use receiving::{Lingering, Received, Receiving, ReceivingConfig};
pub use sending::{SendData, Sending, SendingConfig, TransferMode};
pub use sink::{Sink, Stored};
pub use source_control::{SessionState, SourceControl, StreamProgress};
pub use steered_wire::SteeredWire;
pub use trailer::{Trailer, TrailerError};
pub use transfer_error::TransferError;
pub use transfer_memory::TransferMemory;
pub use udp_wire::{UdpWire, UdpWireConfig};
pub use wire::{Wire, WireStatistics};
