//! Chaos tests of a whole cluster in virtual time: the controller's core over a store, the agents of all nodes with
//! their data planes, sources and receivers, over a management network and a data network, each with faults. A run is
//! drawn from a seed and checked by what the API shows, what nodes have, and what is in the receivers' memory.

mod adapter;
mod agent_host;
mod aims;
mod application;
mod checks;
mod controller;
mod copies;
mod data_network;
mod diagnosis;
mod end_checks;
mod etcd;
mod faults;
mod flow;
mod generate;
mod leaders;
mod management;
mod operator;
mod orders;
pub mod outcome;
pub mod phase;
mod reachability;
mod reading;
mod resumption;
pub mod schedule;
pub mod shrink;
mod store;
pub mod summary;
pub mod token;
mod two_steps;
pub mod world;
