//! Checks of a machine: what `srdma node` and labs require, and how to provide it.
//!
//! [`Report::new`] runs all checks; none of them changes the machine.

mod finding;
mod interfaces;
mod kernel;
mod memory;
mod network;
mod programs;
mod rights;
mod vlans;

use finding::Finding;
use serde::Serialize;
use std::fmt::Write as _;

/// The findings on a machine.
#[derive(Serialize)]
pub struct Report {
    /// Whether all requirements of `srdma node` are met.
    node_can_run: bool,
    findings: Vec<Finding>,
}

/// Theme of what a configuration says of the domain.
const BOUNDARY: &str = "Boundary";

impl Report {
    /// Runs all checks. With `probe` it also tries the drivers on a veth and on these interfaces.
    pub fn new(probe: Option<&[String]>) -> Self {
        let mut findings =
            [kernel::check(), rights::check(), memory::check(), network::check(), programs::check()].concat();
        findings.extend(interfaces::check());
        if let Some(interfaces) = probe {
            findings.extend(interfaces::probe(interfaces));
        }
        Self::of(findings)
    }

    fn of(findings: Vec<Finding>) -> Self {
        Report { node_can_run: !findings.iter().any(Finding::stops_a_node), findings }
    }

    /// Adds the side of the domain that a port is at.
    pub fn add_port(&mut self, port: &str, side: &str) {
        self.findings.push(Finding::info(BOUNDARY, port, side));
    }

    /// Adds whether an interface with VLANs on its link passes tags to the driver of its port, which may be AF_XDP.
    pub fn add_vlan_parent(&mut self, interface: &str, uses_af_xdp: bool) {
        self.findings.push(vlans::finding(interface, uses_af_xdp, srdma_io::takes_vlan_tags_off(interface)));
    }

    /// Adds that any source address may send to the SIDs of the configuration.
    pub fn add_open_sids(&mut self) {
        let finding = Finding::degraded(BOUNDARY, "SIDs", "open to every sender: there is no [domain]");
        self.findings.push(finding.with_remedy("docs/configuration.md describes [domain]"));
    }

    /// Whether all requirements of `srdma node` are met.
    pub fn node_can_run(&self) -> bool {
        self.node_can_run
    }

    /// The report for a terminal.
    pub fn text(&self, is_colored: bool) -> String {
        let mut text = String::new();
        self.write(&mut text, is_colored).expect("a string takes any text");
        text
    }

    fn write(&self, text: &mut String, is_colored: bool) -> std::fmt::Result {
        let width = self.findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        let mut theme = "";
        for finding in &self.findings {
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
                writeln!(text, "  {:8}  {:width$}  fix: {remedy}", "", "")?;
            }
        }
        let missing: Vec<&str> = self
            .findings
            .iter()
            .filter(|finding| finding.stops_a_node())
            .map(|finding| finding.name.as_str())
            .collect();
        match missing.as_slice() {
            [] => writeln!(text, "\n`srdma node` can run here."),
            missing => writeln!(text, "\n`srdma node` cannot run here: {} missing.", missing.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_line_for_each_finding_and_its_remedy() {
        let report = Report::of(vec![
            Finding::ok("Kernel", "version", "6.18"),
            Finding::degraded("Kernel", "seg6", "off").with_remedy("sysctl x=1"),
            Finding::missing("Rights", "CAP_NET_RAW", "not effective").needed(),
        ]);
        let expected = "\
Kernel
  ok        version      6.18
  degraded  seg6         off
                         fix: sysctl x=1

Rights
  missing   CAP_NET_RAW  not effective

`srdma node` cannot run here: CAP_NET_RAW missing.
";
        assert_eq!(report.text(false), expected);
        assert!(report.text(true).contains("\x1b[32mok      \x1b[0m"));
    }

    #[test]
    fn json_has_states_by_name() {
        let report = Report::of(vec![Finding::info("Memory", "processors", "2")]);
        let json = serde_json::to_string(&report).unwrap();
        let finding =
            r#"{"theme":"Memory","name":"processors","state":"info","detail":"2","remedy":null,"needed":false}"#;
        assert_eq!(json, format!(r#"{{"node_can_run":true,"findings":[{finding}]}}"#));
    }
}
