//! `srdma plan add`, `remove`, `drain`, `release` and `whatif`: a saved plan changes, and few flows move.

use super::jobs::JobArguments;
use super::placed::{Load, PlacedGroup, WrittenProgram, load, placed_group, write};
use super::saved::{Opened, PlanArguments};
use super::{links_named, text};
use crate::output::{print_json, print_text};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use srdma_fabric::{LinkId, NodeId, Path};
use srdma_placement::{Numbered, NumberedGroup, Plan};
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan place --fabric dc.toml --jobs train.toml --save plan.json
  srdma plan add --plan plan.json --jobs copy.csv
  srdma plan remove --plan plan.json --job train        or flows by number, or as FROM:TO
  srdma plan drain --plan plan.json spine3 leaf1-spine2
  srdma plan release --plan plan.json spine3
  srdma plan whatif drain --plan plan.json spine4       says what would move, and changes nothing

Flows move only if their links are drained, or if that makes the most loaded link carry less.
Exit codes: 0 done, 2 the plan or the arguments make no sense, or a NIC would be cut off; nothing has changed then.";

/// A change of a saved plan.
#[derive(Subcommand)]
pub(super) enum Change {
    /// Add the flows of jobs to a saved plan.
    #[command(after_help = EXAMPLES)]
    Add(Add),
    /// Remove flows from a saved plan.
    #[command(after_help = EXAMPLES)]
    Remove(Remove),
    /// Drain switches or links, and move their flows.
    #[command(after_help = EXAMPLES)]
    Drain(Links),
    /// Release drained switches or links.
    #[command(after_help = EXAMPLES)]
    Release(Links),
}

#[derive(Args)]
pub(super) struct Add {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    jobs: JobArguments,
}

#[derive(Args)]
pub(super) struct Remove {
    #[command(flatten)]
    common: Common,

    /// All flows of this job; may be given several times.
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,

    /// Flows and multicast groups by their numbers in the plan, or all flows from one NIC to another as FROM:TO.
    #[arg(value_name = "FLOW", required_unless_present = "job")]
    flows: Vec<String>,
}

#[derive(Args)]
pub(super) struct Links {
    #[command(flatten)]
    common: Common,

    /// Switches, or links such as leaf1-spine2.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Args)]
struct Common {
    #[command(flatten)]
    plan: PlanArguments,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The effect of a change, made or proposed.
#[derive(Serialize)]
pub(super) struct Changed {
    /// Whether the plan was written.
    pub(super) saved: bool,
    /// Number of flows after the change.
    pub(super) flows: usize,
    pub(super) added: Vec<ChangedFlow>,
    pub(super) removed: Vec<u32>,
    pub(super) moved: Vec<ChangedFlow>,
    /// Multicast groups that were added, and those that have other trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) added_groups: Vec<PlacedGroup>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) moved_groups: Vec<PlacedGroup>,
    pub(super) before: Load,
    pub(super) after: Load,
    pub(super) bound: f64,
}

/// A flow with its new path.
#[derive(Serialize)]
pub(super) struct ChangedFlow {
    pub(super) number: u32,
    pub(super) job: String,
    pub(super) from: String,
    pub(super) to: String,
    /// The nodes of the new path.
    pub(super) path: Vec<String>,
    /// The nodes of the previous path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<Vec<String>>,
    pub(super) program: WrittenProgram,
}

/// Makes a change; writes the plan unless only its effect is asked for.
pub(super) fn run(change: &Change, is_question: bool) -> Result<ExitCode> {
    let common = match change {
        Change::Add(add) => &add.common,
        Change::Remove(remove) => &remove.common,
        Change::Drain(links) | Change::Release(links) => &links.common,
    };
    let opened = common.plan.open()?;
    let mut plan = opened.restored()?;
    let before = load(&opened.topology, plan.placement(), plan.placement().most_loaded().0);
    make(change, &opened, &mut plan)?;
    let changed = |flow: &Numbered, was: Option<&Path>| -> Result<ChangedFlow> {
        let path = plan.placement().path(flow.id).context("a flow was not placed")?;
        let [from, to] = [path.from, path.to].map(|host| opened.topology.name(NodeId::Host(host)));
        Ok(ChangedFlow {
            number: flow.number,
            job: flow.wanted.job.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            was: was.map(|path| path.node_names(&opened.topology)),
            program: write(&opened.topology, &opened.sids, &path, opened.encoding(), flow.wanted.tenant)?,
            path: path.node_names(&opened.topology),
        })
    };
    let group = |own: &NumberedGroup| placed_group(&opened.topology, plan.placement(), own);
    let outcome = Changed {
        saved: !is_question,
        flows: plan.flows().len(),
        added: plan.added().map(|flow| changed(flow, None)).collect::<Result<_>>()?,
        moved: plan.moved().map(|(flow, was)| changed(flow, Some(was))).collect::<Result<_>>()?,
        removed: plan.removed().to_vec(),
        added_groups: plan.added_groups().map(group).collect(),
        moved_groups: plan.moved_groups().map(group).collect(),
        before,
        after: load(&opened.topology, plan.placement(), plan.placement().most_loaded().0),
        bound: plan.placement().bound(),
    };
    if !is_question {
        opened.save(&common.plan.plan, &plan)?;
    }
    if common.json {
        print_json(&outcome)?;
    } else {
        print_text(&text::changed(&outcome))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn make(change: &Change, opened: &Opened, plan: &mut Plan<'_>) -> Result<()> {
    let links = |names: &[String]| -> Result<Vec<LinkId>> {
        Ok(names.iter().map(|name| links_named(&opened.topology, "", name)).collect::<Result<Vec<_>>>()?.concat())
    };
    match change {
        Change::Add(add) => {
            let (flows, groups) = add.jobs.wanted(&opened.topology)?;
            if !flows.is_empty() {
                plan.add(flows)?;
            }
            plan.add_groups(groups)?;
        }
        Change::Remove(remove) => {
            let is_known = |job: &String| {
                let has_flow = plan.flows().iter().any(|flow| flow.wanted.job == *job);
                has_flow || plan.groups().iter().any(|group| group.wanted.job == *job)
            };
            if let Some(job) = remove.job.iter().find(|job| !is_known(job)) {
                bail!("--job {job}: the plan has no flow of such a job");
            }
            let (groups, flows): (Vec<&String>, Vec<&String>) =
                remove.flows.iter().partition(|name| group_named(plan.groups(), name).is_some());
            let flows = flows.into_iter().map(|name| flows_named(opened, plan.flows(), name));
            let named = flows.collect::<Result<Vec<_>>>()?.concat();
            let groups: Vec<u32> = groups.iter().filter_map(|name| group_named(plan.groups(), name)).collect();
            plan.remove(|flow| remove.job.contains(&flow.wanted.job) || named.contains(&flow.number));
            plan.remove_groups(|group| remove.job.contains(&group.wanted.job) || groups.contains(&group.number));
        }
        Change::Drain(own) => {
            plan.drain(&links(&own.names)?).with_context(|| format!("cannot drain {}", own.names.join(", ")))?;
        }
        Change::Release(own) => {
            let links = links(&own.names)?;
            if let Some(failed) = links.iter().find(|link| opened.topology.is_failed(**link)) {
                let name = opened.topology.link_name(*failed);
                bail!("cannot release {}: the fabric file marks {name} as failed", own.names.join(", "));
            }
            plan.release(&links);
        }
    }
    Ok(())
}

/// The numbers of the flows that a name means: a number, or FROM:TO.
pub(super) fn flows_named(opened: &Opened, flows: &[Numbered], name: &str) -> Result<Vec<u32>> {
    if let Ok(number) = name.parse::<u32>() {
        return match flows.iter().find(|flow| flow.number == number) {
            Some(flow) => Ok(vec![flow.number]),
            None => bail!("flow {number}: the plan has none of this number"),
        };
    }
    let Some((from, to)) = name.split_once(':') else {
        bail!("{name} is no flow: expected its number, or FROM:TO with the names of two NICs");
    };
    let host = |host| opened.topology.name(NodeId::Host(host));
    let is_meant = |flow: &&Numbered| (host(flow.wanted.flow.from), host(flow.wanted.flow.to)) == (from, to);
    let found: Vec<u32> = flows.iter().filter(is_meant).map(|flow| flow.number).collect();
    if found.is_empty() {
        bail!("flow {name}: the plan has none from {from} to {to}");
    }
    Ok(found)
}

/// The multicast group of this number in a plan; `None` if it is no number, or none of a group.
pub(super) fn group_named(groups: &[NumberedGroup], name: &str) -> Option<u32> {
    let number = name.parse::<u32>().ok()?;
    groups.iter().map(|group| group.number).find(|own| *own == number)
}
