//! A plan in a file: the fabric, drained links and nodes, and the flows with their paths.

use super::{FabricArguments, read};
use crate::output::replace_file;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use srdma_fabric::{Encoding, LinkId, SidPlan, Topology};
use srdma_placement::{KeptFlow, KeptGroup, LinkNames, Plan, SavedFlow, SavedGroup};
use std::fs;
use std::net::Ipv6Addr;
use std::path::{self, PathBuf};

/// Format of the file. Files of other formats are refused.
const FORMAT: u32 = 1;

/// The plan that is meant.
#[derive(Args)]
pub(super) struct PlanArguments {
    /// The plan, as srdma plan place --save wrote it.
    #[arg(long, value_name = "FILE")]
    pub(super) plan: PathBuf,

    /// The fabric as it is now, if it is not the file that the plan was made for.
    #[arg(long, value_name = "FILE")]
    fabric: Option<PathBuf>,
}

/// A plan as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    format: u32,
    /// The file of the fabric.
    fabric: PathBuf,
    block: Ipv6Addr,
    /// Whether programs name links instead of switches.
    links: bool,
    /// Links by name.
    drained: Vec<String>,
    flows: Vec<SavedFlow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<SavedGroup>,
}

/// A fabric with its saved plan.
pub(super) struct Opened {
    saved: Saved,
    pub(super) topology: Topology,
    pub(super) sids: SidPlan,
}

impl PlanArguments {
    /// Reads the plan and its fabric.
    pub(super) fn open(&self) -> Result<Opened> {
        let name = self.plan.display();
        let text = fs::read_to_string(&self.plan).with_context(|| format!("cannot read {name}"))?;
        let saved: Saved = serde_json::from_str(&text).with_context(|| format!("{name} is no plan"))?;
        if saved.format != FORMAT {
            bail!("{name} has format {}: expected {FORMAT}, as srdma plan place --save writes it", saved.format);
        }
        let fabric = self.fabric.as_ref().unwrap_or(&saved.fabric);
        let topology = read(fabric, Topology::from_toml).context("the plan's fabric; --fabric FILE names another")?;
        let sids = SidPlan::new(&topology, saved.block)
            .with_context(|| format!("{} has no plan of SIDs", fabric.display()))?;
        Ok(Opened { saved: Saved { fabric: absolute(fabric)?, ..saved }, topology, sids })
    }
}

impl Opened {
    /// Encoding of programs.
    pub(super) fn encoding(&self) -> Encoding {
        if self.saved.links { Encoding::Links } else { Encoding::Nodes }
    }

    /// Places the flows as in the plan.
    pub(super) fn restored(&self) -> Result<Plan<'_>> {
        let topology = &self.topology;
        let names = LinkNames::of(topology);
        let drained = self.saved.drained.iter().map(|name| names.link(name)).collect::<Result<Vec<LinkId>, _>>()?;
        let flows = self.saved.flows.iter().map(|flow| flow.clone().read(topology, &names));
        let mut plan =
            Plan::resume(topology, &flows.collect::<Result<Vec<KeptFlow>, _>>()?, &drained).context("the plan")?;
        let groups = self.saved.groups.iter().map(|group| group.clone().read(topology, &names));
        plan.resume_groups(&groups.collect::<Result<Vec<KeptGroup>, _>>()?).context("the plan")?;
        Ok(plan)
    }

    /// Overwrites the plan.
    pub(super) fn save(&self, file: &path::Path, plan: &Plan<'_>) -> Result<()> {
        let Saved { fabric, block, links, .. } = &self.saved;
        Saved::of(&self.topology, plan, (fabric.clone(), *block, *links)).write(file)
    }
}

impl Saved {
    /// A plan as it is written, with the fabric's file, the block, and whether programs name links.
    pub(super) fn of(topology: &Topology, plan: &Plan<'_>, (fabric, block, links): (PathBuf, Ipv6Addr, bool)) -> Self {
        Saved {
            format: FORMAT,
            fabric,
            block,
            links,
            drained: plan.drained().into_iter().map(|link| topology.link_name(link)).collect(),
            flows: plan.kept().iter().map(|flow| SavedFlow::of(topology, flow)).collect(),
            groups: plan.kept_groups().iter().map(|group| SavedGroup::of(topology, group)).collect(),
        }
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(&self, file: &path::Path) -> Result<()> {
        replace_file(file, &format!("{}\n", serde_json::to_string_pretty(self)?))
    }
}

impl FabricArguments {
    /// Absolute path of the fabric, SID block, and whether links have SIDs of their own.
    pub(super) fn kept(&self, links: bool) -> Result<(PathBuf, Ipv6Addr, bool)> {
        Ok((absolute(&self.fabric)?, self.block, links))
    }
}

/// A plan can be used from elsewhere.
fn absolute(file: &path::Path) -> Result<PathBuf> {
    path::absolute(file).with_context(|| format!("{} is no file", file.display()))
}
