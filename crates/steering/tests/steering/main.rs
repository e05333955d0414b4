//! The tests of `srdma-steering`, one binary: linking is most of what building tests costs.

mod bursts;
mod model;
