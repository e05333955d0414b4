//! `srdma plan place`: a path for every flow of the jobs, beside what hashes would make of them.

use super::placed::Placed;
use super::{FabricArguments, read, text};
use anyhow::{Context, Result, bail};
use clap::Args;
use srdma_cli::output::print;
use srdma_fabric::{Encoding, Topology};
use srdma_placement::{Flow, Job, Placement, jobs_from_toml};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan place --fabric fabrics/figure1.toml --jobs fabrics/figure1-jobs.toml
  srdma plan place --fabric dc.toml --jobs jobs.toml --collective gradients --json
  srdma plan place --fabric dc.toml --jobs jobs.toml --links               programs by uA instead of uN

All collectives that are chosen are taken to run at once. docs/placement.md describes the files and the JSON.
Exit codes: 0 everything was placed, 2 the files or the arguments make no sense.";

/// Place the flows of jobs: a path for each, as a program, with a way around and the way back.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    fabric: FabricArguments,

    /// The jobs, a TOML file.
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,

    /// Place the collectives of this name alone; may be given several times.
    #[arg(long, value_name = "NAME")]
    collective: Vec<String>,

    /// Take these switches, or links by name, as out of use; may be given several times.
    #[arg(long, value_name = "NAME")]
    drain: Vec<String>,

    /// Name links (uA) in the programs instead of switches (uN).
    #[arg(long)]
    links: bool,

    /// Print everything as one JSON object.
    #[arg(long)]
    json: bool,
}

/// A flow with what it belongs to.
pub(super) struct Wanted<'a> {
    pub(super) job: &'a Job,
    pub(super) collective: &'a str,
    pub(super) flow: Flow,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (topology, plan) = arguments.fabric.read()?;
    let jobs = read(&arguments.jobs, |text| jobs_from_toml(text, &topology))?;
    let wanted = arguments.wanted(&topology, &jobs)?;
    let flows: Vec<Flow> = wanted.iter().map(|wanted| wanted.flow).collect();
    let mut placement = Placement::new(&topology, &flows)?;
    let drained = arguments.drain.iter().map(|name| links(&topology, name)).collect::<Result<Vec<_>>>()?.concat();
    placement.drain(&drained).with_context(|| format!("cannot drain {}", arguments.drain.join(", ")))?;
    let encoding = if arguments.links { Encoding::Links } else { Encoding::Nodes };
    let placed = Placed::new(&topology, &plan, &placement, &wanted, encoding)?;
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&placed)?))?;
    } else {
        print(&text::table(&placed))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The flows of all collectives that are chosen.
    fn wanted<'a>(&self, topology: &Topology, jobs: &'a [Job]) -> Result<Vec<Wanted<'a>>> {
        let chosen = |name: &String| self.collective.is_empty() || self.collective.contains(name);
        let all = || jobs.iter().flat_map(|job| job.collectives.iter().map(move |collective| (job, collective)));
        if let Some(unknown) = self.collective.iter().find(|name| !all().any(|(_, own)| own.name == **name)) {
            let names: Vec<&str> = all().map(|(_, collective)| collective.name.as_str()).collect();
            bail!("--collective {unknown}: {} has {}", self.jobs.display(), names.join(", "));
        }
        let mut wanted = Vec::new();
        for (job, collective) in all().filter(|(_, collective)| chosen(&collective.name)) {
            let ports = job.nics.iter().flat_map(|nic| topology.ports(srdma_fabric::NodeId::Host(*nic)));
            let slowest = ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap_or(0);
            let flows = job.flows(collective, slowest);
            wanted.extend(flows.into_iter().map(|flow| Wanted { job, collective: &collective.name, flow }));
        }
        if wanted.is_empty() {
            bail!("{}: no collective sends anything: give a job one, and two NICs", self.jobs.display());
        }
        Ok(wanted)
    }
}

/// The links of a switch, or the one of that name.
fn links(topology: &Topology, name: &str) -> Result<Vec<srdma_fabric::LinkId>> {
    let found = topology.links_named(name);
    found.with_context(|| {
        format!("--drain {name}: no switch and no link of this fabric; links are called as leaf1-spine2")
    })
}
