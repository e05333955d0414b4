//! The report as text.

use super::report::{Fault, Recovery, Report};
use crate::units::grouped;
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} schedules from seed {} in {:.1} s on {} {}",
            grouped(self.schedules),
            self.first_seed,
            self.wall_s,
            self.threads,
            if self.threads == 1 { "thread" } else { "threads" }
        )?;
        writeln!(
            f,
            "speed       {:.0} schedules and {} packet-hops per second and core",
            self.schedules_per_s_and_core,
            grouped(self.hops_per_s_and_core as u64)
        )?;
        writeln!(f, "hops        {}, {:.3} s of virtual time", grouped(self.hops), self.virtual_s)?;
        writeln!(f, "groups      {}, {} completed", grouped(self.groups), grouped(self.groups_completed))?;
        writeln!(
            f,
            "sources     {} packets sent, {} of them retransmissions; {} timeouts",
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
            writeln!(f, "FAILED {}: {}", failure.token, failure.violation)?;
            writeln!(f, "  {}", failure.command)?;
            if let Some(token) = &failure.shrunk {
                writeln!(f, "  {}", ReplayCommand(token))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(min), Some(median), Some(p99), Some(max)) = (self.min, self.median, self.p99, self.max) else {
            return write!(f, "none");
        };
        write!(f, "{} measured; in ACK timeouts: min {min}, median {median}, p99 {p99}, max {max}", grouped(self.count))
    }
}

/// The shell command that replays a token.
pub(super) struct ReplayCommand<'a>(pub(super) &'a str);

impl fmt::Display for ReplayCommand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "srdma chaos --replay '{}'", self.0)
    }
}

/// Counts with their names, in one line.
pub(super) fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<String> = counts.into_iter().map(|(name, count)| format!("{} {name}", grouped(count))).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}
