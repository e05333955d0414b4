//! The JSON output of `srdma plan place`.

use super::ecmp::{self, Hashed};
use anyhow::{Context, Result};
use serde::Serialize;
use srdma_fabric::{Encoding, NodeId, Path, Program, SidPlan, Template, Topology};
use srdma_placement::{Direction, GroupFlow, ListedFlow, Numbered, NumberedGroup, Placement, Plan};
use std::net::Ipv6Addr;

/// A placement, whole.
#[derive(Serialize)]
pub(super) struct Placed {
    /// The link that carries most.
    pub(super) most_loaded: Load,
    /// Lower bound of its utilization in any placement.
    pub(super) bound: f64,
    /// The same flows on the paths that hashes choose.
    pub(super) ecmp: Hashed,
    pub(super) flows: Vec<PlacedFlow>,
    /// Multicast groups with their trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<PlacedGroup>,
    /// All links that carry anything, by direction.
    pub(super) loads: Vec<Load>,
}

/// A link in one direction.
#[derive(Serialize)]
pub(super) struct Load {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) bits_per_s: u64,
    /// By the link's rate.
    pub(super) load: f64,
}

/// A flow with its programs.
#[derive(Serialize)]
pub(super) struct PlacedFlow {
    pub(super) job: String,
    pub(super) collective: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) rate_bits_per_s: u64,
    /// The nodes on the way.
    pub(super) path: Vec<String>,
    pub(super) program: WrittenProgram,
    /// Its value of 32 bits; `null` if the path or the fabric has none.
    pub(super) entropy: Option<u32>,
    /// Of a path that shares as few links as possible.
    pub(super) backup: Option<WrittenProgram>,
    /// For acknowledgements (D86).
    pub(super) reverse: WrittenProgram,
}

/// A multicast group with its tree, which has no program: its nodes have entries of the group.
#[derive(Serialize)]
pub(super) struct PlacedGroup {
    /// Its number in the plan.
    pub(super) number: u32,
    pub(super) job: String,
    pub(super) collective: String,
    pub(super) from: String,
    pub(super) to: Vec<String>,
    pub(super) rate_bits_per_s: u64,
    /// The links of the tree in the direction of its data, by the names of their ends, parents before children.
    pub(super) tree: Vec<[String; 2]>,
}

/// A path as the NIC writes it.
#[derive(Serialize)]
pub(super) struct WrittenProgram {
    pub(super) destination: Ipv6Addr,
    /// Segments of the SRH, in the order in which they are used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) segments: Vec<Ipv6Addr>,
}

impl Placed {
    pub(super) fn new(topology: &Topology, sids: &SidPlan, plan: &Plan<'_>, encoding: Encoding) -> Result<Self> {
        let placement = plan.placement();
        let template = Template::new(topology).ok();
        let mut flows = Vec::new();
        for Numbered { id, wanted, .. } in plan.flows() {
            let write = |path: &Path| write(topology, sids, path, encoding, wanted.tenant);
            let path = placement.path(*id).context("a flow was not placed")?;
            let [from, to] = [path.from, path.to].map(|host| topology.name(NodeId::Host(host)).to_owned());
            flows.push(PlacedFlow {
                job: wanted.job.clone(),
                collective: wanted.part.clone(),
                rate_bits_per_s: wanted.flow.rate_bits_per_s,
                path: path.node_names(topology),
                program: write(&path)?,
                entropy: template.as_ref().and_then(|template| Some(template.entropy(&path).ok()?.0)),
                backup: placement.backup(*id).as_ref().map(write).transpose()?,
                reverse: write(&path.reversed())?,
                from,
                to,
            });
        }
        let directions =
            topology.link_ids().flat_map(|link| [false, true].map(|is_backward| Direction { link, is_backward }));
        let wanted: Vec<&ListedFlow> = plan.flows().iter().map(|own| &own.wanted).collect();
        let groups: Vec<&GroupFlow> = plan.groups().iter().map(|own| &own.wanted.group).collect();
        Ok(Placed {
            most_loaded: load(topology, placement, placement.most_loaded().0),
            bound: placement.bound(),
            ecmp: ecmp::hashed(topology, &wanted, &groups),
            flows,
            groups: plan.groups().iter().map(|own| placed_group(topology, placement, own)).collect(),
            loads: directions
                .map(|direction| load(topology, placement, direction))
                .filter(|load| load.bits_per_s > 0)
                .collect(),
        })
    }
}

/// A group with its tree.
pub(super) fn placed_group(topology: &Topology, placement: &Placement<'_>, own: &NumberedGroup) -> PlacedGroup {
    let name = |node| topology.name(node).to_owned();
    let ends = |direction: &Direction| [direction.origin(topology), direction.to(topology)].map(name);
    PlacedGroup {
        number: own.number,
        job: own.wanted.job.clone(),
        collective: own.wanted.part.clone(),
        from: name(NodeId::Host(own.wanted.group.from)),
        to: own.wanted.group.to.iter().map(|to| name(NodeId::Host(*to))).collect(),
        rate_bits_per_s: own.wanted.group.rate_bits_per_s,
        tree: placement.tree(own.id).iter().map(ends).collect(),
    }
}

/// Load of a link in one direction.
pub(super) fn load(topology: &Topology, placement: &Placement<'_>, direction: Direction) -> Load {
    Load {
        from: topology.name(direction.origin(topology)).to_owned(),
        to: topology.name(direction.to(topology)).to_owned(),
        bits_per_s: placement.loads().bits_per_s(direction),
        load: placement.loads().share_with(topology, direction, 0),
    }
}

/// A path as a program.
pub(super) fn write(
    topology: &Topology,
    plan: &SidPlan,
    path: &Path,
    encoding: Encoding,
    tenant: Option<u16>,
) -> Result<WrittenProgram> {
    let Program { destination, segments } = Program::encode(plan, topology, path, encoding, tenant)?;
    Ok(WrittenProgram { destination, segments })
}
