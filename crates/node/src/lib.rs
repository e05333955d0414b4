//! The node as a library: its configuration and its run over captures.
//!
//! [`Configuration`] reads `node.toml` into what the dataplane takes; [`process()`] runs a node over captures, and
//! [`explain`] tells what captures say of a node's groups.

mod configuration;
pub mod daemon;
pub mod explain;
mod process;

pub use configuration::{
    Configuration, ControllerLink, ControllerSettings, DaemonSettings, InterfaceFacts, IsisCircuit, IsisSettings,
    PathsFile, PortInterface, Purpose, parse_duration,
};
pub use process::{
    GroupCountersReport, GroupReport, Input, OutputError, PortReport, ProcessError, Progress, Report, SidReport,
    TrafficReport, process,
};
