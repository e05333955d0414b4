//! Single nodes and links of a topology file, and failed links.

use super::{TopologySection, wrong};
use crate::generate::Speeds;
use crate::topology::{End, Host, HostId, Link, LinkId, MAX_SWITCHES, NodeId, Plan, Switch, SwitchId, Topology};
use serde::Deserialize;
use srdma_toml_error::Problem;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostSection {
    name: String,
    number: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchSection {
    name: String,
    tier: Option<u8>,
    number: Option<u16>,
    usid: Option<u16>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkSection {
    ends: [Spanned<String>; 2],
    ports: Option<[u16; 2]>,
    rate_bits_per_s: Option<Spanned<Ways>>,
    delay_ns: Option<Spanned<Ways>>,
}

/// A number for both directions of a link, or one for each.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or two for the two directions")]
enum Ways {
    Same(u64),
    Each([u64; 2]),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailedSection {
    name: Spanned<String>,
}

impl TopologySection {
    /// Every node and link as they are written.
    pub(super) fn plan(&self) -> Result<Plan, Problem> {
        let mut plan = Plan::default();
        if let Some(section) = self.switch.get(MAX_SWITCHES) {
            let (name, found) = (&section.get_ref().name, self.switch.len());
            let text = format!("switch {name} is one too many of {found}: {MAX_SWITCHES} at most have ids of 16 bits");
            return wrong(section.span().start, text);
        }
        for (number, host) in (1..).zip(&self.host) {
            let host = host.get_ref();
            plan.hosts.push(Host { name: host.name.clone(), number: host.number.unwrap_or(number) });
        }
        for (number, section) in (1..).zip(&self.switch) {
            let switch = section.get_ref();
            let (name, tier, number) = (switch.name.clone(), switch.tier.unwrap_or(1), switch.number.unwrap_or(number));
            plan.switches.push(Switch { name, tier, number, usid: switch.usid });
        }
        let mut names: BTreeMap<&str, NodeId> = BTreeMap::new();
        names.extend((0..).zip(&self.host).map(|(id, host)| (host.get_ref().name.as_str(), NodeId::Host(HostId(id)))));
        let switches = (0..).zip(&self.switch);
        names.extend(switches.map(|(id, switch)| (switch.get_ref().name.as_str(), NodeId::Switch(SwitchId(id)))));
        let mut next_ports: BTreeMap<NodeId, u16> = BTreeMap::new();
        for section in &self.link {
            let link = section.get_ref();
            let mut nodes = Vec::new();
            for name in &link.ends {
                match names.get(name.get_ref().as_str()) {
                    Some(node) => nodes.push(*node),
                    None => return wrong(name.span().start, format!("{} is no host and no switch", name.get_ref())),
                }
            }
            let mut end = |index: usize| {
                let next = next_ports.entry(nodes[index]).or_default();
                let port = link.ports.map_or(*next, |ports| ports[index]);
                *next = (*next).max(port.saturating_add(1));
                End { node: nodes[index], port }
            };
            plan.links.push(Link {
                ends: [end(0), end(1)],
                rate_bits_per_s: both_ways(link, "rate_bits_per_s", &link.rate_bits_per_s)?
                    .unwrap_or(Speeds::DEFAULT.host_rate_bits_per_s),
                delay_ns: both_ways(link, "delay_ns", &link.delay_ns)?.unwrap_or(Speeds::DEFAULT.host_delay_ns),
            });
        }
        Ok(plan)
    }

    /// The topology without the elements marked as failed.
    pub(super) fn with_failures(&self, topology: Topology) -> Result<Topology, Problem> {
        let mut failed: Vec<LinkId> = Vec::new();
        for section in &self.failed {
            let name = &section.get_ref().name;
            match topology.links_named(name.get_ref()) {
                Some(links) => failed.extend(links),
                None => {
                    let text =
                        format!("{} is neither a switch nor a link; a link is named like leaf1-spine2", name.get_ref());
                    return wrong(name.span().start, text);
                }
            }
        }
        match self.failed.first() {
            Some(first) => topology.without(&failed).map_err(|error| Problem::new(first.span().start, error.problem)),
            None => Ok(topology),
        }
    }
}

/// The number that both directions of a link have.
fn both_ways(link: &LinkSection, key: &str, value: &Option<Spanned<Ways>>) -> Result<Option<u64>, Problem> {
    match value.as_ref().map(|value| (value.span().start, *value.get_ref())) {
        None => Ok(None),
        Some((_, Ways::Same(number))) => Ok(Some(number)),
        Some((_, Ways::Each([one, other]))) if one == other => Ok(Some(one)),
        Some((at, Ways::Each([one, other]))) => {
            let [a, b] = link.ends.each_ref().map(Spanned::get_ref);
            wrong(
                at,
                format!("the link from {a} to {b} has {key} {one}, and {other} back: expected the same both ways"),
            )
        }
    }
}
