//! The Grafana dashboard queries metrics that a node has.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DASHBOARD: &str = include_str!("../../../../../dist/grafana/srdma.json");
const OPERATING: &str = include_str!("../../../../../docs/operating.md");

/// Labels that Prometheus itself adds to every series.
const OF_THE_SCRAPE: [&str; 1] = ["instance"];

/// The metrics with their labels, by the table that is held against the code elsewhere.
fn labels() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows = OPERATING.lines().filter(|line| line.starts_with("| `srdma_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        (cells[1].trim().trim_matches('`'), cells[3].split('`').skip(1).step_by(2).collect())
    })
    .collect()
}

/// Words of an expression that may be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

#[test]
fn every_panel_queries_metrics_and_labels_that_exist() {
    let labels = labels();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets: Vec<&Value> = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten().collect();
    assert!(targets.len() > 20);
    for target in targets {
        let (expression, legend) = (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap());
        let metric = words(expression).find(|word| word.starts_with("srdma_")).unwrap();
        let known = labels.get(metric).unwrap_or_else(|| panic!("no metric {metric}: {expression}"));
        let grouped = expression.split_once(" by (").and_then(|(_, rest)| rest.split_once(')')).map(|(by, _)| by);
        let shown = legend.split("{{").skip(1).filter_map(|part| part.split_once("}}")).map(|(label, _)| label);
        for label in grouped.into_iter().flat_map(words).chain(shown.clone()) {
            let is_known = known.contains(label) || OF_THE_SCRAPE.contains(&label);
            assert!(is_known, "{metric} has no label {label}: {expression}");
        }
        if let Some(grouped) = grouped {
            let grouped: BTreeSet<&str> = words(grouped).collect();
            assert!(shown.clone().all(|label| grouped.contains(label)), "{legend} shows what {expression} drops");
        }
    }
}
