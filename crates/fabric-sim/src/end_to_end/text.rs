//! Results of an end-to-end run as text for a terminal.

use super::EndToEndReport;
use srdma_report::units::{count, grouped};
use std::fmt;

impl fmt::Display for EndToEndReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (section, runs) = (&self.plan.section, &self.results.runs);
        writeln!(f, "{}", self.plan.title)?;
        writeln!(
            f,
            "{} octets to {}; congestion at {:?} by {}; {} of frames lost on each link; {}",
            grouped(section.octets.get()),
            count(section.receivers() as u64, "receiver"),
            section.congested,
            count(section.senders.get(), "other sender"),
            section.loss.get(),
            count(runs.len() as u64, "seed")
        )?;
        let mut at = "";
        for claim in &self.claims {
            if claim.at != at {
                writeln!(f, "\n{}", claim.at)?;
                at = &claim.at;
            }
            let mark = if claim.holds { "✓" } else { "✗" };
            writeln!(f, "{mark} {}: {}", claim.expected, claim.found)?;
        }
        let held = self.claims.iter().filter(|claim| claim.holds).count();
        writeln!(f, "\n{held} of {} checks pass", self.claims.len())?;
        let hops: u64 = runs.iter().map(|run| run.packet_hops).sum();
        writeln!(f)?;
        self.provenance.write_speed(f, hops)?;
        self.provenance.write_footer(f)
    }
}
