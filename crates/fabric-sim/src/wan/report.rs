//! The report of a WAN scenario.

use super::page;
use super::{Claim, WanResults, WanRun, WanScenario, WanVariant};
use crate::Provenance;
use serde::Serialize;
use srdma_report::Page;

/// A WAN scenario with its results.
#[derive(Serialize)]
pub struct WanReport<'a> {
    #[serde(skip)]
    pub(super) study: &'a WanScenario,
    #[serde(flatten)]
    pub(super) results: &'a WanResults,
    pub(crate) claims: Vec<Claim>,
    #[serde(skip)]
    pub(super) provenance: &'a Provenance<'a>,
}

impl<'a> WanReport<'a> {
    /// Evaluates the checks.
    pub fn new(study: &'a WanScenario, results: &'a WanResults, provenance: &'a Provenance<'a>) -> Self {
        WanReport { study, results, claims: results.claims(study), provenance }
    }

    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }

    /// The reference buffer.
    pub(super) fn buffer(&self) -> f64 {
        *self.study.wan.buffer.get_ref()
    }

    /// Values of the runs of a variant at a length, with the reference buffer.
    pub(super) fn values(&self, variant: &WanVariant, total_km: f64, of: impl Fn(&WanRun) -> Option<f64>) -> Vec<f64> {
        self.results.at(&variant.name, total_km, self.buffer()).filter_map(of).collect()
    }

    /// Calculated buffer of END.C, about 4f, in rate times round trip.
    pub(super) fn arithmetic(&self, total_km: f64) -> f64 {
        let share = self.results.runs.iter().find(|run| run.total_km == total_km).map_or(0.0, |run| run.share);
        self.study.wan.overload() * share
    }
}
