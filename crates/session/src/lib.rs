//! The source and the receivers of a controller's group.
//!
//! ```text
//!   ControlledGroup::begin     waits for receivers, commits, waits until the source may send
//!         │
//!   SourceClient               a thread: reports to the controller, takes its orders
//!         │
//!   SourceSession              sending → draining → paused → sending … → ended, without I/O
//!         │
//!   srdma_host::Sending        checks the state before it begins a message
//! ```

mod client;
mod created;
mod group;
mod membership;
mod source_session;

pub use client::SourceClient;
pub use created::CreatedGroup;
pub use group::{BeginOptions, ControlledGroup};
pub use membership::Membership;
