//! The results of a study as text for a terminal.

use super::WanReport;
use crate::wan::{WanRun, WanVariant};
use srdma_report::units::count;
use srdma_report::{Spread, Unit};
use std::fmt;

const NAME_WIDTH: usize = 26;
const COLUMN: usize = 16;

impl fmt::Display for WanReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (study, results) = (self.study, self.results);
        writeln!(f, "{}", study.title)?;
        let (variants, lengths) =
            (count(study.variants.len() as u64, "variant"), count(results.lengths().len() as u64, "length"));
        let queues = count(results.buffers().len() as u64, "queue");
        writeln!(
            f,
            "congestion at {:?}; {variants}, {lengths}, {queues}, {}",
            study.wan.congested,
            count(self.provenance.seeds as u64, "seed")
        )?;
        let buffer = self.buffer();
        let near = format!("a buffer of {buffer} of rate × round trip");
        self.table(f, "sender notified after, median", |variant, km| {
            self.spread(variant, km, Unit::Nanoseconds, |run| run.notified_ns)
        })?;
        self.table(f, "gateway paused after", |variant, km| {
            self.spread(variant, km, Unit::Nanoseconds, |run| run.paused_ns)
        })?;
        let or_more = |size: Option<f64>| Some(size.map_or_else(|| "more".to_owned(), |size| size.to_string()));
        self.table(f, "lossless buffer", |variant, km| or_more(results.lossless(&variant.name, km)))?;
        self.table(f, "and 99 % utilisation", |variant, km| or_more(results.needed(&variant.name, km)))?;
        writeln!(f, "\nwith {near}:")?;
        self.table(f, "utilisation, minimum", |variant, km| {
            let used = Spread::of(&self.values(variant, km, |run| run.utilisation))?;
            Some(Unit::Percent.format(100.0 * used.least))
        })?;
        self.table(f, "packets dropped", |variant, km| {
            self.spread(variant, km, Unit::Count, |run| Some(run.dropped as f64))
        })?;
        self.table(f, "queue, maximum", |variant, km| {
            self.spread(variant, km, Unit::Times, |run| Some(run.peak_octets as f64 / run.path_octets as f64))
        })?;
        self.table(f, "local flows, slowdown p99", |variant, km| {
            self.spread(variant, km, Unit::Times, |run| run.local_slowdown_p99)
        })?;
        self.write_checks(f)?;
        let hops: u64 = results.runs.iter().map(|run| run.packet_hops).sum();
        writeln!(f)?;
        self.provenance.write_speed(f, hops)?;
        self.provenance.write_footer(f)
    }
}

impl WanReport<'_> {
    /// The median of the seeds.
    fn spread(&self, variant: &WanVariant, km: f64, unit: Unit, of: impl Fn(&WanRun) -> Option<f64>) -> Option<String> {
        Some(unit.format(Spread::of(&self.values(variant, km, of))?.median).replace('\u{a0}', " "))
    }

    /// A row for each variant of which anything is known, a column for each length.
    fn table(
        &self,
        f: &mut fmt::Formatter<'_>,
        what: &str,
        of: impl Fn(&WanVariant, f64) -> Option<String>,
    ) -> fmt::Result {
        let lengths = self.results.lengths();
        let rows = self
            .study
            .variants
            .iter()
            .map(|variant| (variant, lengths.iter().map(|km| of(variant, *km)).collect::<Vec<_>>()));
        let rows: Vec<_> = rows.filter(|(_, cells)| cells.iter().any(Option::is_some)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(f, "\n{what:<NAME_WIDTH$}")?;
        for km in &lengths {
            write!(f, " {:>COLUMN$}", format!("{km} km"))?;
        }
        writeln!(f)?;
        for (variant, cells) in rows {
            write!(f, "  {:<width$}", variant.name, width = NAME_WIDTH - 2)?;
            for cell in cells {
                write!(f, " {:>COLUMN$}", cell.unwrap_or_else(|| "–".to_owned()))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_checks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.claims.is_empty() {
            writeln!(f)?;
        }
        for claim in &self.claims {
            writeln!(f, "{claim}")?;
        }
        Ok(())
    }
}
