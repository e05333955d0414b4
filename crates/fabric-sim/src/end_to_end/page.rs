//! The HTML report of end-to-end runs.

use super::EndToEndReport;
use crate::end_to_end::EndToEndRun;
use crate::wan::Claim;
use srdma_report::{Axis, Block, LinePlot, Page, Section, Series, Shape, Unit};

/// The report.
pub(super) fn page(ran: &EndToEndReport<'_>) -> Page {
    Page {
        title: ran.plan.title.clone(),
        summary: summary(ran),
        sections: vec![claims(ran), over_time(ran), figures(ran), receivers(ran), configuration(ran), words()],
        colophon: format!("Written by srdma {}.", env!("CARGO_PKG_VERSION")),
    }
}

fn summary(ran: &EndToEndReport<'_>) -> Vec<String> {
    let (description, runs) = (ran.plan.description.trim(), ran.results.runs.len());
    let held = ran.claims.iter().filter(|claim| claim.holds).count();
    let held = format!("{runs} seeds were run. {held} of {} checks pass.", ran.claims.len());
    Some(description.to_owned()).filter(|text| !text.is_empty()).into_iter().chain([held]).collect()
}

fn claims(ran: &EndToEndReport<'_>) -> Section {
    let line = |claim: &Claim| {
        let mark = if claim.holds { "✓" } else { "✗" };
        format!("{mark} {}: {}", claim.expected, claim.found)
    };
    let run_progress =
        |claims: &[Claim]| [Block::Heading(claims[0].at.clone()), Block::List(claims.iter().map(line).collect())];
    let runs = ran.claims.chunk_by(|before, after| before.at == after.at);
    Section::new("Checks", "For each seed.", runs.flat_map(run_progress).collect())
}

fn over_time(ran: &EndToEndReport<'_>) -> Section {
    let plot = |title: &str, look_for: &str, name: &str, of: fn(&EndToEndRun) -> &Vec<f64>| {
        let series = ran.results.runs.iter().enumerate().map(|(colour, run)| {
            let at = |index: usize| ((index as u64 + 1) * run.step_ns) as f64;
            let points = of(run).iter().enumerate().map(|(index, octets)| (at(index), *octets)).collect();
            Series { name: run.name(), colour, shape: Shape::Line, points }
        });
        Block::Lines(LinePlot {
            title: title.to_owned(),
            look_for: look_for.to_owned(),
            x: Axis::new("time", Unit::Nanoseconds),
            y: Axis::new(name, Unit::Octets),
            series: series.collect(),
            references: Vec::new(),
        })
    };
    let acknowledged = plot(
        "The stream",
        "Octets that all receivers have acknowledged. A flat section is a loss or the restart.",
        "acknowledged",
        |run| &run.acknowledged,
    );
    let queue = plot(
        "The congested queue",
        "Maximum length; END.C and END.E keep it below its limit.",
        "queue length",
        |run| &run.queue,
    );
    Section::new("Over time", "", vec![Block::Beside(vec![acknowledged, queue])])
}

/// A column: its title, and the format of a value.
type Column = (&'static str, fn(&EndToEndRun) -> String);

const COLUMNS: &[Column] = &[
    ("run", |run| run.name()),
    ("finished", |run| run.completion_ns.map_or("–".to_owned(), |ns| Unit::Nanoseconds.format(ns as f64))),
    ("packets", |run| run.packets.to_string()),
    ("retransmitted", |run| run.retransmitted.to_string()),
    ("timeouts", |run| run.timeouts.to_string()),
    ("lost on links", |run| run.lost_on_links.to_string()),
    ("dropped by switches", |run| run.dropped.values().sum::<u64>().to_string()),
    ("ACKs: source / receivers", |run| format!("{} / {}", run.acks_at_source, run.acks_of_receivers)),
    ("NAKs", |run| format!("{} / {}", run.naks_at_source, run.naks_of_receivers)),
    ("CNPs", |run| format!("{} / {}", run.cnps_at_source, run.cnps_of_receivers)),
    ("END.E", |run| run.end_e_sent.to_string()),
    ("END.C pauses / resumes", |run| format!("{} / {}", run.end_c_sent, run.end_c_resumes)),
    ("longest pause", |run| Unit::Nanoseconds.format(run.longest_hold_ns as f64)),
    ("gateway paused", |run| Unit::Nanoseconds.format(run.gateway_paused_ns as f64)),
];

fn figures(ran: &EndToEndReport<'_>) -> Section {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let rows = ran.results.runs.iter().map(|run| COLUMNS.iter().map(|(_, of)| of(run)).collect()).collect();
    Section::new("Results", "", vec![Block::table("All seeds", &names, rows)])
}

fn receivers(ran: &EndToEndReport<'_>) -> Section {
    let rows = ran.results.runs.iter().flat_map(|run| {
        let source = [run.name(), "source".to_owned(), run.octets.to_string(), run.sha256.clone()];
        let receivers = run
            .receivers
            .iter()
            .map(|receiver| [run.name(), receiver.name.clone(), receiver.octets.to_string(), receiver.sha256.clone()]);
        std::iter::once(source).chain(receivers).map(Vec::from).collect::<Vec<_>>()
    });
    let table = Block::table("SHA-256 of memory", &["run", "host", "octets", "SHA-256"], rows.collect());
    Section::new("Memory of every host", "", vec![Block::Folded("All receivers".to_owned(), vec![table])])
}

fn configuration(ran: &EndToEndReport<'_>) -> Section {
    let blocks = vec![
        Block::Text("The same command gives the same results on every machine:".to_owned()),
        Block::Code(ran.provenance.command.clone()),
        Block::Folded("The file".to_owned(), vec![Block::Code(ran.provenance.file_text.to_owned())]),
    ];
    Section::new("Configuration", "", blocks)
}

const WORDS: &[(&str, &str)] = &[
    (
        "uSID",
        "A 16-bit segment identifier in the outer destination address: a switch on the path, selected by the sender's \
         NIC.",
    ),
    ("Proxy Address", "The address of the only peer that source and receivers see; owned by the group's headend."),
    ("headend", "The node that encapsulates the source's packets for the group."),
    ("End.MT", "The behaviour of the edge nodes of the tree: a rewritten copy for each receiver."),
    ("END.C", "A SID of the ingress PE: on a notification the PE pauses its gateway by PFC."),
    ("END.E", "A SID of the ingress PE: it forwards a Fast CNP to the sender."),
    ("hold time", "Duration of a pause unless it is refreshed or ended."),
];

fn words() -> Section {
    Section::new("Terms", "", vec![Block::definitions(WORDS)])
}
