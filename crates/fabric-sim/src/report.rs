//! What a finished experiment in a fabric is shown from, on a terminal and as a page.

use crate::{Provenance, Results, Scenario, page};
use srdma_report::Page;

/// An experiment in a fabric with its results.
pub struct FabricReport<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// What came out.
    pub results: &'a Results,
    /// How.
    pub provenance: &'a Provenance<'a>,
}

impl FabricReport<'_> {
    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }
}
