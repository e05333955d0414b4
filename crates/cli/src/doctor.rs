//! `srdma doctor`: checks of this machine. `docs/operating.md` describes it.

use crate::node::check;
use crate::output;
use srdma_doctor::Report;
use srdma_io::Choice;
use srdma_node::PortInterface;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// Check whether this machine meets the requirements of nodes and labs, with a remedy for each missing one.
///
/// Exit code 0: all requirements of `srdma node` are met; 1: some are not.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print the findings as one JSON object.
    #[arg(long)]
    json: bool,
    /// Try the AF_XDP modes on a temporary veth and on each INTERFACE; frames that arrive there meanwhile go to the
    /// kernel.
    #[arg(long, value_name = "INTERFACE", num_args = 0..)]
    probe: Option<Vec<String>>,
    /// Also print the side of the domain that each port of this configuration of a node is at, and whether drivers see
    /// the tags of its VLANs.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  srdma doctor
      All checks that do not use an interface.

  sudo srdma doctor --probe eth1 --json | jq '.findings[] | select(.state != \"ok\")'
      Also the AF_XDP modes of eth1; only problems are printed.";

/// Runs the command.
///
/// # Errors
///
/// The output cannot be written, or the configuration is invalid.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(arguments.probe.as_deref());
    if let Some(file) = &arguments.config {
        let configuration = check::read(file)?;
        for (port, side) in configuration.sides() {
            report.add_port(port, &side.to_string());
        }
        for PortInterface { name, driver, .. } in configuration.interfaces.iter().filter(|own| own.carries_vlans) {
            report.add_vlan_parent(name, matches!(driver, Choice::Xdp | Choice::XdpGeneric));
        }
        if configuration.has_open_sids() {
            report.add_open_sids();
        }
    }
    let text =
        if arguments.json { serde_json::to_string(&report)? + "\n" } else { report.text(io::stdout().is_terminal()) };
    output::print(&text)?;
    Ok(if report.node_can_run() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
