//! Namespaces, links, addresses and routes: everything below the processes.
//!
//! A link is two veth pairs whose inner ends meet in the namespace [`WIRES`]:
//!
//! ```text
//!   namespace of A         namespace `wires`          namespace of B
//!   ┌────────────┐   ┌───────────────────────────┐   ┌────────────┐
//!   │        [b]─┼───┼─[l3a]  ⇄  mirrored  ⇄ [l3b]─┼───┼─[a]        │
//!   └────────────┘   └───────────────────────────┘   └────────────┘
//! ```
//!
//! Loss and rate are applied there, and captures taken, so that they are the same for every driver of a node: AF_XDP
//! bypasses queueing disciplines and packet sockets of the node's own namespace.

use crate::command;
use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::namespace;
use crate::topology::{End, Kind, Link, Node, Topology};
use std::net::Ipv6Addr;
use std::path::Path;

/// The name, beside those of the nodes, of the namespace that all links pass.
pub const WIRES: &str = "wires";

/// A packet is dropped if a random number of classic BPF is below a threshold; others pass to the next filter.
const BPF_RANDOM: u32 = 0xFFFF_F000 + 56;

/// Queue in front of a link with a rate.
const RATE_QUEUE_OCTETS: u64 = 2 << 20;

/// The end of a link: the first or the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }

    /// The link-local address of an interface at this end.
    pub fn link_local(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, self as u16 + 1)
    }

    /// The MAC address of the interface at this end of a link.
    pub fn mac(self, link: usize) -> String {
        format!("02:5d:00:{:02x}:{:02x}:{:02x}", link >> 8, link & 0xFF, self as u8 + 1)
    }

    /// The interface in [`WIRES`] that this end of a link is connected to.
    pub fn wire(self, link: usize) -> String {
        match self {
            Side::A => format!("l{link}a"),
            Side::B => format!("l{link}b"),
        }
    }

    /// This end of a link.
    pub fn of(self, link: &Link) -> &End {
        &link.ends[self as usize]
    }
}

/// All namespaces of a lab: those of its nodes, and that of its links.
pub(crate) fn namespaces(instance: &Instance, topology: &Topology) -> Vec<String> {
    let names = topology.nodes.iter().map(|node| node.name.as_str()).chain([WIRES]);
    names.map(|name| instance.namespace(name)).collect()
}

/// Makes the namespaces, with their settings, and the links between them, with addresses and routes.
pub(crate) fn build(instance: &Instance, topology: &Topology) -> Result<()> {
    let wires = instance.namespace(WIRES);
    namespace::add(&wires)?;
    sysctls(&wires, &[("net.ipv6.conf.default.disable_ipv6".to_owned(), "1".to_owned())])?;
    for node in &topology.nodes {
        let name = instance.namespace(&node.name);
        namespace::add(&name)?;
        sysctls(&name, &settings(node))?;
        ip(&name, loopback(node))?;
    }
    for (position, link) in topology.links.iter().enumerate() {
        for side in Side::BOTH {
            let node = &topology.nodes[side.of(link).node];
            attach(&wires, &instance.namespace(&node.name), position, link, side, node)?;
        }
        for side in Side::BOTH {
            join(&wires, position, link, side)?;
        }
        // Last, so that the first frame finds a link.
        for end in &link.ends {
            let name = instance.namespace(&topology.nodes[end.node].name);
            command::run(&format!("ip -n {name} link set {} up", end.interface))?;
        }
    }
    for (position, node) in topology.nodes.iter().enumerate() {
        let name = instance.namespace(&node.name);
        ip(&name, crate::routes::lines(topology, position))?;
        for line in &node.commands {
            let directory = instance.directory().to_string_lossy().into_owned();
            let words: Vec<String> = line.iter().map(|word| word.replace("{directory}", &directory)).collect();
            let inside = ["ip", "netns", "exec", &name].into_iter().chain(words.iter().map(String::as_str));
            command::run_words(&inside.collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// One end of a link: the interface in the node's namespace, and its peer among the wires.
fn attach(wires: &str, namespace: &str, position: usize, link: &Link, side: Side, node: &Node) -> Result<()> {
    let (wire, mac, mtu) = (side.wire(position), side.mac(position), link.mtu);
    let interface = &side.of(link).interface;
    let veth = format!("link add {wire} mtu {mtu} type veth peer name {interface} mtu {mtu} address {mac}");
    command::run(&format!("ip -n {wires} {veth} netns {namespace}"))?;
    command::run(&format!("ip -n {wires} link set {wire} up"))?;
    command::run(&format!("ip netns exec {namespace} {}", offloads(interface)))?;
    ip(namespace, addresses(node, link, side))
}

/// Runs `ip` in a namespace, once with each of these arguments.
fn ip(namespace: &str, lines: Vec<String>) -> Result<()> {
    lines.iter().try_for_each(|line| command::run(&format!("ip -n {namespace} {line}")).map(drop))
}

/// `ip` commands for a node's loopback interface.
pub(crate) fn loopback(node: &Node) -> Vec<String> {
    let addresses = node.addresses.iter().filter(|_| !node.kind.is_host());
    let addresses = addresses.map(|address| format!("addr add {address}/128 dev lo nodad"));
    ["link set lo up".to_owned()].into_iter().chain(addresses).collect()
}

/// `ip` commands for the addresses of a link's interface at a node.
pub(crate) fn addresses(node: &Node, link: &Link, side: Side) -> Vec<String> {
    let has_stack = node.kind != Kind::Guest;
    let own = node.addresses.iter().filter(|_| node.kind == Kind::Endpoint).map(|address| ((*address).into(), 128));
    let End { interface, addresses, .. } = side.of(link);
    let all = own.chain([(side.link_local().into(), 64)]).chain(addresses.iter().copied()).filter(|_| has_stack);
    all.map(|(address, length)| format!("addr add {address}/{length} dev {interface} nodad")).collect()
}

/// The command that makes an interface send and receive packets as on a wire: without segmentation, coalescing and
/// checksum offloads of a veth.
pub(crate) fn offloads(interface: &str) -> String {
    format!("ethtool -K {interface} tx off tso off gso off gro off tx-udp-segmentation off")
}

/// Connects both ends: frames received at one are sent at the other.
fn join(wires: &str, position: usize, link: &Link, side: Side) -> Result<()> {
    let (from, to) = (side.wire(position), side.other().wire(position));
    command::run(&format!("tc -n {wires} qdisc add dev {from} clsact"))?;
    set_loss(wires, &from, link.loss)?;
    // Not by `redirect`, whose mark on the frame keeps programs of generic XDP from seeing it at the other end.
    let across = format!("u32 match u32 0 0 action mirred egress mirror dev {to}");
    command::run(&format!("tc -n {wires} filter add dev {from} ingress protocol all prio 2 {across}"))?;
    if let Some(rate) = link.rate_bits_per_s {
        // A burst of what passes in 2 ms, or of some packets where that is more.
        let burst = (rate / 8 / 500).max(8 * u64::from(link.mtu));
        let shaper = format!("tbf rate {rate}bit burst {burst}b limit {RATE_QUEUE_OCTETS}b");
        command::run(&format!("tc -n {wires} qdisc add dev {to} root {shaper}"))?;
    }
    Ok(())
}

/// Drops frames that come in from one end with this probability.
fn set_loss(wires: &str, from: &str, loss: f64) -> Result<()> {
    if loss == 0.0 {
        return Ok(());
    }
    // ld rand; jge threshold, pass on; else drop.
    let threshold = (loss * f64::from(u32::MAX)) as u32;
    let program = format!("4,32 0 0 {BPF_RANDOM},53 0 1 {threshold},6 0 0 {},6 0 0 {TC_ACT_SHOT}", u32::MAX);
    let line = format!("tc -n {wires} filter add dev {from} ingress protocol all prio 1 bpf direct-action bytecode");
    let words: Vec<&str> = line.split_whitespace().chain([program.as_str()]).collect();
    command::run_words(&words).map(drop)
}

const TC_ACT_SHOT: u32 = 2;

/// A node's kernel settings. Addresses are the lab's business alone: none is made up or waited for.
pub(crate) fn settings(node: &Node) -> Vec<(String, String)> {
    let forwarding = if node.kind.is_host() { "0" } else { "1" };
    let common = [
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.all.forwarding", forwarding),
        ("net.ipv6.conf.default.forwarding", forwarding),
    ];
    let common = common.map(|(key, value)| (key.to_owned(), value.to_owned()));
    common.into_iter().chain(node.sysctls.iter().cloned()).collect()
}

fn sysctls(name: &str, settings: &[(String, String)]) -> Result<()> {
    let settings = settings.to_vec();
    namespace::enter(name, move || {
        settings.iter().try_for_each(|(key, value)| {
            let path = Path::new("/proc/sys").join(key.replace('.', "/"));
            std::fs::write(&path, value).map_err(LabError::file("write", &path))
        })
    })?
}
