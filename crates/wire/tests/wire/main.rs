//! The tests of `srdma-wire`, one binary: linking is most of what building tests costs.

mod golden;
mod properties;
