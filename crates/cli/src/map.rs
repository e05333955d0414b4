//! `srdma map`: probes every path of a fabric from this host, and keeps the deny list (D256).

mod probing;
mod report;

use crate::endpoint::parse_time;
use crate::output::{print, print_line, print_text, replace_file};
use crate::remote::interruption;
use anyhow::{Context, Result, bail};
use clap::Args;
use probing::Probing;
use report::{Event, Report};
use srdma_fabric::{AddressPlan, Encoding, HostId, NodeId, SidPlan, Topology};
use srdma_mapper::{Config, Mapper, Paths};
use srdma_wire::Instant;
use std::fs;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  sudo srdma map --fabric dc.toml --nic h1.1 --duration 10s                  before a job: exit code 1 if a path is dead
  sudo srdma map --fabric dc.toml --nic h1.1 --deny-list /run/srdma/denied.json --json      until SIGTERM

Probes leave by the kernel's routes, which must lead the SIDs of the NIC's switches to them: those of
srdma plan provision. They return to a UDP socket of this host. docs/mapper.md describes probes, list and JSON.
Exit codes: 0 no path is denied at the end, 1 some are, 2 the files, arguments or sockets make no sense.";

/// Probe every path of a fabric from this host by SRv6, without help of other hosts, and keep the list of paths that do
/// not forward.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The fabric, a TOML file: a generator with its parameters, or every node and link.
    #[arg(long, value_name = "FILE")]
    fabric: PathBuf,

    /// The NIC of the fabric that this host is.
    #[arg(long, value_name = "NIC")]
    nic: String,

    /// The block of all SIDs, a /32.
    #[arg(long, value_name = "ADDRESS", default_value_t = SidPlan::BLOCK)]
    block: Ipv6Addr,

    /// Name links (uA) in the programs instead of switches (uN).
    #[arg(long)]
    links: bool,

    /// The address of this host that probes come back to, within the /64 of the NIC; that of srdma plan provision
    /// without it.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<Ipv6Addr>,

    /// UDP port of probes.
    #[arg(long, value_name = "PORT", default_value_t = srdma_wire::codepoints::PROBE_PORT)]
    port: u16,

    /// Each path is probed once in so long.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    interval: Duration,

    /// A probe that has not returned after so long is lost.
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_time)]
    timeout: Duration,

    /// At least so long between two probes, of whatever paths.
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = parse_time)]
    gap: Duration,

    /// Probes lost in a row after which a path is denied.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    deny_after: u32,

    /// Probes returned in a row after which a denied path is allowed.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    allow_after: u32,

    /// Stop after so long; without it at SIGINT or SIGTERM.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,

    /// Write the deny list to this file, as JSON, whenever it changes.
    #[arg(long, value_name = "FILE")]
    deny_list: Option<PathBuf>,

    /// Print each change as a line of JSON, and the report as the last line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let text =
        fs::read_to_string(&arguments.fabric).with_context(|| format!("cannot read {}", arguments.fabric.display()))?;
    let topology = Topology::from_toml(&text).map_err(|error| error.in_file(&arguments.fabric))?;
    let sids = SidPlan::new(&topology, arguments.block)
        .with_context(|| format!("{} has no plan of SIDs", arguments.fabric.display()))?;
    let nic = nic(&topology, &arguments.nic)?;
    let encoding = if arguments.links { Encoding::Links } else { Encoding::Nodes };
    let paths = Paths::new(&topology, &sids, nic, encoding)?;
    let config = config(arguments, &topology, nic);
    let mut probing = Probing::open(&config)?;
    let mut mapper = Mapper::new(Instant::ZERO, config, &paths)?;
    let is_interrupted = interruption()?;
    let end = arguments.duration.map(|duration| Instant::from_ns(nanoseconds(duration)));
    write_list(arguments, &topology, &paths, &mapper)?;
    loop {
        let changes = probing.step(&mut mapper, end)?;
        for change in &changes {
            let event = Event::new(&paths, change);
            print_line(&if arguments.json { serde_json::to_string(&event)? } else { event.text() })?;
        }
        if !changes.is_empty() {
            write_list(arguments, &topology, &paths, &mapper)?;
        }
        if is_interrupted.load(Ordering::Relaxed) || end.is_some_and(|end| probing.now() >= end) {
            break;
        }
    }
    let report = Report::new(&topology, &paths, &mapper, probing.not_sent());
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print_text(&report.text())?;
    }
    Ok(if report.denied.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn nic(topology: &Topology, name: &str) -> Result<HostId> {
    match topology.node(name) {
        Some(NodeId::Host(host)) => Ok(host),
        Some(NodeId::Switch(_)) => bail!("--nic {name}: a switch; expected a NIC"),
        None => bail!("--nic {name}: no such NIC in this fabric"),
    }
}

fn config(arguments: &Arguments, topology: &Topology, nic: HostId) -> Config {
    let own = || AddressPlan::DOCUMENTATION.headend(topology, nic);
    Config {
        port: arguments.port,
        interval_ns: nanoseconds(arguments.interval),
        timeout_ns: nanoseconds(arguments.timeout),
        gap_ns: nanoseconds(arguments.gap),
        deny_after: arguments.deny_after,
        allow_after: arguments.allow_after,
        seed: u64::from(std::process::id()),
        ..Config::new(arguments.address.unwrap_or_else(own))
    }
}

/// Writes the deny list, if there is a file for it.
fn write_list(arguments: &Arguments, topology: &Topology, paths: &Paths, mapper: &Mapper) -> Result<()> {
    let Some(file) = &arguments.deny_list else { return Ok(()) };
    let list = report::DenyList::new(&arguments.nic, topology, paths, mapper);
    replace_file(file, &format!("{}\n", serde_json::to_string_pretty(&list)?))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
