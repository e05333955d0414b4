//! Iterations of jobs, and the balance of load over links.

use super::{Material, VariantView};
use crate::VariantResult;
use crate::results::IterationResult;
use srdma_report::{Axis, Block, LinePlot, Scale, Section, Series, Shape, Table, Unit, cumulative};

/// The section; `None` without jobs.
pub(super) fn section(material: &Material<'_>) -> Option<Section> {
    if material.results.runs.iter().all(|run| run.jobs.is_empty()) {
        return None;
    }
    let plots = vec![distribution(material), over_time(material), loads(material)];
    let blocks = vec![Block::Beside(plots), Block::Table(slowest(material))];
    let lead = "In an iteration a job runs its collectives once. It ends with the last message, so the slowest flow \
                decides its duration, and flows that share a link are the slowest.";
    Some(Section::new("Iterations", lead, blocks))
}

/// Times that differ by such a factor are shown on a logarithmic axis.
const WIDE: f64 = 20.0;

fn iterations(run: &VariantResult) -> impl Iterator<Item = &IterationResult> {
    run.jobs.iter().flat_map(|job| &job.iterations)
}

fn took_ns(iteration: &IterationResult) -> Option<f64> {
    Some(iteration.finished_ns?.checked_sub(iteration.started_ns)? as f64)
}

fn series(material: &Material<'_>, shape: Shape, points: impl Fn(&VariantView<'_>) -> Vec<(f64, f64)>) -> Vec<Series> {
    let series = |(colour, variant): (usize, &VariantView<'_>)| Series {
        name: variant.title().to_owned(),
        colour,
        shape,
        points: points(variant),
    };
    material.variants.iter().enumerate().map(series).collect()
}

/// An axis of iteration times: logarithmic where some take very much longer than others.
fn axis(material: &Material<'_>, name: &str) -> Axis {
    let all = material.results.runs.iter().flat_map(iterations).filter_map(took_ns);
    let (least, greatest) = all.fold((f64::MAX, 0.0_f64), |(least, most), own| (least.min(own), most.max(own)));
    let scale = if greatest > WIDE * least { Scale::Logarithmic } else { Scale::Linear };
    Axis { scale, ..Axis::new(name, Unit::Nanoseconds) }
}

fn distribution(material: &Material<'_>) -> Block {
    let points = |variant: &VariantView<'_>| {
        let iterations = variant.runs.iter().flat_map(|run| iterations(run));
        cumulative(&iterations.filter_map(took_ns).collect::<Vec<f64>>())
    };
    Block::Lines(LinePlot {
        title: "Iteration times".to_owned(),
        look_for: "Cumulative distribution over all seeds. Further left is better.".to_owned(),
        x: axis(material, "duration"),
        y: Axis { greatest: Some(100.0), ..Axis::new("iterations", Unit::Percent) },
        series: series(material, Shape::Steps, points),
        references: Vec::new(),
    })
}

fn over_time(material: &Material<'_>) -> Block {
    let points = |variant: &VariantView<'_>| {
        let iterations = variant.runs.first().into_iter().flat_map(|run| iterations(run));
        let mut points: Vec<(f64, f64)> =
            iterations.filter_map(|it| Some((it.started_ns as f64, took_ns(it)?))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    Block::Lines(LinePlot {
        title: format!("Iterations in sequence, seed {}", material.shown_seed()),
        look_for: "Duration of each iteration by its start time. Steps show when conditions changed.".to_owned(),
        x: Axis::new("start", Unit::Nanoseconds),
        y: axis(material, "duration"),
        series: series(material, Shape::Steps, points),
        references: Vec::new(),
    })
}

/// Utilization of links between switches, relative to the busiest link of a NIC in the same run.
fn loads(material: &Material<'_>) -> Block {
    let run_progress = |run: &VariantResult| -> Vec<f64> {
        let nics = run.links.iter().filter(|link| !link.in_fabric).map(|link| link.busy_ns).max();
        let nics = nics.unwrap_or(0).max(1) as f64;
        run.links.iter().filter(|link| link.in_fabric).map(|link| link.busy_ns as f64 / nics).collect()
    };
    let points = |variant: &VariantView<'_>| {
        cumulative(&variant.runs.iter().flat_map(|run| run_progress(run)).collect::<Vec<f64>>())
    };
    Block::Lines(LinePlot {
        title: "Load of links between switches".to_owned(),
        look_for:
            "Cumulative distribution of busy time relative to the busiest NIC link, over all seeds. A vertical line \
             means an even load; links to the right of 1 are bottlenecks."
                .to_owned(),
        x: Axis::new("busy time", Unit::Times),
        y: Axis { greatest: Some(100.0), ..Axis::new("links", Unit::Percent) },
        series: series(material, Shape::Steps, points),
        references: Vec::new(),
    })
}

fn slowest(material: &Material<'_>) -> Table {
    let mut rows = Vec::new();
    for variant in &material.variants {
        for job in variant.runs.first().into_iter().flat_map(|run| &run.jobs) {
            let Some(slowest) = &job.slowest else { continue };
            rows.push(vec![
                variant.title().to_owned(),
                job.name.clone(),
                format!("{} → {}", slowest.source, slowest.destination),
                Unit::BitsPerSecond.format(slowest.bits_per_s),
            ]);
        }
    }
    Table {
        caption: format!("The slowest flows, seed {}", material.shown_seed()),
        columns: ["variant", "job", "source → destination", "rate"].map(str::to_owned).to_vec(),
        rows,
    }
}
