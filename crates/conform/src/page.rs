//! The HTML page of a report: requirements with verdicts and cases, failures with their octets.

use crate::text;
use crate::{CaseReport, Profile, Report, RequirementReport, Verdict};
use srdma_report::{Block, Page, Section};

/// The page of a report.
pub fn page(report: &Report, profile: &Profile, command: &str) -> Page {
    let mut sections = vec![requirements(report), failures(report)];
    sections.extend(departures(report));
    sections.extend([cases(report), setting(profile, command)]);
    Page {
        title: format!("Profile {}", report.profile),
        summary: vec![profile.about.to_owned(), format!("Device: {}", report.device), verdict(report)],
        sections,
        colophon: format!("Written by srdma {}.", env!("CARGO_PKG_VERSION")),
    }
}

fn verdict(report: &Report) -> String {
    let [pass, fail, open] = [Verdict::Pass, Verdict::Fail, Verdict::NotTested];
    let of = |verdict| report.requirements.iter().filter(|requirement| requirement.verdict == verdict).count();
    format!(
        "Of {} requirements {} pass, {} fail and {} were not tested; of {} cases {} pass, {} fail and {} could not be \
         tested.",
        report.requirements.len(),
        of(pass),
        of(fail),
        of(open),
        report.cases.len(),
        report.count(pass),
        report.count(fail),
        report.count(open)
    )
}

/// `✓ pass`: sign and word.
fn marked(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Pass => '✓',
        Verdict::Fail => '✗',
        Verdict::NotTested => '–',
    };
    format!("{sign} {}", text::word(verdict).to_lowercase())
}

fn requirements(report: &Report) -> Section {
    let row = |reported: &RequirementReport| {
        let RequirementReport { requirement, verdict, cases, reason } = reported;
        let behind = reason.clone().unwrap_or_else(|| cases.join(", "));
        vec![requirement.id.clone(), marked(*verdict), requirement.text.clone(), behind]
    };
    let rows = report.requirements.iter().map(row).collect();
    let lead = "A requirement fails if one of its cases does; it passes if some pass and none fails.";
    let columns = ["requirement", "verdict", "what it asks for", "cases, or the reason for none"];
    Section::new("Requirements", lead, vec![Block::words("Each requirement", &columns, rows)])
}

fn failures(report: &Report) -> Section {
    let failed: Vec<&CaseReport> = report.cases.iter().filter(|case| case.verdict == Verdict::Fail).collect();
    let lead = if failed.is_empty() { "No case failed." } else { "Received frames beside expected ones." };
    let blocks = failed.iter().flat_map(|case| {
        let known = case
            .departure
            .map(|known| Block::Text(format!("Known of {}: {} {}", known.devices, known.name, known.sentence)));
        let heading = Block::Heading(format!("{} ({})", case.name, case.requirements.join(", ")));
        [heading, Block::Text(case.about.to_owned())]
            .into_iter()
            .chain(known)
            .chain([Block::Code(text::findings(case))])
    });
    Section::new("What failed", lead, blocks.collect())
}

fn departures(report: &Report) -> Option<Section> {
    let known = report.departures();
    let words = known.iter().map(|known| (known.name.to_owned(), format!("{}: {}", known.devices, known.sentence)));
    let lead = "Devices of a kind are known to differ so.";
    (!known.is_empty()).then(|| Section::new("Known departures", lead, vec![Block::Definitions(words.collect())]))
}

fn cases(report: &Report) -> Section {
    let row = |case: &CaseReport| {
        let behind = case.reason.clone().unwrap_or_default();
        let ids = case.requirements.join(", ");
        vec![case.name.to_owned(), marked(case.verdict), case.about.to_owned(), ids, behind]
    };
    let rows = report.cases.iter().map(row).collect();
    let columns = ["case", "verdict", "what it shows", "requirements", "why it was not tested"];
    Section::new("Cases", "", vec![Block::Folded("Every case".to_owned(), vec![Block::words("Cases", &columns, rows)])])
}

fn setting(profile: &Profile, command: &str) -> Section {
    let folded = |name: &str, text: String| Block::Folded(name.to_owned(), vec![Block::Code(text)]);
    let blocks = vec![
        Block::Code(command.to_owned()),
        Block::List(profile.words.iter().map(ToString::to_string).collect()),
        folded("The parameters", text::parameter_file(profile)),
        folded("The configuration, as of an srdma node", profile.configuration.clone()),
    ];
    Section::new("How it was tested", "The configuration of the device for the test.", blocks)
}
