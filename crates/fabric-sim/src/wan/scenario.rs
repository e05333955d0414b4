//! Scenarios of kind `wan`. `docs/scenarios.md` describes the keys.
//!
//! It is run at points: a variant, a length of the path, and a size of the congested node's queue.

use super::figure::{BOTTLENECK_RATE, Congested, Distances, HOST_RATE};
use super::nodes::WanSignal;
use crate::scenario::{DcqcnKeys, Hosts, Kind, Scenario, Switches, Whole, default_seeds};
use serde::Deserialize;
use srdma_toml_error::{FileError, Problem};
use std::path::Path;
use toml::Spanned;

/// A study: what is measured at which points, and which variants are compared.
#[derive(Clone, Debug)]
pub struct WanScenario {
    /// Title of tables and reports.
    pub title: String,
    /// Introduction of the report.
    pub description: String,
    /// Default number of seeds: 1, 2, and so on.
    pub seeds: u64,
    /// Topology and length of the WAN.
    pub wan: WanSection,
    /// Parameters of hosts.
    pub hosts: Hosts,
    /// Parameters of the switches in the data centres.
    pub switches: Switches,
    /// The variants; at least one.
    pub variants: Vec<WanVariant>,
}

/// The WAN and its points.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WanSection {
    /// The congested node.
    pub congested: Congested,
    /// Lengths of the path between the PEs, in kilometres.
    pub total_km: Spanned<Vec<f64>>,
    /// Length of PE1–R1, in kilometres; without it the three hops are equal.
    pub first_hop_km: Option<Spanned<f64>>,
    /// Sizes of the congested node's queue, as shares of its rate times the round trip between the gateways.
    pub buffers: Spanned<Vec<f64>>,
    /// The reference size, which is run with all seeds.
    pub buffer: Spanned<f64>,
    /// Maximum number of seeds with the other sizes.
    #[serde(default = "one")]
    pub sweep_seeds: Whole<1, 1000>,
    /// Number of hosts that send to the other data centre without end, each to one host: one below each leaf, at most.
    #[serde(default = "sixteen")]
    pub senders: Whole<1, 16>,
    /// Duration of a run, in round trips between the gateways.
    #[serde(default = "twelve")]
    pub round_trips: Whole<1, 1000>,
    /// Minimum duration of a run, in microseconds.
    #[serde(default = "ten_milliseconds")]
    pub min_duration_us: Whole<1, 10_000_000>,
    /// Notification threshold of the congested queue without END.C, in octets.
    #[serde(default = "threshold")]
    pub threshold_octets: Whole<0, 1_000_000_000>,
    /// Microseconds between two flows that stay in the first data centre; none without it.
    pub local_every_us: Option<Whole<1, 1_000_000>>,
    /// Their octets.
    #[serde(default = "local_octets")]
    pub local_octets: Whole<1, 1_073_741_824>,
}

fn one() -> Whole<1, 1000> {
    Whole(1)
}

fn sixteen() -> Whole<1, 16> {
    Whole(16)
}

fn twelve() -> Whole<1, 1000> {
    Whole(12)
}

fn ten_milliseconds() -> Whole<1, 10_000_000> {
    Whole(10_000)
}

fn threshold() -> Whole<0, 1_000_000_000> {
    Whole(100_000)
}

fn local_octets() -> Whole<1, 1_073_741_824> {
    Whole(65_536)
}

/// A variant: what is done about congestion in the WAN.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WanVariant {
    /// A short name, unique in the study.
    pub name: String,
    /// Title in reports; default: the name.
    #[serde(default)]
    title: String,
    /// Congestion signal to senders.
    pub signal: WanSignal,
    /// Whether the congested node has the gateway paused by END.C.
    #[serde(default)]
    pub end_c: bool,
    /// Whether the gateway is resumed early, so that its packets arrive when the queue is empty.
    #[serde(default)]
    pub early_resume: bool,
    /// Parameters of DCQCN that differ from the published ones.
    #[serde(default)]
    pub dcqcn: DcqcnKeys,
}

impl WanVariant {
    /// Title in reports.
    pub fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: Kind,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default = "default_seeds")]
    seeds: Whole<1, 1000>,
    wan: WanSection,
    #[serde(default)]
    hosts: Hosts,
    #[serde(default)]
    switches: Switches,
    variant: Vec<Spanned<WanVariant>>,
}

impl WanScenario {
    /// Parses the content of a file of kind `wan`; `file` is for errors.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::parse`], and a file of another kind.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        match Scenario::parse(file, text)? {
            Scenario::Wan(scenario) => Ok(*scenario),
            other => Err(other.unexpected(file, text, "wan")),
        }
    }

    pub(crate) fn resolve(text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
        file.wan.check()?;
        file.hosts.check()?;
        if file.variant.is_empty() {
            return Err(Problem::new(text.len(), "no variant: expected at least one [[variant]]"));
        }
        for (position, variant) in file.variant.iter().enumerate() {
            let name = &variant.as_ref().name;
            if file.variant[..position].iter().any(|other| other.as_ref().name == *name) {
                return Err(Problem::new(
                    variant.span().start,
                    format!("two variants are called {name:?}: rename one"),
                ));
            }
            if variant.as_ref().early_resume && !variant.as_ref().end_c {
                return Err(Problem::new(
                    variant.span().start,
                    "early_resume without end_c: the gateway is never paused",
                ));
            }
        }
        let (title, description, seeds) = (file.title, file.description, file.seeds.get());
        let variants = file.variant.into_iter().map(Spanned::into_inner).collect();
        Ok(WanScenario {
            title,
            description,
            seeds,
            wan: file.wan,
            hosts: file.hosts,
            switches: file.switches,
            variants,
        })
    }

    /// The hops of the path of this length.
    pub fn distances(&self, total_km: f64) -> Distances {
        self.wan.distances(total_km)
    }
}

impl WanSection {
    /// Initial rate of the senders, as a multiple of the bottleneck's rate.
    pub fn overload(&self) -> f64 {
        self.senders.get() as f64 * HOST_RATE as f64 / BOTTLENECK_RATE as f64
    }

    fn distances(&self, total_km: f64) -> Distances {
        match self.first_hop_km.as_ref().map(|first| *first.get_ref()) {
            Some(first) => Distances::with_first_hop(total_km, first),
            None => Distances { hops_km: [total_km / 3.0; 3] },
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let (at, lengths) = (self.total_km.span().start, self.total_km.get_ref());
        if lengths.is_empty() {
            return Err(Problem::new(at, "total_km: expected one length at least"));
        }
        for length in lengths {
            self.distances(*length).check().map_err(|text| Problem::new(at, text))?;
        }
        let (at, sizes) = (self.buffers.span().start, self.buffers.get_ref());
        let is_size = |size: &f64| (0.001..=100.0).contains(size);
        if let Some(size) = sizes.iter().find(|size| !is_size(size)) {
            return Err(Problem::new(at, format!("buffers: {size}: expected 0.001 to 100 of rate times round trip")));
        }
        if !sizes.is_sorted_by(|one, other| one < other) {
            return Err(Problem::new(at, "buffers: expected them in rising order"));
        }
        if !sizes.contains(self.buffer.get_ref()) {
            let text = format!("buffer {}: expected one of the buffers", self.buffer.get_ref());
            return Err(Problem::new(self.buffer.span().start, text));
        }
        Ok(())
    }
}
