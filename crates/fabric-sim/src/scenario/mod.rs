//! Scenario files: how they are written. `docs/scenarios.md` describes the keys.
//!
//! A wrong key, type or value ends the reading, and the error names the line. What exists afterwards can be run.

mod arm;
mod failure;
mod jobs;
mod number;
mod settings;
mod workload;

pub use arm::{Arm, Control, DcqcnKeys, DcqcnPreset, HpccKeys, Paths, Signal};
pub use failure::{Failure, FailureSection};
pub(crate) use number::usual_seeds;
pub use number::{Fraction, Whole};
pub use settings::{Ecn, Hosts, Measures, Notification, Pfc, Switches};
pub use workload::{Background, FlowSizes, Incast, Multicast, Permutation, Stream, Workloads};

use super::wan::Wan;
use serde::{Deserialize, Serialize};
use srdma_fabric::{HostId, NodeId, Topology, TopologySection};
use srdma_placement::Job;
use srdma_placement::job_file::Repetition;
use srdma_toml_error::{FileError, Problem};
use std::path::Path;
use toml::Spanned;

/// A scenario: what is built, what is sent, and which arms are compared.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called, in a few words.
    pub title: String,
    /// What it shows, for the reader of a report.
    pub description: String,
    /// How what is sent is simulated.
    pub level: Level,
    /// How many seeds are run unless somebody asks for another number: 1, 2, and so on.
    pub seeds: u64,
    /// The fabric.
    pub topology: Topology,
    /// What hosts are like.
    pub hosts: Hosts,
    /// What switches are like, in all arms that do not say otherwise.
    pub switches: Switches,
    /// What is sent.
    pub workloads: Workloads,
    /// The jobs among it, with how often they run.
    pub jobs: Vec<(Job, Repetition)>,
    /// What fails, and when.
    pub failures: Vec<Failure>,
    /// What is measured, and how long.
    pub measures: Measures,
    /// What is compared; at least one.
    pub arms: Vec<Arm>,
    /// The WAN that is part of the fabric, if one is.
    pub(crate) wan: Option<Wan>,
}

/// How what is sent is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Packet by packet, by the switches and hosts that run elsewhere.
    #[default]
    Packet,
    /// As fluids that share links fairly: jobs alone.
    Flow,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    description: String,
    level: Option<Spanned<Level>>,
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
    arm: Vec<Spanned<Arm>>,
}

fn default_seeds() -> Whole<1, 1000> {
    Whole(5)
}

/// Whether a file has a section of this name, so far as it is TOML at all.
pub(crate) fn has_section(text: &str, name: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key(name))
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, and those of [`Scenario::parse`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse(file, &text)
    }

    /// Reads the content of a file; `file` is for errors.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line that is wrong, what was expected there and what was found.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        Self::resolve(text).map_err(|problem| problem.in_file(file, text))
    }

    /// The arm of this name, by its position.
    pub fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm.name == name)
    }

    /// The arm that others are compared with: the one marked so, or the first.
    pub fn baseline(&self) -> usize {
        self.arms.iter().position(|arm| arm.baseline).unwrap_or(0)
    }

    /// Chooses how what is sent is simulated.
    ///
    /// # Errors
    ///
    /// Something else than jobs is sent, and the level is that of flows.
    pub fn set_level(&mut self, level: Level) -> Result<(), String> {
        if level == Level::Flow && !self.workloads.is_jobs_alone() {
            let text = "level flow: expected [[workload.job]] and no other workload; others need level packet";
            return Err(text.to_owned());
        }
        self.level = level;
        Ok(())
    }

    fn resolve(text: &str) -> Result<Self, Problem> {
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
        check_arms(&file.arm, text)?;
        file.hosts.check()?;
        file.workload.check(&topology, text)?;
        file.measure.check(&topology)?;
        let jobs = jobs::resolve(&file.workload.job, &topology)?;
        let failures = file.failure.iter().map(|section| section.resolve(&topology));
        let failures = failures.collect::<Result<Vec<Failure>, Problem>>()?;
        let (level_at, level) = file.level.map_or((0, Level::Packet), |level| (level.span().start, level.into_inner()));
        let mut scenario = Scenario {
            title: file.title,
            description: file.description,
            level: Level::Packet,
            seeds: file.seeds.get(),
            topology,
            hosts: file.hosts,
            switches: file.switches,
            workloads: file.workload,
            jobs,
            failures,
            measures: file.measure,
            arms: file.arm.into_iter().map(Spanned::into_inner).collect(),
            wan: None,
        };
        scenario.set_level(level).map_err(|problem| Problem::new(level_at, problem))?;
        Ok(scenario)
    }
}

fn check_arms(arms: &[Spanned<Arm>], text: &str) -> Result<(), Problem> {
    if arms.is_empty() {
        return Err(Problem::new(text.len(), "no arm: expected at least one [[arm]]"));
    }
    for (position, arm) in arms.iter().enumerate() {
        let (at, arm) = (arm.span().start, arm.as_ref());
        if arms[..position].iter().any(|other| other.as_ref().name == arm.name) {
            return Err(Problem::new(at, format!("two arms are called {:?}: give one another name", arm.name)));
        }
        if arm.baseline && arms[..position].iter().any(|other| other.as_ref().baseline) {
            return Err(Problem::new(at, "a second arm is the baseline: expected one at most"));
        }
        arm.check().map_err(|problem| Problem::new(at, problem))?;
    }
    Ok(())
}
