//! `srdma explain`: why ACKs and NAKs were held, sent or dropped, from captures. Described in `docs/explain.md`.

mod text;
mod timeline;
mod words;

use crate::captures::{parse_input, with_bar};
use crate::output;
use anyhow::{anyhow, ensure};
use srdma_node::explain::{Capture, Wanted};
use srdma_node::{Configuration, parse_duration};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Explain from captures why a node's groups wait, and its responses upstream.
///
/// Replays the captures of the node's ports to a node with this configuration. For each group, it shows received,
/// rejected, held and sent responses, and compares those sent with the real node's in the captures.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Captures (pcap or pcapng, of Ethernet) of the node's ports. A packet belongs to the port whose MAC address it
    /// has.
    #[arg(value_name = "CAPTURE", required_unless_present = "inputs")]
    captures: Vec<PathBuf>,
    /// The node's configuration; docs/configuration.md describes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// A capture that was made at this port, regardless of MAC addresses. May be repeated for further captures and
    /// ports.
    #[arg(long = "in", visible_alias = "port", value_name = "PORT=FILE", value_parser = parse_input)]
    inputs: Vec<(String, PathBuf)>,
    /// This group alone.
    #[arg(long, value_name = "ID")]
    group: Option<u32>,
    /// Show only this branch in the timeline: a receiver, or the loopback of a node below.
    #[arg(long, value_name = "ADDRESS", value_parser = crate::endpoint::parse_address)]
    branch: Option<Ipv6Addr>,
    /// Begin the timeline here: seconds since the first packet, or with a unit, such as 1.5 or 1500ms.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Duration>,
    /// Stop here, the verdict included.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Duration>,
    /// Show every single entry of the timeline.
    #[arg(long)]
    all: bool,
    /// Verdicts and timelines as one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma explain up.pcapng hosts.pcapng --config node.toml
      Which receiver each group waits for, since when, and what led to it.

  srdma explain *.pcapng --config node.toml --group 1 --branch 2001:db8:bb::3 --from 1.2 --to 1.3 --all
      All responses of one receiver in a tenth of a second, and the node's reactions.

  srdma explain --in up=a.pcap --in hosts=b.pcap --config node.toml --json | jq '.groups[] | {id, verdict, waits_for}'
      The verdicts as JSON.";

/// Runs the command.
///
/// # Errors
///
/// If the configuration is wrong, a capture cannot be read, or nothing in them belongs to what is asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let (Some(from), Some(to)) = (arguments.from, arguments.to) {
        ensure!(from <= to, "--from {from:?} is after --to {to:?}: the timeline would be empty");
    }
    let configuration = Configuration::read(&arguments.config)?;
    let captures = captures(arguments, &configuration)?;
    let wanted = Wanted {
        group: arguments.group,
        branch: arguments.branch,
        from: arguments.from,
        to: arguments.to,
        all: arguments.all,
    };
    let result = with_bar(|progress| srdma_node::explain::explain(&configuration, &captures, &wanted, progress));
    let explanation = result.map_err(|error| match error.is_about_captures() {
        true => anyhow::Error::from(error),
        false => anyhow::Error::from(error).context(arguments.config.display().to_string()),
    })?;
    if arguments.json {
        output::print(&(serde_json::to_string(&explanation)? + "\n"))?;
    } else {
        output::print_text(&text::explanation(&explanation))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn captures(arguments: &Arguments, configuration: &Configuration) -> anyhow::Result<Vec<Capture>> {
    let named = |(name, file): &(String, PathBuf)| {
        let port = configuration.port(name).ok_or_else(|| {
            let names: Vec<&str> = configuration.spec.node.ports.iter().map(|port| port.name.as_str()).collect();
            let (config, file) = (arguments.config.display(), file.display());
            anyhow!("--in {name}={file}: unknown port {name}, {config} has {}", names.join(", "))
        })?;
        Ok(Capture { port: Some(port), file: file.clone() })
    };
    let others = arguments.captures.iter().map(|file| Ok(Capture { port: None, file: file.clone() }));
    arguments.inputs.iter().map(named).chain(others).collect()
}

fn parse_time(argument: &str) -> Result<Duration, String> {
    let seconds = || parse_duration(&format!("{argument}s"));
    parse_duration(argument)
        .or_else(seconds)
        .ok_or_else(|| "expected seconds, or a number and one of ns, us, ms, s, such as 1.5 or 200ms".to_owned())
}
