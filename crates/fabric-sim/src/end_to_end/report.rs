//! The report of end-to-end runs.

use super::page;
use super::{EndToEndResults, EndToEndScenario};
use crate::Provenance;
use crate::wan::Claim;
use serde::Serialize;
use srdma_report::Page;

/// An end-to-end scenario with its results.
#[derive(Serialize)]
pub struct EndToEndReport<'a> {
    #[serde(skip)]
    pub(super) plan: &'a EndToEndScenario,
    #[serde(flatten)]
    pub(super) results: &'a EndToEndResults,
    pub(crate) claims: Vec<Claim>,
    #[serde(skip)]
    pub(super) provenance: &'a Provenance<'a>,
}

impl<'a> EndToEndReport<'a> {
    /// Evaluates the checks.
    pub fn new(plan: &'a EndToEndScenario, results: &'a EndToEndResults, provenance: &'a Provenance<'a>) -> Self {
        EndToEndReport { plan, results, claims: results.claims(plan), provenance }
    }

    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }
}
