//! A software RoCEv2 Reliable Connection endpoint, without I/O (MT-3-1).
//!
//! An [`Endpoint`] is a value. Its input are packets and the time; its output are packets, completions and the time of
//! the next call. It opens no socket and reads no clock, so that it runs the same in a simulator and on a wire.
//!
//! ```text
//!   receive(now, packet) ──►┌──────────────────────────────┐──► poll_transmit(now, buffer)
//!   post_send, post_receive►│ Endpoint                     │──► poll_completion()
//!   tick(now) ─────────────►│   QueuePair: Requester       │──► next_deadline()
//!                           │              Responder       │
//!                           │   memory regions             │
//!                           └──────────────────────────────┘
//! ```
//!
//! SEND and WRITE, with and without immediate data, and READ; any path MTU; go-back-N with ACK, sequence NAK and
//! receiver-not-ready NAK; both roles at once. ATOMIC, SEND with Invalidate, automatic path migration, shared receive
//! queues and end-to-end credits are not offered.
//!
//! A queue pair that talks to a multicast group is an ordinary one: its peer is the group's Proxy Address and
//! Designated QPN, at the source and at the receivers, and every receiver's `rq_psn` is the source's `sq_psn`
//! (MT-5.1-1, D28).
//!
//! # Example
//!
//! ```
//! use srdma_rc::{Access, Endpoint, EndpointConfig, LocalRange, Operation, QueuePairConfig, RemoteAddress, Status};
//! use srdma_rc::WorkRequest;
//! use srdma_wire::{Instant, Qpn};
//!
//! let (here, there) = ("2001:db8::1".parse()?, "2001:db8::2".parse()?);
//! let (ours, theirs) = (Qpn::new(0x11).unwrap(), Qpn::new(0x22).unwrap());
//! let mut requester: Endpoint = Endpoint::new(EndpointConfig::new(here));
//! let mut responder: Endpoint = Endpoint::new(EndpointConfig::new(there));
//! requester.add_queue_pair(QueuePairConfig::new(ours, there, theirs))?;
//! responder.add_queue_pair(QueuePairConfig::new(theirs, here, ours))?;
//!
//! let source = requester.register_memory(b"one stream, every receiver".to_vec(), 0, Access::LOCAL, 1);
//! let target = responder.register_memory(vec![0; 26], 0x1000, Access::REMOTE_WRITE, 2);
//! requester.post_send(
//!     ours,
//!     WorkRequest {
//!         wr_id: 7,
//!         operation: Operation::Write {
//!             remote: RemoteAddress { virtual_address: 0x1000, rkey: target },
//!             immediate: None,
//!         },
//!         local: LocalRange { key: source, offset: 0, length_octets: 26 },
//!         signalled: true,
//!     },
//! )?;
//!
//! let now = Instant::ZERO;
//! let mut packet = vec![0; requester.max_packet_octets()];
//! while let Some(length) = requester.poll_transmit(now, &mut packet) {
//!     responder.receive(now, &[&packet[..length]])?;
//! }
//! while let Some(length) = responder.poll_transmit(now, &mut packet) {
//!     requester.receive(now, &[&packet[..length]])?;
//! }
//! let completion = requester.poll_completion().unwrap();
//! assert_eq!((completion.wr_id, completion.status), (7, Status::Success));
//! assert_eq!(responder.memory(target).unwrap(), b"one stream, every receiver");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod completion;
mod config;
mod counters;
mod endpoint;
mod fast_cnp;
mod inbound;
mod incast;
mod memory;
mod outbound;
mod queue_pair;
pub mod rate;
mod requester;
mod responder;
mod schedule;
mod trace;

pub use completion::{
    CompletedOperation, Completion, DeregisterError, LocalRange, Operation, PostError, Receive, RemoteAddress, Status,
    WorkRequest,
};
pub use config::{
    CNP_INTERVAL_NS, ConfigError, DETOUR_INTERVAL_NS, EndpointConfig, Habits, MAX_MESSAGE_OCTETS, QueuePairConfig,
};
pub use counters::{DropReason, Drops, QueuePairCounters};
pub use endpoint::Endpoint;
pub use fast_cnp::{CongestionEvent, FastCnpConfig, FastCnpCounters};
pub use memory::{Access, Memory, MemoryKey};
pub use queue_pair::QueuePairState;
pub use rate::{RateAlgorithm, RateControl, RateLimits};
pub use trace::{HPCC_FIELDS, TraceRequest};
