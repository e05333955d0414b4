//! `srdma status`: the state of a running node. `docs/operating.md` describes it.

mod bfd;
mod columns;
mod congestion;
mod find;
mod page;
mod rates;
mod repair;
mod screen;
mod steering;
mod text;
mod workers;

pub(crate) use find::NodeArguments;

use crate::output;
use anyhow::Context;
use page::Page;
use rates::Seen;
use srdma_node::daemon::read_status;
use srdma_node::parse_duration;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

/// Show what a running node does: ports with rates, drops, groups with their branches, SIDs.
///
/// On a terminal it is shown live: up and down, Page Up and Page Down scroll, Tab selects the next section, q quits.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    node: NodeArguments,
    /// The status as one JSON object, once.
    #[arg(long)]
    json: bool,
    /// Tables, once: the default if the output is no terminal.
    #[arg(long, conflicts_with = "json")]
    once: bool,
    /// Time between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
}

const EXAMPLES: &str = "\
Examples:
  srdma status
      The only running node, live.

  srdma status --config node.toml --json | jq '.groups[].branches[] | select(.lag > 0)'
      Branches with unacknowledged data.";

/// Maximum number of columns of tables without a terminal.
const PLAIN_COLUMNS: usize = 160;

/// Runs the command.
///
/// # Errors
///
/// If there is no node, several without a choice, or the terminal cannot be used.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let path = arguments.node.socket()?;
    if !arguments.json && !arguments.once && io::stdout().is_terminal() {
        screen::show(path, arguments.interval).context("cannot use the terminal; --once prints tables")?;
        return Ok(ExitCode::SUCCESS);
    }
    let snapshot = read_status(&path)?;
    let text = if arguments.json {
        serde_json::to_string(&snapshot)? + "\n"
    } else {
        Page::new(&Seen::first(snapshot), PLAIN_COLUMNS).to_string()
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn parse_interval(argument: &str) -> Result<Duration, String> {
    match parse_duration(argument) {
        Some(interval) if (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&interval) => Ok(interval),
        Some(_) => Err("must be from 100ms to 3600s".to_owned()),
        None => Err("expected a number and one of ns, us, ms, s, such as 500ms".to_owned()),
    }
}
