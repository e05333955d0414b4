//! The tests of `srdma-fabric-sim`, one binary: linking is most of what building tests costs.

mod end_to_end;
mod experiment;
mod jobs;
mod levels;
mod max_min;
mod shipped;
mod steady;
mod threads;
mod wan;
