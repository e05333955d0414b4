//! Dumps of NCCL: its rings and trees (`NCCL_GRAPH_DUMP_FILE`), or the NICs of a server (`NCCL_TOPO_DUMP_FILE`); its
//! log (`NCCL_DEBUG=INFO`) is read by [`log`].
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
//! servers. Of graphs, either rings or trees are read: NCCL uses one or the other for a collective.
//!
//! The servers are the ranks of two binary trees, in both of which each channel of a tree has a part (D267). Toward its
//! parent a server uses the first NIC of the channel; toward its children the pattern says which:
//!
//! | pattern | lower child | upper child |
//! |---|---|---|
//! | 1, balanced | second NIC | first NIC |
//! | 2, split | second NIC | second NIC |
//! | 3, tree | first NIC | first NIC |
//!
//! NCCL documents the variables, not the files: these are as `src/graph/xml.cc`, `search.cc`, `connect.cc` and
//! `trees.cc` of NCCL 2.18 and later write and use them, with pattern 4 for rings, and as reports to its maintainers
//! quote them (NVIDIA/nccl issues 392, 524 and 1313).

mod log;

use crate::double_tree::{TREES, children, parent};
use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use roxmltree::{Document, Node, ParsingOptions};
use srdma_fabric::{HostId, MOST_BITS_PER_S, Topology};
use srdma_toml_error::LineError;

pub use log::flows_from_nccl_log;

/// The pattern of rings (`NCCL_TOPO_PATTERN_RING`).
const RING: &str = "4";

/// Patterns of trees.
const BALANCED_TREE: &str = "1";
const SPLIT_TREE: &str = "2";
const TREE: &str = "3";

/// Parts of the rate of a channel of trees: a server sends to a parent in both trees, and to two children in one.
const TREE_PARTS: f64 = 4.0;

/// How NCCL carries a collective out.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclAlgorithm {
    Ring,
    Tree,
}

impl NcclAlgorithm {
    /// Its name, that of its part of a plan.
    pub fn name(self) -> &'static str {
        match self {
            NcclAlgorithm::Ring => "ring",
            NcclAlgorithm::Tree => "tree",
        }
    }
}

/// Nodes of a file, at most: a dump has some thousands.
const MOST_NODES: u32 = 1_000_000;

/// Reads the flows of a job whose servers are named by prefixes of their NICs' names: NIC n of `h1.3.` is the n-th
/// host, from 0, whose name begins so.
///
/// # Errors
///
/// Names the line and the column in error, the found and the expected value.
pub fn flows_from_nccl(
    text: &str,
    topology: &Topology,
    servers: &[String],
    algorithm: NcclAlgorithm,
) -> Result<Vec<ListedFlow>, LineError> {
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        LineError { line: at.row as usize, problem: format!("column {}: {error}", at.col) }
    })?;
    let root = document.root_element();
    let hops = match (root.tag_name().name(), algorithm) {
        ("graphs", NcclAlgorithm::Ring) => hops_of_rings(rings_of_graphs(root)?, servers.len()),
        ("graphs", NcclAlgorithm::Tree) => hops_of_trees(root, servers.len())?,
        ("system", NcclAlgorithm::Ring) => hops_of_rings(rings_of_system(root)?, servers.len()),
        ("system", NcclAlgorithm::Tree) => return wrong(root, "a topology has no trees: expected <graphs>".to_owned()),
        (other, _) => return wrong(root, format!("<{other}> is no dump of NCCL: expected <graphs> or <system>")),
    };
    if servers.len() < 2 {
        let text = "the file is about one server: name the job's servers, two or more, by the beginnings of their NICs";
        return wrong(root, text.to_owned());
    }
    let nics: Vec<Vec<HostId>> = servers.iter().map(|server| topology.hosts_beginning(server)).collect();
    let flow = |Hop { node, from, to, rate_bits_per_s }: Hop<'_>| {
        let nic = |(server, number): (usize, usize)| match nics[server].get(number) {
            Some(host) => Ok(*host),
            None => {
                let (name, found) = (&servers[server], nics[server].len());
                wrong(node, format!("NIC {number} is needed, but {found} hosts of this fabric begin with {name}"))
            }
        };
        let ends = (nic(from)?, nic(to)?);
        if ends.0 == ends.1 {
            return wrong(node, format!("{} stands for the same NIC as {}", servers[from.0], servers[to.0]));
        }
        let flow = Flow { from: ends.0, to: ends.1, rate_bits_per_s };
        Ok(ListedFlow { flow, job: JOB.to_owned(), part: algorithm.name().to_owned(), tenant: None })
    };
    hops.into_iter().map(flow).collect()
}

/// The name of the job that a dump or a log is about.
const JOB: &str = "nccl";

/// Data from a NIC of a server to one of another: numbers of servers and of their NICs.
struct Hop<'a> {
    /// Its element.
    node: Node<'a, 'a>,
    from: (usize, usize),
    to: (usize, usize),
    rate_bits_per_s: u64,
}

/// Each ring goes from server to server.
fn hops_of_rings(rings: Vec<Ring<'_>>, servers: usize) -> Vec<Hop<'_>> {
    let hops = |Ring { node, enters, leaves, rate_bits_per_s }| {
        let hop =
            move |server| Hop { node, from: (server, leaves), to: ((server + 1) % servers, enters), rate_bits_per_s };
        (0..servers).map(hop)
    };
    rings.into_iter().flat_map(hops).collect()
}

/// Both trees of each channel: from every server to its parent, and back.
fn hops_of_trees<'a>(root: Node<'a, 'a>, servers: usize) -> Result<Vec<Hop<'a>>, LineError> {
    let mut hops = Vec::new();
    let mut found = false;
    for graph in children_named(root, "graph") {
        let pattern = graph.attribute("pattern").unwrap_or_default();
        if ![BALANCED_TREE, SPLIT_TREE, TREE].contains(&pattern) {
            continue;
        }
        for node in children_named(graph, "channel") {
            let Some([first, second]) = nics_of(node)? else { continue };
            let speed: f64 = number(graph, "speedinter", "gigabytes a second")?;
            let rate_bits_per_s = rate(graph, "speedinter", speed * 8e9 / TREE_PARTS)?;
            let lower = if pattern == TREE { first } else { second };
            let upper = if pattern == SPLIT_TREE { second } else { first };
            found = true;
            for (tree, server) in (0..TREES).flat_map(|tree| (0..servers).map(move |server| (tree, server))) {
                let count = servers as u32;
                let Some(parent) = parent(count, tree, server as u32) else { continue };
                let is_lower = children(count, tree, parent)[0] == Some(server as u32);
                let ends = [(server, first), (parent as usize, if is_lower { lower } else { upper })];
                hops.push(Hop { node, from: ends[0], to: ends[1], rate_bits_per_s });
                hops.push(Hop { node, from: ends[1], to: ends[0], rate_bits_per_s });
            }
        }
    }
    match found {
        true => Ok(hops),
        false => {
            wrong(root, "no tree (pattern 1 to 3) has a channel with a NIC: was the job on one server?".to_owned())
        }
    }
}

/// The NICs of a channel: the first and the last, which may be the same; `None` if it has none.
fn nics_of(channel: Node<'_, '_>) -> Result<Option<[usize; 2]>, LineError> {
    let mut nets = children_named(channel, "net");
    let Some(first) = nets.next() else { return Ok(None) };
    let first_number = number(first, "dev", "the number of a NIC")?;
    let last = nets.last().map_or(Ok(first_number), |last| number(last, "dev", "the number of a NIC"))?;
    Ok(Some([first_number, last]))
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
    for graph in children_named(root, "graph").filter(|graph| graph.attribute("pattern") == Some(RING)) {
        let speed: f64 = number(graph, "speedinter", "gigabytes a second")?;
        for node in children_named(graph, "channel") {
            let Some([enters, leaves]) = nics_of(node)? else { continue };
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

fn children_named<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn number<T: std::str::FromStr>(node: Node<'_, '_>, attribute: &str, what: &str) -> Result<T, LineError> {
    let text = node.attribute(attribute).unwrap_or_default();
    let name = node.tag_name().name();
    text.parse().or_else(|_| wrong(node, format!("<{name} {attribute}={text:?}>: expected {what}")))
}

fn rate(node: Node<'_, '_>, attribute: &str, bits_per_s: f64) -> Result<u64, LineError> {
    if (1.0..=MOST_BITS_PER_S as f64).contains(&bits_per_s) {
        return Ok(bits_per_s.round() as u64);
    }
    let name = node.tag_name().name();
    wrong(node, format!("<{name} {attribute}>: {bits_per_s} bits a second is no rate of a NIC"))
}

fn wrong<T>(node: Node<'_, '_>, problem: String) -> Result<T, LineError> {
    let at = node.document().text_pos_at(node.range().start);
    Err(LineError { line: at.row as usize, problem: format!("column {}: {problem}", at.col) })
}
