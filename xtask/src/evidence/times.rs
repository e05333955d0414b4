//! Times per packet of `srdma bench dataplane`, and rates of endpoints, with their yardsticks.

use super::job::{Job, Program, Step};
use super::jobs::{grouped, head, number, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt::Write;

pub(super) fn jobs() -> [Job; 3] {
    let job = |name, about, is_quick, arguments: &str| Job {
        name,
        about,
        is_quick,
        steps: vec![Step::srdma(arguments, &[])],
        table,
    };
    [
        job("dataplane", "time per packet of every case, inside L2", true, "bench dataplane --quick --json"),
        job(
            "dataplane-matrix",
            "the same by length, number of routes and working set",
            false,
            "bench dataplane --json",
        ),
        endpoints(),
    ]
}

fn endpoints() -> Job {
    Job {
        name: "endpoints",
        about: "rate of srdma send to srdma recv over a veth link; needs root and two processors",
        is_quick: false,
        steps: vec![Step {
            program: Program::Endpoints,
            arguments: "1073741824 11 --json".to_owned(),
            keep: &[],
            reaches: &[],
        }],
        table: |results| {
            let rows = results.first().and_then(|result| result["rows"].as_array()).context("a result has no rows")?;
            ensure!(!rows.is_empty(), "results are missing");
            let mut table = head(&["1 GiB by WRITE, path MTU 4096, Gbit/s", "least", "median", "most"]);
            for row in rows {
                let rate = |of: &str| number(row, &format!("/gbit_per_s_{of}"));
                let (least, median, most) = (rate("least")?, rate("median")?, rate("most")?);
                let _ = writeln!(table, "| {} | {least:.1} | {median:.1} | {most:.1} |", text(row, "/case")?);
            }
            Ok(table)
        },
    }
}

/// A row for each case and length, a column for each working set and number of routes: the least time, and the median.
fn table(results: &[Value]) -> Result<String> {
    let rows = results.first().and_then(Value::as_array).context("a result has no rows")?;
    ensure!(!rows.is_empty(), "results are missing");
    let place = |row: &Value| Ok::<_, anyhow::Error>((text(row, "/working_set")?.to_owned(), number(row, "/routes")?));
    let case = |row: &Value| Ok::<_, anyhow::Error>((text(row, "/case")?.to_owned(), number(row, "/frame_octets")?));
    let (mut places, mut cases) = (Vec::new(), Vec::new());
    for row in rows {
        let (place, case) = (place(row)?, case(row)?);
        if !places.contains(&place) {
            places.push(place);
        }
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    let headings = places.iter().map(|(set, routes)| format!("{set}, {} routes", grouped(*routes)));
    let headings: Vec<String> = headings.collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = head(&[&["least ns per received packet (median)", "octets"], &headings[..]].concat());
    for of in &cases {
        let _ = write!(table, "| {} | {} |", of.0, grouped(of.1));
        for at in &places {
            let mut cell = String::new();
            for row in rows {
                if case(row)? == *of && place(row)? == *at {
                    cell = format!("{:.1} ({:.1})", number(row, "/ns_min")?, number(row, "/ns_median")?);
                }
            }
            let _ = write!(table, " {cell} |");
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
    fn rates_have_a_row_for_each_case() {
        let row = json!({ "case": "send to recv", "gbit_per_s_least": 7.96, "gbit_per_s_median": 8.0,
                          "gbit_per_s_most": 9.25 });
        let table = (endpoints().table)(&[json!({ "rows": [row] })]).unwrap();
        assert!(table.ends_with("\n| send to recv | 8.0 | 8.0 | 9.2 |\n"), "{table}");
    }

    #[test]
    fn places_are_columns() {
        let row = |case: &str, routes: u32, set: &str, least: f64| {
            json!({ "case": case, "frame_octets": 128, "routes": routes, "working_set": set, "ns_min": least,
                    "ns_median": least + 1.0 })
        };
        let rows = json!([
            row("IPv6", 10, "inside L2", 16.0),
            row("IPv6", 100_000, "4 x L3", 80.0),
            row("yardstick", 10, "inside L2", 9.0)
        ]);
        let text = "| least ns per received packet (median) | octets | inside L2, 10 routes | 4 x L3, 100,000 routes |\n\
                    |---|---:|---:|---:|\n| IPv6 | 128 | 16.0 (17.0) | 80.0 (81.0) |\n\
                    | yardstick | 128 | 9.0 (10.0) |  |\n";
        assert_eq!(table(&[rows]).unwrap(), text);
    }
}
