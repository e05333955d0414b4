//! Path selection for the flows of a NIC, and rerouting (D83, D84, PP-4-6).
//!
//! ```text
//!                      paths with ranks, from the scheduler
//!                                     │
//!   CNP, Fast CNP, CE ratio, ──► Steering ◄── the flow's next packet
//!   latency, trimmed, loss,           │
//!   probes                            └──► the path that it takes
//! ```
//!
//! [`Steering`] gets paths by [`Steering::set_paths`] and [`Signal`]s of flows and paths, and returns for each
//! packet the path of its flow. It sends nothing, reads no clock, draws chance from its seed alone, and allocates
//! nothing for a packet or a signal. Memory is bounded by [`Config::flows`] and [`MAX_PATHS`].
//!
//! ```
//! use srdma_steering::{About, Boundary, Config, FlowKey, Path, Signal, Steering};
//! use srdma_wire::Instant;
//!
//! let spine = |number| format!("2001:db8:5::{number}").parse().unwrap();
//! let path = |spine| Path { nodes: vec![spine], ..Path::default() };
//! let mut steering = Steering::new(Config::default());
//! let set = steering.set_paths(Instant::ZERO, None, &[path(spine(5)), path(spine(6))]).unwrap();
//!
//! let (flow, now) = (FlowKey::new(7), Instant::from_ns(1));
//! let before = steering.choose(now, set, flow, Boundary::Inside).unwrap().path;
//! let avoid = spine(5 + before.0 as u8);
//! steering.hear(now, About::Flow(flow), Signal::FastCnp { avoid });
//! assert_ne!(steering.choose(now, set, flow, Boundary::Inside).unwrap().path, before);
//! ```

mod chance;
mod config;
mod counters;
mod flows;
mod path;
mod set;
mod signal;
mod steering;

pub use config::{Config, Limits, Mode};
pub use counters::Counters;
pub use flows::{FlowKey, FlowReport};
pub use path::{Path, State, Why};
pub use set::{MAX_PATHS, PathError, PathReport};
pub use signal::{Cause, Signal};
pub use steering::{About, Boundary, Choice, Heard, PathIndex, SetId, Steering};
