//! Comparisons of congestion control: the fronts of sweeps, and the variants with the seeds of their evaluation (D239).

use super::job::{Job, Step};
use super::jobs::{grouped, head, number, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;

/// Fronts of the sweeps in scenarios/sweeps.
pub(super) fn fronts_of_sweeps() -> [Job; 3] {
    ["incast-dc-dcqcn", "incast-dc-hpcc", "incast-dc-rates"].map(|sweep| Job {
        name: sweep,
        about: "the fronts of the sweep of this name",
        is_quick: false,
        steps: vec![Step::srdma(format!("sim scenarios/sweeps/{sweep}.toml --json"), &["/points"])],
        table: fronts,
    })
}

/// The front of each method, by slowdown, and the number of its combinations.
fn fronts(results: &[Value]) -> Result<String> {
    let mut table = head(&["method and its front", "short flows, slowdown p99", "victim's share", "cost", ""]);
    for result in results {
        let points = result["points"].as_array().context("a result has no points")?;
        for of_method in points.chunk_by(|one, next| one["method"] == next["method"]) {
            let _ = writeln!(table, "| **{}**, {} sets | | | | |", text(&of_method[0], "/method")?, of_method.len());
            let mut front: Vec<&Value> = of_method.iter().filter(|point| point["on_front"] == true).collect();
            front.sort_by(|one, other| {
                let slowdown = |point: &Value| point["short_slowdown_p99"].as_f64().unwrap_or(f64::MAX);
                slowdown(one).total_cmp(&slowdown(other))
            });
            for point in front {
                let name = text(point, "/variant")?;
                let [slowdown, share, cost] =
                    [number(point, "/short_slowdown_p99")?, number(point, "/share")?, number(point, "/cost")?];
                let selected = if point["is_selected"] == true { "selected" } else { "" };
                let _ = writeln!(table, "| `{name}` | {slowdown:.1} | {share:.2} | {cost:.1} | {selected} |");
            }
        }
    }
    Ok(table)
}

/// A measure of the table: its heading, its name in the results, the divisor of its unit, and decimals.
struct Column {
    heading: &'static str,
    measure: &'static str,
    divisor: f64,
    decimals: usize,
}

const COLUMNS: [Column; 8] = [
    Column { heading: "short flows, slowdown p99", measure: "short flows, slowdown p99", divisor: 1.0, decimals: 1 },
    Column { heading: "median", measure: "short flows, slowdown median", divisor: 1.0, decimals: 2 },
    Column { heading: "other flows, p99", measure: "other flows, slowdown p99", divisor: 1.0, decimals: 1 },
    Column { heading: "victim's share", measure: "victim's share", divisor: 100.0, decimals: 2 },
    Column { heading: "incast burst, ms", measure: "incast completion, median", divisor: 1e6, decimals: 1 },
    Column { heading: "peak queue, MB", measure: "peak queue", divisor: 1e6, decimals: 2 },
    Column { heading: "PAUSE frames", measure: "PAUSE frames", divisor: 1.0, decimals: 0 },
    Column {
        heading: "above the return path, p99, µs",
        measure: "delay above return path, p99",
        divisor: 1e3,
        decimals: 1,
    },
];

/// Variants of incast-dc.toml, by table.
const INCAST_DC: [(&str, &str, &[&str]); 3] = [
    (
        "incast-dc-published",
        "published parameters in incast-dc.toml",
        &["pfc", "dcqcn-published", "fast-cnp-dcqcn", "hpcc-published", "fast-cnp-hpcc"],
    ),
    (
        "incast-dc-selected",
        "DCQCN in incast-dc.toml: the selected sets, and each signal with the other one's",
        &[
            "cnp-4us",
            "fast-cnp-4us",
            "cnp-4us-as-fast",
            "fast-cnp-4us-as-cnp",
            "cnp-50us",
            "fast-cnp-50us",
            "cnp-50us-as-fast",
            "rate-dcqcn-50us",
            "rate-dcqcn-50us-share",
        ],
    ),
    (
        "incast-dc-traces",
        "HPCC++ in incast-dc.toml: the selected sets",
        &["trace", "fast-cnp-trace-50us", "rate-hpcc-50us", "trace-share", "rate-hpcc-50us-share"],
    ),
];

/// Variants of incast-dc.toml with the seeds of the evaluation.
pub(super) fn incast_dc() -> [Job; 3] {
    INCAST_DC.map(|(name, about, of)| {
        let step = |variant: &&str| {
            Step::srdma(format!("sim scenarios/incast-dc.toml --variant {variant} --json"), &["/variants"])
        };
        Job { name, about, is_quick: false, steps: of.iter().map(step).collect(), table: variants }
    })
}

/// A row for each variant: medians of the seeds, with the least and the greatest value.
fn variants(results: &[Value]) -> Result<String> {
    let columns: Vec<&str> = COLUMNS.iter().map(|column| column.heading).collect();
    let mut table = head(&[&["variant"], &columns[..]].concat());
    for result in results {
        for variant in result["variants"].as_array().context("a result has no variants")? {
            let _ = write!(table, "| `{}` |", text(variant, "/name")?);
            for column in &COLUMNS {
                let _ = write!(table, " {} |", column.cell(variant)?);
            }
            table.push('\n');
        }
    }
    ensure!(table.lines().count() > 2, "results are missing");
    Ok(table)
}

impl Column {
    fn cell(&self, variant: &Value) -> Result<String> {
        // A measure that no run has is not in the results.
        let Some(spread) = variant["measures"].get(self.measure) else { return Ok(String::new()) };
        let value = |at: usize| -> Result<String> {
            let value = number(spread, &format!("/{at}"))? / self.divisor;
            Ok(if self.decimals == 0 { grouped(value) } else { format!("{value:.*}", self.decimals) })
        };
        let [least, median, greatest] = [value(0)?, value(1)?, value(2)?];
        Ok(if least == greatest { median } else { format!("{median} ({least}–{greatest})") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fronts_are_by_slowdown_with_the_selected_variant() {
        let point = |variant: &str, slowdown: f64, on_front: bool, is_selected: bool| {
            json!({ "method": "m", "variant": variant, "short_slowdown_p99": slowdown, "share": 0.5,
                    "cost": 1.8 * slowdown, "on_front": on_front, "is_selected": is_selected })
        };
        let points = [point("m-a", 20.0, true, false), point("m-b", 9.0, true, true), point("m-c", 30.0, false, false)];
        let table = fronts(&[json!({ "points": points })]).unwrap();
        let rows = "| **m**, 3 sets | | | | |\n| `m-b` | 9.0 | 0.50 | 16.2 | selected |\n\
                    | `m-a` | 20.0 | 0.50 | 36.0 |  |\n";
        assert!(table.ends_with(rows), "{table}");
    }

    #[test]
    fn a_cell_has_the_spread_in_its_unit() {
        let measures = json!({ "peak queue": [1e6, 2.5e6, 3e6], "PAUSE frames": [0.0, 1234.4, 2000.0],
                               "victim's share": [90.0, 90.0, 90.0] });
        let table = variants(&[json!({ "variants": [{ "name": "v", "measures": measures }] })]).unwrap();
        let row = "| `v` |  |  |  | 0.90 |  | 2.50 (1.00–3.00) | 1,234 (0–2,000) |  |\n";
        assert!(table.ends_with(row), "{table}");
    }
}
