//! `srdma plan`: paths of flows through a fabric, their programs, and the configuration of the fabric's devices for
//! them; and the headroom that pauses need over a distance.

mod change;
mod decode;
mod ecmp;
mod entropy;
mod headroom;
mod jobs;
mod place;
mod placed;
mod provision;
mod report;
mod saved;
mod text;
mod why;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use srdma_fabric::{LinkId, SidPlan, Topology};
use srdma_toml_error::LineError;
use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Place flows on a fabric, compile the programs of their paths, and generate the configuration of devices for them.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Place(place::Arguments),
    Provision(provision::Arguments),
    Decode(decode::Arguments),
    Entropy(entropy::Arguments),
    Headroom(headroom::Arguments),
    #[command(flatten)]
    Change(change::Change),
    /// Print the moves that a change of a saved plan would cause, without changing it.
    Whatif {
        #[command(subcommand)]
        change: change::Change,
    },
    Why(why::Arguments),
}

/// The fabric that is meant.
#[derive(Args)]
struct FabricArguments {
    /// The fabric, a TOML file: a generator with its parameters, or every node and link.
    #[arg(long, value_name = "FILE")]
    fabric: PathBuf,

    /// The block of all SIDs, a /32.
    #[arg(long, value_name = "ADDRESS", default_value_t = SidPlan::BLOCK)]
    block: Ipv6Addr,
}

impl FabricArguments {
    fn read(&self) -> Result<(Topology, SidPlan)> {
        let topology = read(&self.fabric, Topology::from_toml)?;
        let plan = SidPlan::new(&topology, self.block)
            .with_context(|| format!("{} has no plan of SIDs", self.fabric.display()))?;
        Ok((topology, plan))
    }
}

/// Reads a file; an error names the line.
fn read<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, LineError>) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).map_err(|error| error.in_file(path).into())
}

/// The links of a switch, or the one of that name, as an option gave it.
fn links_named(topology: &Topology, option: &str, name: &str) -> Result<Vec<LinkId>> {
    let found = topology.links_named(name);
    found.with_context(|| {
        format!("{option}{name}: neither a switch nor a link of the fabric; a link is named like leaf1-spine2")
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Place(arguments) => place::run(arguments),
        Command::Provision(arguments) => provision::run(arguments),
        Command::Decode(arguments) => decode::run(arguments),
        Command::Entropy(arguments) => entropy::run(arguments),
        Command::Headroom(arguments) => headroom::run(arguments),
        Command::Change(change) => change::run(change, false),
        Command::Whatif { change } => change::run(change, true),
        Command::Why(arguments) => why::run(arguments),
    }
}
