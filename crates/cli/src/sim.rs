//! `srdma sim`: a scenario file, run once for each arm and seed, with a table, JSON and a report of what came out.

mod arguments;
mod progress;
#[cfg(test)]
mod tests;

pub(crate) use arguments::Arguments;

use anyhow::{Context, Result};
use progress::Progress;
use serde::Serialize;
use srdma_fabric_sim::end_to_end::{EndToEnd, EndToEndReport, is_end_to_end, run_end_to_end};
use srdma_fabric_sim::wan::{Study, WanReport, is_study, run_study};
use srdma_fabric_sim::{FabricReport, Provenance, RunError, Scenario, run_all};
use srdma_recording::Recorder;
use srdma_report::Page;
use srdma_sim::Shown;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs a scenario. An error, and exit code 2, is for input that makes no sense; exit code 1 for a run that failed.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file_text = fs::read_to_string(&arguments.file)
        .with_context(|| format!("cannot read the scenario {}", arguments.file.display()))?;
    if is_study(&file_text) {
        return run_wan(arguments, &file_text);
    }
    if is_end_to_end(&file_text) {
        return run_stream(arguments, &file_text);
    }
    run_fabric(arguments, &file_text)
}

fn run_fabric(arguments: &Arguments, file_text: &str) -> Result<ExitCode> {
    let mut scenario = Scenario::parse(&arguments.file, file_text)?;
    arguments.choose_arms(&mut scenario)?;
    arguments.choose_level(&mut scenario)?;
    arguments.refuse_recording_of_flows(scenario.level)?;
    let seeds = arguments.seeds(scenario.seeds);
    let mut job = Job::new(arguments, file_text, seeds.len(), scenario.arms.len() * seeds.len(), || {
        let arm = scenario.arms.first().map_or("", |arm| arm.title());
        format!("{}: {arm}, seed {}", scenario.title, arguments.first_seed())
    })?;
    let threads = job.provenance.threads;
    let results = job.run(|progress, shown| {
        run_all(&scenario, &seeds, threads, &|run, how_far| progress.report(run, &how_far), shown)
    })?;
    let Some(results) = results else { return Ok(ExitCode::FAILURE) };
    let report = FabricReport { scenario: &scenario, results: &results, provenance: &job.provenance };
    hand_out(arguments, job.report, || report.page(), &results, &report)
}

fn run_wan(arguments: &Arguments, file_text: &str) -> Result<ExitCode> {
    let mut study = Study::parse(&arguments.file, file_text)?;
    arguments.choose_of_study(&mut study)?;
    let seeds = arguments.seeds(study.seeds);
    let mut job = Job::new(arguments, file_text, seeds.len(), study.runs(seeds.len()), || {
        let run = study.shown().map(|(arm, total_km)| format!("{}, {total_km} km", arm.title())).unwrap_or_default();
        format!("{}: {run}, seed {}", study.title, arguments.first_seed())
    })?;
    let threads = job.provenance.threads;
    let results = job.run(|progress, shown| run_study(&study, &seeds, threads, &|run| progress.done(run), shown))?;
    let Some(results) = results else { return Ok(ExitCode::FAILURE) };
    let report = WanReport::new(&study, &results, &job.provenance);
    hand_out(arguments, job.report, || report.page(), &report, &report)
}

fn run_stream(arguments: &Arguments, file_text: &str) -> Result<ExitCode> {
    let plan = EndToEnd::parse(&arguments.file, file_text)?;
    arguments.refuse_arms_and_level("an end-to-end run, which has neither arms nor levels")?;
    let seeds = arguments.seeds(plan.seeds);
    let what = || format!("{}, seed {}", plan.title, arguments.first_seed());
    let mut job = Job::new(arguments, file_text, seeds.len(), seeds.len(), what)?;
    let threads = job.provenance.threads;
    let results =
        job.run(|progress, shown| run_end_to_end(&plan, &seeds, threads, &|run| progress.done(run), shown))?;
    let Some(results) = results else { return Ok(ExitCode::FAILURE) };
    let report = EndToEndReport::new(&plan, &results, &job.provenance);
    hand_out(arguments, job.report, || report.page(), &report, &report)
}

/// All runs of a file, from the opening of the files that are written to the end of the last run.
struct Job<'a> {
    arguments: &'a Arguments,
    runs: usize,
    report: Option<File>,
    recorder: Option<Recorder>,
    provenance: Provenance<'a>,
}

impl<'a> Job<'a> {
    fn new(
        arguments: &'a Arguments,
        file_text: &'a str,
        seeds: usize,
        runs: usize,
        recorded: impl FnOnce() -> String,
    ) -> Result<Self> {
        let provenance = Provenance {
            command: arguments.command(seeds),
            file_text,
            report: arguments.report.as_deref(),
            seeds,
            wall: Duration::ZERO,
            threads: arguments.threads().min(runs),
        };
        let (report, recorder) = (arguments.open_report()?, arguments.open_recording(recorded)?);
        Ok(Job { arguments, runs, report, recorder, provenance })
    }

    /// What came out; `None`, after an error message, if a run failed.
    fn run<T>(
        &mut self,
        all: impl FnOnce(&Progress, Option<&Mutex<Shown<'_>>>) -> Result<T, RunError>,
    ) -> Result<Option<T>> {
        let shown = self.recorder.as_mut().map(|recorder| Mutex::new(Shown::new(recorder, self.arguments.pace())));
        let begin = Instant::now();
        let progress = Progress::new(self.runs);
        let results = all(&progress, shown.as_ref());
        self.provenance.wall = begin.elapsed();
        progress.finish();
        drop(shown);
        match results {
            Ok(results) => {
                self.recorder.take().map_or(Ok(()), Recorder::finish).context("cannot write the recording")?;
                Ok(Some(results))
            }
            Err(error) => {
                eprintln!("srdma: {error}");
                Ok(None)
            }
        }
    }
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
