//! Links and switches that fail at a time.

use super::Whole;
use serde::Deserialize;
use srdma_fabric::{LinkId, NodeId, Problem, Topology};
use toml::Spanned;

const NS_PER_US: u64 = 1000;

/// A failure as it is written: `node`, or `link` with the names of its two ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSection {
    node: Option<Spanned<String>>,
    link: Option<[Spanned<String>; 2]>,
    at_us: Whole<0, 10_000_000>,
    until_us: Option<Spanned<u64>>,
}

/// Links that carry nothing for a while. Those of a switch that fails are all of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it is called: a switch, or a link after its ends.
    pub name: String,
    /// The links.
    pub links: Vec<LinkId>,
    /// From when, in nanoseconds.
    pub at_ns: u64,
    /// Until when; for good if `None`.
    pub until_ns: Option<u64>,
}

impl FailureSection {
    /// What fails in a topology.
    ///
    /// # Errors
    ///
    /// Neither a switch nor a link, or both; a name that is none; an end before the beginning.
    pub(super) fn resolve(section: &Spanned<Self>, topology: &Topology) -> Result<Failure, Problem> {
        let (at, section) = (section.span().start, section.get_ref());
        let (name, links) = match (&section.node, &section.link) {
            (Some(name), None) => (name.get_ref().clone(), links_of_switch(name, topology)?),
            (None, Some(ends)) => links_between(ends, topology)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Problem::new(at, "a failure is of a switch or of a link: expected `node` or `link`"));
            }
        };
        if let Some(until) = section.until_us.as_ref().filter(|until| *until.get_ref() <= section.at_us.get()) {
            let text = format!("until_us {}: expected more than at_us, {}", until.get_ref(), section.at_us.get());
            return Err(Problem::new(until.span().start, text));
        }
        let until_ns = section.until_us.as_ref().map(|until| until.get_ref().saturating_mul(NS_PER_US));
        Ok(Failure { name, links, at_ns: section.at_us.get() * NS_PER_US, until_ns })
    }
}

fn links_of_switch(name: &Spanned<String>, topology: &Topology) -> Result<Vec<LinkId>, Problem> {
    match topology.node(name.get_ref()) {
        Some(node @ NodeId::Switch(_)) => Ok(topology.ports(node).iter().map(|port| port.link).collect()),
        Some(NodeId::Host(_)) | None => {
            let text = format!("there is no switch {:?} in the topology", name.get_ref());
            Err(Problem::new(name.span().start, text))
        }
    }
}

fn links_between(ends: &[Spanned<String>; 2], topology: &Topology) -> Result<(String, Vec<LinkId>), Problem> {
    let [one, other] = ends.each_ref().map(|name| topology.node(name.get_ref()));
    let ports = one.map(|node| topology.ports(node)).unwrap_or(&[]).iter();
    let links: Vec<LinkId> = ports.filter(|port| Some(port.peer.node) == other).map(|port| port.link).collect();
    let name = format!("{}-{}", ends[0].get_ref(), ends[1].get_ref());
    if links.is_empty() {
        return Err(Problem::new(ends[0].span().start, format!("no link {name} is in the topology")));
    }
    Ok((name, links))
}
