//! A plan in a file: the fabric that it is for, what is drained, and the flows with their paths.

use super::jobs::Wanted;
use super::{FabricArguments, read};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use srdma_fabric::{Encoding, LinkId, NodeId, Path, SidPlan, Topology};
use srdma_placement::{Flow, FlowId, Placement};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::net::Ipv6Addr;
use std::path::{self, PathBuf};

/// The form of the file. A file of another form is refused.
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
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFlow {
    /// How it is called in the plan; stays when others go.
    number: u32,
    job: String,
    collective: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<u16>,
    from: String,
    to: String,
    rate_bits_per_s: u64,
    /// The links of its path, by name.
    path: Vec<String>,
}

/// A flow of a plan, with its number.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) id: FlowId,
    pub(super) wanted: Wanted,
}

/// A plan's flows, placed as it says.
pub(super) struct Restored<'a> {
    pub(super) placement: Placement<'a>,
    pub(super) flows: Vec<Numbered>,
    /// The paths that the plan has.
    pub(super) was: BTreeMap<FlowId, Path>,
    /// Flows that had to move since links have failed.
    pub(super) moved: Vec<FlowId>,
}

/// A fabric with what a plan says about it.
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
    /// How programs are written.
    pub(super) fn encoding(&self) -> Encoding {
        if self.saved.links { Encoding::Links } else { Encoding::Nodes }
    }

    /// Places the flows as the plan says.
    pub(super) fn restored(&self) -> Result<Restored<'_>> {
        let topology = &self.topology;
        let names: HashMap<String, LinkId> = topology.link_ids().map(|link| (topology.link_name(link), link)).collect();
        let link = |name: &String| {
            names.get(name).copied().with_context(|| format!("the plan names {name}, which is no link of its fabric"))
        };
        let host = |name: &String| match topology.node(name) {
            Some(NodeId::Host(host)) => Ok(host),
            _ => bail!("the plan names {name}, which is no NIC of its fabric"),
        };
        let drained = self.saved.drained.iter().map(link).collect::<Result<Vec<LinkId>>>()?;
        let mut flows = Vec::new();
        let mut numbered = Vec::new();
        for (id, saved) in (0..).map(FlowId).zip(&self.saved.flows) {
            let (from, to) = (host(&saved.from)?, host(&saved.to)?);
            let links = saved.path.iter().map(link).collect::<Result<Vec<LinkId>>>();
            let links = links.with_context(|| format!("flow {}", saved.number))?;
            let flow = Flow { from, to, rate_bits_per_s: saved.rate_bits_per_s };
            flows.push((flow, Path { from, to, links }));
            let SavedFlow { job, collective, tenant, .. } = saved;
            let wanted = Wanted { job: job.clone(), collective: collective.clone(), tenant: *tenant, flow };
            numbered.push(Numbered { number: saved.number, id, wanted });
        }
        let (placement, moved) = Placement::with_paths(topology, &flows, &drained).context("the plan")?;
        let was = (0..).map(FlowId).zip(flows.into_iter().map(|(_, path)| path)).collect();
        Ok(Restored { placement, flows: numbered, was, moved })
    }

    /// Writes the plan anew.
    pub(super) fn save(&self, file: &path::Path, placement: &Placement<'_>, flows: &[Numbered]) -> Result<()> {
        let Saved { fabric, block, links, .. } = &self.saved;
        let saved = Saved::of(&self.topology, placement, flows, (fabric.clone(), *block, *links))?;
        saved.write(file)
    }
}

/// The numbers of flows from a number on.
pub(super) fn numbered(first: u32, ids: impl IntoIterator<Item = FlowId>, wanted: Vec<Wanted>) -> Vec<Numbered> {
    (first..).zip(ids).zip(wanted).map(|((number, id), wanted)| Numbered { number, id, wanted }).collect()
}

impl Saved {
    /// A placement as it is written, with the fabric's file, the block, and whether programs name links.
    pub(super) fn of(
        topology: &Topology,
        placement: &Placement<'_>,
        flows: &[Numbered],
        (fabric, block, links): (PathBuf, Ipv6Addr, bool),
    ) -> Result<Self> {
        let name = |host| topology.name(NodeId::Host(host)).to_owned();
        let flow = |own: &Numbered| -> Result<SavedFlow> {
            let path = placement.path(own.id).context("a flow was not placed")?;
            let Wanted { job, collective, tenant, flow } = own.wanted.clone();
            Ok(SavedFlow {
                number: own.number,
                job,
                collective,
                tenant,
                from: name(path.from),
                to: name(path.to),
                rate_bits_per_s: flow.rate_bits_per_s,
                path: path.links.iter().map(|link| topology.link_name(*link)).collect(),
            })
        };
        let is_drained = |link: &LinkId| placement.is_drained(*link) && !topology.is_failed(*link);
        Ok(Saved {
            format: FORMAT,
            fabric,
            block,
            links,
            drained: topology.link_ids().filter(is_drained).map(|link| topology.link_name(link)).collect(),
            flows: flows.iter().map(flow).collect::<Result<_>>()?,
        })
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(&self, file: &path::Path) -> Result<()> {
        let mut name = file.file_name().with_context(|| format!("{} is no file", file.display()))?.to_owned();
        name.push(".new");
        let beside = file.with_file_name(name);
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, file));
        written.with_context(|| format!("cannot write {}", file.display()))
    }
}

impl FabricArguments {
    /// What a saved plan says of the fabric.
    pub(super) fn kept(&self, links: bool) -> Result<(PathBuf, Ipv6Addr, bool)> {
        Ok((absolute(&self.fabric)?, self.block, links))
    }
}

/// A plan can be used from elsewhere.
fn absolute(file: &path::Path) -> Result<PathBuf> {
    path::absolute(file).with_context(|| format!("{} is no file", file.display()))
}
