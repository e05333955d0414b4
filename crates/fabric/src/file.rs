//! A topology as TOML: a generator with its parameters, or every node and link.
//!
//! ```toml
//! kind = "leaf-spine"
//! leaves = 4
//! spines = 4
//! hosts_per_leaf = 16
//! oversubscription = 1.0
//! ```
//!
//! ```toml
//! kind = "links"
//! host = [{ name = "a" }, { name = "b" }]
//! switch = [{ name = "s" }]
//! link = [{ ends = ["a", "s"] }, { ends = ["b", "s"], delay_ns = 1000 }]
//! ```
//!
//! | key | of | meaning, unit | default |
//! |---|---|---|---|
//! | `kind` | | `leaf-spine`, `fat-tree` or `links` | |
//! | `leaves`, `spines`, `hosts_per_leaf` | `leaf-spine` | how many | |
//! | `tiers` | `fat-tree` | 2 or 3 | 3 |
//! | `k` | `fat-tree` | ports of a switch, even | |
//! | `pods` | `fat-tree` | with three tiers: how many | k |
//! | `host_rate_bits_per_s` | generators | rate of the links to hosts | 100,000,000,000 |
//! | `fabric_rate_bits_per_s` | generators | rate of the links between switches | that of the hosts |
//! | `oversubscription` | generators | instead of `fabric_rate_bits_per_s`: an edge's hosts by its uplinks | |
//! | `host_delay_ns`, `fabric_delay_ns` | generators | propagation delay, nanoseconds | 500 |
//! | `host.name`, `switch.name` | `links` | unique | |
//! | `host.number` | `links` | what the address is made of | position from 1 |
//! | `switch.tier` | `links` | from 1, where hosts are attached | 1 |
//! | `switch.number` | `links` | what the address is made of | position from 1 |
//! | `switch.usid` | `links` | the id of its uN, 1 to 0xDFFF | made of tier and number |
//! | `link.ends` | `links` | two names | |
//! | `link.ports` | `links` | a port at each end | one above the highest so far |
//! | `link.rate_bits_per_s` | `links` | of each direction | 100,000,000,000 |
//! | `link.delay_ns` | `links` | propagation delay, nanoseconds | 500 |

use crate::error::{Place, TopologyError};
use crate::generate::{FatTree, LeafSpine, Speeds, uplink_rate_bits_per_s};
use crate::problem::{FileError, Problem};
use crate::topology::{End, Host, HostId, Link, NodeId, Plan, Switch, SwitchId, Topology};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A topology as it is written: a file of its own, or a section of another one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologySection {
    kind: Spanned<Kind>,
    leaves: Option<Spanned<u16>>,
    spines: Option<Spanned<u16>>,
    hosts_per_leaf: Option<Spanned<u16>>,
    tiers: Option<Spanned<u8>>,
    k: Option<Spanned<u16>>,
    pods: Option<Spanned<u16>>,
    host_rate_bits_per_s: Option<Spanned<u64>>,
    fabric_rate_bits_per_s: Option<Spanned<u64>>,
    oversubscription: Option<Spanned<f64>>,
    host_delay_ns: Option<Spanned<u64>>,
    fabric_delay_ns: Option<Spanned<u64>>,
    #[serde(default)]
    host: Vec<Spanned<HostSection>>,
    #[serde(default)]
    switch: Vec<Spanned<SwitchSection>>,
    #[serde(default)]
    link: Vec<Spanned<LinkSection>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    LeafSpine,
    FatTree,
    Links,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostSection {
    name: String,
    number: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchSection {
    name: String,
    tier: Option<u8>,
    number: Option<u16>,
    usid: Option<u16>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkSection {
    ends: [Spanned<String>; 2],
    ports: Option<[u16; 2]>,
    rate_bits_per_s: Option<u64>,
    delay_ns: Option<u64>,
}

impl Topology {
    /// Reads a topology file.
    ///
    /// # Errors
    ///
    /// Names the line that is wrong, what was found there and what was expected.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        let section: Result<TopologySection, Problem> =
            toml::from_str(text).map_err(|error| Problem::of_toml(&error, text));
        section.and_then(|section| section.topology()).map_err(|problem| problem.in_text(text))
    }
}

/// Builds the error of something at an offset.
fn wrong<T>(at: usize, text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(at, text))
}

/// Where a key stands.
fn start<T>(key: &Option<Spanned<T>>) -> Option<usize> {
    key.as_ref().map(|key| key.span().start)
}

impl TopologySection {
    /// The topology that it describes.
    ///
    /// # Errors
    ///
    /// A key that is missing or belongs to another kind, an end that is no node, and those of [`Topology::new`]; each
    /// with its offset in the text that the section was read from.
    pub fn topology(&self) -> Result<Topology, Problem> {
        self.check_keys()?;
        match self.kind.get_ref() {
            Kind::LeafSpine => {
                let (leaves, spines) = (self.needed("leaves", &self.leaves)?, self.needed("spines", &self.spines)?);
                let hosts_per_leaf = self.needed("hosts_per_leaf", &self.hosts_per_leaf)?;
                let speeds = self.speeds(hosts_per_leaf, spines)?;
                let made = LeafSpine { leaves, spines, hosts_per_leaf, speeds }.topology();
                made.map_err(|error| self.located(error))
            }
            Kind::FatTree => {
                let k = self.needed("k", &self.k)?;
                let tiers = self.tiers.as_ref().map_or(3, |tiers| *tiers.get_ref());
                let pods = self.pods.as_ref().map(|pods| *pods.get_ref());
                let speeds = self.speeds(k / 2, k / 2)?;
                FatTree { tiers, k, pods, speeds }.topology().map_err(|error| self.located(error))
            }
            Kind::Links => Topology::new(self.plan()?).map_err(|error| self.located(error)),
        }
    }

    /// Refuses keys of other kinds.
    fn check_keys(&self) -> Result<(), Problem> {
        fn first<T>(list: &[Spanned<T>]) -> Option<usize> {
            list.first().map(|section| section.span().start)
        }
        let leaf_spine: &[Kind] = &[Kind::LeafSpine];
        let generated: &[Kind] = &[Kind::LeafSpine, Kind::FatTree];
        let keys = [
            ("leaves", start(&self.leaves), leaf_spine),
            ("spines", start(&self.spines), leaf_spine),
            ("hosts_per_leaf", start(&self.hosts_per_leaf), leaf_spine),
            ("tiers", start(&self.tiers), &[Kind::FatTree]),
            ("k", start(&self.k), &[Kind::FatTree]),
            ("pods", start(&self.pods), &[Kind::FatTree]),
            ("host_rate_bits_per_s", start(&self.host_rate_bits_per_s), generated),
            ("fabric_rate_bits_per_s", start(&self.fabric_rate_bits_per_s), generated),
            ("oversubscription", start(&self.oversubscription), generated),
            ("host_delay_ns", start(&self.host_delay_ns), generated),
            ("fabric_delay_ns", start(&self.fabric_delay_ns), generated),
            ("host", first(&self.host), &[Kind::Links]),
            ("switch", first(&self.switch), &[Kind::Links]),
            ("link", first(&self.link), &[Kind::Links]),
        ];
        let kind = *self.kind.get_ref();
        for (key, at, kinds) in keys {
            if let Some(at) = at.filter(|_| !kinds.contains(&kind)) {
                return wrong(at, format!("a topology of kind {} has no key {key}", kind.name()));
            }
        }
        Ok(())
    }

    fn needed<T: Copy>(&self, name: &str, key: &Option<Spanned<T>>) -> Result<T, Problem> {
        match key {
            Some(key) => Ok(*key.get_ref()),
            None => {
                let text = format!("a topology of kind {} needs the key {name}", self.kind.get_ref().name());
                wrong(self.kind.span().start, text)
            }
        }
    }

    fn speeds(&self, hosts: u16, uplinks: u16) -> Result<Speeds, Problem> {
        let value = |key: &Option<Spanned<u64>>, default| key.as_ref().map_or(default, |key| *key.get_ref());
        let rates = [&self.host_rate_bits_per_s, &self.fabric_rate_bits_per_s];
        if let Some(rate) = rates.into_iter().flatten().find(|rate| *rate.get_ref() == 0) {
            return wrong(rate.span().start, "a rate of 0: expected bits a second");
        }
        let host_rate_bits_per_s = value(&self.host_rate_bits_per_s, Speeds::DEFAULT.host_rate_bits_per_s);
        let fabric_rate_bits_per_s = match (&self.fabric_rate_bits_per_s, &self.oversubscription) {
            (rate, None) => value(rate, host_rate_bits_per_s),
            (Some(_), Some(ratio)) => {
                return wrong(ratio.span().start, "expected fabric_rate_bits_per_s or oversubscription, not both");
            }
            (None, Some(ratio)) => {
                let rate = uplink_rate_bits_per_s(host_rate_bits_per_s, hosts, uplinks, *ratio.get_ref());
                let text = "expected the ratio of hosts to uplinks, such as 1.0 or 3.0";
                rate.map_or_else(|| wrong(ratio.span().start, text), Ok)?
            }
        };
        Ok(Speeds {
            host_rate_bits_per_s,
            fabric_rate_bits_per_s,
            host_delay_ns: value(&self.host_delay_ns, Speeds::DEFAULT.host_delay_ns),
            fabric_delay_ns: value(&self.fabric_delay_ns, Speeds::DEFAULT.fabric_delay_ns),
        })
    }

    fn plan(&self) -> Result<Plan, Problem> {
        let mut plan = Plan::default();
        for (number, host) in (1..).zip(&self.host) {
            let host = host.get_ref();
            plan.hosts.push(Host { name: host.name.clone(), number: host.number.unwrap_or(number) });
        }
        for (number, section) in (1u32..).zip(&self.switch) {
            let switch = section.get_ref();
            let Some(number) = switch.number.or(u16::try_from(number).ok()) else {
                return wrong(section.span().start, "there are too many switches: expected 65,535 at most");
            };
            let (name, tier) = (switch.name.clone(), switch.tier.unwrap_or(1));
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
                rate_bits_per_s: link.rate_bits_per_s.unwrap_or(Speeds::DEFAULT.host_rate_bits_per_s),
                delay_ns: link.delay_ns.unwrap_or(Speeds::DEFAULT.host_delay_ns),
            });
        }
        Ok(plan)
    }

    fn located(&self, error: TopologyError) -> Problem {
        let at = match error.place {
            Place::Parameter("leaves") => start(&self.leaves),
            Place::Parameter("spines") => start(&self.spines),
            Place::Parameter("hosts_per_leaf") => start(&self.hosts_per_leaf),
            Place::Parameter("tiers") => start(&self.tiers),
            Place::Parameter("k") => start(&self.k),
            Place::Parameter("pods") => start(&self.pods),
            Place::Parameter(_) => None,
            Place::Host(index) => self.host.get(index).map(|section| section.span().start),
            Place::Switch(index) => self.switch.get(index).map(|section| section.span().start),
            Place::Link(index) => self.link.get(index).map(|section| section.span().start),
            Place::Whole => None,
        };
        Problem::new(at.unwrap_or(self.kind.span().start), error.problem)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::LeafSpine => "leaf-spine",
            Kind::FatTree => "fat-tree",
            Kind::Links => "links",
        }
    }
}
