//! Benchmarks: time per packet in the dataplane ([`points`]), and from interface to interface ([`wire`]), which
//! `docs/performance.md` explains; and versions of the host library to several receivers ([`applications`]).
//!
//! Each case checks the frames that leave before it is measured, and counts them afterwards.

mod aggregation;
pub mod applications;
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
pub mod workers;
mod yardsticks;

pub use machine::Machine;
pub use measure::Bench;
pub use point::{Measured, Point, SHORT_REPETITIONS, points, select};
pub use row::{MemoryRow, Row};

/// The middle one, the later of two; not a number without any.
fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
