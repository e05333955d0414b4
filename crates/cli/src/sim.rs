//! `srdma sim`: a scenario file, run once for each arm and seed, with a table, JSON and a report of what came out.

mod arguments;
mod end_to_end;
mod measures;
mod page;
mod progress;
#[cfg(test)]
mod tests;
mod text;
mod wan;

pub(crate) use arguments::Arguments;

use crate::recording::Recorder;
use anyhow::{Context, Result};
use progress::Progress;
use serde::Serialize;
use srdma_report::Page;
use srdma_sim::Shown;
use srdma_sim::experiment::end_to_end::is_end_to_end;
use srdma_sim::experiment::wan::is_study;
use srdma_sim::experiment::{Results, Scenario, run_all};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What was run, and what came of it.
struct Experiment<'a> {
    arguments: &'a Arguments,
    scenario: &'a Scenario,
    /// The scenario file as it was read.
    file_text: &'a str,
    results: &'a Results,
    /// How long the runs took together, on this many threads.
    wall: Duration,
    threads: usize,
}

/// Runs a scenario. An error, and exit code 2, is for input that makes no sense; exit code 1 for a run that failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file_text = fs::read_to_string(&arguments.file)
        .with_context(|| format!("cannot read the scenario {}", arguments.file.display()))?;
    if is_study(&file_text) {
        return wan::run(arguments, &file_text);
    }
    if is_end_to_end(&file_text) {
        return end_to_end::run(arguments, &file_text);
    }
    let mut scenario = Scenario::parse(&arguments.file, &file_text)?;
    arguments.choose_arms(&mut scenario)?;
    arguments.choose_level(&mut scenario)?;
    arguments.refuse_recording_of_flows(scenario.level)?;
    let report = arguments.open_report()?;
    let mut recorder = arguments.open_recording(|| {
        let arm = scenario.arms.first().map_or("", |arm| arm.title());
        format!("{}: {arm}, seed {}", scenario.title, arguments.first_seed())
    })?;
    let shown = recorder.as_mut().map(|recorder| Mutex::new(Shown::new(recorder, arguments.pace())));
    let seeds = arguments.seeds(scenario.seeds);
    let threads = arguments.threads().min(scenario.arms.len() * seeds.len());
    let begin = Instant::now();
    let progress = Progress::new(scenario.arms.len() * seeds.len());
    let report_progress = |run, how_far| progress.report(run, &how_far);
    let results = run_all(&scenario, &seeds, threads, &report_progress, shown.as_ref());
    let wall = begin.elapsed();
    progress.finish();
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            eprintln!("srdma: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    recorder.map_or(Ok(()), Recorder::finish)?;
    let experiment =
        Experiment { arguments, scenario: &scenario, file_text: &file_text, results: &results, wall, threads };
    hand_out(arguments, report, || page::page(&experiment), &results, &experiment)
}

/// Writes the report, if one is asked for, and prints what came out: as JSON, or for people.
fn hand_out(
    arguments: &Arguments,
    report: Option<File>,
    page: impl FnOnce() -> Page,
    json: &impl Serialize,
    text: &impl Display,
) -> Result<ExitCode> {
    if let Some(mut report) = report {
        report.write_all(page().html().as_bytes()).context("cannot write the report")?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(json)?);
    } else {
        print!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}
