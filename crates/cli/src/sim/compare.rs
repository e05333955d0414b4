//! The same runs without skipped steady states, for comparison.

use super::progress::Progress;
use anyhow::Result;
use srdma_fabric_sim::{Comparison, Results, Scenario};
use srdma_report::units::time;
use std::time::{Duration, Instant};

/// Runs a scenario packet by packet, and compares results with that: a line for each run, and one for all.
pub(super) fn compare(
    scenario: &Scenario,
    results: &Results<'_>,
    seeds: &[u64],
    threads: usize,
    wall: Duration,
) -> Result<String> {
    let mut whole = scenario.clone();
    whole.set_skip_steady(false)?;
    let begin = Instant::now();
    let progress = Progress::new(whole.runs(seeds.len()));
    let packets = whole.run(seeds, threads, &|run, share| progress.set(run, share), None);
    let whole_wall = begin.elapsed();
    progress.finish();
    let compared = results.compared_with(&packets?);
    let [own, whole] = [wall, whole_wall].map(|wall| wall.as_secs_f64());
    let lines: String = compared.iter().map(line).collect();
    Ok(format!(
        "{lines}compared    {own:.1} s, packet by packet {whole:.1} s: {:.1} times as fast\n",
        whole / own.max(1e-9)
    ))
}

fn line(run: &Comparison) -> String {
    let Comparison { variant, seed, skipped, iteration_ns, difference } = run;
    let times = iteration_ns.map(|both| both.map(|ns| time(ns.round() as u64)));
    let iteration = times.map_or("no iteration".to_owned(), |[own, packets]| {
        format!("longest iteration {own}, packet by packet {packets}")
    });
    let difference =
        difference.map_or("iterations differ".to_owned(), |share| format!("{:.3} % apart at most", share * 100.0));
    let skipped = skipped * 100.0;
    format!("compared    {variant}, seed {seed}: {iteration}, {difference}; {skipped:.1} % of the time skipped\n")
}
