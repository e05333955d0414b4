//! The report of a fabric scenario.

use crate::front::{self, Point};
use crate::{FabricResults, FabricScenario, Provenance, measures, page};
use serde::{Serialize, Serializer};
use srdma_report::{Page, Spread};
use std::collections::BTreeMap;

/// A fabric scenario with its results.
#[allow(missing_docs, reason = "the names say it")]
pub struct FabricReport<'a> {
    pub scenario: &'a FabricScenario,
    pub results: &'a FabricResults,
    /// Command, file and duration.
    pub provenance: &'a Provenance<'a>,
}

/// The results as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Json<'a> {
    Comparison {
        #[serde(flatten)]
        results: &'a FabricResults,
        #[serde(flatten)]
        compared: Compared<'a>,
    },
    /// Without the flows of its thousands of runs.
    Sweep {
        title: &'a str,
        description: &'a str,
        #[serde(flatten)]
        compared: Compared<'a>,
    },
}

#[derive(Serialize)]
struct Compared<'a> {
    variants: Vec<OfVariant<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    points: Vec<Point>,
}

/// All measures of a variant, by the names of the table: least, median and greatest of its seeds.
#[derive(Serialize)]
struct OfVariant<'a> {
    name: &'a str,
    title: &'a str,
    seeds: Vec<u64>,
    measures: BTreeMap<&'static str, [f64; 3]>,
}

impl FabricReport<'_> {
    /// The HTML report.
    pub fn page(&self) -> Page {
        page::page(self)
    }

    /// Its variants by the objective (D239).
    pub(crate) fn points(&self) -> Vec<Point> {
        front::points(self.scenario, self.results)
    }

    fn variants(&self) -> Vec<OfVariant<'_>> {
        let spreads = |variant: &str| {
            let spread = |measure: &'static measures::Measure| {
                let Spread { least, median, greatest } = measure.spread(self.results, variant)?;
                Some((measure.name, [least, median, greatest]))
            };
            measures::present(self.results).filter_map(spread).collect()
        };
        self.scenario
            .variants
            .iter()
            .map(|variant| OfVariant {
                name: &variant.name,
                title: variant.title(),
                seeds: self.results.of_variant(&variant.name).map(|run| run.seed).collect(),
                measures: spreads(&variant.name),
            })
            .collect()
    }
}

impl Serialize for FabricReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let compared = Compared { variants: self.variants(), points: self.points() };
        let FabricResults { title, description, .. } = self.results;
        let json = if self.scenario.is_sweep {
            Json::Sweep { title, description, compared }
        } else {
            Json::Comparison { results: self.results, compared }
        };
        json.serialize(serializer)
    }
}
