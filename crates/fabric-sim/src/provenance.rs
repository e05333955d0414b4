//! Provenance of results: the command that reproduces them, the scenario file, and the run time.

use srdma_report::units::{count, grouped};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Information on the runs for tables and reports.
#[derive(Clone, Debug)]
pub struct Provenance<'a> {
    /// The command line that reproduces the results.
    pub command: String,
    /// The content of the scenario file.
    pub file_text: &'a str,
    /// Path of the HTML report, if one is written.
    pub report: Option<&'a Path>,
    /// Number of seeds per variant.
    pub seeds: usize,
    /// Wall-clock time of all runs.
    pub wall: Duration,
    /// Number of threads.
    pub threads: usize,
}

impl Provenance<'_> {
    /// `1,000 packet-hops in 0.1 s on 2 threads: 10,000 a second`
    pub(crate) fn write_speed(&self, f: &mut fmt::Formatter<'_>, packet_hops: u64) -> fmt::Result {
        let (wall, threads) = (self.wall.as_secs_f64(), count(self.threads as u64, "thread"));
        let rate = grouped((packet_hops as f64 / wall.max(1e-9)) as u64);
        let packet_hops = grouped(packet_hops);
        writeln!(f, "simulated   {packet_hops} packet-hops in {wall:.1} s on {threads}: {rate} a second")
    }

    /// The last lines of a table: the command, and where the report is.
    pub(crate) fn write_footer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "again       {}", self.command)?;
        match self.report {
            Some(path) => writeln!(f, "report      {}", path.display()),
            None => Ok(()),
        }
    }
}
