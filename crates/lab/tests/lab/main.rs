//! The tests of `srdma-lab`, one binary: linking is most of what building tests costs.

mod containerlab;
mod guest;
mod topology;
