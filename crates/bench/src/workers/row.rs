//! Results of workers.

use super::WorkersCase;
use crate::{Machine, median};
use serde::Serialize;

/// Throughput of a case with so many workers.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns that docs/performance.md describes")]
pub struct WorkersRow {
    pub case: &'static str,
    pub workers: u16,
    /// Received packets a second, in the best and in the middle repetition.
    pub packets_per_s_max: f64,
    pub packets_per_s_median: f64,
    /// Nanoseconds of the wall for each packet, in the best repetition.
    pub ns_min: f64,
    pub clocks_min: Option<f64>,
    /// Throughput over that of the first number of workers: the median of the repetitions, each over the one beside it.
    pub ratio_median: f64,
    pub repetitions: usize,
}

impl WorkersRow {
    pub(super) fn new(case: WorkersCase, workers: u16, samples: Vec<f64>, base: &[f64], machine: &Machine) -> Self {
        let ratio = median(samples.iter().zip(base).map(|(rate, base)| rate / base));
        let best = samples.iter().copied().fold(0.0, f64::max);
        let ns_min = 1e9 / best;
        WorkersRow {
            case: case.name(),
            workers,
            packets_per_s_max: best.round(),
            packets_per_s_median: median(samples.iter().copied()).round(),
            ns_min: (ns_min * 10.0).round() / 10.0,
            clocks_min: machine.clocks(ns_min).map(|clocks| (clocks * 10.0).round() / 10.0),
            ratio_median: (ratio * 100.0).round() / 100.0,
            repetitions: samples.len(),
        }
    }
}
