//! The HTML report of a fabric scenario.

mod delays;
mod fabric;
mod flows;
mod jobs;
mod over_time;
mod setting;
mod words;

use crate::FabricReport;
use crate::measures::{self, Measure};
use crate::scenario::{Signal, Variant};
use crate::{FabricResults, FabricScenario, Level, VariantResult};
use srdma_report::{
    Axis, BarGroup, BarPlot, Better, Block, Comparison, ComparisonRow, Page, Reference, Section, Spread,
};

/// Input of all sections.
struct Material<'a> {
    scenario: &'a FabricScenario,
    results: &'a FabricResults,
    variants: Vec<VariantView<'a>>,
    /// The position of the baseline among the variants.
    baseline: usize,
}

/// A variant with its runs. Its position is its colour.
struct VariantView<'a> {
    variant: &'a Variant,
    runs: Vec<&'a VariantResult>,
}

impl VariantView<'_> {
    fn title(&self) -> &str {
        self.variant.title()
    }

    /// Least, median and greatest over the seeds.
    fn spread(&self, of: impl Fn(&VariantResult) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| of(run)).collect();
        Spread::of(&values)
    }
}

impl Material<'_> {
    /// Names and colours of the variants.
    fn legend(&self) -> Vec<(String, usize)> {
        self.variants.iter().enumerate().map(|(colour, variant)| (variant.title().to_owned(), colour)).collect()
    }

    /// The seed shown where one run represents all.
    fn shown_seed(&self) -> u64 {
        self.results.runs.first().map_or(0, |run| run.seed)
    }

    /// Bars of a measure, one for each variant.
    fn bars(&self, title: &str, look_for: &str, y: Axis, of: impl Fn(&VariantResult) -> Option<f64>) -> BarPlot {
        let bars = self.variants.iter().map(|variant| variant.spread(&of)).collect();
        BarPlot {
            title: title.to_owned(),
            look_for: look_for.to_owned(),
            y,
            series: self.legend(),
            groups: vec![BarGroup { name: String::new(), bars }],
            references: Vec::<Reference>::new(),
        }
    }
}

/// The report.
pub(crate) fn page(experiment: &FabricReport<'_>) -> Page {
    let (scenario, results) = (experiment.scenario, experiment.results);
    let variants = scenario
        .variants
        .iter()
        .map(|variant| VariantView { variant, runs: results.of_variant(&variant.name).collect() })
        .collect();
    let material = Material { scenario, results, variants, baseline: scenario.baseline() };
    let mut sections = vec![overview(&material)];
    sections.extend(jobs::section(&material));
    sections.extend(flows::section(&material));
    sections.extend(over_time::section(&material));
    sections.extend(delays::section(&material));
    sections.push(fabric::section(&material));
    sections.push(setting::section(experiment));
    sections.push(words::section());
    Page {
        title: results.title.clone(),
        summary: summary(&material),
        sections,
        colophon: format!("Written by srdma {}.", env!("CARGO_PKG_VERSION")),
    }
}

/// Introduction and main results.
fn summary(material: &Material<'_>) -> Vec<String> {
    let mut summary: Vec<String> = Vec::new();
    let description = material.results.description.trim();
    summary.extend((!description.is_empty()).then(|| description.to_owned()));
    let variants = material.variants.len();
    let seeds = material.variants.first().map_or(0, |variant| variant.runs.len());
    let baseline = material.variants.get(material.baseline).map_or("", VariantView::title);
    let seeds = if seeds == 1 { "one seed".to_owned() } else { format!("{seeds} seeds") };
    let has_jobs = !material.scenario.jobs.is_empty();
    let what = if has_jobs { "path selection, congestion control and failure handling" } else { "congestion handling" };
    summary.push(match variants {
        1 => format!("“{baseline}” was simulated with {seeds}; a seed determines all random choices."),
        _ => format!(
            "{variants} variants of {what} were simulated on the same fabric with the same traffic, each with {seeds}; \
             a seed determines all random choices. The baseline is “{baseline}”."
        ),
    });
    if material.results.level == Level::Flow {
        let text = "The simulation was at flow level: rates are max-min fair. There are no packets, so there are no \
                    queues, losses or pauses, and no variant reacts to congestion.";
        summary.push(text.to_owned());
    }
    for (index, variant) in material.variants.iter().enumerate().filter(|(index, _)| *index != material.baseline) {
        let headlines: Vec<String> = HEADLINES.iter().filter_map(|name| headline(material, index, name)).collect();
        if !headlines.is_empty() {
            summary.push(format!("{}: {}.", variant.title(), headlines.join("; ")));
        }
    }
    if material.results.runs.iter().any(|run| !run.verified_icrc) {
        summary.push("Hosts did not verify the ICRC of received packets, which made the simulation faster.".to_owned());
    }
    summary
}

/// The measures of the summary.
const HEADLINES: [&str; 9] = [
    "iteration, median",
    "iteration, longest",
    "recovery",
    "busiest link",
    "short flows, slowdown p99",
    "incast completion, median",
    "victim's rate",
    "peak queue",
    "PAUSE frames",
];

/// `peak queue 1.2 MiB instead of 3 MiB (−60 %)`.
fn headline(material: &Material<'_>, index: usize, name: &str) -> Option<String> {
    let measure = measures::MEASURES.iter().find(|measure| measure.name == name)?;
    let value = material.variants.get(index)?.spread(measure.of)?.median;
    let baseline = material.variants.get(material.baseline)?.spread(measure.of)?.median;
    if value == 0.0 && baseline == 0.0 {
        return None;
    }
    let [now, before] = [value, baseline].map(|value| measure.unit.format(value));
    if now == before {
        return Some(format!("{name} {now}, as the baseline"));
    }
    let percent = (value / baseline - 1.0) * 100.0;
    let change = if baseline == 0.0 { String::new() } else { format!(" ({percent:+.0} %)").replace('-', "−") };
    Some(format!("{name} {now} instead of {before}{change}"))
}

fn overview(material: &Material<'_>) -> Section {
    let row = |measure: &Measure| ComparisonRow {
        measure: measure.name.to_owned(),
        meaning: measure.meaning.to_owned(),
        unit: measure.unit,
        better: measure.better,
        values: material.variants.iter().map(|variant| variant.spread(measure.of)).collect(),
    };
    let rows: Vec<ComparisonRow> = measures::present(material.results).map(row).collect();
    let lead = "Medians over the seeds, with minimum and maximum below. ✓: better than the baseline, ✗: worse.";
    let mut plots = Vec::new();
    for (name, look_for) in BARS {
        if let Some(measure) = measures::present(material.results).find(|measure| measure.name == *name) {
            let better = match measure.better {
                Better::Lower => " Lower is better.",
                Better::Higher => " Higher is better.",
                Better::Neither => "",
            };
            let y = Axis::new(measure.name, measure.unit);
            plots.push(Block::Bars(material.bars(measure.name, &format!("{look_for}{better}"), y, measure.of)));
        }
    }
    let comparison = Block::Comparison(Comparison {
        caption: "All measures".to_owned(),
        columns: material.legend(),
        baseline: material.baseline,
        rows,
    });
    Section::new("Results", lead, vec![comparison, Block::Beside(plots)])
}

/// The measures that are drawn as bars, with what to look for.
const BARS: &[(&str, &str)] = &[
    ("iteration, median", "Duration of the collectives of a job."),
    ("recovery", "Time for which a failure slows jobs down."),
    (
        "busiest link",
        "Load of the busiest link between switches relative to that of the busiest NIC link: at 1 the fabric is no \
         bottleneck.",
    ),
    ("slowest flow", "Rate of the slowest pair of NICs, which all others wait for."),
    ("short flows, slowdown p99", "Completion time of short flows relative to an idle fabric; 99 % stay below."),
    ("victim's rate", "Rate of a stream that does not cause the congestion."),
    ("peak queue", "Buffer occupancy of the worst port."),
    ("PAUSE frames", "Number of PFC pauses, each of which stops all flows of a link."),
];

/// The notification threshold of a variant, in octets, with its label.
fn threshold(scenario: &FabricScenario, variant: &Variant) -> Option<(&'static str, u64)> {
    match variant.signal {
        Signal::None | Signal::ReceiverTrace => None,
        Signal::ReceiverCnp | Signal::ReceiverEcho => {
            let ecn = variant.ecn.unwrap_or(scenario.switches.ecn);
            Some(("ECN marking threshold", ecn.k_min_octets.get()))
        }
        Signal::FastCnp => {
            let notification = variant.notification.unwrap_or(scenario.switches.notification);
            Some(("Fast CNP threshold", notification.threshold_octets.get()))
        }
    }
}
