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
//! | `kind` | | `leaf-spine`, `fat-tree`, `rails`, `planes`, `dual-homed`, `data-centres` or `links` | |
//! | `leaves`, `spines`, `hosts_per_leaf` | others than `fat-tree`, `rails` | how many (in each part) | |
//! | `tiers` | `fat-tree` | 2 or 3 | 3 |
//! | `k` | `fat-tree` | ports of a switch, even | |
//! | `pods` | `fat-tree` | with three tiers: how many | k |
//! | `blocks` | `rails` | of servers with leaves of their own | 1 |
//! | `servers`, `rails` | `rails` | servers of a block, NICs of a server | |
//! | `spines` | `rails` | how many | |
//! | `planes` | `planes` | how many, 2 to 4 | 2 |
//! | `data_centres` | `data-centres` | how many | |
//! | `borders` | `data-centres` | switches of each that WAN links end at | 1 |
//! | `wan_rate_bits_per_s` | `data-centres` | rate of the links between data centres | 400,000,000,000 |
//! | `wan_delay_ns` | `data-centres` | their propagation delay, nanoseconds | 500,000 |
//! | `host_rate_bits_per_s` | generators | rate of the links to hosts | 100,000,000,000 |
//! | `fabric_rate_bits_per_s` | generators | rate of the links between switches | that of the hosts |
//! | `oversubscription` | generators | instead of `fabric_rate_bits_per_s`: an edge's hosts by its uplinks | |
//! | `host_delay_ns`, `fabric_delay_ns` | generators | propagation delay, nanoseconds | 500 |
//! | `failed.name` | all | a switch, or a link as `leaf1-spine2`: it has its SIDs, but nothing goes there | |
//! | `host.name`, `switch.name` | `links` | unique | |
//! | `host.number` | `links` | what the address is made of | position from 1 |
//! | `switch.tier` | `links` | from 1, where hosts are attached | 1 |
//! | `switch.number` | `links` | what the address is made of | position from 1 |
//! | `switch.usid` | `links` | the id of its uN, 1 to 0xDFFF | made of tier and number |
//! | `link.ends` | `links` | two names | |
//! | `link.ports` | `links` | a port at each end | one above the highest so far |
//! | `link.rate_bits_per_s` | `links` | of both directions, as a number or as two equal ones | 100,000,000,000 |
//! | `link.delay_ns` | `links` | propagation delay, nanoseconds; the same | 500 |

mod nodes;

use crate::error::{Place, TopologyError};
use crate::generate::{DataCentres, DualHomed, FatTree, LeafSpine, Planes, Rails, Speeds, Wan, uplink_rate_bits_per_s};
use crate::topology::{MOST_BITS_PER_S, MOST_DELAY_NS, Topology};
use nodes::{FailedSection, HostSection, LinkSection, SwitchSection};
use serde::Deserialize;
use srdma_toml_error::{LineError, Problem};
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
    blocks: Option<Spanned<u16>>,
    servers: Option<Spanned<u16>>,
    rails: Option<Spanned<u16>>,
    planes: Option<Spanned<u16>>,
    data_centres: Option<Spanned<u16>>,
    borders: Option<Spanned<u16>>,
    wan_rate_bits_per_s: Option<Spanned<u64>>,
    wan_delay_ns: Option<Spanned<u64>>,
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
    #[serde(default)]
    failed: Vec<Spanned<FailedSection>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    LeafSpine,
    FatTree,
    Rails,
    Planes,
    DualHomed,
    DataCentres,
    Links,
}

impl Topology {
    /// Reads a topology file.
    ///
    /// # Errors
    ///
    /// Names the line in error, the found and the expected value.
    pub fn from_toml(text: &str) -> Result<Self, LineError> {
        let section: Result<TopologySection, Problem> =
            toml::from_str(text).map_err(|error| Problem::of_toml(&error, text));
        section.and_then(|section| section.topology()).map_err(|problem| problem.in_text(text))
    }
}

/// Builds the error of something at an offset.
fn wrong<T>(at: usize, text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(at, text))
}

/// Position of a key in the text.
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
        let topology = match self.kind.get_ref() {
            Kind::Links => Topology::new(self.plan()?).map_err(|error| self.located(error))?,
            kind => self.generated(*kind)?,
        };
        self.with_failures(topology)
    }

    fn generated(&self, kind: Kind) -> Result<Topology, Problem> {
        let given = |key: &Option<Spanned<u16>>, default: u16| key.as_ref().map_or(default, |key| *key.get_ref());
        let leaves = || self.needed("leaves", &self.leaves);
        let spines = || self.needed("spines", &self.spines);
        let hosts_per_leaf = || self.needed("hosts_per_leaf", &self.hosts_per_leaf);
        let made = match kind {
            Kind::LeafSpine => {
                let (leaves, spines, hosts_per_leaf) = (leaves()?, spines()?, hosts_per_leaf()?);
                let speeds = self.speeds(hosts_per_leaf, spines)?;
                LeafSpine { leaves, spines, hosts_per_leaf, speeds }.topology()
            }
            Kind::FatTree => {
                let k = self.needed("k", &self.k)?;
                let tiers = self.tiers.as_ref().map_or(3, |tiers| *tiers.get_ref());
                let pods = self.pods.as_ref().map(|pods| *pods.get_ref());
                FatTree { tiers, k, pods, speeds: self.speeds(k / 2, k / 2)? }.topology()
            }
            Kind::Rails => {
                let (servers, rails) = (self.needed("servers", &self.servers)?, self.needed("rails", &self.rails)?);
                let (blocks, spines) = (given(&self.blocks, 1), spines()?);
                Rails { blocks, servers, rails, spines, speeds: self.speeds(servers, spines)? }.topology()
            }
            Kind::Planes => {
                let (leaves, spines, hosts_per_leaf) = (leaves()?, spines()?, hosts_per_leaf()?);
                let (planes, speeds) = (given(&self.planes, 2), self.speeds(hosts_per_leaf, spines)?);
                Planes { planes, leaves, spines, hosts_per_leaf, speeds }.topology()
            }
            Kind::DualHomed => {
                let (leaves, spines, hosts_per_leaf) = (leaves()?, spines()?, hosts_per_leaf()?);
                let speeds = self.speeds(hosts_per_leaf, spines)?;
                DualHomed { leaves, spines, hosts_per_leaf, speeds }.topology()
            }
            Kind::DataCentres => {
                let (leaves, spines, hosts_per_leaf) = (leaves()?, spines()?, hosts_per_leaf()?);
                let data_centres = self.needed("data_centres", &self.data_centres)?;
                let (borders, wan) = (given(&self.borders, 1), self.wan());
                let speeds = self.speeds(hosts_per_leaf, spines)?;
                DataCentres { data_centres, leaves, spines, hosts_per_leaf, borders, speeds, wan }.topology()
            }
            Kind::Links => Topology::new(self.plan()?),
        };
        made.map_err(|error| self.located(error))
    }

    fn wan(&self) -> Wan {
        let value = |key: &Option<Spanned<u64>>, default| key.as_ref().map_or(default, |key| *key.get_ref());
        Wan {
            rate_bits_per_s: value(&self.wan_rate_bits_per_s, Wan::DEFAULT.rate_bits_per_s),
            delay_ns: value(&self.wan_delay_ns, Wan::DEFAULT.delay_ns),
        }
    }

    /// Refuses keys of other kinds.
    fn check_keys(&self) -> Result<(), Problem> {
        fn first<T>(list: &[Spanned<T>]) -> Option<usize> {
            list.first().map(|section| section.span().start)
        }
        use Kind::{DataCentres, DualHomed, FatTree, LeafSpine, Links, Planes, Rails};
        let leaves: &[Kind] = &[LeafSpine, Planes, DualHomed, DataCentres];
        let generated: &[Kind] = &[LeafSpine, FatTree, Rails, Planes, DualHomed, DataCentres];
        let keys = [
            ("leaves", start(&self.leaves), leaves),
            ("spines", start(&self.spines), &[LeafSpine, Rails, Planes, DualHomed, DataCentres]),
            ("hosts_per_leaf", start(&self.hosts_per_leaf), leaves),
            ("tiers", start(&self.tiers), &[FatTree]),
            ("k", start(&self.k), &[FatTree]),
            ("pods", start(&self.pods), &[FatTree]),
            ("blocks", start(&self.blocks), &[Rails]),
            ("servers", start(&self.servers), &[Rails]),
            ("rails", start(&self.rails), &[Rails]),
            ("planes", start(&self.planes), &[Planes]),
            ("data_centres", start(&self.data_centres), &[DataCentres]),
            ("borders", start(&self.borders), &[DataCentres]),
            ("wan_rate_bits_per_s", start(&self.wan_rate_bits_per_s), &[DataCentres]),
            ("wan_delay_ns", start(&self.wan_delay_ns), &[DataCentres]),
            ("host_rate_bits_per_s", start(&self.host_rate_bits_per_s), generated),
            ("fabric_rate_bits_per_s", start(&self.fabric_rate_bits_per_s), generated),
            ("oversubscription", start(&self.oversubscription), generated),
            ("host_delay_ns", start(&self.host_delay_ns), generated),
            ("fabric_delay_ns", start(&self.fabric_delay_ns), generated),
            ("host", first(&self.host), &[Links]),
            ("switch", first(&self.switch), &[Links]),
            ("link", first(&self.link), &[Links]),
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
        let rates = [&self.host_rate_bits_per_s, &self.fabric_rate_bits_per_s, &self.wan_rate_bits_per_s];
        if let Some(rate) = rates.into_iter().flatten().find(|rate| !(1..=MOST_BITS_PER_S).contains(rate.get_ref())) {
            let text = format!("a rate of {}: expected 1 to {MOST_BITS_PER_S} bits a second", rate.get_ref());
            return wrong(rate.span().start, text);
        }
        let delays = [&self.host_delay_ns, &self.fabric_delay_ns, &self.wan_delay_ns];
        if let Some(delay) = delays.into_iter().flatten().find(|delay| *delay.get_ref() > MOST_DELAY_NS) {
            let text = format!("a delay of {}: expected {MOST_DELAY_NS} nanoseconds at most", delay.get_ref());
            return wrong(delay.span().start, text);
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

    fn located(&self, error: TopologyError) -> Problem {
        let at = match error.place {
            Place::Parameter("k") => start(&self.k),
            Place::Parameter("tiers") => start(&self.tiers),
            Place::Parameter(name) => self.number(name),
            Place::Host(index) => self.host.get(index).map(|section| section.span().start),
            Place::Switch(index) => self.switch.get(index).map(|section| section.span().start),
            Place::Link(index) => self.link.get(index).map(|section| section.span().start),
            Place::Whole => None,
        };
        Problem::new(at.unwrap_or(self.kind.span().start), error.problem)
    }

    /// Position of a number of switches, hosts or parts in the text.
    fn number(&self, name: &str) -> Option<usize> {
        let keys = [
            ("leaves", &self.leaves),
            ("spines", &self.spines),
            ("hosts_per_leaf", &self.hosts_per_leaf),
            ("pods", &self.pods),
            ("blocks", &self.blocks),
            ("servers", &self.servers),
            ("rails", &self.rails),
            ("planes", &self.planes),
            ("data_centres", &self.data_centres),
            ("borders", &self.borders),
        ];
        keys.into_iter().find(|(key, _)| *key == name).and_then(|(_, value)| start(value))
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::LeafSpine => "leaf-spine",
            Kind::FatTree => "fat-tree",
            Kind::Rails => "rails",
            Kind::Planes => "planes",
            Kind::DualHomed => "dual-homed",
            Kind::DataCentres => "data-centres",
            Kind::Links => "links",
        }
    }
}
