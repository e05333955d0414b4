//! Elements in virtual time: links, hosts, faults and scenarios, all from one seed.
//!
//! A [`Network`] joins elements, nodes of the dataplane and hosts with an RC endpoint, by links with a rate, a delay
//! and faults. The elements are the same code that runs elsewhere; none of it depends on time being virtual.

pub mod baseline;
pub mod calendar;
mod damage;
pub mod fabric;
pub mod host;
pub mod invariants;
pub mod link;
pub mod moment;
pub mod multicast;
pub mod network;
pub mod pieces;
pub mod plan;
pub mod program;
mod record;
pub mod replica;
pub mod scenario;
pub mod scene;
pub mod set_up;
pub mod shown;
pub mod station;
mod tap;
pub mod timing;
pub mod topology;
mod travelling;

pub use link::{Counters, LinkModel, Trouble};
pub use moment::Moment;
pub use multicast::Multicast;
pub use network::{ElementId, LinkId, Network, Place, Station, Way};
pub use scene::Scene;
pub use set_up::SetUpError;
pub use shown::{Pace, Shown, Spectator};
