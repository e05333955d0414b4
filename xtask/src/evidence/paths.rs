//! Comparisons of path selection: jobs on a fabric, and steering past a failed or congested spine.

use super::job::{Job, Step};
use super::jobs::{head, text};
use super::methods::Measure;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;

/// Its name, what it compares, and whether it takes a few seconds.
const SCENARIOS: [(&str, &str, bool); 7] = [
    ("allreduce", "path selection for an all-reduce of 64 NICs", false),
    ("allreduce-512", "path selection for an all-reduce of 512 NICs", false),
    ("alltoall", "path selection for an all-to-all", false),
    ("multi-job", "path selection for four jobs at a time", false),
    ("link-failure", "path selection when a spine fails", false),
    ("spine-congestion", "path selection when a spine is congested", false),
    ("goal-trace", "path selection for a trace of four ranks beside an all-to-all", true),
];

const MEASURES: [Measure; 14] = [
    Measure::new("recovery, ms", "recovery", 1e6, 2),
    Measure::new("iteration, ms", "iteration, median", 1e6, 2),
    Measure::new("longest iteration, ms", "iteration, longest", 1e6, 2),
    Measure::new("iteration relative to ideal", "iteration relative to ideal", 1.0, 2),
    Measure::new("busiest link", "busiest link", 1.0, 2),
    Measure::new("busiest link relative to mean", "busiest link relative to mean", 1.0, 2),
    Measure::new("slowest flow, Gbit/s", "slowest flow", 1e9, 1),
    Measure::new("PAUSE frames", "PAUSE frames", 1.0, 0),
    Measure::new("retransmitted packets", "retransmitted packets", 1.0, 0),
    Measure::new("lost on failed links", "lost on failed links", 1.0, 0),
    Measure::new("dropped packets", "packets dropped", 1.0, 0),
    Measure::new("out of order", "out of order", 1.0, 0),
    Measure::new("path changes", "path changes", 1.0, 0),
    Measure::new("peak queue, MB", "peak queue", 1e6, 2),
];

pub(super) fn jobs() -> [Job; 7] {
    SCENARIOS.map(|(name, about, is_quick)| Job {
        name,
        about,
        is_quick,
        steps: vec![Step::srdma(format!("sim scenarios/{name}.toml --json"), &["/variants"])],
        table,
    })
}

/// A column for each variant, and a row for each measure that one of them has.
fn table(results: &[Value]) -> Result<String> {
    let of_all = results.iter().map(|result| result["variants"].as_array().context("a result has no variants"));
    let variants: Vec<&Value> = of_all.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    ensure!(!variants.is_empty(), "results are missing");
    let names = variants.iter().map(|variant| Ok(format!("`{}`", text(variant, "/name")?)));
    let names: Vec<String> = names.collect::<Result<_>>()?;
    let mut headings = vec!["median of the seeds (least–greatest)"];
    headings.extend(names.iter().map(String::as_str));
    let mut table = head(&headings);
    for measure in MEASURES.iter().filter(|measure| variants.iter().any(|variant| measure.is_of(variant))) {
        let _ = write!(table, "| {} |", measure.heading);
        for variant in &variants {
            let _ = write!(table, " {} |", measure.cell(variant)?);
        }
        table.push('\n');
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variants_are_columns() {
        let measures = |iteration: f64| json!({ "iteration, median": [iteration, iteration, 2.0 * iteration] });
        let variant = |name: &str, measures: Value| json!({ "name": name, "measures": measures });
        let mut steered = measures(5e5);
        steered["path changes"] = json!([3.0, 3.0, 3.0]);
        let result = json!({ "variants": [variant("ecmp", measures(1e6)), variant("steered", steered)] });
        let text = "| median of the seeds (least–greatest) | `ecmp` | `steered` |\n|---|---:|---:|\n\
                    | iteration, ms | 1.00 (1.00–2.00) | 0.50 (0.50–1.00) |\n| path changes | 0 | 3 |\n";
        assert_eq!(table(&[result]).unwrap(), text);
    }
}
