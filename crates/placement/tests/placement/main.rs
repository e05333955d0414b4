//! The tests of `srdma-placement`.

mod changes;
mod choose;
mod clos;
mod deadlines;
mod general;
mod goal;
mod groups;
mod imports;
mod jobs;
mod kinds;
mod mixed;
mod saved;
mod schedule;
