//! `srdma node`: a node on interfaces. Its configuration is described in `docs/configuration.md`, how to run it in
//! `docs/running.md`.

use crate::log_lines::LogLines;
use srdma_node::daemon;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a node on network interfaces, in the foreground.
///
/// Writes one line per event to stderr: the driver of each port and the reason for it, "ready" when all ports are
/// set up, and later changes. The node keeps running when stderr cannot be written. SIGHUP, or a change of the file,
/// applies the new configuration between two packets; an invalid one is rejected, and the current one stays. SIGTERM
/// sends the queued packets, detaches from the interfaces, and ends with exit code 0.
///
/// Exit code 2: the node did not start. Exit code 1: it failed while it was running.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Configuration of the node; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  srdma node --config /etc/srdma/leaf1.toml
      Runs the node. Ctrl-C ends it.

  kill -HUP $PID
      Makes a running node read its configuration again.

A small configuration, for a node between interfaces eth0 and eth1 that is a uN of its locator and knows routes and
neighbours from the kernel:

  [node]
  loopback = \"2001:db8:ff:1::1\"

  [[port]]
  name = \"eth0\"

  [[port]]
  name = \"eth1\"

  [[sid]]
  sid = \"5f00:0:100::/48\"
  behavior = \"uN\"";

/// Runs the command.
///
/// # Errors
///
/// If the node did not start. The failure of a running node is logged here.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let log = LogLines::to_stderr();
    match daemon::run(&arguments.config, &mut |event| log.add(event)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.was_running() => {
            log.add(format_args!("srdma: {error}"));
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}
