//! Comparisons of congestion control: the fronts of sweeps, and the variants with the seeds of their evaluation (D239).

use super::job::{Job, Step};
use super::jobs::{array, head, number, only, spread, text};
use super::plots::Plot;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use srdma_report::{Axis, LinePlot, Scale, Series, Shape, Unit};
use std::fmt::Write;

/// The sweeps in scenarios/sweeps.
pub(super) const SWEEPS: [&str; 6] =
    ["incast-dc-dcqcn", "incast-dc-hpcc", "incast-dc-rates", "incast-dc-others", "incast-dc-400g", "multicast-incast"];

/// Their fronts.
pub(super) fn fronts_of_sweeps() -> [Job; 6] {
    SWEEPS.map(|sweep| Job {
        name: sweep,
        about: "the fronts of the sweep of this name",
        is_quick: false,
        steps: vec![Step::srdma(format!("sim scenarios/sweeps/{sweep}.toml --json"), &["/points"])],
        table: fronts,
    })
}

/// The sets on the front of a method, by slowdown.
fn front(of_method: &[Value]) -> Vec<&Value> {
    let mut front: Vec<&Value> = of_method.iter().filter(|point| point["on_front"] == true).collect();
    front.sort_by(|one, other| {
        let slowdown = |point: &Value| point["short_slowdown_p99"].as_f64().unwrap_or(f64::MAX);
        slowdown(one).total_cmp(&slowdown(other))
    });
    front
}

/// Lines of a plot of fronts: more are hard to tell apart.
const MOST_FRONTS: usize = 5;

/// The fronts of a sweep, in plots with the same axes.
pub(super) fn plots(sweep: &str, results: &[Value]) -> Result<Vec<Plot>> {
    let points = array(only(results)?, "/points")?;
    let methods: Vec<&[Value]> = points.chunk_by(|one, next| one["method"] == next["method"]).collect();
    let fronts = methods.iter().map(|of_method| {
        let point = |point: &&Value| Ok((number(point, "/share")?, number(point, "/short_slowdown_p99")?));
        let points = front(of_method).iter().map(point).collect::<Result<Vec<(f64, f64)>>>()?;
        Ok((text(&of_method[0], "/method")?, points))
    });
    let fronts = fronts.collect::<Result<Vec<_>>>()?;
    let greatest =
        |of: fn(&(f64, f64)) -> f64| fronts.iter().flat_map(|(_, points)| points).map(of).fold(1.0, f64::max);
    let share = Axis { greatest: Some(1.05 * greatest(|point| point.0)), ..Axis::new("victim's share", Unit::Count) };
    let slowdown = Axis {
        scale: Scale::Logarithmic,
        least: Some(1.0),
        greatest: Some(greatest(|point| point.1)),
        ..Axis::new("slowdown p99 of short flows", Unit::Times)
    };
    let chunks = fronts.chunks(MOST_FRONTS).enumerate();
    let plots = chunks.map(|(number, fronts)| {
        let series = fronts.iter().enumerate().map(|(colour, (method, points))| Series {
            name: (*method).to_owned(),
            colour,
            shape: Shape::Line,
            points: visible(points),
        });
        let plot = LinePlot {
            title: format!("{sweep}: the front of each method"),
            look_for: String::new(),
            x: share.clone(),
            y: slowdown.clone(),
            series: series.collect(),
            references: Vec::new(),
        };
        let number = if number == 0 { String::new() } else { format!("-{}", number + 1) };
        Plot { file: format!("front-{sweep}{number}.svg"), svg: plot.svg() }
    });
    Ok(plots.collect())
}

/// A line of one point would not be seen: it is as long as a hundredth of the victim's share.
fn visible(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    match points {
        [(share, slowdown)] => vec![(share - 0.005, *slowdown), (share + 0.005, *slowdown)],
        _ => points.to_vec(),
    }
}

/// The front of each method, by slowdown, and the number of its combinations.
fn fronts(results: &[Value]) -> Result<String> {
    let mut table = head(&["method and its front", "short flows, slowdown p99", "victim's share", "cost", ""]);
    for result in results {
        let points = array(result, "/points")?;
        for of_method in points.chunk_by(|one, next| one["method"] == next["method"]) {
            let _ = writeln!(table, "| **{}**, {} sets | | | | |", text(&of_method[0], "/method")?, of_method.len());
            for point in front(of_method) {
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
pub(super) struct Measure {
    pub(super) heading: &'static str,
    measure: &'static str,
    divisor: f64,
    decimals: usize,
}

const COLUMNS: [Measure; 10] = [
    Measure::new("short flows, slowdown p99", "short flows, slowdown p99", 1.0, 1),
    Measure::new("median", "short flows, slowdown median", 1.0, 2),
    Measure::new("other flows, p99", "other flows, slowdown p99", 1.0, 1),
    Measure::new("victim's share", "victim's share", 100.0, 2),
    Measure::new("group's share", "group's share", 100.0, 2),
    Measure::new("incast burst, ms", "incast completion, median", 1e6, 1),
    Measure::new("peak queue, MB", "peak queue", 1e6, 2),
    Measure::new("PAUSE frames", "PAUSE frames", 1.0, 0),
    Measure::new("above the return path, p99, µs", "delay above return path, p99", 1e3, 1),
    Measure::new("unfinished", "flows unfinished", 1.0, 0),
];

/// Variants with the seeds of their evaluation, by table.
struct Evaluation {
    name: &'static str,
    about: &'static str,
    /// Of the folder scenarios.
    file: &'static str,
    variants: &'static [&'static str],
}

/// Published parameters of all methods.
const PUBLISHED: &[&str] = &[
    "pfc",
    "dcqcn-published",
    "dcqcn-plus",
    "fast-cnp-dcqcn",
    "dcqcn-connectx",
    "fast-cnp-connectx",
    "hpcc-published",
    "fast-cnp-hpcc",
    "nscc-published",
];

const EVALUATIONS: [Evaluation; 8] = [
    Evaluation {
        name: "incast-dc-published",
        about: "published parameters in incast-dc.toml",
        file: "incast-dc",
        variants: &[
            "pfc",
            "dcqcn-published",
            "fast-cnp-dcqcn",
            "dcqcn-connectx",
            "fast-cnp-connectx",
            "hpcc-published",
            "fast-cnp-hpcc",
        ],
    },
    Evaluation {
        name: "incast-dc-others-selected",
        about: "DCQCN+ and NSCC in incast-dc.toml: published parameters, and the selected sets",
        file: "incast-dc",
        variants: &["dcqcn-plus", "plus-4us", "plus-50us", "nscc-published", "nscc"],
    },
    Evaluation {
        name: "incast-dc-selected",
        about: "DCQCN in incast-dc.toml: the selected sets, and each signal with the other one's",
        file: "incast-dc",
        variants: &[
            "cnp-4us",
            "fast-cnp-4us",
            "cnp-4us-as-fast",
            "fast-cnp-4us-as-cnp",
            "fast-cnp-4us-share",
            "cnp-50us",
            "fast-cnp-50us",
            "cnp-50us-as-fast",
            "rate-dcqcn-50us",
            "rate-dcqcn-50us-share",
        ],
    },
    Evaluation {
        name: "incast-dc-traces",
        about: "HPCC++ in incast-dc.toml: the selected sets",
        file: "incast-dc",
        variants: &["trace", "fast-cnp-trace-50us", "rate-hpcc-50us", "trace-share", "rate-hpcc-50us-share"],
    },
    Evaluation {
        name: "incast-dc-400g-published",
        about: "published parameters in incast-dc-400g.toml",
        file: "incast-dc-400g",
        variants: PUBLISHED,
    },
    Evaluation {
        name: "multicast-incast-published",
        about: "published parameters in multicast-incast.toml",
        file: "multicast-incast",
        variants: PUBLISHED,
    },
    Evaluation {
        name: "incast-dc-400g-selected",
        about: "the sets that the sweep of incast-dc-400g selects, with the seeds of the evaluation",
        file: "sweeps/incast-dc-400g",
        variants: &[
            "cnp-4us-k200-f2000-t10-ai4000",
            "cnp-50us-k600-f2000-t10-ai4000",
            "fast-cnp-4us-k44-published-t10-ai4000",
            "fast-cnp-50us-k1600-t10-ai4000",
            "rate-dcqcn-50us-k44-published-t10-ai4000",
            "plus-4us-k200-f2000-t10-ai4000",
            "plus-50us-k600-f2000-t10-ai4000",
            "nscc-k44-published-t-half",
            "trace-w4000-every",
            "fast-cnp-trace-50us-k80-w4000-5us",
        ],
    },
    Evaluation {
        name: "multicast-incast-selected",
        about: "the sets that the sweep of multicast-incast selects, with the seeds of the evaluation",
        file: "sweeps/multicast-incast",
        variants: &[
            "cnp-4us-k14-published-t10-ai1000",
            "cnp-50us-k20-t10-ai1000",
            "fast-cnp-4us-k14-published-t10-ai1000",
            "fast-cnp-50us-k150-f500-t10-ai1000",
            "rate-dcqcn-50us-k14-published-t10-ai1000",
            "plus-4us-k400-t10-ai1000",
            "plus-50us-k20-t10-ai1000",
            "nscc-k14-published-t-half",
            "trace-w4000-5us",
            "fast-cnp-trace-50us-k150-f500-w1000-every",
        ],
    },
];

/// Seeds of the evaluation, for sweeps, which have others.
const OF_EVALUATION: &str = " --first 201 --seeds 10";

/// Variants with the seeds of the evaluation.
pub(super) fn evaluations() -> [Job; 8] {
    EVALUATIONS.map(|Evaluation { name, about, file, variants: of }| {
        let seeds = if file.starts_with("sweeps/") { OF_EVALUATION } else { "" };
        let step = |variant: &&str| {
            Step::srdma(format!("sim scenarios/{file}.toml --variant {variant}{seeds} --json"), &["/variants"])
        };
        Job { name, about, is_quick: false, steps: of.iter().map(step).collect(), table: variants }
    })
}

/// A row for each variant: medians of the seeds, with the least and the greatest value. Measures that no variant has
/// are left out.
fn variants(results: &[Value]) -> Result<String> {
    let of_all = || results.iter().filter_map(|result| result["variants"].as_array()).flatten();
    let is_there = |column: &&Measure| of_all().any(|variant| column.is_of(variant));
    let columns: Vec<&Measure> = COLUMNS.iter().filter(is_there).collect();
    let headings: Vec<&str> = columns.iter().map(|column| column.heading).collect();
    let mut table = head(&[&["variant"], &headings[..]].concat());
    for result in results {
        for variant in result["variants"].as_array().context("a result has no variants")? {
            let _ = write!(table, "| `{}` |", text(variant, "/name")?);
            for column in &columns {
                let _ = write!(table, " {} |", column.cell(variant)?);
            }
            table.push('\n');
        }
    }
    ensure!(table.lines().count() > 2, "results are missing");
    Ok(table)
}

impl Measure {
    pub(super) const fn new(heading: &'static str, measure: &'static str, divisor: f64, decimals: usize) -> Self {
        Measure { heading, measure, divisor, decimals }
    }

    /// Whether a variant has it.
    pub(super) fn is_of(&self, variant: &Value) -> bool {
        variant["measures"].get(self.measure).is_some()
    }

    /// The median in its unit, with the least and the greatest value.
    pub(super) fn cell(&self, variant: &Value) -> Result<String> {
        // A measure that no run has is not in the results, nor a count that is 0 in all.
        let Some(values) = variant["measures"].get(self.measure) else {
            return Ok(if self.decimals == 0 { "0".to_owned() } else { String::new() });
        };
        let value = |at: usize| Ok::<_, anyhow::Error>(number(values, &format!("/{at}"))? / self.divisor);
        Ok(spread([value(0)?, value(1)?, value(2)?], self.decimals))
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
        let other = json!({ "peak queue": [1e6, 1e6, 1e6], "group's share": [50.0, 50.0, 60.0] });
        let result = |name: &str, measures: &Value| json!({ "variants": [{ "name": name, "measures": measures }] });
        let table = variants(&[result("v", &measures), result("w", &other)]).unwrap();
        let text = "| variant | victim's share | group's share | peak queue, MB | PAUSE frames |\n|---|---:|---:|---:|---:|\n\
                    | `v` | 0.90 |  | 2.50 (1.00–3.00) | 1,234 (0–2,000) |\n\
                    | `w` |  | 0.50 (0.50–0.60) | 1.00 | 0 |\n";
        assert_eq!(table, text);
    }
}
