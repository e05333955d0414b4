//! Validation: converts the sections of a topology file to a consistent topology.

use super::controller::{check_nodes, controller};
use super::file::{File, GroupSection, KindName, LinkSection, NodeSection, RunSection, psn, qpn};
use super::{End, GroupPlan, Kind, Link, Lists, Node, Operation, Pair, ReceiverPlan, Topology, Transfer, TreePlan};
use crate::command;
use srdma_toml_error::Problem;
use srdma_wire::{PathMtu, Prefix, Psn, Qpn};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use toml::{Spanned, Value};

/// The kernel's limit for names of interfaces is 16 octets with the final zero.
const MAX_INTERFACE_NAME: usize = 15;

/// Namespace names are file names, and labs and nodes share one.
const MAX_NAME: usize = 32;

const DEFAULT_MTU: u32 = 9000;
const MTUS: std::ops::RangeInclusive<u32> = 1280..=15_000;

pub(super) type Checked<T> = Result<T, Problem>;

pub(super) fn wrong<T>(at: usize, text: impl Into<String>) -> Checked<T> {
    Err(Problem::new(at, text))
}

/// Reads and checks a file.
pub(super) fn topology(file: &Path, text: &str) -> Checked<Topology> {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_name(&name) {
        return wrong(0, format!("the lab is named after its file, and {name:?} is no name: {NAMES}"));
    }
    let file: File = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
    let mut nodes: Vec<Node> = Vec::new();
    for section in &file.node {
        let node = node(section)?;
        if nodes.iter().any(|other| other.name == node.name) {
            return wrong(section.name.span().start, format!("there is a node {} already", node.name));
        }
        check_addresses(section, &node, &nodes)?;
        nodes.push(node);
    }
    let mut links: Vec<Link> = Vec::new();
    for section in &file.link {
        let link = link(section.get_ref(), &nodes)?;
        check_link(section.span().start, &link, &links, &nodes)?;
        links.push(link);
    }
    let group = file.group.as_ref().map(|section| group(section, &nodes, &links)).transpose()?;
    let controller = file.controller.as_ref().map(|section| controller(section, &nodes)).transpose()?;
    check_nodes(&file.node, controller.is_some())?;
    let controlled = file.controller.as_ref().and_then(|section| section.group.as_ref());
    if let (Some(section), Some(_)) = (controlled, &group) {
        return wrong(section.source.span().start, "the lab has a [group]: expected no [controller.group] beside it");
    }
    let pairs = pairs(&file.run, &nodes, group.is_some() || controlled.is_some())?;
    let transfer = transfer(&file.run)?;
    let (description, shortest_path_routes) = (file.description, file.shortest_path_routes);
    Ok(Topology { name, description, nodes, links, shortest_path_routes, group, controller, pairs, transfer })
}

const NAMES: &str = "expected 1 to 32 letters, digits and hyphens, the first a letter";

fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    starts && name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn node(section: &NodeSection) -> Checked<Node> {
    let (at, name) = (section.name.span().start, section.name.get_ref());
    if !is_name(name) {
        return wrong(at, format!("{name:?} is no name of a node: {NAMES}"));
    }
    if name == crate::network::WIRES {
        return wrong(at, format!("{name} is the name of the namespace that the links pass, expected another"));
    }
    let kind = match (section.kind, &section.config) {
        (KindName::Srdma, config) => {
            Kind::Srdma { config: config.as_ref().map(|c| c.get_ref().clone()).unwrap_or_default() }
        }
        (_, Some(config)) => {
            return wrong(config.span().start, format!("only nodes of kind srdma have a config: {name}"));
        }
        (KindName::Router, None) => Kind::Router,
        (KindName::Endpoint, None) => Kind::Endpoint,
        (KindName::Guest, None) => Kind::Guest,
    };
    if kind.is_host() && section.addresses.is_empty() {
        return wrong(at, format!("host {name} needs an address"));
    }
    let prefixes = section.prefixes.iter().map(prefix).collect::<Checked<_>>()?;
    let mut sysctls = Vec::new();
    for (key, value) in &section.sysctls {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            _ => return wrong(at, format!("sysctl {key} of {name}: expected a string or an integer")),
        };
        sysctls.push((key.clone(), value));
    }
    if let Some(options) = section.options.as_ref().filter(|_| kind != Kind::Endpoint) {
        return wrong(options.span().start, format!("only nodes of kind endpoint have options: {name}"));
    }
    Ok(Node {
        name: name.clone(),
        kind,
        addresses: section.addresses.iter().map(|address| *address.get_ref()).collect(),
        prefixes,
        sysctls,
        commands: section.commands.iter().map(|line| command::words(line)).filter(|words| !words.is_empty()).collect(),
        options: section.options.as_ref().map(|options| options.get_ref().clone()).unwrap_or_default(),
    })
}

/// That no other node has the same addresses or prefixes: an address, and a SID above all, is one node's.
fn check_addresses(section: &NodeSection, node: &Node, others: &[Node]) -> Checked<()> {
    let addresses = section.addresses.iter().map(|address| (address.span().start, Prefix::host(*address.get_ref())));
    let prefixes = section.prefixes.iter().zip(&node.prefixes).map(|(text, prefix)| (text.span().start, *prefix));
    for (at, own) in addresses.chain(prefixes) {
        let has = |other: &&Node| {
            other.prefixes.contains(&own) || other.addresses.iter().any(|address| Prefix::host(*address) == own)
        };
        if let Some(other) = others.iter().find(has) {
            return wrong(at, format!("{own} of {} is {}'s already", node.name, other.name));
        }
    }
    Ok(())
}

pub(super) fn prefix(text: &Spanned<String>) -> Checked<Prefix> {
    let parsed = address_and_length(text.get_ref()).and_then(|(address, length)| Prefix::new(address, length));
    match parsed {
        Some(prefix) => Ok(prefix),
        None => wrong(text.span().start, format!("{:?}: expected a prefix such as 2001:db8::/32", text.get_ref())),
    }
}

/// `address/length`.
fn address_and_length(text: &str) -> Option<(Ipv6Addr, u8)> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok().filter(|length| *length <= 128)?;
    Some((address.parse().ok()?, length))
}

/// The same of either version.
fn interface_address(text: &str) -> Option<(IpAddr, u8)> {
    match text.split_once('/')?.0.parse().ok()? {
        IpAddr::V6(_) => address_and_length(text).map(|(address, length)| (address.into(), length)),
        address @ IpAddr::V4(_) => {
            let length = text.split_once('/')?.1.parse().ok().filter(|length| *length <= 32)?;
            Some((address, length))
        }
    }
}

pub(super) fn find(nodes: &[Node], name: &Spanned<String>) -> Checked<usize> {
    match nodes.iter().position(|node| node.name == *name.get_ref()) {
        Some(position) => Ok(position),
        None => {
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            wrong(name.span().start, format!("unknown node {}: nodes are {}", name.get_ref(), names.join(", ")))
        }
    }
}

fn link(section: &LinkSection, nodes: &[Node]) -> Checked<Link> {
    let [a, b] = &section.ends;
    let [a, b] = [find(nodes, a)?, find(nodes, b)?];
    if a == b {
        return wrong(section.ends[1].span().start, format!("the link begins and ends at {}", nodes[a].name));
    }
    let end = |node: usize, other: usize, index: usize| {
        let interface = match &section.interfaces {
            Some(names) => interface(&names[index])?,
            None => nodes[other].name.to_ascii_lowercase().chars().take(MAX_INTERFACE_NAME).collect(),
        };
        let mut addresses = Vec::new();
        for text in &section.addresses[index] {
            match interface_address(text.get_ref()) {
                Some(address) => addresses.push(address),
                None => {
                    let expected = "expected an address with its prefix length, as 2001:db8::1/64 or 192.0.2.1/24";
                    return wrong(text.span().start, expected);
                }
            }
        }
        Ok(End { node, interface, addresses })
    };
    let ends = [end(a, b, 0)?, end(b, a, 1)?];
    let mtu = section.mtu.as_ref().map_or(DEFAULT_MTU, |mtu| *mtu.get_ref());
    if let Some(section) = section.mtu.as_ref().filter(|_| !MTUS.contains(&mtu)) {
        return wrong(section.span().start, format!("mtu {mtu}: expected {} to {}", MTUS.start(), MTUS.end()));
    }
    if let Some(rate) = section.rate_bits_per_s.as_ref().filter(|rate| *rate.get_ref() < 1000) {
        return wrong(rate.span().start, "expected a rate of at least 1000 bits per second");
    }
    if let Some(loss) = section.loss.as_ref().filter(|loss| !(0.0..=1.0).contains(loss.get_ref())) {
        return wrong(loss.span().start, "expected a probability from 0 to 1");
    }
    Ok(Link {
        name: format!("{}-{}", nodes[a].name, nodes[b].name),
        ends,
        mtu,
        rate_bits_per_s: section.rate_bits_per_s.as_ref().map(|rate| *rate.get_ref()),
        loss: section.loss.as_ref().map_or(0.0, |loss| *loss.get_ref()),
    })
}

fn interface(name: &Spanned<String>) -> Checked<String> {
    let text = name.get_ref();
    let is_good = (1..=MAX_INTERFACE_NAME).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && !matches!(text.as_str(), "." | ".." | "lo");
    if is_good { Ok(text.clone()) } else { wrong(name.span().start, format!("{text:?} is no name of an interface")) }
}

/// That the link's interfaces are new, and that a host has only one.
fn check_link(at: usize, link: &Link, others: &[Link], nodes: &[Node]) -> Checked<()> {
    for end in &link.ends {
        let node = &nodes[end.node];
        for other in others.iter().flat_map(|other| &other.ends).filter(|other| other.node == end.node) {
            if other.interface == end.interface {
                let text = format!("{} has an interface {} already: name this one", node.name, end.interface);
                return wrong(at, format!("{text} in interfaces = [\"…\", \"…\"]"));
            }
            if node.kind.is_host() {
                return wrong(at, format!("{} is a host and has a link already", node.name));
            }
        }
    }
    Ok(())
}

fn group(section: &Spanned<GroupSection>, nodes: &[Node], links: &[Link]) -> Checked<GroupPlan> {
    let (start, section) = (section.span().start, section.get_ref());
    let mut tree: Vec<TreePlan> = Vec::new();
    for entry in &section.node {
        let at = entry.node.span().start;
        let node = find(nodes, &entry.node)?;
        if !matches!(nodes[node].kind, Kind::Srdma { .. }) {
            return wrong(at, format!("{} is in the tree, so it must be of kind srdma", nodes[node].name));
        }
        let parent = match &entry.parent {
            Some(parent) => Some(find_in_tree(&tree, nodes, parent)?),
            None if tree.is_empty() => None,
            None => return wrong(at, format!("{} needs a parent: only the first node has none", nodes[node].name)),
        };
        tree.push(TreePlan {
            node,
            parent,
            loopback: entry.loopback,
            sid: entry.sid,
            parent_sid: entry.parent_sid,
            multicast: entry.multicast,
        });
    }
    let mut receivers = Vec::new();
    for entry in &section.receiver {
        let node = find_host(nodes, &entry.node)?;
        receivers.push(ReceiverPlan { node, edge: find_in_tree(&tree, nodes, &entry.edge)? });
    }
    if tree.is_empty() || receivers.is_empty() {
        return wrong(start, "a group needs at least one [[group.node]] and one [[group.receiver]]");
    }
    let designated_qpn = designated_qpn(&section.designated_qpn)?;
    let initial_psn = initial_psn(&section.initial_psn)?;
    let least = links.iter().map(|link| link.mtu).min().unwrap_or(DEFAULT_MTU);
    let link_mtu = section.link_mtu.as_ref().map_or(least, |mtu| *mtu.get_ref());
    let link_mtu = match u16::try_from(link_mtu) {
        Ok(mtu) if MTUS.contains(&u32::from(mtu)) => mtu,
        _ => return wrong(start, format!("link_mtu {link_mtu}: expected {} to {}", MTUS.start(), MTUS.end())),
    };
    let source = find_host(nodes, &section.source)?;
    let (proxy, policy) = (section.proxy, section.policy.clone());
    Ok(GroupPlan { proxy, designated_qpn, initial_psn, source, link_mtu, tree, receivers, policy })
}

pub(super) fn designated_qpn(number: &Spanned<u32>) -> Checked<Qpn> {
    let wrong = || wrong(number.span().start, "expected a QPN from 2 to 0xffffff");
    qpn(*number.get_ref()).map_or_else(wrong, Ok)
}

pub(super) fn initial_psn(number: &Spanned<u32>) -> Checked<Psn> {
    let wrong = || wrong(number.span().start, "expected a PSN from 0 to 0xffffff");
    psn(*number.get_ref()).map_or_else(wrong, Ok)
}

pub(super) fn find_host(nodes: &[Node], name: &Spanned<String>) -> Checked<usize> {
    let node = find(nodes, name)?;
    if nodes[node].kind.is_host() {
        return Ok(node);
    }
    wrong(name.span().start, format!("{} must be a host: of kind endpoint or guest", name.get_ref()))
}

fn find_in_tree(tree: &[TreePlan], nodes: &[Node], name: &Spanned<String>) -> Checked<usize> {
    let position = tree.iter().position(|entry| nodes[entry.node].name == *name.get_ref());
    let known: Vec<&str> = tree.iter().map(|entry| nodes[entry.node].name.as_str()).collect();
    let text = || format!("{} does not stand in the tree before: there are {}", name.get_ref(), known.join(", "));
    position.map_or_else(|| wrong(name.span().start, text()), Ok)
}

/// Pairs of source and receiver in a lab without a group.
fn pairs(section: &RunSection, nodes: &[Node], has_group: bool) -> Checked<Vec<Pair>> {
    let named = match (&section.source, &section.destination, &section.pairs) {
        (None, None, pairs) => pairs.iter().flatten().map(|[source, destination]| (source, destination)).collect(),
        (Some(source), Some(destination), None) => vec![(source, destination)],
        (Some(only), None, None) | (None, Some(only), None) => {
            return wrong(only.span().start, "source and destination stand together");
        }
        (Some(one), _, Some(_)) | (None, Some(one), Some(_)) => {
            return wrong(one.span().start, "expected source and destination, or pairs of them, not both");
        }
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for (source, destination) in named {
        if has_group {
            return wrong(source.span().start, "the [group] has a source, and receivers: expected none in [run]");
        }
        let next = pair(source, destination, nodes, &pairs)?;
        pairs.push(next);
    }
    Ok(pairs)
}

/// One more pair. A source sends to one destination; a destination has an address of its own for each source, since
/// each has its own process and socket there.
fn pair(source: &Spanned<String>, destination: &Spanned<String>, nodes: &[Node], others: &[Pair]) -> Checked<Pair> {
    let endpoint = |name: &Spanned<String>| match find(nodes, name)? {
        node if nodes[node].kind == Kind::Endpoint => Ok(node),
        _ => wrong(name.span().start, format!("{} must be of kind endpoint", name.get_ref())),
    };
    let [from, to] = [endpoint(source)?, endpoint(destination)?];
    if from == to {
        return wrong(destination.span().start, format!("{} is the source", destination.get_ref()));
    }
    if others.iter().any(|other| other.source == from || other.destination == from) {
        return wrong(source.span().start, format!("{} has a part in another pair already", source.get_ref()));
    }
    if others.iter().any(|other| other.source == to) {
        return wrong(destination.span().start, format!("{} is the source of another pair", destination.get_ref()));
    }
    let taken = others.iter().filter(|other| other.destination == to).count();
    match nodes[to].addresses.get(taken) {
        Some(address) => Ok(Pair { source: from, destination: to, address: *address }),
        None => {
            let text = format!("{} needs an address for each pair: expected {}", nodes[to].name, taken + 1);
            wrong(destination.span().start, text)
        }
    }
}

fn transfer(section: &RunSection) -> Checked<Transfer> {
    if let Some(size) = section.size_octets.as_ref().filter(|size| *size.get_ref() == 0) {
        return wrong(size.span().start, "expected at least 1 octet");
    }
    let path_mtu = match section.path_mtu.as_ref().map(|octets| (octets.span().start, u32::from(*octets.get_ref()))) {
        None => PathMtu::Octets4096,
        Some((at, octets)) => match PathMtu::from_octets(octets) {
            Some(path_mtu) => path_mtu,
            None => return wrong(at, "expected a path MTU of 256, 512, 1024, 2048 or 4096"),
        },
    };
    Ok(Transfer {
        size_octets: section.size_octets.as_ref().map_or(64 << 20, |size| *size.get_ref()),
        path_mtu,
        operation: section.operation.unwrap_or(Operation::Write),
        lists: section.lists.unwrap_or(Lists::Tlv),
        timeout_s: section.timeout_s.as_ref().map_or(120, |time| *time.get_ref()),
    })
}
