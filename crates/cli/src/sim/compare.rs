//! The same runs without skipped steady states, or with rates computed as often as by default, for comparison.

use super::progress::Progress;
use anyhow::Result;
use srdma_fabric_sim::max_min::MIN_INTERVAL;
use srdma_fabric_sim::{Comparison, Level, Results, Scenario};
use srdma_report::units::time;
use std::time::{Duration, Instant};

/// Runs a scenario in full, and compares results with that: a line for each run, and one for all.
pub(super) fn compare(
    scenario: &Scenario,
    results: &Results<'_>,
    seeds: &[u64],
    threads: usize,
    wall: Duration,
) -> Result<String> {
    let mut whole = scenario.clone();
    let is_flow_level = matches!(scenario, Scenario::Fabric(own) if own.level == Level::Flow);
    match is_flow_level {
        true => whole.set_rate_interval(MIN_INTERVAL)?,
        false => whole.set_skip_steady(false)?,
    }
    let begin = Instant::now();
    let progress = Progress::new(whole.runs(seeds.len()));
    let full = whole.run(seeds, threads, &|run, share| progress.set(run, share), None);
    let whole_wall = begin.elapsed();
    progress.finish();
    let compared = results.compared_with(&full?);
    let [own, whole] = [wall, whole_wall].map(|wall| wall.as_secs_f64());
    let lines: String = compared.iter().map(|run| line(run, is_flow_level)).collect();
    Ok(format!(
        "{lines}compared    {own:.1} s, {} {whole:.1} s: {:.1} times as fast\n",
        in_full(is_flow_level),
        whole / own.max(1e-9)
    ))
}

/// What the runs are compared with.
fn in_full(is_flow_level: bool) -> &'static str {
    if is_flow_level { "with rates as often as by default" } else { "packet by packet" }
}

fn line(run: &Comparison, is_flow_level: bool) -> String {
    let Comparison { variant, seed, skipped, iteration_ns, difference } = run;
    let times = iteration_ns.map(|both| both.map(|ns| time(ns.round() as u64)));
    let iteration = times.map_or("no iteration".to_owned(), |[own, full]| {
        format!("longest iteration {own}, {} {full}", in_full(is_flow_level))
    });
    let difference =
        difference.map_or("iterations differ".to_owned(), |share| format!("{:.3} % apart at most", share * 100.0));
    let skipped = match is_flow_level {
        true => String::new(),
        false => format!("; {:.1} % of the time skipped", skipped * 100.0),
    };
    format!("compared    {variant}, seed {seed}: {iteration}, {difference}{skipped}\n")
}
