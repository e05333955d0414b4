//! What `srdma plan place` says, as JSON has it.

use super::ecmp::{self, Hashed};
use super::place::Wanted;
use anyhow::{Context, Result};
use serde::Serialize;
use srdma_fabric::{Encoding, NodeId, Path, Program, SidPlan, Topology};
use srdma_placement::{Direction, FlowId, Placement};
use std::net::Ipv6Addr;

/// A placement, whole.
#[derive(Serialize)]
pub(super) struct Placed {
    /// The link that carries most.
    pub(super) most_loaded: Load,
    /// What it carries at least in any placement, by its rate.
    pub(super) bound: f64,
    /// The same flows on the paths that hashes choose.
    pub(super) ecmp: Hashed,
    pub(super) flows: Vec<PlacedFlow>,
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
    /// Of a path that shares as few links as possible.
    pub(super) backup: Option<WrittenProgram>,
    /// For acknowledgements (D86).
    pub(super) reverse: WrittenProgram,
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
    pub(super) fn new(
        topology: &Topology,
        plan: &SidPlan,
        placement: &Placement<'_>,
        wanted: &[Wanted<'_>],
        encoding: Encoding,
    ) -> Result<Self> {
        let name = |node: NodeId| topology.name(node).to_owned();
        let mut flows = Vec::new();
        for (id, wanted) in (0..).map(FlowId).zip(wanted) {
            let write = |path: &Path| -> Result<WrittenProgram> {
                let Program { destination, segments } =
                    Program::encode(plan, topology, path, encoding, wanted.job.tenant)?;
                Ok(WrittenProgram { destination, segments })
            };
            let path = placement.path(id).context("a flow was not placed")?;
            let switches = path.hops(topology).map(|(switch, _)| name(NodeId::Switch(switch)));
            let ends = [path.from, path.to].map(|host| name(NodeId::Host(host)));
            flows.push(PlacedFlow {
                job: wanted.job.name.clone(),
                collective: wanted.collective.to_owned(),
                rate_bits_per_s: wanted.flow.rate_bits_per_s,
                path: [ends[0].clone()].into_iter().chain(switches).chain([ends[1].clone()]).collect(),
                program: write(&path)?,
                backup: placement.backup(id).as_ref().map(write).transpose()?,
                reverse: write(&path.reversed())?,
                from: ends[0].clone(),
                to: ends[1].clone(),
            });
        }
        let load = |direction: Direction| Load {
            from: name(direction.origin(topology)),
            to: name(direction.to(topology)),
            bits_per_s: placement.loads().bits_per_s(direction),
            load: placement.loads().share_with(topology, direction, 0),
        };
        let directions =
            topology.link_ids().flat_map(|link| [false, true].map(|is_backward| Direction { link, is_backward }));
        Ok(Placed {
            most_loaded: load(placement.most_loaded().0),
            bound: placement.bound(),
            ecmp: ecmp::hashed(topology, wanted),
            flows,
            loads: directions.map(load).filter(|load| load.bits_per_s > 0).collect(),
        })
    }
}
