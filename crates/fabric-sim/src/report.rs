//! The report of a fabric scenario.

use crate::{FabricResults, FabricScenario, Provenance, page};
use serde::Serialize;
use srdma_report::Page;

/// A fabric scenario with its results.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Serialize)]
pub struct FabricReport<'a> {
    #[serde(skip)]
    pub scenario: &'a FabricScenario,
    #[serde(flatten)]
    pub results: &'a FabricResults,
    /// Command, file and duration.
    #[serde(skip)]
    pub provenance: &'a Provenance<'a>,
}

impl FabricReport<'_> {
    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }
}
