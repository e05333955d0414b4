//! A storm's report as people read it.

use super::report::{Fault, Recovery, Report};
use crate::units::grouped;
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} schedules from {} on, in {:.1} s on {} {}",
            grouped(self.schedules),
            self.first,
            self.wall_s,
            self.threads,
            if self.threads == 1 { "thread" } else { "threads" }
        )?;
        writeln!(
            f,
            "speed       {:.0} schedules and {} packet-hops a second and core",
            self.schedules_per_s_and_core,
            grouped(self.hops_per_s_and_core as u64)
        )?;
        writeln!(f, "hops        {}, {:.3} s of virtual time", grouped(self.hops), self.virtual_s)?;
        writeln!(f, "groups      {}, {} complete", grouped(self.groups), grouped(self.groups_complete))?;
        writeln!(
            f,
            "sources     {} packets sent, {} of them again; {} timeouts",
            grouped(self.packets_sent),
            grouped(self.packets_retransmitted),
            grouped(self.source_timeouts)
        )?;
        let membership = [("evictions", self.evictions), ("joins", self.joins), ("restarts", self.restarts)];
        writeln!(f, "membership  {}", counts(membership))?;
        writeln!(f, "recovery    {}", self.recovery)?;
        writeln!(f)?;
        writeln!(f, "{:<24} {:>12} {:>14}", "fault", "schedules", "times")?;
        for Fault { name, schedules, times } in &self.faults {
            writeln!(f, "{name:<24} {:>12} {:>14}", grouped(*schedules), grouped(*times))?;
        }
        writeln!(f)?;
        if self.failures.is_empty() {
            return writeln!(f, "failures    none");
        }
        for failure in &self.failures {
            writeln!(f, "FAILED {}: {}", failure.line, failure.complaint)?;
            writeln!(f, "  srdma storm --seed {} --verbose", failure.line)?;
            if let Some(line) = &failure.shrunk {
                writeln!(f, "  {}", Shell(line))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(least), Some(median), Some(most), Some(worst)) =
            (self.least, self.median, self.of_1000_but_10, self.worst)
        else {
            return write!(f, "none measured");
        };
        write!(
            f,
            "{} measured; in ACK timeouts: least {least}, median {median}, 99 % within {most}, worst {worst}",
            grouped(self.measured)
        )
    }
}

/// A line that replays a schedule, as a shell takes it.
pub(super) struct Shell<'a>(pub(super) &'a str);

impl fmt::Display for Shell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "srdma storm --replay '{}'", self.0)
    }
}

/// Counts with their names, in one line.
pub(super) fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<String> = counts.into_iter().map(|(name, count)| format!("{} {name}", grouped(count))).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}
