//! The tests of `srdma-report`.

mod heat;
mod page;
