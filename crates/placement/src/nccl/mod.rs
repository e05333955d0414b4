//! Dumps of NCCL: its rings (`NCCL_GRAPH_DUMP_FILE`), or the NICs of a server (`NCCL_TOPO_DUMP_FILE`).
//!
//! ```xml
//! <graphs version="1">
//!   <graph id="0" pattern="4" nchannels="2" speedinter="24" …>      a ring; speeds in gigabytes a second and channel
//!     <channel>
//!       <net dev="0"/> <gpu dev="0"/> … <gpu dev="7"/> <net dev="1"/>     in by NIC 0, out by NIC 1
//!     </channel>
//! ```
//!
//! ```xml
//! <system version="1"> <cpu …> <pci …> <nic> <net name="mlx5_0" dev="0" speed="400000" …/>     megabits a second
//! ```
//!
//! Both files describe one server. All servers of the job are assumed to be alike: each ring goes from server to server
//! in their order, and back to the first one. Of a topology, every NIC forms a ring with the same NIC of the other
//! servers. Of graphs, only rings are read: NCCL uses trees (other patterns) as an alternative, not at the same time.
//!
//! NCCL documents the variables, not the files: these are as `src/graph/xml.cc` and `search.cc` of NCCL 2.18 and later
//! write them, with pattern 4 for rings, and as reports to its maintainers quote them (NVIDIA/nccl issues 392, 524 and
//! 1313).

use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use roxmltree::{Document, Node, ParsingOptions};
use srdma_fabric::{HostId, Topology};
use srdma_toml_error::LineError;

/// The pattern of rings (`NCCL_TOPO_PATTERN_RING`).
const RING: &str = "4";

/// Nodes of a file, at most: a dump has some thousands.
const MOST_NODES: u32 = 1_000_000;

/// Reads the flows of a job whose servers are named by prefixes of their NICs' names: NIC n of `h1.3.` is the n-th
/// host, from 0, whose name begins so.
///
/// # Errors
///
/// Names the line and the column in error, the found and the expected value.
pub fn flows_from_nccl(text: &str, topology: &Topology, servers: &[String]) -> Result<Vec<ListedFlow>, LineError> {
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        LineError { line: at.row as usize, problem: format!("column {}: {error}", at.col) }
    })?;
    let root = document.root_element();
    let rings = match root.tag_name().name() {
        "graphs" => rings_of_graphs(root)?,
        "system" => rings_of_system(root)?,
        other => return wrong(root, format!("<{other}> is no dump of NCCL: expected <graphs> or <system>")),
    };
    if servers.len() < 2 {
        let text = "the file is about one server: name the job's servers, two or more, by the beginnings of their NICs";
        return wrong(root, text.to_owned());
    }
    let nics: Vec<Vec<HostId>> = servers.iter().map(|server| topology.hosts_beginning(server)).collect();
    let mut flows = Vec::new();
    for Ring { node, enters, leaves, rate_bits_per_s } in rings {
        for (index, name) in servers.iter().enumerate() {
            let next = (index + 1) % servers.len();
            let nic = |server: usize, number: usize| match nics[server].get(number) {
                Some(host) => Ok(*host),
                None => {
                    let (name, found) = (&servers[server], nics[server].len());
                    wrong(node, format!("NIC {number} is needed, but {found} hosts of this fabric begin with {name}"))
                }
            };
            let (from, to) = (nic(index, leaves)?, nic(next, enters)?);
            if from == to {
                return wrong(node, format!("{name} stands for the same NIC as {}", servers[next]));
            }
            let flow = Flow { from, to, rate_bits_per_s };
            flows.push(ListedFlow { flow, job: "nccl".to_owned(), part: "ring".to_owned(), tenant: None });
        }
    }
    Ok(flows)
}

/// A ring as one server sees it.
struct Ring<'a> {
    /// Its element.
    node: Node<'a, 'a>,
    /// The ingress NIC.
    enters: usize,
    /// The egress NIC.
    leaves: usize,
    rate_bits_per_s: u64,
}

fn rings_of_graphs<'a>(root: Node<'a, 'a>) -> Result<Vec<Ring<'a>>, LineError> {
    let mut rings = Vec::new();
    for graph in children(root, "graph").filter(|graph| graph.attribute("pattern") == Some(RING)) {
        let speed: f64 = number(graph, "speedinter", "gigabytes a second")?;
        for node in children(graph, "channel") {
            let mut nets = children(node, "net");
            let Some(first) = nets.next() else { continue };
            let enters = number(first, "dev", "the number of a NIC")?;
            let leaves = match nets.last() {
                Some(last) => number(last, "dev", "the number of a NIC")?,
                None => enters,
            };
            let rate_bits_per_s = rate(graph, "speedinter", speed * 8e9)?;
            rings.push(Ring { node, enters, leaves, rate_bits_per_s });
        }
    }
    match rings.is_empty() {
        true => wrong(root, "no ring (pattern 4) has a channel with a NIC: was the job on one server?".to_owned()),
        false => Ok(rings),
    }
}

fn rings_of_system<'a>(root: Node<'a, 'a>) -> Result<Vec<Ring<'a>>, LineError> {
    let mut rings = Vec::new();
    for node in root.descendants().filter(|node| node.has_tag_name("net")) {
        let nic = number(node, "dev", "the number of a NIC")?;
        let speed: f64 = number(node, "speed", "megabits a second")?;
        rings.push(Ring { node, enters: nic, leaves: nic, rate_bits_per_s: rate(node, "speed", speed * 1e6)? });
    }
    match rings.is_empty() {
        true => wrong(root, "the server has no <net>: was NCCL without a network?".to_owned()),
        false => Ok(rings),
    }
}

fn children<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn number<T: std::str::FromStr>(node: Node<'_, '_>, attribute: &str, what: &str) -> Result<T, LineError> {
    let text = node.attribute(attribute).unwrap_or_default();
    let name = node.tag_name().name();
    text.parse().or_else(|_| wrong(node, format!("<{name} {attribute}={text:?}>: expected {what}")))
}

fn rate(node: Node<'_, '_>, attribute: &str, bits_per_s: f64) -> Result<u64, LineError> {
    if (1.0..1e16).contains(&bits_per_s) {
        return Ok(bits_per_s.round() as u64);
    }
    let name = node.tag_name().name();
    wrong(node, format!("<{name} {attribute}>: {bits_per_s} bits a second is no rate of a NIC"))
}

fn wrong<T>(node: Node<'_, '_>, problem: String) -> Result<T, LineError> {
    let at = node.document().text_pos_at(node.range().start);
    Err(LineError { line: at.row as usize, problem: format!("column {}: {problem}", at.col) })
}
