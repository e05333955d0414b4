//! Flows and groups of a plan as saved: NICs and links by name, so that they survive a change of the fabric's file.

use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use crate::group_flow::{GroupFlow, ListedGroup};
use crate::plan::{KeptFlow, KeptGroup};
use serde::{Deserialize, Serialize};
use srdma_fabric::{HostId, LinkId, NodeId, Path, Topology};
use std::collections::HashMap;

/// A flow as it is saved.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFlow {
    /// Its number in the plan; stays when other flows are removed.
    pub number: u32,
    pub job: String,
    /// The part of the job that sends it.
    pub collective: String,
    /// Whose it is: the service at the end of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u16>,
    /// The NIC that sends.
    pub from: String,
    /// The NIC that receives.
    pub to: String,
    /// Bits in a second.
    pub rate_bits_per_s: u64,
    /// The links of its path, by name.
    pub path: Vec<String>,
}

/// A multicast group as it is saved.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedGroup {
    /// Its number in the plan.
    pub number: u32,
    pub job: String,
    /// The part of the job that sends it.
    pub collective: String,
    /// The NIC that sends.
    pub from: String,
    /// The NICs that receive.
    pub to: Vec<String>,
    /// Bits in a second.
    pub rate_bits_per_s: u64,
    /// The links of its tree, by name, parents before children.
    pub tree: Vec<String>,
}

/// The reason why a saved flow does not belong to a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    /// A flow's link does not exist.
    #[error("flow {number}: the plan names {name}, which is no link of its fabric")]
    FlowLink {
        /// The flow.
        number: u32,
        /// The link.
        name: String,
    },
    /// A flow's NIC does not exist.
    #[error("the plan names {name}, which is no NIC of its fabric")]
    Nic {
        /// The NIC.
        name: String,
    },
    /// A link does not exist.
    #[error("the plan names {name}, which is no link of its fabric")]
    Link {
        /// The link.
        name: String,
    },
}

/// The links of a fabric by their names.
#[derive(Clone, Debug)]
pub struct LinkNames(HashMap<String, LinkId>);

impl LinkNames {
    /// Those of a fabric.
    pub fn of(topology: &Topology) -> Self {
        LinkNames(topology.link_ids().map(|link| (topology.link_name(link), link)).collect())
    }

    /// The link of a name, which is written as [`Topology::link_name`] writes it.
    ///
    /// # Errors
    ///
    /// If the fabric has no link of this name.
    pub fn link(&self, name: &str) -> Result<LinkId, SavedError> {
        self.0.get(name).copied().ok_or_else(|| SavedError::Link { name: name.to_owned() })
    }
}

impl SavedFlow {
    /// A flow as it is saved.
    pub fn of(topology: &Topology, kept: &KeptFlow) -> Self {
        let name = |host| topology.name(NodeId::Host(host)).to_owned();
        let ListedFlow { flow, job, part, tenant } = kept.wanted.clone();
        SavedFlow {
            number: kept.number,
            job,
            collective: part,
            tenant,
            from: name(flow.from),
            to: name(flow.to),
            rate_bits_per_s: flow.rate_bits_per_s,
            path: kept.path.links.iter().map(|link| topology.link_name(*link)).collect(),
        }
    }

    /// The flow that was saved. Whether its links make a path is seen when it is placed.
    ///
    /// # Errors
    ///
    /// A NIC or a link that the fabric does not have.
    pub fn read(self, topology: &Topology, names: &LinkNames) -> Result<KeptFlow, SavedError> {
        let SavedFlow { number, job, collective, tenant, from, to, rate_bits_per_s, path } = self;
        let (from, to) = (host(topology, from)?, host(topology, to)?);
        let link = |name: &String| names.link(name).map_err(|_| SavedError::FlowLink { number, name: name.clone() });
        let links = path.iter().map(link).collect::<Result<Vec<LinkId>, _>>()?;
        let wanted = ListedFlow { flow: Flow { from, to, rate_bits_per_s }, job, part: collective, tenant };
        Ok(KeptFlow { number, wanted, path: Path { from, to, links } })
    }
}

impl SavedGroup {
    /// A group as it is saved.
    pub fn of(topology: &Topology, kept: &KeptGroup) -> Self {
        let name = |host: &HostId| topology.name(NodeId::Host(*host)).to_owned();
        let ListedGroup { group, job, part } = kept.wanted.clone();
        SavedGroup {
            number: kept.number,
            job,
            collective: part,
            from: name(&group.from),
            to: group.to.iter().map(name).collect(),
            rate_bits_per_s: group.rate_bits_per_s,
            tree: kept.links.iter().map(|link| topology.link_name(*link)).collect(),
        }
    }

    /// The group that was saved. Whether its links make a tree is seen when it is placed.
    ///
    /// # Errors
    ///
    /// A NIC or a link that the fabric does not have.
    pub fn read(self, topology: &Topology, names: &LinkNames) -> Result<KeptGroup, SavedError> {
        let SavedGroup { number, job, collective, from, to, rate_bits_per_s, tree } = self;
        let from = host(topology, from)?;
        let to = to.into_iter().map(|name| host(topology, name)).collect::<Result<Vec<HostId>, _>>()?;
        let link = |name: &String| names.link(name).map_err(|_| SavedError::FlowLink { number, name: name.clone() });
        let links = tree.iter().map(link).collect::<Result<Vec<LinkId>, _>>()?;
        let group = GroupFlow::new(from, to, rate_bits_per_s);
        Ok(KeptGroup { number, wanted: ListedGroup { group, job, part: collective }, links })
    }
}

fn host(topology: &Topology, name: String) -> Result<HostId, SavedError> {
    match topology.node(&name) {
        Some(NodeId::Host(host)) => Ok(host),
        _ => Err(SavedError::Nic { name }),
    }
}
