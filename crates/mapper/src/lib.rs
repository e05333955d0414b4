//! The mapper of a host: probes every path of its fabric by SRv6, without any other host's help, and keeps the deny
//! list (D256).
//!
//! ```text
//!   fabric ──► Paths ──► Mapper ── probes along each path and back ──► switches
//!                │         │  ▲                                           │
//!                │         │  └───────────────────────────────────────────┘
//!                ▼         ▼
//!        excluded values, failed links
//! ```
//!
//! [`Paths`] has the paths from a NIC to all switches at which one of its paths may end, and those to the switches on
//! the way, by which a failed link is found. [`Mapper`] performs no I/O, reads no clock, and derives all random choices
//! from its seed. Its memory is that of its paths; packets that it receives add nothing.
//!
//! ```
//! use srdma_fabric::{Encoding, NodeId, SidPlan, Topology};
//! use srdma_mapper::{Config, Mapper, Paths};
//! use srdma_wire::Instant;
//!
//! let fabric = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n";
//! let topology = Topology::from_toml(fabric).unwrap();
//! let sids = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
//! let Some(NodeId::Host(nic)) = topology.node("h1.1") else { panic!() };
//! let paths = Paths::new(&topology, &sids, nic, Encoding::Nodes).unwrap();
//! // Leaf 1, the two spines above it, and leaf 2 by each of them.
//! assert_eq!(paths.len(), 5);
//!
//! let address = "2001:db8:1:1::1".parse().unwrap();
//! let mut mapper = Mapper::new(Instant::ZERO, Config::new(address), &paths).unwrap();
//! let (path, packet) = mapper.poll(Instant::ZERO).unwrap();
//! assert_eq!(paths.path(path).switches, ["leaf1"]);
//! assert_eq!(packet.len(), 40 + 40 + 8 + 44);
//! ```

mod config;
mod counters;
mod mapper;
mod packet;
mod paths;
mod state;

pub use config::{Config, MapperError};
pub use counters::Counters;
pub use mapper::{Change, Mapper, PathReport};
pub use paths::{MappedPath, Paths, PathsError};
pub use state::State;
