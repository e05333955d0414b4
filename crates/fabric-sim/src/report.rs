//! What a finished experiment in a fabric is shown from, on a terminal and as a page.

use crate::{FabricResults, FabricScenario, Provenance, page};
use serde::Serialize;
use srdma_report::Page;

/// An experiment in a fabric with its results.
#[derive(Serialize)]
pub struct FabricReport<'a> {
    /// What was run.
    #[serde(skip)]
    pub scenario: &'a FabricScenario,
    /// What came out.
    #[serde(flatten)]
    pub results: &'a FabricResults,
    /// How.
    #[serde(skip)]
    pub provenance: &'a Provenance<'a>,
}

impl FabricReport<'_> {
    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }
}
