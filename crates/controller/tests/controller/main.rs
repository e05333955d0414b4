//! The controller over HTTP, with nodes and sources that answer as real ones do.

mod access;
mod bad_input;
mod failures;
mod fleet;
mod jobs;
mod life;
mod running;
mod stores;
