//! `srdma ospf`: the OSPFv3 state of a running node. `docs/ospf.md` describes it.

mod text;

use crate::output;
use crate::status::NodeArguments;
use crate::terminal;
use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use srdma_node::daemon::{OspfSnapshot, read_status};
use std::process::ExitCode;

/// Show the OSPFv3 state of a running node.
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

/// Show the router, its neighbours, the database, the SIDs of all routers, or routes.
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
    /// The router itself.
    Router,
    /// The neighbour of each circuit.
    Neighbors,
    /// The LSAs of all routers.
    Database,
    /// The SIDs that all routers announce; END.C and END.E count where the C-flag is set.
    Sids,
    /// Routes to the prefixes of other routers.
    Routes,
}

const EXAMPLES: &str = "\
Examples:
  srdma ospf show neighbors
      The neighbours of the only running node's circuits, and their states.

  srdma ospf show database --config node.toml
      The LSAs of all routers: sequence number, and age.

  srdma ospf show sids --json | jq -r '.nodes[] | select(.handles_notifications) | .hostname'
      The routers that handle congestion notifications.";

/// Runs the command.
///
/// # Errors
///
/// If there is no node, several without a choice, or the node does not run OSPFv3.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::Show(show) = &arguments.command;
    let path = show.node.socket()?;
    let Some(ospf) = read_status(&path)?.ospf else {
        bail!("{}: the node does not run OSPFv3: its configuration has no [ospf]", path.display());
    };
    if show.json {
        output::print(&(serde_json::to_string(&json(&ospf, show.what))? + "\n"))?;
    } else {
        // Names of other routers are theirs.
        output::print_text(&text(&terminal::shown(&ospf)?, show.what))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(ospf: &OspfSnapshot, what: What) -> serde_json::Value {
    match what {
        What::Router => json!({
            "router": ospf.router,
            "hostname": ospf.hostname,
            "area": ospf.area,
            "is_overloaded": ospf.is_overloaded,
        }),
        What::Neighbors => json!({ "router": ospf.router, "circuits": ospf.circuits }),
        What::Database => json!({ "router": ospf.router, "lsas": ospf.lsas }),
        What::Sids => json!({ "router": ospf.router, "nodes": ospf.nodes }),
        What::Routes => json!({ "router": ospf.router, "routes": ospf.routes }),
    }
}

fn text(ospf: &OspfSnapshot, what: What) -> String {
    match what {
        What::Router => text::router(ospf),
        What::Neighbors => text::neighbors(ospf),
        What::Database => text::database(ospf),
        What::Sids => text::sids(ospf),
        What::Routes => text::routes(ospf),
    }
}
