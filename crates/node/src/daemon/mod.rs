//! `srdma node`: a node on real interfaces, and what it tells about itself.

mod snapshot;
mod stalls;

pub use snapshot::{
    BranchSnapshot, ConfigurationSnapshot, DaemonState, DriverSnapshot, GroupSnapshot, PortSnapshot, PortState, Reload,
    Role, SidSnapshot, Snapshot,
};
pub use stalls::StallWatch;
