//! `srdma plan decode`: the effect of a program, hop by hop.

use super::FabricArguments;
use crate::output::{print, print_json};
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use srdma_fabric::{HostId, NodeId, Program, Step, Topology};
use std::net::Ipv6Addr;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan decode --fabric fabrics/figure1.toml 5f00:0:100:500:300::
  srdma plan decode --fabric dc.toml --from h1.1 5f00:0:e012:e003:e001::   by links: the sender says which leaf is first

Segments of an SRH follow the destination, in the order in which they are used.
Exit codes: 0 it is a program, 2 it is none of this fabric.";

/// Print a program against a fabric, hop by hop.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    fabric: FabricArguments,

    /// The NIC that sends, for programs that begin with a link.
    #[arg(long, value_name = "NIC")]
    from: Option<String>,

    /// The outer destination address, and the segments of the SRH if there is one.
    #[arg(required = true)]
    addresses: Vec<Ipv6Addr>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    /// `uN`, `uA` or `End.DT6`.
    behavior: &'static str,
    switch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<u16>,
}

impl Line {
    fn new(topology: &Topology, step: Step) -> Self {
        let name = |switch| topology.name(NodeId::Switch(switch)).to_owned();
        match step {
            Step::Node(switch) => Line { behavior: "uN", switch: name(switch), link: None, tenant: None },
            Step::Link(switch, link) => {
                let link = Some(topology.link_name(link));
                Line { behavior: "uA", switch: name(switch), link, tenant: None }
            }
            Step::Tenant(switch, tenant) => {
                Line { behavior: "End.DT6", switch: name(switch), link: None, tenant: Some(tenant) }
            }
        }
    }

    fn text(&self) -> String {
        let Line { behavior, switch, link, tenant } = self;
        match (link, tenant) {
            (Some(link), _) => format!("{behavior:<8} {switch}, out of {link}\n"),
            (None, Some(tenant)) => format!("{behavior:<8} {switch}, tenant {tenant}\n"),
            (None, None) => format!("{behavior:<8} {switch}\n"),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (topology, plan) = arguments.fabric.read()?;
    let from = arguments.from.as_deref().map(|name| nic(&topology, name)).transpose()?;
    let [destination, segments @ ..] = &arguments.addresses[..] else {
        bail!("no address to decode");
    };
    let program = Program { destination: *destination, segments: segments.to_vec() };
    let steps = program.decode(&plan, &topology, from)?;
    let lines: Vec<Line> = steps.into_iter().map(|step| Line::new(&topology, step)).collect();
    if arguments.json {
        print_json(&lines)?;
    } else {
        print(&lines.iter().map(Line::text).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn nic(topology: &Topology, name: &str) -> Result<HostId> {
    match topology.node(name) {
        Some(NodeId::Host(host)) => Ok(host),
        Some(NodeId::Switch(_)) => bail!("--from {name}: a switch; expected a NIC"),
        None => bail!("--from {name}: no such NIC in this fabric"),
    }
}
