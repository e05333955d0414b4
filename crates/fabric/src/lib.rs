//! Fabrics as values: hosts, switches and links, their addresses, and the ports of shortest paths.
//!
//! A [`Topology`] that exists can work: [`Topology::new`] rejects the rest with the place of the error. It comes
//! from a [`generator`](generate), from a [TOML file](mod@file), or from a [`Plan`]. [`NextHops`]
//! has the shortest paths, [`AddressPlan`] the addresses, [`SidPlan`] the SIDs, of which a [`Program`] makes the path
//! of a packet; [`Template`] makes an entropy value of 32 bits of it.
//!
//! Nothing here depends on chance, on time, or on the order of a hash table: the same plan gives the same octets.

pub mod address;
mod connectivity;
pub mod entropy;
mod error;
pub mod file;
pub mod generate;
mod next_hops;
mod path;
pub mod program;
pub mod provision;
pub mod sid;
mod topology;

pub use address::{AddressPlan, Destination};
pub use entropy::{ListedPath, Template, ValueError};
pub use error::{Place, TopologyError};
pub use file::TopologySection;
pub use generate::{DataCentres, DualHomed, FatTree, LeafSpine, Planes, Rails, Speeds, Wan};
pub use next_hops::NextHops;
pub use path::{Path, PathError};
pub use program::{Encoding, Program, ProgramError, Step};
pub use provision::provision;
pub use sid::SidPlan;
pub use topology::{
    End, Host, HostId, Link, LinkId, MAX_HOSTS, MAX_LINKS, MAX_PORT, MAX_SWITCHES, MOST_BITS_PER_S, MOST_DELAY_NS,
    NodeId, Plan, Port, Switch, SwitchId, Topology,
};
