//! `srdma lab status`.

use super::arguments::{Name, Status};
use super::instance;
use super::text::link_cells;
use crate::demo::table::Table;
use crate::output;
use crate::units::grouped;
use anyhow::Result;
use serde::Serialize;
use srdma_lab::{ControllerAccess, Instance, Lab, LinkCounters};
use std::process::ExitCode;

/// State of a lab.
#[derive(Serialize)]
struct Report {
    lab: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<Controller>,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

#[derive(Serialize)]
struct Controller {
    node: String,
    #[serde(flatten)]
    access: ControllerAccess,
}

#[derive(Serialize)]
struct Node {
    name: String,
    kind: &'static str,
    namespace: String,
    processes: Vec<Process>,
}

#[derive(Serialize)]
struct Process {
    name: String,
    pid: i32,
    is_running: bool,
    log: String,
}

#[derive(Serialize)]
struct Link {
    name: String,
    mtu: u32,
    rate_bits_per_s: Option<u64>,
    loss: f64,
    #[serde(flatten)]
    counters: LinkCounters,
}

/// Shows one instance, or lists all.
pub(super) fn run(status: &Status) -> Result<ExitCode> {
    let Some(name) = &status.name else {
        return list(status.json);
    };
    let name = Name { name: name.clone(), instance: status.instance.clone() };
    let report = report(&Lab::open(instance(&name)?)?)?;
    if status.json {
        output::print_json(&report)?;
    } else {
        if let Some(Controller { node, access }) = &report.controller {
            output::print(&format!("{}\n\n", controller(node, access)))?;
        }
        output::print(&format!("{}\n{}", nodes(&report), links(&report)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<ExitCode> {
    let names = Instance::all()?;
    if json {
        output::print_json(&names)?;
    } else if names.is_empty() {
        output::print("no lab is up\n")?;
    } else {
        output::print(&format!("{}\n", names.join("\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(lab: &Lab) -> Result<Report> {
    let topology = lab.topology();
    let nodes = topology.nodes.iter().map(|node| {
        let own = lab.processes().iter().filter(|process| process.node == node.name);
        Node {
            name: node.name.clone(),
            kind: node.kind.name(),
            namespace: lab.instance().namespace(&node.name),
            processes: own
                .map(|process| Process {
                    name: process.name.clone(),
                    pid: process.pid,
                    is_running: process.is_running(),
                    log: process.log.display().to_string(),
                })
                .collect(),
        }
    });
    let links = topology.links.iter().zip(lab.link_counters()?).map(|(link, counters)| Link {
        name: link.name.clone(),
        mtu: link.mtu,
        rate_bits_per_s: link.rate_bits_per_s,
        loss: link.loss,
        counters,
    });
    let access = topology.controller.as_ref().zip(ControllerAccess::of(topology, lab.instance()));
    let controller = access.map(|(plan, access)| Controller { node: topology.nodes[plan.node].name.clone(), access });
    let lab = lab.instance().name().to_owned();
    Ok(Report { lab, controller, nodes: nodes.collect(), links: links.collect() })
}

/// URL of the lab's controller, and the credentials for it.
pub(super) fn controller(node: &str, access: &ControllerAccess) -> String {
    let ControllerAccess { url, token_file, ca_file } = access;
    let (token, certificate) = (token_file.display(), ca_file.display());
    format!("controller at {node}: {url}, token in {token}, certificate in {certificate}")
}

fn nodes(report: &Report) -> Table {
    let mut table = Table::new(&["node", "kind", "namespace", "processes"]).with_text_from(1);
    for node in &report.nodes {
        let processes = node.processes.iter().map(|process| {
            let state = if process.is_running { format!("pid {}", process.pid) } else { "ended".to_owned() };
            format!("{} ({state})", process.name)
        });
        let processes = processes.collect::<Vec<_>>().join(", ");
        table.row([node.name.clone(), node.kind.to_owned(), node.namespace.clone(), processes]);
    }
    table
}

fn links(report: &Report) -> Table {
    let mut table = Table::new(&["link", "MTU", "rate", "loss", "octets down", "octets up", "frames lost"]);
    for link in &report.links {
        let [rate, loss, down, up, lost] = link_cells(link.rate_bits_per_s, link.loss, &link.counters);
        table.row([link.name.clone(), grouped(u64::from(link.mtu)), rate, loss, down, up, lost]);
    }
    table
}
