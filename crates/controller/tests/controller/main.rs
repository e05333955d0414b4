//! The controller over HTTP, with nodes and sources that answer as real ones do.

mod access;
mod at_rest;
mod bad_input;
mod browser;
mod connections;
mod events;
mod failures;
mod fleet;
mod high_availability;
mod in_etcd;
mod jobs;
mod life;
mod memory;
mod process;
mod protocol;
mod refusals;
mod reservations;
mod running;
mod slow_clients;
mod stores;
mod tls_memory;
