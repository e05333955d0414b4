//! `srdma storm`: very many small simulated networks under every fault at once, each checked.

mod arguments;
mod attack;
mod one;
mod progress;
mod report;
mod shrinking;
mod text;

pub(crate) use arguments::Arguments;

use anyhow::{Result, ensure};
use progress::Progress;
use report::Report;
use srdma_chaos::runner;
use srdma_chaos::world;
use std::process::ExitCode;
use std::time::Instant;

/// Runs schedules. Exit code 1: something was wrong in one of them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(line) = arguments.one()? {
        return one::run(arguments, line);
    }
    if arguments.attack {
        ensure!(
            !arguments.shrink,
            "--attack and --shrink go together for one schedule: name it by --seed, as the report of --attack does"
        );
        return attack::run(arguments);
    }
    let order = arguments.order();
    let begin = Instant::now();
    let progress = Progress::new(&order, arguments.limit());
    let summary = runner::run(&order, &world::run, &|done| progress.report(done));
    let wall = begin.elapsed();
    progress.finish();
    let shrunk = shrinking::shrink_all(arguments, &summary);
    let report = Report::new(&order, &summary, &shrunk, wall);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(exit_code(!summary.failures.is_empty()))
}

fn exit_code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
