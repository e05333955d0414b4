//! Bidirectional Forwarding Detection over IPv6 (RFC 5880, RFC 5881, RFC 5883) as a value: no sockets, no clock, no
//! threads. Asynchronous mode; neither Echo nor authentication (D91).
//!
//! ```text
//!   payloads ──▶ Sessions ──▶ packets, events
//!       time ──▶  │ by Your Discriminator, else by the peer (D92)
//!                 └▶ Session: State, Timers with a Poll Sequence, Transmission, the peer's last packet
//! ```
//!
//! A session that goes down is a hint to use another path, and no proof that the peer is dead (D90).
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod authentication;
mod config;
mod control;
mod diagnostic;
mod poll_sequence;
mod refusal;
mod session;
mod sessions;
mod state;
mod timers;
mod transmission;
pub mod udp;

pub use authentication::Authentication;
pub use config::{Config, ConfigError, LEAST_INTERVAL_US, SLOW_INTERVAL_US};
pub use control::{Control, ControlPacket, ControlView, Discriminator};
pub use diagnostic::Diagnostic;
pub use refusal::{Refusal, Refusals};
pub use session::{Event, Session};
pub use sessions::{AddError, Arrival, Hops, MOST_SESSIONS, Output, Peer, Sessions};
pub use state::State;
