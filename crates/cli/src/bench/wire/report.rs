//! The table.

use super::super::machine::Machine;
use serde::Serialize;
use std::io::{self, Write};

/// One line of the table: what was measured, beside its yardstick from the same run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) driver: String,
    pub(super) case: String,
    pub(super) frame_octets: usize,
    #[serde(flatten)]
    pub(super) measured: Nanoseconds,
    pub(super) yardstick: String,
    pub(super) yardstick_ns: Nanoseconds,
    /// The yardstick's time through the case's: the share of its rate that is reached.
    pub(super) ratio: f64,
    pub(super) target: Option<f64>,
    pub(super) repetitions: usize,
}

/// Nanoseconds a frame that leaves.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Nanoseconds {
    ns_min: f64,
    ns_median: f64,
}

impl Nanoseconds {
    /// Of some repetitions, of which there is at least one.
    pub(super) fn of(samples: &[f64]) -> Self {
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        Nanoseconds { ns_min: tenths(least), ns_median: tenths(median(samples)) }
    }
}

/// The share of the yardstick's rate that is reached: the median over repetitions, paired in their order.
pub(super) fn ratio(yardstick: &[f64], measured: &[f64]) -> f64 {
    let ratios: Vec<f64> = yardstick.iter().zip(measured).map(|(yardstick, measured)| yardstick / measured).collect();
    (median(&ratios) * 1000.0).round() / 1000.0
}

fn median(samples: &[f64]) -> f64 {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Writes rows as they come.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
}

impl Report {
    /// Begins the table.
    pub(super) fn new(json: bool, machine: &Machine) -> io::Result<Self> {
        if !json {
            let mut out = io::stdout().lock();
            writeln!(out, "{}, nanoseconds a frame that leaves\n", machine.model)?;
            writeln!(
                out,
                "{:<15} {:<14} {:>6} {:>8} {:>8}   {:<17} {:>8} {:>8} {:>6}",
                "driver", "case", "octets", "ns min", "ns med", "yardstick", "ns min", "ns med", "ratio"
            )?;
        }
        Ok(Report { json })
    }

    /// Writes a row.
    pub(super) fn row(&self, row: &Row) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, row)?;
            return writeln!(out);
        }
        let missed = row.target.filter(|target| row.ratio < *target);
        writeln!(
            out,
            "{:<15} {:<14} {:>6} {:>8.1} {:>8.1}   {:<17} {:>8.1} {:>8.1} {:>6.3}{}",
            row.driver,
            row.case,
            row.frame_octets,
            row.measured.ns_min,
            row.measured.ns_median,
            row.yardstick,
            row.yardstick_ns.ns_min,
            row.yardstick_ns.ns_median,
            row.ratio,
            missed.map_or(String::new(), |target| format!(" (target {target})")),
        )
    }

    /// Says what could not be measured, and why.
    pub(super) fn skipped(&self, what: &str, why: &anyhow::Error) {
        eprintln!("{what} is left out: {why:#}");
    }
}
