//! The node as a library: its configuration and its run over captures.
//!
//! [`Configuration`] reads `node.toml` into the dataplane's types; [`process()`] runs a node over captures, and
//! [`explain`] derives the state of a node's groups from captures.

mod configuration;
pub mod daemon;
pub mod explain;
mod process;

pub use configuration::{
    Configuration, ControllerLink, ControllerSettings, DaemonSettings, Denied, DenyList, DenyListSettings,
    EntropyRoutes, HostLinks, InterfaceFacts, IsisCircuit, IsisSettings, OspfCircuit, OspfSettings, PathsFile,
    PortInterface, Purpose, Side, entropy_routes, parse_duration,
};
pub use process::{
    GroupCountersReport, GroupReport, Input, OutputError, PortReport, ProcessError, Progress, Report, SidReport,
    TrafficReport, process,
};
