//! `srdma node`: a node on interfaces. Its configuration is described in `docs/configuration.md`, how to run it in
//! `docs/running.md`.

pub(crate) mod check;

use crate::log::{Log, LogArguments};
use anyhow::Context;
use srdma_node::daemon;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a node on network interfaces, in the foreground.
///
/// Logs to stderr, one line per event: the driver of each port and the reason for it, "ready" when all ports are
/// set up, and later changes. The node keeps running when stderr cannot be written. SIGHUP, or a change of the file,
/// applies the new configuration between two packets; an invalid one is rejected, and the current one stays. SIGTERM
/// sends the queued packets, detaches from the interfaces, and ends with exit code 0.
///
/// Exit code 3: the node did not start, because another one uses an interface or the status socket. Exit code 2: it did
/// not start for another reason. Exit code 1: it failed while it was running.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Configuration of the node; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(check::Arguments),
}

const EXAMPLES: &str = "\
Examples:
  srdma node --config /etc/srdma/leaf1.toml
      Runs the node. Ctrl-C ends it.

  srdma node check --config leaf1.toml
      Checks the file, and prints the side of the domain that each port is at.

  kill -HUP $PID
      Makes a running node read its configuration again.

  srdma node --config leaf1.toml --log-level debug
      Logs more.

A small configuration, for a node between interfaces eth0 and eth1 that is a uN of its locator and knows routes and
neighbours from the kernel. Every sender may use its SID; docs/security.md describes [domain], which prevents that:

  [node]
  loopback = \"2001:db8:ff:1::1\"
  open = true

  [[port]]
  name = \"eth0\"

  [[port]]
  name = \"eth1\"

  [[sid]]
  sid = \"5f00:0:100::/48\"
  behavior = \"uN\"";

/// Exit code of a node that needs what another one uses. In contrast to other errors of the start, it may pass.
const IN_USE: u8 = 3;

/// Runs the command.
///
/// # Errors
///
/// If the log cannot be started, or a checked configuration is invalid. Failures of the node are in the log and in the
/// exit code.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(Command::Check(arguments)) = &arguments.command {
        return check::run(arguments);
    }
    let config = arguments.config.as_ref().context("--config is required")?;
    let log = Log::start(&arguments.log)?;
    Ok(log.run(|log| match daemon::run(config, log.dropped_lines()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.was_running() => {
            tracing::error!("{error}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) if error.is_in_use() => {
            tracing::error!("{error}");
            Ok(ExitCode::from(IN_USE))
        }
        Err(error) => Err(error.into()),
    }))
}
