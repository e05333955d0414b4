//! Rates, queues and pauses over time, variant beside variant.

use super::{Material, VariantView, threshold};
use crate::VariantResult;
use crate::results::{Series as Measured, SeriesKind};
use srdma_report::{Axis, Block, LinePlot, Reference, Section, Series, Shape, Unit};

/// Maximum lines in a plot: the number of distinguishable colours.
const MOST_LINES: usize = 5;

/// Presentation of a kind of series.
struct Show {
    kind: SeriesKind,
    heading: &'static str,
    look_for: &'static str,
    unit: Unit,
    axis: &'static str,
    /// Factor of the values.
    factor: f64,
}

const SHOWN: [Show; 3] = [
    Show {
        kind: SeriesKind::Rate,
        heading: "Rates",
        look_for: "Delivered payload. A steady line is good; a line that falls while others send shows interference.",
        unit: Unit::BitsPerSecond,
        axis: "payload delivered",
        factor: 1.0,
    },
    Show {
        kind: SeriesKind::Queue,
        heading: "Queues",
        look_for: "Queue length at switches. A low line is good: packets behind a long queue are delayed.",
        unit: Unit::Octets,
        axis: "queue length",
        factor: 1.0,
    },
    Show {
        kind: SeriesKind::Pause,
        heading: "Pauses",
        look_for: "Share of the time for which a port was paused. Zero is good: pauses also stop flows that do not \
                   cause the congestion.",
        unit: Unit::Percent,
        axis: "time paused",
        factor: 100.0,
    },
];

/// The section; `None` if nothing was sampled.
pub(super) fn section(material: &Material<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for show in &SHOWN {
        let names = names(material, show.kind);
        if !names.is_empty() {
            blocks.push(Block::Heading(show.heading.to_owned()));
            blocks.push(Block::Text(show.look_for.to_owned()));
            blocks.push(Block::Beside(plots(material, show, &names)));
        }
    }
    let lead = format!(
        "One run of each variant with seed {}, on the same scales. Point at a plot, or use the arrow keys, to read its \
         values.",
        material.shown_seed()
    );
    (!blocks.is_empty()).then(|| Section { heading: "Over time".to_owned(), lead, blocks })
}

fn shown_run<'a>(variant: &VariantView<'a>) -> Option<&'a VariantResult> {
    variant.runs.first().copied()
}

fn of_kind<'a>(variant: &VariantView<'a>, kind: SeriesKind) -> impl Iterator<Item = &'a Measured> + use<'a> {
    shown_run(variant).into_iter().flat_map(|run| &run.series).filter(move |series| series.kind == kind)
}

/// The names of the series that are worth a line: those that come highest in any variant; none if all are zero
/// throughout.
fn names(material: &Material<'_>, kind: SeriesKind) -> Vec<String> {
    let mut peaks: Vec<(String, f64)> = Vec::new();
    for series in material.variants.iter().flat_map(|variant| of_kind(variant, kind)) {
        let peak = series.values.iter().copied().fold(0.0, f64::max);
        match peaks.iter_mut().find(|(name, _)| *name == series.name) {
            Some((_, known)) => *known = known.max(peak),
            None => peaks.push((series.name.clone(), peak)),
        }
    }
    peaks.retain(|(_, peak)| *peak > 0.0);
    peaks.sort_by(|a, b| b.1.total_cmp(&a.1));
    peaks.truncate(MOST_LINES);
    peaks.sort_by(|a, b| a.0.cmp(&b.0));
    peaks.into_iter().map(|(name, _)| name).collect()
}

fn plots(material: &Material<'_>, show: &Show, names: &[String]) -> Vec<Block> {
    let displayed =
        || material.variants.iter().flat_map(|variant| of_kind(variant, show.kind)).filter(|s| names.contains(&s.name));
    let greatest = displayed().flat_map(|series| &series.values).copied().fold(0.0, f64::max) * show.factor;
    let end_ns = displayed().map(|series| (series.values.len() as u64 * series.step_ns) as f64).fold(0.0, f64::max);
    let plot = |variant: &VariantView<'_>| {
        let line = |series: &Measured| Series {
            name: series.name.clone(),
            colour: names.iter().position(|name| *name == series.name).unwrap_or(0),
            shape: Shape::Line,
            points: points(series, show.factor),
        };
        let threshold = threshold(material.scenario, variant.variant).filter(|_| show.kind == SeriesKind::Queue);
        let references = threshold.map(|(name, octets)| Reference { name: name.to_owned(), value: octets as f64 });
        Block::Lines(LinePlot {
            title: variant.title().to_owned(),
            look_for: String::new(),
            x: Axis { greatest: Some(end_ns), ..Axis::new("time", Unit::Nanoseconds) },
            y: Axis { greatest: Some(greatest * 1.05), ..Axis::new(show.axis, show.unit) },
            series: of_kind(variant, show.kind).filter(|series| names.contains(&series.name)).map(line).collect(),
            // A threshold far above everything would flatten the plot.
            references: references.into_iter().filter(|reference| reference.value <= greatest).collect(),
        })
    };
    material.variants.iter().map(plot).collect()
}

fn points(series: &Measured, factor: f64) -> Vec<(f64, f64)> {
    let at = |index: usize| ((index as u64 + 1) * series.step_ns) as f64;
    series.values.iter().enumerate().map(|(index, value)| (at(index), value * factor)).collect()
}
