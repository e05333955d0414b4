//! The HTML report of a WAN scenario.

use super::WanReport;
use crate::wan::results::ENOUGH;
use crate::wan::{WanRun, WanVariant};
use srdma_report::{
    Axis, BarGroup, BarPlot, Block, LinePlot, Page, Reference, Scale, Section, Series, Shape, Spread, Unit,
};

/// Colour of calculated values.
const ARITHMETIC: usize = 6;

/// The report.
pub(crate) fn page(studied: &WanReport<'_>) -> Page {
    let study = studied.study;
    let sections = vec![
        claims(studied),
        delay_section(studied),
        buffer_section(studied),
        over_time(studied),
        local_flows(studied),
    ];
    Page {
        title: study.title.clone(),
        summary: summary(studied),
        sections: sections.into_iter().flatten().chain([setting(studied), words()]).collect(),
        colophon: format!("Written by srdma {}.", env!("CARGO_PKG_VERSION")),
    }
}

fn summary(studied: &WanReport<'_>) -> Vec<String> {
    let description = studied.study.description.trim();
    let mut summary: Vec<String> = (!description.is_empty()).then(|| description.to_owned()).into_iter().collect();
    summary.push(format!(
        "{} variants of congestion handling at {:?} were simulated packet by packet on the network of Figure 1 of \
         the draft, over {} lengths of the path, with {} sizes of the congested queue, {} seeds each. Sizes are shares \
         of the bottleneck's rate times the round trip between the gateways.",
        studied.study.variants.len(),
        studied.study.wan.congested,
        studied.results.lengths().len(),
        studied.results.buffers().len(),
        studied.provenance.seeds
    ));
    let held = studied.claims.iter().filter(|claim| claim.holds).count();
    if !studied.claims.is_empty() {
        summary.push(format!("{held} of {} checks pass.", studied.claims.len()));
    }
    summary
}

fn claims(studied: &WanReport<'_>) -> Option<Section> {
    let row = |claim: &crate::wan::Claim| {
        let mark = if claim.holds { "✓" } else { "✗" };
        vec![format!("{mark} {}", claim.at), claim.expected.clone(), claim.found.clone()]
    };
    let table = Block::table("Checks", &["where", "expected", "found"], studied.claims.iter().map(row).collect());
    let lead = "Expected values by calculation, and the range of the seeds' values. A check passes if every seed meets \
                it; one that names a single seed judges that seed.";
    (!studied.claims.is_empty()).then(|| Section::new("Checks", lead, vec![table]))
}

fn delay_section(studied: &WanReport<'_>) -> Option<Section> {
    let plot = |title: &str, look_for: &str, of: fn(&WanRun) -> Option<f64>| {
        let series = per_length(studied, |variant, km| Some(Spread::of(&studied.values(variant, km, of))?.median));
        (!series.is_empty()).then(|| {
            Block::Lines(LinePlot {
                title: title.to_owned(),
                look_for: look_for.to_owned(),
                x: Axis { scale: Scale::Logarithmic, ..Axis::new("path, km", Unit::Count) },
                y: Axis { scale: Scale::Logarithmic, ..Axis::new("delay", Unit::Nanoseconds) },
                series,
                references: Vec::new(),
            })
        })
    };
    let notified = plot(
        "Delay to the sender",
        "A receiver's CNP travels to the far end and back; END.E starts at the congested node.",
        |run| run.notified_ns,
    );
    let paused = plot(
        "Delay to the pause of the gateway",
        "From the first time above XOFF; the queue needs headroom for what arrives until then.",
        |run| run.paused_ns,
    );
    let blocks: Vec<Block> = notified.into_iter().chain(paused).collect();
    let lead =
        "From the first packet that entered the congested queue above its threshold; medians over flows and seeds.";
    (!blocks.is_empty()).then(|| Section::new("Notification delay", lead, vec![Block::Beside(blocks)]))
}

fn buffer_section(studied: &WanReport<'_>) -> Option<Section> {
    let mut needed = per_length(studied, |variant, km| studied.results.needed(&variant.name, km));
    let lengths = studied.results.lengths();
    if studied.study.variants.iter().any(|variant| variant.end_c) {
        needed.push(Series {
            name: "END.C, calculated".to_owned(),
            colour: ARITHMETIC,
            shape: Shape::Line,
            points: lengths.iter().map(|km| (*km, studied.arithmetic(*km))).collect(),
        });
    }
    let least = format!("No loss and at least {:.0} % utilisation with every seed. Lower is better.", 100.0 * ENOUGH);
    let needed = Block::Lines(LinePlot {
        title: "Sufficient buffer".to_owned(),
        look_for: format!("{least} No line: no tested size is sufficient."),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("path, km", Unit::Count) },
        y: Axis { scale: Scale::Logarithmic, ..Axis::new("of rate × round trip", Unit::Times) },
        series: needed,
        references: Vec::new(),
    });
    let lossless = Block::Lines(LinePlot {
        title: "Lossless buffer".to_owned(),
        look_for: "Regardless of utilisation. No line: no tested size is lossless.".to_owned(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("path, km", Unit::Count) },
        y: Axis { scale: Scale::Logarithmic, ..Axis::new("of rate × round trip", Unit::Times) },
        series: per_length(studied, |variant, km| studied.results.lossless(&variant.name, km)),
        references: Vec::new(),
    });
    let mut blocks = vec![Block::Beside(vec![needed, lossless])];
    for km in &lengths {
        let used = per_buffer(studied, *km, |runs| {
            let used: Vec<f64> = runs.iter().filter_map(|run| run.utilisation).collect();
            Some(100.0 * Spread::of(&used)?.least)
        });
        let lost = per_buffer(studied, *km, |runs| {
            Spread::of(&runs.iter().map(share_lost).collect::<Vec<_>>()).map(|lost| lost.greatest)
        });
        blocks.push(Block::Heading(format!("{km} km")));
        blocks.push(Block::Beside(vec![
            by_buffer(
                "Bottleneck utilisation",
                "Worst seed. Below the line the buffer is too small, or senders slow down too much.",
                used,
                Some(ENOUGH * 100.0),
            ),
            by_buffer(
                "Packets lost",
                "Share of the packets that arrived at the queue, worst seed. Zero is good.",
                lost,
                None,
            ),
        ]));
    }
    let lead = "Required size of the congested node's queue.";
    Some(Section::new("Required buffer", lead, blocks))
}

/// Fraction of packets dropped.
fn share_lost(run: &&WanRun) -> f64 {
    const PAYLOAD: f64 = 4096.0;
    100.0 * run.dropped as f64 / (run.dropped as f64 + run.delivered_octets as f64 / PAYLOAD).max(1.0)
}

fn by_buffer(title: &str, look_for: &str, series: Vec<Series>, line: Option<f64>) -> Block {
    Block::Lines(LinePlot {
        title: title.to_owned(),
        look_for: look_for.to_owned(),
        x: Axis { scale: Scale::Logarithmic, ..Axis::new("buffer, of rate × round trip", Unit::Times) },
        y: Axis { least: line.map(|_| 80.0), ..Axis::new("share", Unit::Percent) },
        series,
        references: line.map(|value| Reference { name: "sufficient".to_owned(), value }).into_iter().collect(),
    })
}

/// The representative run of a variant.
fn displayed<'a>(studied: &'a WanReport<'_>, variant: &'a WanVariant, km: f64) -> Option<&'a WanRun> {
    studied.results.at(&variant.name, km, studied.buffer()).next()
}

fn over_time(studied: &WanReport<'_>) -> Option<Section> {
    let buffer = studied.buffer();
    let mut blocks = Vec::new();
    let lengths = studied.results.lengths();
    let mut shown_lengths = vec![*lengths.first()?, *lengths.last()?];
    shown_lengths.dedup();
    for km in shown_lengths {
        let plots = studied.study.variants.iter().enumerate().filter_map(|(colour, variant)| {
            let run = displayed(studied, variant, km)?;
            let at = |index: usize| ((index as u64 + 1) * run.step_ns) as f64;
            let points = run.queue.iter().enumerate().map(|(index, octets)| (at(index), *octets)).collect();
            Some(Block::Lines(LinePlot {
                title: variant.title().to_owned(),
                look_for: String::new(),
                x: Axis::new("time", Unit::Nanoseconds),
                y: Axis::new("queue length", Unit::Octets),
                series: vec![Series { name: variant.title().to_owned(), colour, shape: Shape::Line, points }],
                references: vec![Reference { name: "limit".to_owned(), value: buffer * run.path_octets as f64 }],
            }))
        });
        blocks.push(Block::Heading(format!("{km} km")));
        blocks.push(Block::Beside(plots.collect()));
    }
    let lead = format!(
        "Length of the congested queue with a buffer of {buffer} of rate × round trip; one seed. A queue at its limit \
         drops packets; at zero the link may idle."
    );
    Some(Section::new("Queue over time", &lead, blocks))
}

fn local_flows(studied: &WanReport<'_>) -> Option<Section> {
    let group = |km: f64| BarGroup {
        name: format!("{km} km"),
        bars: studied
            .study
            .variants
            .iter()
            .map(|variant| Spread::of(&studied.values(variant, km, |run| run.local_slowdown_p99)))
            .collect(),
    };
    let groups: Vec<BarGroup> = studied.results.lengths().into_iter().map(group).collect();
    let known = groups.iter().flat_map(|group| &group.bars).any(Option::is_some);
    let plot = BarPlot {
        title: "Slowdown, p99".to_owned(),
        look_for:
            "Completion time relative to an idle network. A paused gateway delays flows that only share its switches. \
             Lower is better."
                .to_owned(),
        y: Axis::new("slowdown", Unit::Times),
        series: studied
            .study
            .variants
            .iter()
            .enumerate()
            .map(|(colour, variant)| (variant.title().to_owned(), colour))
            .collect(),
        groups,
        references: Vec::new(),
    };
    let lead = "Flows within the first data centre, of the priority that END.C pauses.";
    known.then(|| Section::new("Local flows", lead, vec![Block::Beside(vec![Block::Bars(plot)])]))
}

fn setting(studied: &WanReport<'_>) -> Section {
    let cell = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let median = |variant: &WanVariant, km, unit: Unit, of: fn(&WanRun) -> Option<f64>| {
        cell(Spread::of(&studied.values(variant, km, of)).map(|spread| unit.format(spread.median)))
    };
    let mut rows = Vec::new();
    for variant in &studied.study.variants {
        for km in studied.results.lengths() {
            let used = Spread::of(&studied.values(variant, km, |run| run.utilisation));
            rows.push(vec![
                variant.title().to_owned(),
                km.to_string(),
                median(variant, km, Unit::Nanoseconds, |run| run.notified_ns),
                median(variant, km, Unit::Nanoseconds, |run| run.paused_ns),
                cell(used.map(|used| Unit::Percent.format(100.0 * used.least))),
                median(variant, km, Unit::Count, |run| Some(run.dropped as f64)),
                median(variant, km, Unit::Octets, |run| Some(run.peak_octets as f64)),
                median(variant, km, Unit::Octets, |run| run.min_octets.map(|octets| octets as f64)),
                median(variant, km, Unit::Count, |run| Some(run.notifications as f64)),
                median(variant, km, Unit::Octets, |run| Some(run.delivered_octets as f64)),
                cell(studied.results.lossless(&variant.name, km).map(|least| least.to_string())),
                cell(studied.results.needed(&variant.name, km).map(|needed| needed.to_string())),
            ]);
        }
    }
    let columns = [
        "variant",
        "path, km",
        "sender notified",
        "gateway paused",
        "utilisation, minimum",
        "dropped",
        "queue, maximum",
        "queue, minimum",
        "END.C notifications",
        "delivered",
        "lossless from, of rate × round trip",
        "sufficient from, of rate × round trip",
    ];
    let blocks = vec![
        Block::table(&format!("With a queue of {} of rate × round trip, medians", studied.buffer()), &columns, rows),
        Block::Text("The same command gives the same results on every machine:".to_owned()),
        Block::Code(studied.provenance.command.clone()),
        Block::Folded("The file".to_owned(), vec![Block::Code(studied.provenance.file_text.to_owned())]),
    ];
    Section::new("Results and configuration", "", blocks)
}

const WORDS: &[(&str, &str)] = &[
    ("END.C", "A SID of the ingress PE: on a notification from the congested node the PE pauses its gateway by PFC."),
    (
        "END.E",
        "A SID of the ingress PE: the congested node sends a Fast CNP there, and the PE forwards it to the sender.",
    ),
    ("CNP of the receiver", "The congested node marks packets, and the receiver sends a CNP to the sender."),
    ("DCQCN", "Rate control of senders: each CNP reduces the rate, its absence increases it."),
    ("f", "The congested node's share of the path between the gateways."),
    ("rate × round trip", "What the bottleneck carries in the time to the far gateway and back."),
    ("XOFF, XON", "Queue lengths above which the gateway is paused, and below which it is resumed."),
    (
        "local flow",
        "A flow within the first data centre: it shares switches with the congested flows, but not the congestion.",
    ),
];

fn words() -> Section {
    Section::new("Terms", "", vec![Block::definitions(WORDS)])
}

/// A line for each variant with values, over the length of the path.
fn per_length(studied: &WanReport<'_>, of: impl Fn(&WanVariant, f64) -> Option<f64>) -> Vec<Series> {
    per_variant(studied, |variant| {
        studied.results.lengths().into_iter().filter_map(|km| Some((km, of(variant, km)?))).collect()
    })
}

/// The same over the size of the queue, at a length.
fn per_buffer(studied: &WanReport<'_>, km: f64, of: impl Fn(&[&WanRun]) -> Option<f64>) -> Vec<Series> {
    per_variant(studied, |variant| {
        let at = |buffer| studied.results.at(&variant.name, km, buffer).collect::<Vec<&WanRun>>();
        studied.results.buffers().into_iter().filter_map(|buffer| Some((buffer, of(&at(buffer))?))).collect()
    })
}

fn per_variant(studied: &WanReport<'_>, of: impl Fn(&WanVariant) -> Vec<(f64, f64)>) -> Vec<Series> {
    let variants = studied.study.variants.iter().enumerate();
    let series = variants.map(|(colour, variant)| Series {
        name: variant.title().to_owned(),
        colour,
        shape: Shape::Line,
        points: of(variant),
    });
    series.filter(|series| !series.points.is_empty()).collect()
}
