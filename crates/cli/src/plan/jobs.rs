//! The flows to place: jobs as TOML, flows as CSV, a dump or a log of NCCL, or a trace in GOAL.

use super::read;
use anyhow::{Result, bail};
use clap::Args;
use srdma_fabric::Topology;
use srdma_placement::{
    Job, ListedFlow, ListedGroup, NcclAlgorithm, flows_from_csv, flows_from_goal, flows_from_nccl, flows_from_nccl_log,
    jobs_with_traces_from_toml,
};
use srdma_toml_error::read_beside;
use std::path::PathBuf;

/// The flows to place.
#[derive(Args)]
pub(super) struct JobArguments {
    /// The jobs: a TOML file of jobs and collectives, a CSV of flows, an XML that NCCL has dumped, its log, or a trace
    /// in GOAL, whose ranks are at the first NICs of the fabric.
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,

    /// Place the collectives of this name alone; may be given several times. Of a dump of NCCL: ring or tree.
    #[arg(long, value_name = "NAME")]
    collective: Vec<String>,

    /// With a dump or a log of NCCL: a server, by the beginning of its NICs' names such as h1.3.; in the ranks' order.
    #[arg(long, value_name = "PREFIX")]
    server: Vec<String>,
}

impl JobArguments {
    /// The flows and multicast groups of all collectives that are chosen.
    pub(super) fn wanted(&self, topology: &Topology) -> Result<(Vec<ListedFlow>, Vec<ListedGroup>)> {
        let extension = self.jobs.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let listed = match extension.to_ascii_lowercase().as_str() {
            "csv" => read(&self.jobs, |text| flows_from_csv(text, topology))?,
            "xml" => {
                if self.server.is_empty() {
                    bail!("{}: a dump of NCCL is about one server: give --server PREFIX for each", self.jobs.display());
                }
                let algorithm = self.algorithm()?;
                let flows = read(&self.jobs, |text| flows_from_nccl(text, topology, &self.server, algorithm))?;
                return Ok((flows, Vec::new()));
            }
            "log" => {
                if self.server.is_empty() {
                    bail!("{}: a log of NCCL has ranks: give --server PREFIX for each server", self.jobs.display());
                }
                read(&self.jobs, |text| flows_from_nccl_log(text, topology, &self.server))?
            }
            "goal" => read(&self.jobs, |text| flows_from_goal(text, topology))?,
            _ => {
                let jobs = read(&self.jobs, |text| {
                    jobs_with_traces_from_toml(text, topology, &|name| read_beside(&self.jobs, name))
                })?;
                return self.of_jobs(topology, &jobs);
            }
        };
        if let Some(name) = self.collective.first() {
            bail!("--collective {name}: {} lists flows, not collectives", self.jobs.display());
        }
        if listed.is_empty() {
            bail!("{}: there are no flows in it", self.jobs.display());
        }
        Ok((listed, Vec::new()))
    }

    /// Which of NCCL's algorithms is chosen.
    fn algorithm(&self) -> Result<NcclAlgorithm> {
        let all = [NcclAlgorithm::Ring, NcclAlgorithm::Tree];
        match &self.collective[..] {
            [] => Ok(NcclAlgorithm::Ring),
            [name] if all.iter().any(|own| own.name() == name) => {
                Ok(if name == NcclAlgorithm::Tree.name() { NcclAlgorithm::Tree } else { NcclAlgorithm::Ring })
            }
            [name, ..] => bail!("--collective {name}: of a dump of NCCL, expected ring or tree"),
        }
    }

    fn of_jobs(&self, topology: &Topology, jobs: &[Job]) -> Result<(Vec<ListedFlow>, Vec<ListedGroup>)> {
        if !self.server.is_empty() {
            bail!("--server is for dumps of NCCL: {} has the NICs of its jobs", self.jobs.display());
        }
        let chosen = |name: &str| self.collective.is_empty() || self.collective.iter().any(|chosen| chosen == name);
        let all = || jobs.iter().flat_map(Job::parts);
        if let Some(unknown) = self.collective.iter().find(|name| !all().any(|own| own == name.as_str())) {
            let names: Vec<&str> = all().collect();
            bail!("--collective {unknown}: {} has {}", self.jobs.display(), names.join(", "));
        }
        let wanted: Vec<ListedFlow> = jobs.iter().flat_map(|job| job.wanted(topology, chosen)).collect();
        let groups: Vec<ListedGroup> = jobs.iter().flat_map(|job| job.wanted_groups(topology, chosen)).collect();
        if wanted.is_empty() && groups.is_empty() {
            bail!("{}: no collective sends anything: give a job one, and two NICs", self.jobs.display());
        }
        Ok((wanted, groups))
    }
}
