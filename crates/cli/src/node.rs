//! `srdma node`: a node on interfaces. Its configuration is described in `docs/configuration.md`, how to run it in
//! `docs/running.md`.

use srdma_node::daemon;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a node on network interfaces, in the foreground.
///
/// Says on stderr, a line an event, which driver each port has and why, when everything is set up ("ready"), and what
/// changes. SIGHUP, or a change of the file, puts another configuration into force between two packets; one that is
/// wrong is refused, and the old one stays. SIGTERM lets packets that wait leave, removes what was attached, and ends
/// with exit code 0.
///
/// Exit code 2: the node did not start. Exit code 1: it failed while it ran.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The node's configuration; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  srdma node --config /etc/srdma/leaf1.toml
      Runs the node. Ctrl-C ends it.

  kill -HUP $PID
      Has a running node read its configuration again.

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
/// When the node did not start. What ends a node that ran is said here.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match daemon::run(&arguments.config, &mut |event| eprintln!("{event}")) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.was_running() => {
            eprintln!("srdma: {error}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}
