//! Results.

use crate::median;
use serde::Serialize;

/// Time of one case beside its yardstick from the same run.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns that docs/performance.md describes")]
pub struct WireRow {
    pub driver: String,
    pub case: String,
    pub frame_octets: usize,
    #[serde(flatten)]
    pub measured: Nanoseconds,
    pub yardstick: String,
    pub yardstick_ns: Nanoseconds,
    /// The yardstick's time through the case's: the share of its rate that is reached.
    pub ratio: f64,
    pub target: Option<f64>,
    pub repetitions: usize,
}

/// Nanoseconds a frame that leaves.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Nanoseconds {
    /// The fastest repetition.
    pub ns_min: f64,
    /// The median of all repetitions.
    pub ns_median: f64,
}

impl Nanoseconds {
    /// Of some repetitions, of which there is at least one.
    pub(super) fn of(samples: &[f64]) -> Self {
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        Nanoseconds { ns_min: tenths(least), ns_median: tenths(median(samples.iter().copied())) }
    }
}

/// The share of the yardstick's rate that is reached: the median over repetitions, paired in their order.
pub(super) fn ratio(yardstick: &[f64], measured: &[f64]) -> f64 {
    let ratios = yardstick.iter().zip(measured).map(|(yardstick, measured)| yardstick / measured);
    (median(ratios) * 1000.0).round() / 1000.0
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
