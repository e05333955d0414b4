//! The results as text for a terminal.

use crate::FabricReport;
use crate::Level;
use crate::front::Point;
use crate::measures;
use srdma_report::Spread;
use srdma_report::units::{count, grouped, time};
use std::fmt;

const NAME_WIDTH: usize = 32;
const LEAST_COLUMN: usize = 20;

impl fmt::Display for FabricReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (results, scenario) = (self.results, self.scenario);
        let topology = &scenario.topology;
        let seeds = results.runs.len() / scenario.variants.len().max(1);
        writeln!(f, "{}", results.title)?;
        writeln!(
            f,
            "{}, {}, {}; {}, {} each",
            count(topology.hosts().len() as u64, "host"),
            plural(topology.switches().len(), "switch", "switches"),
            count(topology.links().len() as u64, "link"),
            count(scenario.variants.len() as u64, "variant"),
            count(seeds as u64, "seed")
        )?;
        writeln!(f)?;
        if scenario.is_sweep {
            self.fronts(f)?;
        } else {
            self.table(f, seeds)?;
        }
        results.targets().try_for_each(|target| writeln!(f, "{target}"))?;
        if results.runs.iter().any(|run| !run.verified_icrc) {
            writeln!(f, "hosts did not verify the ICRC of received packets")?;
        }
        let hops: u64 = results.runs.iter().map(|run| run.packet_hops).sum();
        let longest_ns = results.runs.iter().map(|run| run.simulated_ns).max().unwrap_or(0);
        let threads = count(self.provenance.threads as u64, "thread");
        if scenario.level == Level::Flow {
            let wall = self.provenance.wall.as_secs_f64();
            writeln!(f, "simulated   {} at most at flow level, in {wall:.1} s on {threads}", time(longest_ns))?;
            return self.provenance.write_footer(f);
        }
        writeln!(
            f,
            "simulated   {} packet-hops, {} at most, in {:.1} s on {threads}: {} packet-hops a second",
            grouped(hops),
            time(longest_ns),
            self.provenance.wall.as_secs_f64(),
            grouped((hops as f64 / self.provenance.wall.as_secs_f64().max(1e-9)) as u64)
        )?;
        self.provenance.write_footer(f)
    }
}

impl FabricReport<'_> {
    /// Of each method of a sweep, the variants of its front, and the selected one (D239).
    fn fronts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points();
        let shown: Vec<&Point> = points.iter().filter(|point| point.on_front).collect();
        let width = shown.iter().map(|point| point.variant.chars().count()).max().unwrap_or(0).max(NAME_WIDTH);
        writeln!(f, "{:<width$} {:>12} {:>8} {:>8}", "fronts, medians of the seeds", "short p99", "share", "cost")?;
        for point in shown {
            let Point { variant, short_slowdown_p99, share, cost, is_selected, .. } = point;
            let selected = if *is_selected { "  selected" } else { "" };
            writeln!(f, "{variant:<width$} {short_slowdown_p99:>12.2} {share:>8.3} {cost:>8.2}{selected}")?;
        }
        let unfinished = points.iter().filter(|point| point.unfinished > 0).count();
        writeln!(f, "{} variants in all, of which {unfinished} left flows unfinished", points.len())?;
        writeln!(f)
    }

    /// A row for each measure, a column for each variant: the median, and the difference to the baseline.
    fn table(&self, f: &mut fmt::Formatter<'_>, seeds: usize) -> fmt::Result {
        let variants: Vec<&str> = self.scenario.variants.iter().map(|variant| variant.name.as_str()).collect();
        let width = variants.iter().map(|name| name.chars().count() + 2).max().unwrap_or(0).max(LEAST_COLUMN);
        write!(f, "{:<NAME_WIDTH$}", if seeds > 1 { "median of the seeds" } else { "" })?;
        for name in &variants {
            write!(f, " {name:>width$}")?;
        }
        writeln!(f)?;
        for measure in measures::present(self.results) {
            write!(f, "{:<NAME_WIDTH$}", measure.name)?;
            let baseline = measure.spread(self.results, &self.results.baseline);
            for name in &variants {
                let spread = measure.spread(self.results, name);
                let is_baseline = *name == self.results.baseline;
                let value =
                    spread.map_or("–".to_owned(), |spread| measure.unit.format(spread.median)).replace('\u{a0}', " ");
                let difference =
                    spread.zip(baseline).filter(|_| !is_baseline && variants.len() > 1).and_then(difference);
                let cell = difference.map_or(value.clone(), |difference| format!("{value} {difference:>7}"));
                write!(f, " {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        if variants.len() > 1 {
            writeln!(f, "differences are to {}", self.results.baseline)?;
        }
        writeln!(f)
    }
}

fn difference((value, baseline): (Spread, Spread)) -> Option<String> {
    if baseline.median == 0.0 {
        return None;
    }
    if value.median == baseline.median {
        return Some("(=)".to_owned());
    }
    let percent = (value.median / baseline.median - 1.0) * 100.0;
    Some(if percent.abs() < 1000.0 {
        format!("({percent:+.0} %)")
    } else {
        format!("(×{:.0})", 1.0 + percent / 100.0)
    })
}

fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
