//! The tables that `srdma bench` prints.

use serde::Serialize;
use srdma_bench::wire::WireRow;
use srdma_bench::workers::WorkersRow;
use srdma_bench::{Machine, MemoryRow, Row};
use std::io::{self, Write};

/// Writes a row as a line of JSON.
fn json_line(row: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, row)?;
    writeln!(out)
}

/// Writes rows of `srdma bench dataplane` as they come.
#[derive(Debug)]
pub(super) struct DataplaneTable {
    json: bool,
}

impl DataplaneTable {
    /// Writes the head.
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
        Ok(DataplaneTable { json })
    }

    /// Writes the memory of a group.
    pub(super) fn memory(&mut self, row: &MemoryRow) -> io::Result<()> {
        if self.json {
            return json_line(row);
        }
        writeln!(io::stdout(), "{:<40} {:>6.0} octets each", row.case, row.octets_per_group)
    }

    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        if self.json {
            return json_line(row);
        }
        let count = |value: Option<usize>| value.map_or("-".to_owned(), |value| value.to_string());
        writeln!(
            io::stdout(),
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

/// Writes rows of `srdma bench dataplane --workers`.
#[derive(Debug)]
pub(super) struct WorkersTable {
    json: bool,
}

impl WorkersTable {
    /// Writes the head.
    pub(super) fn new(json: bool, machine: &Machine) -> io::Result<Self> {
        if !json {
            let mut out = io::stdout().lock();
            writeln!(out, "{}, million packets a second of all workers together\n", machine.model)?;
            writeln!(
                out,
                "{:<36} {:>7} {:>9} {:>9} {:>9} {:>7}",
                "case", "workers", "max", "median", "ns min", "ratio"
            )?;
        }
        Ok(WorkersTable { json })
    }

    pub(super) fn row(&mut self, row: &WorkersRow) -> io::Result<()> {
        if self.json {
            return json_line(row);
        }
        let millions = |rate: f64| rate / 1e6;
        writeln!(
            io::stdout(),
            "{:<36} {:>7} {:>9.3} {:>9.3} {:>9.1} {:>7.2}",
            row.case,
            row.workers,
            millions(row.packets_per_s_max),
            millions(row.packets_per_s_median),
            row.ns_min,
            row.ratio_median
        )
    }
}

/// Writes rows of `srdma bench wire` as they come.
#[derive(Debug)]
pub(super) struct WireTable {
    json: bool,
}

impl WireTable {
    /// Writes the head.
    pub(super) fn new(json: bool, machine: &Machine) -> io::Result<Self> {
        if !json {
            let mut out = io::stdout().lock();
            writeln!(out, "{}, nanoseconds a frame that leaves\n", machine.model)?;
            writeln!(
                out,
                "{:<15} {:<19} {:>6} {:>8} {:>8}   {:<17} {:>8} {:>8} {:>6}",
                "driver", "case", "octets", "ns min", "ns med", "yardstick", "ns min", "ns med", "ratio"
            )?;
        }
        Ok(WireTable { json })
    }

    pub(super) fn write(&self, row: &WireRow) -> io::Result<()> {
        if self.json {
            return json_line(row);
        }
        let missed = row.target.filter(|target| row.ratio < *target);
        writeln!(
            io::stdout(),
            "{:<15} {:<19} {:>6} {:>8.1} {:>8.1}   {:<17} {:>8.1} {:>8.1} {:>6.3}{}",
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
}
