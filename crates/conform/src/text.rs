//! Profiles and reports as text for a terminal.

use crate::{CaseReport, Difference, Finding, Parameter, Profile, ProfileName, Report, RequirementReport, Verdict};
use std::fmt::Write;

/// Maximum number of differences of a frame in a report; JSON has all.
const SHOWN: usize = 12;

/// The profiles, one per line.
pub fn list(profiles: &[ProfileName]) -> String {
    let width = profiles.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    profiles.iter().map(|profile| format!("{:width$}  {}\n", profile.name, profile.about)).collect()
}

/// The required configuration of a device, and the cases.
pub fn describe(profile: &Profile) -> String {
    let mut text = format!("Profile {}: {}\n\nPorts\n", profile.name, profile.about);
    for (name, port) in &profile.ports {
        line(&mut text, format_args!("  {name}: the device has {}, the tester {}", port.device_mac, port.tester_mac));
    }
    text.push_str("\nConfiguration of the device\n");
    for words in &profile.words {
        line(&mut text, format_args!("  * {words}"));
    }
    text.push_str("\nParameters\n");
    let width = profile.parameters.iter().map(|parameter| parameter.name.len()).max().unwrap_or(0);
    for parameter in &profile.parameters {
        line(&mut text, format_args!("  {:width$}  {}  {}", parameter.name, parameter.value, parameter.meaning));
    }
    text.push_str("\nCases\n");
    for case in &profile.cases {
        line(&mut text, format_args!("  {} [{}]\n      {}", case.name, case.requirements.join(", "), case.about));
        if !case.sources.is_empty() {
            line(&mut text, format_args!("      sources: {}", case.sources.join(", ")));
        }
    }
    if !profile.untested.is_empty() {
        text.push_str("\nNot tested\n");
    }
    for (id, reason) in &profile.untested {
        line(&mut text, format_args!("  {id}: {reason}"));
    }
    text
}

/// The parameters of a profile as a file for `--parameters`.
pub fn parameter_file(profile: &Profile) -> String {
    let parameter =
        |parameter: &Parameter| format!("# {}\n{} = {}\n", parameter.meaning, parameter.name, parameter.value);
    profile.parameters.iter().map(parameter).collect()
}

/// A report: failures, requirements, totals.
pub fn report(report: &Report) -> String {
    let mut text = format!("Profile {}, {}\n", report.profile, report.device);
    for case in report.cases.iter().filter(|case| case.verdict != Verdict::Pass) {
        text.push('\n');
        write_case(&mut text, case);
    }
    write_departures(&mut text, report);
    text.push_str("\nRequirements\n");
    let width = report.requirements.iter().map(|requirement| requirement.requirement.id.len()).max().unwrap_or(0);
    for requirement in &report.requirements {
        write_requirement(&mut text, requirement, report, width);
    }
    let [pass, fail, not_tested] =
        [Verdict::Pass, Verdict::Fail, Verdict::NotTested].map(|verdict| report.count(verdict));
    line(&mut text, format_args!("\n{pass} cases pass, {fail} fail, {not_tested} were not tested"));
    text
}

fn write_case(text: &mut String, case: &CaseReport) {
    let ids = case.requirements.join(", ");
    line(text, format_args!("{} {} [{ids}]\n  {}", word(case.verdict), case.name, case.about));
    if let Some(reason) = &case.reason {
        line(text, format_args!("  {reason}"));
    }
    if let Some(departure) = case.departure {
        line(text, format_args!("  known of {}: {}", departure.devices, departure.name));
    }
    text.push_str(&findings(case));
}

/// The findings of a case.
pub(crate) fn findings(case: &CaseReport) -> String {
    let mut text = String::new();
    for (step, finding) in &case.findings {
        write_finding(&mut text, *step, finding);
    }
    text
}

fn write_finding(text: &mut String, step: usize, finding: &Finding) {
    match finding {
        Finding::Differs { port, differences, .. } => {
            line(text, format_args!("  step {step}: a frame at {port} differs"));
            for difference in differences.iter().take(SHOWN) {
                write_difference(text, difference);
            }
            if differences.len() > SHOWN {
                line(text, format_args!("    and {} more", differences.len() - SHOWN));
            }
        }
        Finding::Missing { port, summary, .. } => {
            line(text, format_args!("  step {step}: nothing came out at {port}, expected {summary}"));
        }
        Finding::WrongPort { port, got_port, summary } => {
            line(text, format_args!("  step {step}: came out at {got_port} instead of {port}: {summary}"));
        }
        Finding::Duplicate { port, summary } => {
            line(text, format_args!("  step {step}: came out at {port} once more: {summary}"));
        }
        Finding::Unexpected { port, summary, .. } => {
            line(text, format_args!("  step {step}: unexpected at {port}: {summary}"));
        }
    }
}

fn write_difference(text: &mut String, difference: &Difference) {
    let Difference { field, offset, expected, got } = difference;
    let none = || "no such field".to_owned();
    let (expected, got) = (expected.clone().unwrap_or_else(none), got.clone().unwrap_or_else(none));
    line(text, format_args!("    octet {offset}, {field}: expected {expected}, got {got}"));
}

fn write_departures(text: &mut String, report: &Report) {
    let departures = report.departures();
    if departures.is_empty() {
        return;
    }
    text.push_str("\nKnown departures\n");
    let width = departures.iter().map(|departure| departure.name.len()).max().unwrap_or(0);
    for departure in departures {
        let (name, devices, sentence) = (departure.name, departure.devices, departure.sentence);
        line(text, format_args!("  {name:width$}  {devices}: {sentence}"));
    }
}

fn write_requirement(text: &mut String, requirement: &RequirementReport, report: &Report, width: usize) {
    let RequirementReport { requirement, verdict, cases, reason } = requirement;
    let behind = match (reason, verdict) {
        (Some(reason), _) => reason.clone(),
        (None, Verdict::Fail) => {
            let has_failed =
                |name: &&&str| report.cases.iter().any(|case| case.name == **name && case.verdict == Verdict::Fail);
            cases.iter().filter(has_failed).copied().collect::<Vec<_>>().join(", ")
        }
        (None, Verdict::Pass | Verdict::NotTested) => match cases.len() {
            1 => "1 case".to_owned(),
            cases => format!("{cases} cases"),
        },
    };
    line(text, format_args!("  {:width$}  {:10}  {behind}", requirement.id, word(*verdict)));
}

/// A verdict in reports.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::NotTested => "not tested",
    }
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("a string takes any text");
}
