//! Benchmarks: time per packet in the dataplane ([`points`]), and from interface to interface ([`wire`]).
//! `docs/performance.md` explains the figures.
//!
//! Each case checks the frames that leave before it is measured, and counts them afterwards.

mod aggregation;
mod cases;
mod check;
mod fast_cnp;
mod fixture;
mod machine;
mod measure;
mod packets;
mod point;
mod repair;
mod routes;
mod row;
mod steering;
mod wan;
pub mod wire;
mod yardsticks;

pub use machine::Machine;
pub use measure::Bench;
pub use point::{Measured, Point, SHORT_REPETITIONS, points, select};
pub use row::{MemoryRow, Row};
