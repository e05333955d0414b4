//! `srdma sim` of a study of a WAN: run at every point, with a table, JSON and a report.

mod page;
mod text;

use super::progress::Progress;
use super::{Arguments, hand_out};
use crate::recording::Recorder;
use anyhow::Result;
use serde::Serialize;
use srdma_sim::Shown;
use srdma_sim::experiment::wan::{Claim, Study, WanArm, WanResults, WanRun, run_study};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What was run, and what came of it.
struct Studied<'a> {
    arguments: &'a Arguments,
    study: &'a Study,
    /// The file as it was read.
    file_text: &'a str,
    results: &'a WanResults,
    claims: &'a [Claim],
    seeds: usize,
    wall: Duration,
    threads: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    results: &'a WanResults,
    claims: &'a [Claim],
}

/// Runs a study. As for other scenarios, an error is for input that makes no sense.
pub(super) fn run(arguments: &Arguments, file_text: &str) -> Result<ExitCode> {
    let mut study = Study::parse(&arguments.file, file_text)?;
    arguments.choose_of_study(&mut study)?;
    let report = arguments.open_report()?;
    let mut recorder = arguments.open_recording(|| {
        let run = study.shown().map(|(arm, total_km)| format!("{}, {total_km} km", arm.title())).unwrap_or_default();
        format!("{}: {run}, seed {}", study.title, arguments.first_seed())
    })?;
    let shown = recorder.as_mut().map(|recorder| Mutex::new(Shown::new(recorder, arguments.pace())));
    let seeds = arguments.seeds(study.seeds);
    let runs = study.runs(seeds.len());
    let threads = arguments.threads().min(runs);
    let begin = Instant::now();
    let progress = Progress::new(runs);
    let results = run_study(&study, &seeds, threads, &|run| progress.done(run), shown.as_ref());
    progress.finish();
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            eprintln!("srdma: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    recorder.map_or(Ok(()), Recorder::finish)?;
    let claims = results.claims(&study);
    let studied = Studied {
        arguments,
        study: &study,
        file_text,
        results: &results,
        claims: &claims,
        seeds: seeds.len(),
        wall: begin.elapsed(),
        threads,
    };
    hand_out(arguments, report, || page::page(&studied), &Json { results: &results, claims: &claims }, &studied)
}

impl Studied<'_> {
    /// The size of the queue that is looked at closely.
    fn buffer(&self) -> f64 {
        *self.study.wan.buffer.get_ref()
    }

    /// What the runs of an arm at a length gave, with the queue that is looked at closely.
    fn values(&self, arm: &WanArm, total_km: f64, of: impl Fn(&WanRun) -> Option<f64>) -> Vec<f64> {
        self.results.at(&arm.name, total_km, self.buffer()).filter_map(of).collect()
    }

    /// 4f or so: what END.C needs by arithmetic, in rate times round trip.
    fn arithmetic(&self, total_km: f64) -> f64 {
        let share = self.results.runs.iter().find(|run| run.total_km == total_km).map_or(0.0, |run| run.share);
        self.study.wan.overload() * share
    }
}
