//! `NAME.clab.yml`: the nodes as containers, the links, and command lines.

use super::{DIRECTORY, ExportError, ExportedFile, FILES, is_plain, quoted};
use crate::controller;
use crate::error;
use crate::network::{self, Side};
use crate::routes;
use crate::topology::{Kind, Link, Node, Topology};
use serde::{Serialize, Serializer};
use std::path::Path;

/// Packets that may wait in front of a link with a rate or losses.
const NETEM_LIMIT: u32 = 1000;

#[derive(Serialize)]
struct File<'t> {
    name: &'t str,
    topology: Sections<'t>,
}

#[derive(Serialize)]
struct Sections<'t> {
    defaults: Defaults<'t>,
    #[serde(serialize_with = "as_map")]
    nodes: Vec<(&'t str, NodeSection)>,
    links: Vec<LinkSection<'t>>,
}

#[derive(Serialize)]
struct Defaults<'t> {
    kind: &'static str,
    image: &'t str,
    /// The lab's links are all that its nodes have.
    #[serde(rename = "network-mode")]
    network_mode: &'static str,
}

#[derive(Serialize)]
struct NodeSection {
    cmd: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    binds: Vec<String>,
    #[serde(serialize_with = "as_map")]
    sysctls: Vec<(String, String)>,
    exec: Vec<String>,
}

#[derive(Serialize)]
struct LinkSection<'t> {
    #[serde(rename = "type")]
    kind: &'static str,
    mtu: u32,
    endpoints: [Endpoint<'t>; 2],
}

#[derive(Serialize)]
struct Endpoint<'t> {
    node: &'t str,
    interface: &'t str,
    mac: String,
}

/// A map in the order of its entries.
fn as_map<K: Serialize, V: Serialize, S: Serializer>(entries: &[(K, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
}

/// The file of a lab; `others` are those that containers are to have.
pub(super) fn file(topology: &Topology, image: &str, others: &[ExportedFile]) -> error::Result<ExportedFile> {
    let nodes = topology.nodes.iter().enumerate();
    let file = File {
        name: &topology.name,
        topology: Sections {
            defaults: Defaults { kind: "linux", image, network_mode: "none" },
            nodes: nodes.map(|(position, own)| (own.name.as_str(), node(topology, position, others))).collect(),
            links: topology.links.iter().enumerate().map(|(position, own)| link(topology, position, own)).collect(),
        },
    };
    let text = serde_saphyr::to_string(&file)
        .map_err(|error| ExportError::Yaml { lab: topology.name.clone(), problem: error.to_string() })?;
    let text = if text.ends_with('\n') { text } else { text + "\n" };
    let head = format!("# {}\n# Written by `srdma lab export`; README.md says how to use it.\n", topology.description);
    Ok(ExportedFile::new(format!("{}.clab.yml", topology.name), head + &text))
}

fn node(topology: &Topology, position: usize, others: &[ExportedFile]) -> NodeSection {
    let node = &topology.nodes[position];
    let has_files = others.iter().any(|file| file.path.starts_with(&node.name));
    let is_controller = topology.controller.as_ref().is_some_and(|plan| plan.node == position);
    // Docker turns IPv6 off in containers that are in none of its networks.
    let enabled = ["all", "default"].map(|scope| (format!("net.ipv6.conf.{scope}.disable_ipv6"), "0".to_owned()));
    NodeSection {
        cmd: match node.kind {
            Kind::Srdma { .. } => format!("srdma node --config {FILES}/node.toml"),
            Kind::Router if is_controller => {
                let configuration = Path::new(FILES).join(controller::CONFIGURATION);
                let store = Path::new(DIRECTORY).join("controller.store");
                controller::command(Path::new("srdma"), &configuration, &store).join(" ")
            }
            // Programs of the node are started by command lines, or by the transfer.
            Kind::Router | Kind::Endpoint | Kind::Guest => "sleep infinity".to_owned(),
        },
        binds: has_files.then(|| format!("{}:{FILES}:ro", node.name)).into_iter().collect(),
        sysctls: enabled.into_iter().chain(network::settings(node)).collect(),
        exec: exec(topology, position),
    }
}

fn link<'t>(topology: &'t Topology, position: usize, link: &'t Link) -> LinkSection<'t> {
    let endpoint = |side: Side| {
        let end = side.of(link);
        Endpoint { node: &topology.nodes[end.node].name, interface: &end.interface, mac: side.mac(position) }
    };
    LinkSection { kind: "veth", mtu: link.mtu, endpoints: Side::BOTH.map(endpoint) }
}

/// Commands that run in a container once it has its links: addresses, routes, and the lab's own command lines.
fn exec(topology: &Topology, position: usize) -> Vec<String> {
    let node = &topology.nodes[position];
    let ip = |lines: Vec<String>| lines.into_iter().map(|line| format!("ip {line}"));
    let mut exec: Vec<String> = ip(network::loopback(node)).collect();
    for link in &topology.links {
        for side in Side::BOTH.into_iter().filter(|side| side.of(link).node == position) {
            let interface = &side.of(link).interface;
            exec.push(network::offloads(interface));
            exec.extend(ip(network::addresses(node, link, side)));
            exec.extend(netem(link, interface));
        }
    }
    exec.extend(ip(routes::lines(topology, position)));
    exec.extend(commands(node).into_iter().map(|command| match command {
        OwnCommand::Line(line) => line,
        OwnCommand::Script { name, .. } => format!("sh {FILES}/{name}"),
    }));
    exec
}

/// Loss and rate of an interface's outgoing packets, as on its link.
fn netem(link: &Link, interface: &str) -> Option<String> {
    let rate = link.rate_bits_per_s.map(|rate| format!(" rate {rate}bit")).unwrap_or_default();
    let loss = if link.loss > 0.0 { format!(" loss {}%", link.loss * 100.0) } else { String::new() };
    link.is_shaped().then(|| format!("tc qdisc add dev {interface} root netem limit {NETEM_LIMIT}{rate}{loss}"))
}

/// A command line of the topology file.
enum OwnCommand {
    Line(String),
    /// Text that containerlab or YAML would interpret is a script among the node's files.
    Script {
        name: String,
        text: String,
    },
}

fn commands(node: &Node) -> Vec<OwnCommand> {
    let commands = node.commands.iter().enumerate().map(|(position, words)| {
        let words: Vec<String> = words.iter().map(|word| word.replace("{directory}", DIRECTORY)).collect();
        if words.iter().all(|word| is_plain(word)) {
            return OwnCommand::Line(words.join(" "));
        }
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        OwnCommand::Script { name: format!("command-{}.sh", position + 1), text: words.join(" ") + "\n" }
    });
    commands.collect()
}

/// The scripts of all nodes.
pub(super) fn scripts(topology: &Topology) -> Vec<ExportedFile> {
    let of_node = |node: &Node| {
        let directory = Path::new(&node.name).to_owned();
        let scripts = commands(node).into_iter().filter_map(move |command| match command {
            OwnCommand::Line(_) => None,
            OwnCommand::Script { name, text } => Some(ExportedFile::new(directory.join(name), text)),
        });
        scripts.collect::<Vec<_>>()
    };
    topology.nodes.iter().flat_map(of_node).collect()
}
