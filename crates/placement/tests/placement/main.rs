//! The tests of `srdma-placement`, one binary: linking is most of what building tests costs.

mod changes;
mod choose;
mod clos;
mod general;
mod imports;
mod jobs;
mod kinds;
mod saved;
mod schedule;
