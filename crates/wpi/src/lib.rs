//! A driver of the Weight Propagation Interface of llm-d: it has buffers of a Kubernetes node, passes them to programs
//! of the node, and propagates them to other nodes by groups of the host library.
//!
//! ```text
//!   operator ──── gRPC, wpi-grpc.sock ──► driver ◄── invitation ──► drivers of other nodes
//!   program ◄──── BUFFER.sock: the buffer   │
//!   program ◄──── BUFFER_notify.sock        └── groups: octets, by srdma
//! ```
//!
//! `docs/kubernetes.md` describes services, sockets and options. Everything asynchronous of the workspace's clients is
//! in this crate: its callers block.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod client;
pub mod core;
mod grpc;
mod invitation;
mod memory;
pub mod messages;
mod network;
mod run;
mod service;
mod sockets;

pub use client::{CallError, Client};
pub use run::{Options, Service, StartError};
pub use sockets::DirectoryError;
