//! `srdma sim`: runs a scenario file and prints its results as a table or JSON; writes a report and a recording.

mod arguments;
mod compare;
mod progress;
#[cfg(test)]
mod tests;

pub(crate) use arguments::Arguments;

use crate::output;
use anyhow::{Context, Result};
use compare::compare;
use progress::Progress;
use srdma_fabric_sim::{Provenance, Scenario};
use srdma_recording::Recorder;
use srdma_sim::PeriodicObserver;
use std::fs;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// Runs a scenario. An error, and exit code 2, is for invalid input; exit code 1 for a run that failed or
/// has missed a target, and for checks that do not hold.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file_text = fs::read_to_string(&arguments.file)
        .with_context(|| format!("cannot read the scenario {}", arguments.file.display()))?;
    let mut scenario = Scenario::parse(&arguments.file, &file_text)?;
    arguments.select(&mut scenario)?;
    let seeds = arguments.seeds(&scenario);
    // The files are created before the runs, so that a path that cannot be written to is reported at once.
    let mut recorder = arguments.open_recording(&scenario)?;
    let report_file = arguments.open_report()?;
    let observer =
        recorder.as_mut().map(|recorder| Mutex::new(PeriodicObserver::new(recorder, arguments.snapshot_interval())));
    let runs = scenario.runs(seeds.len());
    let threads = scenario.threads(seeds.len(), arguments.threads());
    let begin = Instant::now();
    let progress = Progress::new(runs);
    let results = scenario.run(&seeds, threads, &|run, share| progress.set(run, share), observer.as_ref());
    let wall = begin.elapsed();
    progress.finish();
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            eprintln!("srdma: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    recorder.map_or(Ok(()), Recorder::finish).context("cannot write the recording")?;
    let provenance = Provenance {
        command: arguments.command(&scenario, seeds.len()),
        file_text: &file_text,
        report: arguments.report.as_deref(),
        seeds: seeds.len(),
        wall,
        threads,
    };
    let compared = arguments.compare.then(|| compare(&scenario, &results, &seeds, threads, wall)).transpose()?;
    let report = results.report(&provenance);
    if let Some(mut file) = report_file {
        file.write_all(report.page().html().as_bytes()).context("cannot write the report")?;
    }
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&format!("{report}{}", compared.unwrap_or_default()))?;
    }
    let failures = report.failures();
    failures.iter().for_each(|failure| eprintln!("srdma: {failure}"));
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
