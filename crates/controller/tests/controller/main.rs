//! The controller over HTTP, with nodes and sources that answer as real ones do.

mod access;
mod at_rest;
mod bad_input;
mod connections;
mod events;
mod failures;
mod fleet;
mod in_etcd;
mod jobs;
mod life;
mod running;
mod standing_in;
mod stores;
