//! `srdma plan why`: the reasons for a flow's path.

use super::change::flows_named;
use super::placed::{Load, WrittenProgram, load, write};
use super::saved::PlanArguments;
use super::text;
use crate::output::{print, print_text};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use srdma_fabric::{NodeId, Topology};
use srdma_placement::{Cut, Placement};
use std::process::ExitCode;

/// Maximum number of alternatives shown.
const ALTERNATIVES: usize = 8;

const EXAMPLES: &str = "Examples:
  srdma plan why --plan plan.json 17
  srdma plan why --plan plan.json h1.1:h2.1

Exit codes: 0 explained, 2 invalid plan or flow.";

/// Explain the path of a flow of a saved plan: its links, its alternatives, and the lower bound.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    plan: PlanArguments,

    /// The flow, by its number in the plan or as FROM:TO.
    #[arg(value_name = "FLOW")]
    flow: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The reasons for a flow's path.
#[derive(Serialize)]
pub(super) struct Reasons {
    pub(super) number: u32,
    pub(super) job: String,
    pub(super) collective: String,
    pub(super) rate_bits_per_s: u64,
    pub(super) path: Vec<String>,
    pub(super) program: WrittenProgram,
    /// The links of the path, with their total loads.
    pub(super) links: Vec<UsedLink>,
    /// Number of other paths; those with the least load are shown.
    pub(super) other_ways: usize,
    pub(super) alternatives: Vec<OtherWay>,
    /// The most loaded link of the whole plan.
    pub(super) most_loaded: Load,
    pub(super) bound: f64,
    /// Load of the most loaded link above the bound, relative to the bound.
    pub(super) gap: f64,
    /// The links that determine the bound.
    pub(super) bound_by: String,
}

#[derive(Serialize)]
pub(super) struct UsedLink {
    #[serde(flatten)]
    pub(super) load: Load,
    /// Number of flows that use it.
    pub(super) flows: usize,
}

#[derive(Serialize)]
pub(super) struct OtherWay {
    pub(super) path: Vec<String>,
    /// The most loaded link of that path.
    pub(super) from: String,
    pub(super) to: String,
    /// Utilization if the flow took that path.
    pub(super) load: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.plan.open()?;
    let plan = opened.restored()?;
    let (placement, flows) = (plan.placement(), plan.flows());
    let found = flows_named(&opened, flows, &arguments.flow)?;
    let [number] = found[..] else {
        let numbers: Vec<String> = found.iter().map(u32::to_string).collect();
        bail!("flow {}: there are several, give the number of one: {}", arguments.flow, numbers.join(", "));
    };
    let flow = flows.iter().find(|flow| flow.number == number).context("the flow is gone")?;
    let topology = &opened.topology;
    let path = placement.path(flow.id).context("a flow was not placed")?;
    let alternatives = placement.alternatives(flow.id);
    let name = |node| topology.name(node).to_owned();
    let other = |own: &srdma_placement::Alternative| OtherWay {
        path: own.path.node_names(topology),
        from: name(own.most_loaded.origin(topology)),
        to: name(own.most_loaded.to(topology)),
        load: own.load,
    };
    let used = |(direction, _)| UsedLink {
        load: load(topology, placement, direction),
        flows: placement.users(direction).len(),
    };
    let (most_loaded, bound) = (load(topology, placement, placement.most_loaded().0), placement.bound());
    let reasons = Reasons {
        number,
        job: flow.wanted.job.clone(),
        collective: flow.wanted.part.clone(),
        rate_bits_per_s: flow.wanted.flow.rate_bits_per_s,
        program: write(topology, &opened.sids, &path, opened.encoding(), flow.wanted.tenant)?,
        links: placement.loads_along(&path).into_iter().map(used).collect(),
        path: path.node_names(topology),
        other_ways: alternatives.len(),
        alternatives: alternatives.iter().take(ALTERNATIVES).map(other).collect(),
        gap: (most_loaded.load / bound - 1.0).max(0.0),
        bound_by: bound_by(topology, placement),
        most_loaded,
        bound,
    };
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&reasons)?))?;
    } else {
        print_text(&text::reasons(&reasons))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// In words, which links bound the result.
pub(super) fn bound_by(topology: &Topology, placement: &Placement<'_>) -> String {
    let Some(Cut { around, is_outgoing }) = placement.binding() else {
        return "no single NIC or leaf: the traffic across the whole fabric".to_owned();
    };
    let name = topology.name(around);
    match (around, is_outgoing) {
        (NodeId::Host(_), true) => format!("the links of {name}, by its outgoing traffic"),
        (NodeId::Host(_), false) => format!("the links of {name}, by its incoming traffic"),
        (NodeId::Switch(_), true) => format!("the uplinks of {name}, by traffic of its NICs to others"),
        (NodeId::Switch(_), false) => format!("the downlinks of {name}, by traffic of others to its NICs"),
    }
}
