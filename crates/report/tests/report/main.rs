//! The tests of `srdma-report`, one binary: linking is most of what building tests costs.

mod heat;
mod page;
