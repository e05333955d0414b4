//! `srdma plan why`: the reasons for a flow's path.

use super::change::{flows_named, group_named};
use super::placed::{Load, PlacedGroup, WrittenProgram, load, placed_group, write};
use super::saved::{Opened, PlanArguments};
use super::text;
use crate::output::{print_json, print_text};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use srdma_fabric::{NodeId, Topology};
use srdma_placement::{Cut, Direction, NumberedGroup, Placement};
use std::process::ExitCode;

/// Maximum number of alternatives shown.
const ALTERNATIVES: usize = 8;

const EXAMPLES: &str = "Examples:
  srdma plan why --plan plan.json 17
  srdma plan why --plan plan.json h1.1:h2.1

Exit codes: 0 explained, 2 invalid plan or flow.";

/// Explain the path of a flow of a saved plan, or the tree of a multicast group: its links, its alternatives, and the
/// lower bound.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    plan: PlanArguments,

    /// The flow, by its number in the plan or as FROM:TO; or a multicast group by its number.
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
    #[serde(flatten)]
    pub(super) bound: Bound,
}

/// How far the whole plan is from what no plan can do better.
#[derive(Serialize)]
pub(super) struct Bound {
    /// The most loaded link of the whole plan.
    pub(super) most_loaded: Load,
    pub(super) bound: f64,
    /// Load of the most loaded link above the bound, relative to the bound.
    pub(super) gap: f64,
    /// The links that determine the bound.
    pub(super) bound_by: String,
}

impl Bound {
    fn of(topology: &Topology, placement: &Placement<'_>) -> Self {
        let (most_loaded, bound) = (load(topology, placement, placement.most_loaded().0), placement.bound());
        let gap = (most_loaded.load / bound - 1.0).max(0.0);
        Bound { most_loaded, bound, gap, bound_by: bound_by(topology, placement) }
    }
}

/// The reasons for a group's tree.
#[derive(Serialize)]
pub(super) struct GroupReasons {
    #[serde(flatten)]
    pub(super) group: PlacedGroup,
    /// The links of the tree, with their total loads.
    pub(super) links: Vec<UsedLink>,
    /// Number of other trees with one way up for all receivers; the switches and the load of the best ones.
    pub(super) other_ways: usize,
    pub(super) alternatives: Vec<OtherWay>,
    #[serde(flatten)]
    pub(super) bound: Bound,
}

#[derive(Serialize)]
pub(super) struct UsedLink {
    #[serde(flatten)]
    pub(super) load: Load,
    /// Number of flows that use it.
    pub(super) flows: usize,
    /// Number of multicast groups that use it.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) groups: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
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
    if let Some(number) = group_named(plan.groups(), &arguments.flow) {
        let group = plan.groups().iter().find(|group| group.number == number).context("the group is gone")?;
        let reasons = of_group(&opened, placement, group);
        match arguments.json {
            true => print_json(&reasons)?,
            false => print_text(&text::group_reasons(&reasons))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
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
    let used = |(direction, _)| used_link(topology, placement, direction);
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
        bound: Bound::of(topology, placement),
    };
    if arguments.json {
        print_json(&reasons)?;
    } else {
        print_text(&text::reasons(&reasons))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The reasons for the tree of a group.
fn of_group(opened: &Opened, placement: &Placement<'_>, group: &NumberedGroup) -> GroupReasons {
    let topology = &opened.topology;
    let name = |node| topology.name(node).to_owned();
    let others = placement.other_trees(group.id);
    let other = |(tree, most, load): &(Vec<Direction>, Direction, f64)| OtherWay {
        path: std::iter::once(NodeId::Host(group.wanted.group.from))
            .chain(tree.iter().map(|direction| direction.to(topology)))
            .map(name)
            .collect(),
        from: name(most.origin(topology)),
        to: name(most.to(topology)),
        load: *load,
    };
    GroupReasons {
        group: placed_group(topology, placement, group),
        links: placement.tree(group.id).iter().map(|own| used_link(topology, placement, *own)).collect(),
        other_ways: others.len(),
        alternatives: others.iter().take(ALTERNATIVES).map(other).collect(),
        bound: Bound::of(topology, placement),
    }
}

fn used_link(topology: &Topology, placement: &Placement<'_>, direction: Direction) -> UsedLink {
    UsedLink {
        load: load(topology, placement, direction),
        flows: placement.users(direction).len(),
        groups: placement.trees_at(direction).count(),
    }
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
