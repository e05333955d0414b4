//! `srdma process`: one node run over captures. Its configuration is described in `docs/configuration.md`.

mod text;

use crate::captures::{parse_input, with_bar};
use crate::output;
use anyhow::{Context, anyhow};
use srdma_node::{Configuration, Input, parse_duration};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Run one node over captures.
///
/// The captures are merged by their time stamps, which are the node's time. Writes one capture per port of the node,
/// all of them complete or none, and reports the node's counters.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The node's configuration; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// A capture (pcap or pcapng, of Ethernet) of packets received at a port. May be repeated for further captures and
    /// ports.
    #[arg(long = "in", value_name = "PORT=FILE", value_parser = parse_input, required = true)]
    inputs: Vec<(String, PathBuf)>,
    /// Directory for the captures of sent packets: PORT.pcapng for each port. It is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Time that the node runs after the last packet, so that its timers expire.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    run_on: Duration,
    /// The counters as one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma process --config node.toml --in uplink=in.pcapng --out sent
      Writes the packets that the node sends for those of in.pcapng to sent/PORT.pcapng.

  srdma process --config node.toml --in n4=data.pcap --in r1=acks.pcap --out sent --json | jq '.ports[].drops'
      Processes packets of both directions in the order of their time stamps; prints drops by reason.";

/// Runs the command.
///
/// # Errors
///
/// If the configuration is wrong, a capture cannot be read or written, or a port is not the node's.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::read(&arguments.config)?;
    let inputs = inputs(arguments, &configuration)?;
    let node = configuration.node().with_context(|| arguments.config.display().to_string())?;
    let (out, run_on) = (&arguments.out, arguments.run_on);
    let report = with_bar(|progress| srdma_node::process(node, &inputs, out, run_on, progress))?;
    let text = if arguments.json { serde_json::to_string(&report)? + "\n" } else { text::report(&report) };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn inputs(arguments: &Arguments, configuration: &Configuration) -> anyhow::Result<Vec<Input>> {
    let input = |(name, file): &(String, PathBuf)| {
        let port = configuration.port(name).ok_or_else(|| {
            let names: Vec<&str> = configuration.spec.node.ports.iter().map(|port| port.name.as_str()).collect();
            let (config, file) = (arguments.config.display(), file.display());
            anyhow!("--in {name}={file}: unknown port {name}, {config} has {}", text::list(&names))
        })?;
        Ok(Input { port, file: file.clone() })
    };
    arguments.inputs.iter().map(input).collect()
}

fn parse_time(argument: &str) -> Result<Duration, String> {
    parse_duration(argument).ok_or_else(|| "expected a number and one of ns, us, ms, s, such as 200ms".to_owned())
}
