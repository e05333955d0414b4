//! The table.

use super::machine::Machine;
use serde::Serialize;
use std::io::{self, Write};

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    case: String,
    frame_octets: Option<usize>,
    routes: Option<usize>,
    working_set: &'static str,
    /// Frames that leave for each that comes in.
    copies: usize,
    ns_min: f64,
    ns_median: f64,
    /// Clocks of the time stamp counter; absent where the kernel does not tell its frequency.
    clocks_min: Option<f64>,
    ns_min_per_copy: f64,
    repetitions: usize,
}

impl Row {
    /// A row from the nanoseconds of each repetition, of which there is at least one.
    pub(super) fn new(
        case: String,
        frame_octets: Option<usize>,
        routes: Option<usize>,
        working_set: &'static str,
        copies: usize,
        mut samples: Vec<f64>,
        machine: &Machine,
    ) -> Self {
        samples.sort_by(f64::total_cmp);
        let ns_min = samples[0];
        let ns_median = samples[samples.len() / 2];
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Row {
            case,
            frame_octets,
            routes,
            working_set,
            copies,
            ns_min: tenths(ns_min),
            ns_median: tenths(ns_median),
            clocks_min: machine.clocks(ns_min).map(tenths),
            ns_min_per_copy: tenths(ns_min / copies as f64),
            repetitions: samples.len(),
        }
    }
}

/// What a group takes in memory.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MemoryRow {
    /// As the table writes it.
    pub(super) case: String,
    /// Branches of the group.
    pub(super) branches: u16,
    /// Octets of each group.
    pub(super) octets_per_group: f64,
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
            let clock = machine.tsc_ghz.map_or("unknown".to_owned(), |ghz| format!("{ghz:.2} GHz"));
            let mut out = io::stdout().lock();
            writeln!(
                out,
                "{}, L2 {} KiB, L3 {} KiB, time stamp counter {clock}\n",
                machine.model,
                machine.l2_octets >> 10,
                machine.l3_octets >> 10
            )?;
            writeln!(
                out,
                "{:<32} {:>6} {:>7}  {:<9} {:>9} {:>9} {:>9} {:>9}",
                "case", "octets", "routes", "set", "ns min", "ns med", "clk min", "ns/copy"
            )?;
        }
        Ok(Report { json })
    }

    /// Writes what a group takes in memory.
    pub(super) fn memory(&mut self, row: &MemoryRow) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, row)?;
            return writeln!(out);
        }
        writeln!(out, "{:<40} {:>6.0} octets each", row.case, row.octets_per_group)
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, row)?;
            return writeln!(out);
        }
        let count = |value: Option<usize>| value.map_or("-".to_owned(), |value| value.to_string());
        writeln!(
            out,
            "{:<32} {:>6} {:>7}  {:<9} {:>9.1} {:>9.1} {:>9} {:>9.1}",
            row.case,
            count(row.frame_octets),
            count(row.routes),
            row.working_set,
            row.ns_min,
            row.ns_median,
            row.clocks_min.map_or("-".to_owned(), |clocks| format!("{clocks:.1}")),
            row.ns_min_per_copy,
        )
    }
}
