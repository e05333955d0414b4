//! Scenarios of kind `fabric` and `flow-level`, and what those of kind `sweep` become: a fabric, workloads, failures,
//! and the variants to compare.

use super::failure::{Failure, FailureSection};
use super::number::{default_first_seed, default_seeds};
use super::{Hosts, Kind, Measures, Scenario, Switches, Variant, Whole, Workloads, jobs};
use crate::max_min::MIN_INTERVAL;
use crate::wan::Wan;
use serde::{Deserialize, Serialize};
use srdma_fabric::{HostId, NodeId, Topology, TopologySection};
use srdma_placement::Job;
use srdma_placement::job_file::Repetition;
use srdma_toml_error::{FileError, Problem};
use std::path::Path;
use toml::Spanned;

/// A fabric, its workloads and failures, and the variants to compare.
#[derive(Clone, Debug)]
pub struct FabricScenario {
    /// Title of tables and reports.
    pub title: String,
    /// Introduction of the report.
    pub description: String,
    /// Level of simulation.
    pub level: Level,
    /// Default first seed; the others follow it.
    pub first_seed: u64,
    /// Default number of seeds.
    pub seeds: u64,
    /// Whether the variants are combinations of a sweep.
    pub is_sweep: bool,
    /// The fabric.
    pub topology: Topology,
    /// Parameters of hosts.
    pub hosts: Hosts,
    /// Parameters of switches, unless a variant overrides them.
    pub switches: Switches,
    /// Traffic.
    pub workloads: Workloads,
    /// The jobs of the workloads, with their repetition.
    pub jobs: Vec<(Job, Repetition)>,
    /// Failures of links and switches.
    pub failures: Vec<Failure>,
    /// Duration and measures.
    pub measures: Measures,
    /// The variants; at least one.
    pub variants: Vec<Variant>,
    /// Whether steady states of collectives in rings are skipped, at packet level.
    pub skip_steady: bool,
    /// At flow level, the minimum interval between two computations of rates, as a share of the mean duration of
    /// transfers (D295).
    pub rate_interval: f64,
    /// The WAN that is part of the fabric, if one is.
    pub(crate) wan: Option<Wan>,
}

/// Level of simulation.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    #[default]
    Packet,
    /// By max-min fair rates, for jobs only.
    Flow,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Spanned<Kind>,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default = "default_first_seed")]
    first_seed: Whole<0, 1_000_000_000>,
    #[serde(default = "default_seeds")]
    seeds: Whole<1, 1000>,
    topology: Spanned<TopologySection>,
    #[serde(default)]
    hosts: Hosts,
    #[serde(default)]
    switches: Switches,
    #[serde(default)]
    workload: Workloads,
    #[serde(default)]
    failure: Vec<FailureSection>,
    measure: Measures,
    variant: Vec<Spanned<Variant>>,
}

impl FabricScenario {
    /// Parses the content of a file of kind `fabric`, `flow-level` or `sweep`; `file` is for errors.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::parse`], and a file of another kind.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        match Scenario::parse(file, text)? {
            Scenario::Fabric(scenario) => Ok(*scenario),
            other => Err(other.unexpected(file, text, "fabric, flow-level or sweep")),
        }
    }

    /// The variant of this name, by its position.
    pub fn variant(&self, name: &str) -> Option<usize> {
        self.variants.iter().position(|variant| variant.name == name)
    }

    /// The variant that others are compared with: the one marked so, or the first.
    pub fn baseline(&self) -> usize {
        self.variants.iter().position(|variant| variant.baseline).unwrap_or(0)
    }

    /// Sets the level of simulation.
    ///
    /// # Errors
    ///
    /// Flow level with workloads other than jobs; jobs with multicast groups at packet level, or with failures.
    pub fn set_level(&mut self, level: Level) -> Result<(), String> {
        if level == Level::Flow && !self.workloads.has_only_jobs() {
            let text = "flow level: expected [[workload.job]] and no other workload; others need packet level";
            return Err(text.to_owned());
        }
        let mut groups = self.jobs.iter().filter(|(job, _)| job.has_groups());
        if let Some((job, _)) = groups.next().filter(|_| level == Level::Packet || !self.failures.is_empty()) {
            return Err(format!(
                "job {}: broadcast-multicast is simulated at flow level and without failures: expected kind \
                 flow-level, or [[workload.broadcast]], which is a group packet by packet",
                job.name
            ));
        }
        self.level = level;
        Ok(())
    }

    /// Sets whether steady states are skipped.
    ///
    /// # Errors
    ///
    /// Flow level, workloads other than jobs, and failures.
    pub fn set_skip_steady(&mut self, skip_steady: bool) -> Result<(), String> {
        let is_possible = self.level == Level::Packet && self.workloads.has_only_jobs() && self.failures.is_empty();
        if skip_steady && !is_possible {
            let text = "steady states are those of collectives, packet by packet: expected packet level, \
                        [[workload.job]] and no other workload, and no [[failure]]";
            return Err(text.to_owned());
        }
        self.skip_steady = skip_steady;
        Ok(())
    }

    /// Sets the minimum interval between two computations of rates, as a share of the mean duration of transfers.
    ///
    /// # Errors
    ///
    /// Packet level; a share that is not from 0 to 1.
    pub fn set_rate_interval(&mut self, share: f64) -> Result<(), String> {
        if self.level != Level::Flow {
            return Err("rates are those of flow level: expected kind flow-level, or --level flow".to_owned());
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(format!("{share}: expected a share from 0 to 1"));
        }
        self.rate_interval = share;
        Ok(())
    }

    pub(super) fn resolve(path: &Path, text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
        let topology_at = file.topology.span().start;
        let topology = file.topology.as_ref().topology()?;
        let has_one_port = |host: HostId| topology.ports(NodeId::Host(host)).len() == 1;
        if let Some(host) = topology.host_ids().find(|host| !has_one_port(*host)) {
            let name = topology.name(NodeId::Host(host));
            return Err(Problem::new(
                topology_at,
                format!("host {name} has several links: expected one for each host"),
            ));
        }
        if topology.links().iter().any(|link| link.delay_ns == 0) {
            return Err(Problem::new(topology_at, "a link has no delay: expected 1 ns at least"));
        }
        check_variants(&file.variant, text)?;
        let variants = file.variant.into_iter().map(|variant| {
            let (at, mut variant) = (variant.span().start, variant.into_inner());
            variant.read_files(path).map_err(|problem| Problem::new(at, problem)).map(|()| variant)
        });
        let variants = variants.collect::<Result<Vec<Variant>, Problem>>()?;
        file.hosts.check()?;
        file.workload.check(&topology, text)?;
        file.measure.check(&topology)?;
        let jobs = jobs::resolve(&file.workload.job, &topology, path)?;
        let failures = file.failure.iter().map(|section| section.resolve(&topology));
        let failures = failures.collect::<Result<Vec<Failure>, Problem>>()?;
        let kind_at = file.kind.span().start;
        let level = if *file.kind.as_ref() == Kind::FlowLevel { Level::Flow } else { Level::Packet };
        let mut scenario = FabricScenario {
            title: file.title,
            description: file.description,
            level: Level::Packet,
            first_seed: file.first_seed.get(),
            seeds: file.seeds.get(),
            is_sweep: false,
            topology,
            hosts: file.hosts,
            switches: file.switches,
            workloads: file.workload,
            jobs,
            failures,
            measures: file.measure,
            variants,
            skip_steady: false,
            rate_interval: MIN_INTERVAL,
            wan: None,
        };
        scenario.set_level(level).map_err(|problem| Problem::new(kind_at, problem))?;
        Ok(scenario)
    }
}

fn check_variants(variants: &[Spanned<Variant>], text: &str) -> Result<(), Problem> {
    if variants.is_empty() {
        return Err(Problem::new(text.len(), "no variant: expected at least one [[variant]]"));
    }
    for (position, variant) in variants.iter().enumerate() {
        let (at, variant) = (variant.span().start, variant.as_ref());
        if variants[..position].iter().any(|other| other.as_ref().name == variant.name) {
            return Err(Problem::new(at, format!("two variants are called {:?}: give one another name", variant.name)));
        }
        if variant.baseline && variants[..position].iter().any(|other| other.as_ref().baseline) {
            return Err(Problem::new(at, "a second variant is the baseline: expected one at most"));
        }
        variant.check().map_err(|problem| Problem::new(at, problem))?;
    }
    Ok(())
}
