//! `srdma chaos`: random small simulated networks under every kind of fault at once, each checked.

mod arguments;
mod attack;
mod cluster;
mod progress;
mod report;
mod shrinking;
mod single;
mod text;

pub(crate) use arguments::Arguments;

use crate::output;
use anyhow::{Result, ensure};
use progress::Progress;
use report::Report;
use srdma_chaos::runner;
use srdma_chaos::schedule::Schedule;
use srdma_chaos::world;
use std::process::ExitCode;
use std::time::Instant;

/// Runs schedules. Exit code 1: a check was violated.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.cluster {
        return cluster::run(arguments);
    }
    if let Some(token) = arguments.single()? {
        return single::run(arguments, token);
    }
    if arguments.attack {
        ensure!(!arguments.shrink, "--attack with --shrink needs --seed: it shrinks a single schedule");
        return attack::run(arguments);
    }
    let config = arguments.config();
    let begin = Instant::now();
    let progress = Progress::new(&config, arguments.limit());
    let world = |schedule: &Schedule| world::run(&arguments.adapted(schedule.clone()));
    let summary = runner::run(&config, arguments.draw(), &world, &|progress_now| progress.report(progress_now));
    let wall = begin.elapsed();
    progress.finish();
    let shrunk = shrinking::shrink_all(arguments, &summary);
    let report = Report::new(&config, &arguments.mode_option(), &summary, &shrunk, wall);
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(exit_code(!summary.failures.is_empty()))
}

fn exit_code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
