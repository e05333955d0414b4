//! The controller's decisions, driven as a server or a simulator drives them.

mod arrears;
mod authority;
mod bud_nodes;
mod cluster;
mod counters;
mod dual_homed;
mod dual_homed_sources;
mod in_network_repair;
mod lease;
mod lost_nodes;
mod pipeline;
mod placed_jobs;
mod receivers;
mod repair;
mod reservations;
mod restored_stores;
mod successors;
mod views;
