//! `srdma group foreign`: groups that nodes have and the controller's store does not.

use super::Output;
use anyhow::Result;
use clap::{Args, Subcommand};
use srdma_api::{ForeignGroup, ForeignGroups};
use std::fmt::Write;
use std::process::ExitCode;

/// List, adopt or remove groups that nodes have and the controller's store does not: those of another store, and those
/// that were created after the backup that was restored.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List them, with the identity of their stores.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Take a group of the controller's own store over from its nodes.
    Adopt(One),
    /// Remove a group from the nodes that have it.
    Remove(One),
}

#[derive(Args)]
struct One {
    /// Identity of the store, 16 hexadecimal digits.
    #[arg(value_name = "STORE")]
    store: String,
    /// The group's number.
    #[arg(value_name = "GROUP")]
    group: u32,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (output, groups) = match &arguments.command {
        Command::List { output } => (output, output.controller.client()?.foreign_groups()?),
        Command::Adopt(One { store, group, output }) => {
            (output, output.controller.client()?.adopt_group(store, *group)?)
        }
        Command::Remove(One { store, group, output }) => {
            (output, output.controller.client()?.remove_foreign_group(store, *group)?)
        }
    };
    output.show(&groups, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(groups: &ForeignGroups) -> String {
    let mut text = format!("store {}: {} foreign groups\n", groups.store, groups.groups.len());
    for ForeignGroup { store, group, proxy, epoch, nodes, is_adoptable, is_removing, .. } in &groups.groups {
        let state = match (is_removing, is_adoptable) {
            (true, _) => ", being removed",
            (false, true) => ", adoptable",
            (false, false) => "",
        };
        let nodes = if nodes.is_empty() { "no connected node".to_owned() } else { nodes.join(", ") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{store} group {group}: Proxy Address {proxy}, epoch {epoch}, at {nodes}{state}");
    }
    text
}
