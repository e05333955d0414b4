//! Completion times of flows.

use super::Material;
use crate::VariantResult;
use crate::results::{FlowKind, FlowResult, percentile};
use srdma_report::units;
use srdma_report::{
    Axis, BarGroup, BarPlot, Better, Block, Comparison, ComparisonRow, LinePlot, Reference, Scale, Section, Series,
    Shape, Spread, Unit, cumulative,
};

/// Flows above this are the longest class.
const LONG_OCTETS: u64 = 1_000_000;

/// A class of flows, by kind and size.
struct Class {
    name: String,
    kind: FlowKind,
    /// Sizes from above the first to the second, in octets.
    sizes: (u64, u64),
}

impl Class {
    fn has(&self, flow: &FlowResult) -> bool {
        flow.kind == self.kind && flow.size_octets > self.sizes.0 && flow.size_octets <= self.sizes.1
    }

    /// A percentile over the flows of a run that have ended.
    fn percentile(&self, run: &VariantResult, share: f64, of: fn(&FlowResult) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = run.flows.iter().filter(|flow| self.has(flow)).filter_map(of).collect();
        percentile(&mut values, share)
    }
}

fn slowdown(flow: &FlowResult) -> Option<f64> {
    flow.slowdown
}

fn completion_ns(flow: &FlowResult) -> Option<f64> {
    Some(flow.finished_ns?.checked_sub(flow.started_ns)? as f64)
}

/// The section; `None` if no flow has ended.
pub(super) fn section(material: &Material<'_>) -> Option<Section> {
    let classes = classes(material);
    if classes.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Beside(vec![
        bars(material, &classes, "Slowdown, median", "Half of the flows of each size stay below.", 0.5),
        bars(material, &classes, "Slowdown, p99", "99 % of the flows of each size stay below.", 0.99),
    ])];
    let distributions = classes.iter().map(|class| distribution(material, class)).collect();
    blocks.push(Block::Beside(distributions));
    blocks.push(table(material, &classes));
    let lead = "The slowdown of a flow is its completion time divided by the completion time alone on an idle fabric: \
                1 is optimal. Small flows suffer most from queues, large ones from low rates.";
    Some(Section::new("Flow completion", lead, blocks))
}

fn classes(material: &Material<'_>) -> Vec<Class> {
    let short = material.scenario.measures.short_flow_octets.get();
    let long = LONG_OCTETS.max(short);
    let class = |name: String, kind, sizes| Class { name, kind, sizes };
    let all = [
        class(format!("up to {}", octets(short)), FlowKind::Background, (0, short)),
        class(format!("up to {}", octets(long)), FlowKind::Background, (short, long)),
        class(format!("above {}", octets(long)), FlowKind::Background, (long, u64::MAX)),
        class("incast".to_owned(), FlowKind::Incast, (0, u64::MAX)),
        class("permutation".to_owned(), FlowKind::Permutation, (0, u64::MAX)),
        class("multicast".to_owned(), FlowKind::Multicast, (0, u64::MAX)),
        class("broadcast".to_owned(), FlowKind::Broadcast, (0, u64::MAX)),
    ];
    let flows = || material.results.runs.iter().flat_map(|run| &run.flows);
    all.into_iter().filter(|class| flows().any(|flow| class.has(flow) && flow.slowdown.is_some())).collect()
}

/// A limit as people write it: 100 kB, 1 MB.
fn octets(limit: u64) -> String {
    match limit {
        _ if limit.is_multiple_of(1_000_000) => format!("{} MB", limit / 1_000_000),
        _ if limit.is_multiple_of(1000) => format!("{} kB", limit / 1000),
        _ => units::octets(limit),
    }
}

fn bars(material: &Material<'_>, classes: &[Class], title: &str, look_for: &str, share: f64) -> Block {
    let group = |class: &Class| BarGroup {
        name: class.name.clone(),
        bars: material
            .variants
            .iter()
            .map(|variant| variant.spread(|run| class.percentile(run, share, slowdown)))
            .collect(),
    };
    Block::Bars(BarPlot {
        title: title.to_owned(),
        look_for: format!("{look_for} Lower is better."),
        y: Axis::new("slowdown", Unit::Times),
        series: material.legend(),
        groups: classes.iter().map(group).collect(),
        references: vec![Reference { name: "idle fabric".to_owned(), value: 1.0 }],
    })
}

fn distribution(material: &Material<'_>, class: &Class) -> Block {
    let series = |(colour, variant): (usize, &super::VariantView<'_>)| {
        let flows = variant.runs.iter().flat_map(|run| &run.flows).filter(|flow| class.has(flow));
        let values: Vec<f64> = flows.filter_map(slowdown).collect();
        Series { name: variant.title().to_owned(), colour, shape: Shape::Steps, points: cumulative(&values) }
    };
    Block::Lines(LinePlot {
        title: format!("Slowdown of flows: {}", class.name),
        look_for: "Which share of the flows stays below a slowdown, over all seeds. Further left is better.".to_owned(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("slowdown", Unit::Times) },
        y: Axis { greatest: Some(100.0), ..Axis::new("flows", Unit::Percent) },
        series: material.variants.iter().enumerate().map(series).collect(),
        references: Vec::new(),
    })
}

fn table(material: &Material<'_>, classes: &[Class]) -> Block {
    let mut rows = Vec::new();
    for class in classes {
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let values: Vec<Option<Spread>> = material
                .variants
                .iter()
                .map(|variant| variant.spread(|run| class.percentile(run, share, completion_ns)))
                .collect();
            rows.push(ComparisonRow {
                measure: format!("{}, {name}", class.name),
                meaning: String::new(),
                unit: Unit::Nanoseconds,
                better: Better::Lower,
                values,
            });
        }
    }
    Block::Comparison(Comparison {
        caption: "Flow completion times".to_owned(),
        columns: material.legend(),
        baseline: material.baseline,
        rows,
    })
}
