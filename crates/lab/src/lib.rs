//! Networks in namespaces of one machine, built from a topology file.
//!
//! A [`Topology`] describes the nodes and their links. [`Lab::create`] creates namespaces, links, addresses and routes
//! from it; [`Lab::start`] starts processes there. Each resource is recorded before it is created, so that
//! [`Lab::down`] finds it even if the creating process was killed. A [`Session`] is a lab with all its programs
//! running, through which data can be transferred.
//!
//! # To add a lab
//!
//! Write `labs/NAME.toml`, whose keys stand in `docs/labs.md`, and add it to `shipped::LABS`: that is all for a lab of
//! nodes, routers and software endpoints, whether data go to a multicast group or from one host to another. Command
//! lines there configure what plain routers do beyond forwarding. For a new kind of node, add it to [`topology::Kind`]
//! and let the compiler show the places that have to handle it; one that sends or receives implements `host::Host`.

mod capture;
mod command;
pub mod containerlab;
mod controller;
mod counters;
mod error;
pub mod group;
pub mod guest;
mod host;
mod instance;
mod interrupt;
mod lab;
mod namespace;
pub mod network;
pub mod node_file;
mod outcome;
mod plan;
mod process;
pub mod rootless;
mod routes;
mod session;
pub mod shipped;
mod software;
mod state;
pub mod topology;

pub use capture::{Capture, Captured};
pub use controller::ControllerAccess;
pub use counters::LinkCounters;
pub use error::{LabError, Result};
pub use host::HostOutcome;
pub use instance::Instance;
pub use interrupt::Interrupt;
pub use lab::{Lab, Source, check_root};
pub use outcome::{
    ControlledOutcome, LinkOutcome, NodeOutcome, Outcome, PairOutcome, ReceiverOutcome, SidOutcome, TreeNodeOutcome,
};
pub use process::Process;
pub use session::{Choices, Session};
pub use topology::Topology;
