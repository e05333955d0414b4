//! UDP over IPv6 in batches, as RoCEv2 endpoints need it.
//!
//! A RoCEv2 packet has a UDP checksum of zero: its ICRC protects more. So the socket neither computes nor requires
//! checksums (RFC 6936). Only segmentation offload needs one: a socket opened for it sends packets with checksums,
//! which are RoCEv2 as well.

mod control;
mod receive;
mod send;
mod socket;

pub use receive::{Datagram, ReceiveBatch};
pub use send::{MAX_BATCH, Message};
pub use socket::{Segmentation, UdpSocket, wait};
