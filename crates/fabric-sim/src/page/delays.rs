//! Delay of congestion notifications.

use super::{Material, VariantView};
use crate::VariantResult;
use crate::results::{NotificationResult, percentile};
use srdma_report::{
    Axis, Better, Block, Comparison, ComparisonRow, LinePlot, Scale, Section, Series, Shape, Unit, cumulative,
};

/// The colour of the bound: the last of those that there are.
const BOUND_COLOUR: usize = 5;

fn delay_ns(notification: &NotificationResult) -> Option<f64> {
    Some(notification.reacted_ns?.checked_sub(notification.congested_ns)? as f64)
}

fn return_path_ns(notification: &NotificationResult) -> Option<f64> {
    delay_ns(notification).map(|_| notification.return_path_ns as f64)
}

/// Time beyond the return path's delay; negative if a sender knew from another packet.
fn excess_ns(notification: &NotificationResult) -> Option<f64> {
    Some(delay_ns(notification)? - notification.return_path_ns as f64)
}

fn values(run: &VariantResult, of: fn(&NotificationResult) -> Option<f64>) -> Vec<f64> {
    run.notifications.iter().filter_map(of).collect()
}

/// The section; `None` if no sender was notified.
pub(super) fn section(material: &Material<'_>) -> Option<Section> {
    let is_notified = |variant: &VariantView<'_>| {
        variant.runs.iter().any(|run| run.notifications.iter().any(|n| n.reacted_ns.is_some()))
    };
    if !material.variants.iter().any(is_notified) {
        return None;
    }
    let lead = "Time from the first packet of a sender that entered a queue above the threshold until that sender \
                changed its rate. The lower bound is the return path from that switch: propagation and serialisation \
                on idle links.";
    let blocks = vec![Block::Beside(vec![distribution(material, is_notified)]), table(material)];
    Some(Section::new("Notification delay", lead, blocks))
}

fn distribution(material: &Material<'_>, is_notified: impl Fn(&VariantView<'_>) -> bool) -> Block {
    let all =
        |variant: &VariantView<'_>, of| -> Vec<f64> { variant.runs.iter().flat_map(|run| values(run, of)).collect() };
    let variants = material.variants.iter().enumerate().filter(|(_, variant)| is_notified(variant));
    let mut series: Vec<Series> = variants
        .map(|(colour, variant)| Series {
            name: variant.title().to_owned(),
            colour,
            shape: Shape::Steps,
            points: cumulative(&all(variant, delay_ns)),
        })
        .collect();
    let bounds: Vec<f64> = material.variants.iter().flat_map(|variant| all(variant, return_path_ns)).collect();
    series.push(Series {
        name: "return path only".to_owned(),
        colour: BOUND_COLOUR,
        shape: Shape::Steps,
        points: cumulative(&bounds),
    });
    Block::Lines(LinePlot {
        title: "Delay from congestion to reaction".to_owned(),
        look_for:
            "Cumulative distribution over the senders of all seeds. The closer a line is to that of the return path, \
             the better."
                .to_owned(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("delay", Unit::Nanoseconds) },
        y: Axis { greatest: Some(100.0), ..Axis::new("senders", Unit::Percent) },
        series,
        references: Vec::new(),
    })
}

fn table(material: &Material<'_>) -> Block {
    let row = |measure: &str, unit, better, of: &dyn Fn(&VariantResult) -> Option<f64>| ComparisonRow {
        measure: measure.to_owned(),
        meaning: String::new(),
        unit,
        better,
        values: material.variants.iter().map(|variant| variant.spread(of)).collect(),
    };
    let of = |measure: &str, better, of: fn(&NotificationResult) -> Option<f64>, share: f64| {
        row(measure, Unit::Nanoseconds, better, &|run| percentile(&mut values(run, of), share))
    };
    let count = |is_told: bool| {
        move |run: &VariantResult| {
            let counted = run.notifications.iter().filter(|notification| notification.reacted_ns.is_some() == is_told);
            (!run.notifications.is_empty()).then(|| counted.count() as f64)
        }
    };
    Block::Comparison(Comparison {
        caption: "Notification delay".to_owned(),
        columns: material.legend(),
        baseline: material.baseline,
        rows: vec![
            of("delay, median", Better::Lower, delay_ns, 0.5),
            of("delay, p99", Better::Lower, delay_ns, 0.99),
            of("return path on idle links, p99", Better::Neither, return_path_ns, 0.99),
            of("delay above the return path, p99", Better::Lower, excess_ns, 0.99),
            row("notified senders", Unit::Count, Better::Neither, &count(true)),
            row("senders without notification", Unit::Count, Better::Neither, &count(false)),
        ],
    })
}
