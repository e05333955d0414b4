//! Chaos tests: random small multicast networks under every kind of fault at once. Each is drawn from a seed, run in
//! virtual time, and checked.

pub mod address;
mod agent;
pub mod attack;
mod channel;
mod checks;
mod events;
mod faults;
mod flow;
mod forge;
mod generate;
mod insider;
mod membership;
pub mod outcome;
mod removal;
pub mod rng;
pub mod runner;
pub mod scale;
pub mod schedule;
pub mod shrink;
pub mod summary;
mod testbed;
pub mod token;
pub mod validity;
pub mod world;
