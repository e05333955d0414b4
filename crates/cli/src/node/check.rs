//! `srdma node check`: what a configuration means, without a node.

use crate::output;
use anyhow::Result;
use srdma_node::{Configuration, Purpose};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check a configuration, and print the side of the domain that each port is at. The interfaces need not exist.
///
/// Exit code 0: a node can start with it; 2: it is invalid.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Configuration of the node; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(super) fn run(Arguments { config }: &Arguments) -> Result<ExitCode> {
    output::print(&text(&read(config)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a configuration for a node on interfaces.
pub(crate) fn read(file: &Path) -> Result<Configuration> {
    let configuration = Configuration::read_for(file, Purpose::Interfaces(&BTreeMap::new()))?;
    configuration.node()?;
    Ok(configuration)
}

fn text(configuration: &Configuration) -> String {
    let mut text = String::new();
    for (port, side) in configuration.sides() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "port {port}: {side}");
    }
    if configuration.has_open_sids() {
        text.push_str("the SIDs are open to every sender: there is no [domain]\n");
    }
    text.push_str("the configuration is valid\n");
    text
}
