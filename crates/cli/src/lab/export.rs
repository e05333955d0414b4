//! `srdma lab export`.

use super::arguments::{Export, FormatName};
use super::set_up::{topology, transfer};
use crate::output;
use anyhow::Result;
use serde::Serialize;
use srdma_lab::containerlab;
use std::path::PathBuf;
use std::process::ExitCode;

/// The files written, for `--json`.
#[derive(Serialize)]
struct Report {
    lab: String,
    directory: PathBuf,
    files: Vec<PathBuf>,
}

/// Writes a lab for another program, and prints the names of the files.
pub(super) fn run(arguments: &Export) -> Result<ExitCode> {
    let (_, topology) = topology(&arguments.name, &arguments.links)?;
    let transfer = transfer(&topology, &arguments.transfer);
    let files = match arguments.format {
        FormatName::Containerlab => containerlab::export(&topology, &transfer, &arguments.image)?,
    };
    files.iter().try_for_each(|file| file.write(&arguments.out))?;
    let files = files.into_iter().map(|file| file.path).collect();
    let report = Report { lab: topology.name, directory: arguments.out.clone(), files };
    if arguments.json {
        output::print_json(&report)?;
    } else {
        let lines = report.files.iter().map(|file| format!("{}\n", report.directory.join(file).display()));
        output::print(&lines.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}
