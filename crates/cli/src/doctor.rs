//! `srdma doctor`: checks the features of this machine. `docs/operating.md` describes it.

mod finding;
mod interfaces;
mod kernel;
mod memory;
mod network;
mod programs;
mod rights;

use crate::output;
use finding::Finding;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Say what this machine offers to a node and to labs, and how to mend what it lacks.
///
/// Exit code 0: everything that `srdma node` needs is there; 1: something of it is missing.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The findings as one JSON object.
    #[arg(long)]
    json: bool,
    /// Try the AF_XDP modes on a temporary veth, and on each INTERFACE named after it: frames that arrive there
    /// meanwhile are passed to the kernel.
    #[arg(long, value_name = "INTERFACE", num_args = 0..)]
    probe: Option<Vec<String>>,
}

const EXAMPLES: &str = "\
Examples:
  srdma doctor
      All checks that use no interface.

  sudo srdma doctor --probe eth1 --json | jq '.findings[] | select(.state != \"ok\")'
      Also the AF_XDP modes of eth1; only findings that need a remedy.";

/// Output of `--json`.
#[derive(Serialize)]
struct Report {
    /// Whether everything is there that `srdma node` needs.
    node_can_run: bool,
    findings: Vec<Finding>,
}

/// Runs the command.
///
/// # Errors
///
/// If the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut findings =
        [kernel::check(), rights::check(), memory::check(), network::check(), programs::check()].concat();
    findings.extend(interfaces::check());
    if let Some(interfaces) = &arguments.probe {
        findings.extend(interfaces::probe(interfaces));
    }
    let node_can_run = !findings.iter().any(Finding::stops_a_node);
    let report = Report { node_can_run, findings };
    let text =
        if arguments.json { serde_json::to_string(&report)? + "\n" } else { text(&report, io::stdout().is_terminal()) };
    output::print(&text)?;
    Ok(if node_can_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(report: &Report, is_colored: bool) -> String {
    let mut text = String::new();
    write(&mut text, report, is_colored).expect("a string takes any text");
    text
}

fn write(text: &mut String, report: &Report, is_colored: bool) -> std::fmt::Result {
    let width = report.findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    let mut theme = "";
    for finding in &report.findings {
        if finding.theme != theme {
            let gap = if theme.is_empty() { "" } else { "\n" };
            theme = finding.theme;
            writeln!(text, "{gap}{theme}")?;
        }
        let state = format!("{:8}", finding.state.name());
        let state = match (is_colored, finding.state.color()) {
            (true, Some(color)) => format!("\x1b[{color}m{state}\x1b[0m"),
            (true, None) | (false, _) => state,
        };
        writeln!(text, "  {state}  {:width$}  {}", finding.name, finding.detail)?;
        if let Some(remedy) = &finding.remedy {
            writeln!(text, "  {:8}  {:width$}  mend: {remedy}", "", "")?;
        }
    }
    let missing: Vec<&str> =
        report.findings.iter().filter(|finding| finding.stops_a_node()).map(|finding| finding.name.as_str()).collect();
    match missing.as_slice() {
        [] => writeln!(text, "\n`srdma node` can run here."),
        missing => writeln!(text, "\n`srdma node` cannot run here: {} missing.", missing.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_line_for_each_finding_and_its_remedy() {
        let findings = vec![
            Finding::ok("Kernel", "version", "6.18"),
            Finding::degraded("Kernel", "seg6", "off").mend("sysctl x=1"),
            Finding::missing("Rights", "CAP_NET_RAW", "not effective").needed(),
        ];
        let report = Report { node_can_run: false, findings };
        let expected = "\
Kernel
  ok        version      6.18
  degraded  seg6         off
                         mend: sysctl x=1

Rights
  missing   CAP_NET_RAW  not effective

`srdma node` cannot run here: CAP_NET_RAW missing.
";
        assert_eq!(text(&report, false), expected);
        assert!(text(&report, true).contains("\x1b[32mok      \x1b[0m"));
    }

    #[test]
    fn json_has_states_by_name() {
        let report = Report { node_can_run: true, findings: vec![Finding::info("Memory", "processors", "2")] };
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(
            json,
            r#"{"node_can_run":true,"findings":[{"theme":"Memory","name":"processors","state":"info","detail":"2","remedy":null,"needed":false}]}"#
        );
    }
}
