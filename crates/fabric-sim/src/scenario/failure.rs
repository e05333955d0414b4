//! Failures of links and switches.

use super::Whole;
use serde::Deserialize;
use srdma_fabric::{LinkId, NodeId, Topology};
use srdma_toml_error::Problem;
use srdma_wire::units::NS_PER_US;
use toml::Spanned;

/// A failure in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSection {
    name: Spanned<String>,
    at_us: Whole<0, 10_000_000>,
    until_us: Option<Spanned<u64>>,
}

/// Failed links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The switch or link.
    pub name: String,
    /// The link, or all links of the switch.
    pub links: Vec<LinkId>,
    /// Start in nanoseconds.
    pub at_ns: u64,
    /// End in nanoseconds; `None`: not repaired.
    pub until_ns: Option<u64>,
}

impl FailureSection {
    /// The failed links of a topology.
    ///
    /// # Errors
    ///
    /// An unknown name, a host, an end before the start.
    pub(super) fn resolve(&self, topology: &Topology) -> Result<Failure, Problem> {
        let (at, name) = (self.name.span().start, self.name.get_ref());
        let is_host = matches!(topology.node(name), Some(NodeId::Host(_)));
        let Some(links) = topology.links_named(name).filter(|_| !is_host) else {
            return Err(Problem::new(at, format!("there is no switch or link {name:?} in the topology")));
        };
        if let Some(until) = self.until_us.as_ref().filter(|until| *until.get_ref() <= self.at_us.get()) {
            let text = format!("until_us {}: expected more than at_us, {}", until.get_ref(), self.at_us.get());
            return Err(Problem::new(until.span().start, text));
        }
        let until_ns = self.until_us.as_ref().map(|until| until.get_ref().saturating_mul(NS_PER_US));
        Ok(Failure { name: name.clone(), links, at_ns: self.at_us.get() * NS_PER_US, until_ns })
    }
}
