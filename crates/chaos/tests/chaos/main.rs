//! Chaos tests: default seeds, those that failed once, and single faults.

mod recovery;
mod seeds;
mod world;
