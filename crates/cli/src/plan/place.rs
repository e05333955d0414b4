//! `srdma plan place`: a path for every flow of the jobs, beside what hashes would make of them.

use super::jobs::JobArguments;
use super::placed::Placed;
use super::saved::Saved;
use super::{FabricArguments, links_named, report, text};
use crate::output::{print_json, print_text};
use anyhow::{Context, Result};
use clap::Args;
use srdma_fabric::Encoding;
use srdma_placement::Plan;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan place --fabric fabrics/figure1.toml --jobs fabrics/figure1-jobs.toml
  srdma plan place --fabric dc.toml --jobs jobs.toml --collective gradients --json
  srdma plan place --fabric dc.toml --jobs jobs.toml --links               programs by uA instead of uN
  srdma plan place --fabric dc.toml --jobs flows.csv --save plan.json      to be changed later
  srdma plan place --fabric dc.toml --jobs jobs.toml --report plan.html    to be looked at
  srdma plan place --fabric dc.toml --jobs graph.xml --server h1.1. --server h1.2.       rings that NCCL has dumped
  srdma plan place --fabric dc.toml --jobs nccl.log --server h1.1. --server h1.2.        trees in its log

All collectives that are chosen are taken to run at once. docs/placement.md describes the files and the JSON.
Exit codes: 0 everything was placed, 2 the files or the arguments make no sense.";

/// Place the flows of jobs: a path for each, as a program, with a backup path and the return path.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    fabric: FabricArguments,

    #[command(flatten)]
    jobs: JobArguments,

    /// Treat these switches, or links by name, as drained; may be given several times.
    #[arg(long, value_name = "NAME")]
    drain: Vec<String>,

    /// Name links (uA) in the programs instead of switches (uN).
    #[arg(long)]
    links: bool,

    /// Write the plan to this file, for srdma plan add, drain, why and so on.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Write a report to this file, as one HTML page.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Print everything as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (topology, sids) = arguments.fabric.read()?;
    let (wanted, groups) = arguments.jobs.wanted(&topology)?;
    let drained = arguments.drain.iter().map(|name| links_named(&topology, "--drain ", name));
    let drained = drained.collect::<Result<Vec<_>>>()?.concat();
    let mut plan = Plan::with_groups(&topology, wanted, groups, &[])?;
    plan.drain(&drained).with_context(|| format!("cannot drain {}", arguments.drain.join(", ")))?;
    let encoding = if arguments.links { Encoding::Links } else { Encoding::Nodes };
    let placed = Placed::new(&topology, &sids, &plan, encoding)?;
    if let Some(file) = &arguments.save {
        Saved::of(&topology, &plan, arguments.fabric.kept(arguments.links)?).write(file)?;
    }
    if let Some(file) = &arguments.report {
        let html = report::page(&topology, plan.placement(), &placed).html();
        fs::write(file, html).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if arguments.json {
        print_json(&placed)?;
    } else {
        print_text(&text::table(&placed))?;
    }
    Ok(ExitCode::SUCCESS)
}
