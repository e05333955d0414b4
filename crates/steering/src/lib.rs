//! Path selection for the flows of a NIC, and rerouting (D83, D84, PP-4-6).
//!
//! ```text
//!                      paths with ranks, from the scheduler
//!                                     │
//!   CNP, Fast CNP, CE ratio, ──► Steering ◄── the flow's next packet
//!   latency, trimmed, loss,           │
//!   probes                            └──► the path of the packet
//! ```
//!
//! [`Steering`] gets paths by [`Steering::set_paths`] and [`Signal`]s of flows and paths, and returns for each
//! packet the path of its flow. It performs no I/O, reads no clock, derives all random choices from its seed, and does
//! not allocate for packets or signals. Memory is bounded by [`Config::flows`] and [`MAX_PATHS`].
//!
//! ```
//! use srdma_steering::{Boundary, Config, FlowKey, Path, Signal, Steering, Subject};
//! use srdma_wire::Instant;
//!
//! let spine = |number| format!("2001:db8:5::{number}").parse().unwrap();
//! let path = |spine| Path { nodes: vec![spine], ..Path::default() };
//! let mut steering = Steering::new(Config::default());
//! let set = steering.set_paths(Instant::ZERO, None, &[path(spine(5)), path(spine(6))]).unwrap();
//!
//! let (flow, now) = (FlowKey::new(7), Instant::from_ns(1));
//! let before = steering.choose(now, set, flow, Boundary::WithinMessage).unwrap().path;
//! let avoid = spine(5 + before.0 as u8);
//! steering.handle_signal(now, Subject::Flow(flow), Signal::FastCnp { avoid });
//! assert_ne!(steering.choose(now, set, flow, Boundary::WithinMessage).unwrap().path, before);
//! ```

mod config;
mod counters;
mod flows;
mod path;
mod random;
mod set;
mod signal;
mod steering;

pub use config::{Config, Limits, Mode};
pub use counters::Counters;
pub use flows::{FlowKey, FlowReport};
pub use path::{BadCause, Path, State};
pub use set::{MAX_PATHS, PathError, PathReport};
pub use signal::{Cause, Signal};
pub use steering::{Boundary, Choice, PathIndex, SetId, SignalEffect, Steering, Subject};
