//! `srdma isis`: the IS-IS state of a running node. `docs/isis.md` describes it.

pub(crate) mod text;

use crate::output;
use crate::status::NodeArguments;
use crate::terminal;
use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use srdma_node::daemon::{IsisSnapshot, read_status};
use std::process::ExitCode;

/// Show the IS-IS state of a running node.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Show(Show),
}

/// Show the system, its neighbours, the database, the SIDs of all nodes, routes, or backups.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
struct Show {
    /// Subject of the table.
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    node: NodeArguments,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The system itself: its authentication, and its overload bit.
    System,
    /// The neighbours of each circuit, and the pseudonode of each LAN.
    Neighbors,
    /// The LSPs of all systems.
    Database,
    /// The SIDs that all systems announce; END.C and END.E count where the C-flag is set.
    Sids,
    /// Routes to the prefixes of other systems.
    Routes,
    /// Ways around the neighbours that prefixes are reached by, and what each avoids.
    Backups,
}

const EXAMPLES: &str = "\
Examples:
  srdma isis show neighbors
      The neighbours of the only running node's circuits, and the states of the adjacencies.

  srdma isis show database --config node.toml
      The LSPs of all systems: sequence number, and remaining lifetime.

  srdma isis show sids --json | jq -r '.nodes[] | select(.handles_notifications) | .hostname'
      The nodes that handle congestion notifications.";

/// Runs the command.
///
/// # Errors
///
/// If there is no node, several without a choice, or the node does not run IS-IS.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::Show(show) = &arguments.command;
    let path = show.node.socket()?;
    let Some(isis) = read_status(&path)?.isis else {
        bail!("{}: the node does not run IS-IS: its configuration has no [isis]", path.display());
    };
    if show.json {
        output::print(&(serde_json::to_string(&json(&isis, show.what))? + "\n"))?;
    } else {
        // Names of other systems are theirs.
        output::print_text(&text(&terminal::shown(&isis)?, show.what))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(isis: &IsisSnapshot, what: What) -> serde_json::Value {
    match what {
        What::System => json!({
            "system": isis.system,
            "hostname": isis.hostname,
            "area": isis.area,
            "levels": isis.levels,
            "is_attached": isis.is_attached,
            "topology": isis.topology,
            "authentication": isis.authentication,
            "overload": isis.overload,
        }),
        What::Neighbors => json!({ "system": isis.system, "circuits": isis.circuits }),
        What::Database => json!({ "system": isis.system, "lsps": isis.lsps }),
        What::Sids => json!({ "system": isis.system, "nodes": isis.nodes }),
        What::Routes => json!({ "system": isis.system, "routes": isis.routes }),
        What::Backups => json!({ "system": isis.system, "backups": isis.backups }),
    }
}

fn text(isis: &IsisSnapshot, what: What) -> String {
    match what {
        What::System => text::system(isis),
        What::Neighbors => text::neighbors(isis),
        What::Database => text::database(isis),
        What::Sids => text::sids(isis),
        What::Routes => text::routes(isis),
        What::Backups => text::backups(isis),
    }
}
