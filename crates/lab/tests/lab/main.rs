//! The tests of `srdma-lab`.

mod containerlab;
mod guest;
mod topology;
