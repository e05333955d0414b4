//! `srdma node`: a node on real interfaces, and what it tells about itself.

mod metrics;
mod snapshot;
mod stalls;
mod status;

pub use metrics::{MetricsServer, metrics_text};
pub use snapshot::{
    BranchSnapshot, ConfigurationSnapshot, DaemonState, DriverSnapshot, GroupSnapshot, PortSnapshot, PortState, Reload,
    Role, SidSnapshot, Snapshot,
};
pub use stalls::StallWatch;
pub use status::{StatusError, StatusServer, read_status};
