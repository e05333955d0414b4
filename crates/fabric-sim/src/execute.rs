//! Runs of a scenario of any kind, and the output of their results.

use crate::end_to_end::{EndToEndReport, EndToEndResults, EndToEndScenario, run_end_to_end};
use crate::parallel::run_all;
use crate::partition_plan::PartitionPlan;
use crate::wan::{WanReport, WanResults, WanScenario, run_wan};
use crate::{
    Comparison, FabricReport, FabricResults, FabricScenario, Level, Provenance, RunError, Scenario, VariantResult,
};
use serde::Serialize;
use srdma_report::Page;
use srdma_sim::observer::PeriodicObserver;
use std::fmt;
use std::sync::Mutex;

/// A scenario with the results of its runs.
#[allow(missing_docs, reason = "the names say it")]
pub enum Results<'a> {
    Fabric(&'a FabricScenario, FabricResults),
    Wan(&'a WanScenario, WanResults),
    /// Results of end-to-end runs.
    EndToEnd(&'a EndToEndScenario, EndToEndResults),
}

/// Results as JSON (`Serialize`), as a table for a terminal (`Display`) and as an HTML page.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Serialize)]
#[serde(untagged)]
pub enum Report<'a> {
    Fabric(FabricReport<'a>),
    Wan(WanReport<'a>),
    /// Results of end-to-end runs.
    EndToEnd(EndToEndReport<'a>),
}

impl Scenario {
    /// The number of runs with this number of seeds.
    pub fn runs(&self, seeds: usize) -> usize {
        match self {
            Scenario::Fabric(scenario) => scenario.variants.len() * seeds,
            Scenario::Wan(scenario) => scenario.runs(seeds),
            Scenario::EndToEnd(_) => seeds,
        }
    }

    /// Of so many threads those that runs with this number of seeds can use: one for each run, and more for a run of a
    /// fabric at packet level.
    pub fn threads(&self, seeds: usize, threads: usize) -> usize {
        let runs = self.runs(seeds).max(1);
        match self {
            Scenario::Fabric(scenario) if scenario.level == Level::Packet && threads > runs => {
                runs * usize::from(PartitionPlan::new(&scenario.topology, threads / runs).partitions())
            }
            Scenario::Fabric(_) | Scenario::Wan(_) | Scenario::EndToEnd(_) => threads.min(runs),
        }
    }

    /// The title of a recording with this first seed; `None` at flow level, where there are no packets to record.
    pub fn recording_title(&self, seed: u64) -> Option<String> {
        match self {
            Scenario::Fabric(scenario) if scenario.level == Level::Flow => None,
            Scenario::Fabric(scenario) => {
                let variant = scenario.variants.first().map_or("", |variant| variant.title());
                Some(format!("{}: {variant}, seed {seed}", scenario.title))
            }
            Scenario::Wan(scenario) => {
                let run = scenario.observed().map(|(variant, km)| format!("{}, {km} km", variant.title()));
                Some(format!("{}: {}, seed {seed}", scenario.title, run.unwrap_or_default()))
            }
            Scenario::EndToEnd(scenario) => Some(format!("{}, seed {seed}", scenario.title)),
        }
    }

    /// Runs everything with these seeds. `progress` gets the position of a run and the share of it that is done, from 0
    /// to 1. One run is observed: that of the first variant with the first seed; of a WAN, at its first length with the
    /// reference buffer. Neither the observer nor the number of threads changes the results.
    ///
    /// # Errors
    ///
    /// That of the first failed run, in order.
    pub fn run(
        &self,
        seeds: &[u64],
        threads: usize,
        progress: &(dyn Fn(usize, f64) + Sync),
        observer: Option<&Mutex<PeriodicObserver<'_>>>,
    ) -> Result<Results<'_>, RunError> {
        Ok(match self {
            Scenario::Fabric(scenario) => {
                let progress = |run, so_far: crate::Progress| progress(run, so_far.share());
                Results::Fabric(scenario, run_all(scenario, seeds, threads, &progress, observer)?)
            }
            Scenario::Wan(scenario) => {
                Results::Wan(scenario, run_wan(scenario, seeds, threads, &|run| progress(run, 1.0), observer)?)
            }
            Scenario::EndToEnd(scenario) => {
                let results = run_end_to_end(scenario, seeds, threads, &|run| progress(run, 1.0), observer)?;
                Results::EndToEnd(scenario, results)
            }
        })
    }
}

impl Results<'_> {
    /// Compares runs in which steady states were skipped with the same ones packet by packet; nothing for other kinds.
    pub fn compared_with(&self, packets: &Results<'_>) -> Vec<Comparison> {
        match (self, packets) {
            (Results::Fabric(_, own), Results::Fabric(_, packets)) => own.compared_with(packets),
            _ => Vec::new(),
        }
    }

    /// Their report.
    pub fn report<'r>(&'r self, provenance: &'r Provenance<'r>) -> Report<'r> {
        match self {
            Results::Fabric(scenario, results) => Report::Fabric(FabricReport { scenario, results, provenance }),
            Results::Wan(scenario, results) => Report::Wan(WanReport::new(scenario, results, provenance)),
            Results::EndToEnd(scenario, results) => {
                Report::EndToEnd(EndToEndReport::new(scenario, results, provenance))
            }
        }
    }
}

impl Report<'_> {
    /// Targets that a run has missed, checks that do not hold, octets that differ in a run of a fabric, and frames that
    /// the simulator lost in it, each as a sentence.
    pub fn failures(&self) -> Vec<String> {
        let broken = |claims: &[crate::wan::Claim]| {
            claims.iter().filter(|claim| !claim.holds).map(|claim| claim.to_string()).collect()
        };
        match self {
            Report::Fabric(report) => {
                let missed = report.results.missed_targets().map(|target| target.to_string());
                missed.chain(report.results.runs.iter().flat_map(VariantResult::failures)).collect()
            }
            Report::Wan(report) => broken(&report.claims),
            Report::EndToEnd(report) => broken(&report.claims),
        }
    }

    /// The HTML page.
    pub fn page(&self) -> Page {
        match self {
            Report::Fabric(report) => report.page(),
            Report::Wan(report) => report.page(),
            Report::EndToEnd(report) => report.page(),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Fabric(report) => report.fmt(f),
            Report::Wan(report) => report.fmt(f),
            Report::EndToEnd(report) => report.fmt(f),
        }
    }
}
