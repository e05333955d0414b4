//! `srdma sim` of an end-to-end run: every seed, with what was to be shown, JSON and a report.

mod page;
mod text;

use super::progress::Progress;
use super::{Arguments, hand_out};
use crate::recording::Recorder;
use anyhow::Result;
use serde::Serialize;
use srdma_sim::Shown;
use srdma_sim::experiment::end_to_end::{EndToEnd, EndToEndResults, run_end_to_end};
use srdma_sim::experiment::wan::Claim;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What was run, and what came of it.
struct Ran<'a> {
    arguments: &'a Arguments,
    plan: &'a EndToEnd,
    /// The file as it was read.
    file_text: &'a str,
    results: &'a EndToEndResults,
    claims: &'a [Claim],
    wall: Duration,
    threads: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    results: &'a EndToEndResults,
    claims: &'a [Claim],
}

/// Runs it. As for other scenarios, an error is for input that makes no sense.
pub(super) fn run(arguments: &Arguments, file_text: &str) -> Result<ExitCode> {
    let plan = EndToEnd::parse(&arguments.file, file_text)?;
    arguments.refuse_arms_and_level("an end-to-end run, which has neither arms nor levels")?;
    let report = arguments.open_report()?;
    let mut recorder = arguments.open_recording(|| format!("{}, seed {}", plan.title, arguments.first_seed()))?;
    let shown = recorder.as_mut().map(|recorder| Mutex::new(Shown::new(recorder, arguments.pace())));
    let seeds = arguments.seeds(plan.seeds);
    let threads = arguments.threads().min(seeds.len());
    let begin = Instant::now();
    let progress = Progress::new(seeds.len());
    let results = run_end_to_end(&plan, &seeds, threads, &|run| progress.done(run), shown.as_ref());
    progress.finish();
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            eprintln!("srdma: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    recorder.map_or(Ok(()), Recorder::finish)?;
    let claims = results.claims(&plan);
    let wall = begin.elapsed();
    let ran = Ran { arguments, plan: &plan, file_text, results: &results, claims: &claims, wall, threads };
    hand_out(arguments, report, || page::page(&ran), &Json { results: &results, claims: &claims }, &ran)
}
