//! The fabric, coloured by congestion.

use super::{Material, VariantView};
use crate::VariantResult;
use crate::results::PortResult;
use srdma_fabric::NodeId;
use srdma_report::{Block, Picture, PictureLink, PictureNode, Section, Unit};
use std::collections::BTreeMap;

/// Measure that colours the links.
struct Colouring {
    measure: &'static str,
    unit: Unit,
    /// The value of each direction of a link, by the name of the port that sends there.
    of: fn(&VariantResult) -> Vec<(&str, u64)>,
    look_for: &'static str,
}

const PAUSE: Colouring = Colouring {
    measure: "time paused",
    unit: Unit::Nanoseconds,
    of: |run| of_ports(run, |port| port.paused_ns),
    look_for: "Paused links. Colour far from the receiver means that congestion has spread.",
};

const QUEUE: Colouring = Colouring {
    measure: "peak queue",
    unit: Unit::Octets,
    of: |run| of_ports(run, |port| port.peak_octets),
    look_for: "Queues. Strong colours should appear at the receiver only.",
};

const LOAD: Colouring = Colouring {
    measure: "busy time",
    unit: Unit::Nanoseconds,
    of: |run| run.links.iter().map(|link| (link.name.as_str(), link.busy_ns)).collect(),
    look_for: "Load of links. With good placement all links between two tiers have the same colour.",
};

fn of_ports(run: &VariantResult, of: fn(&PortResult) -> u64) -> Vec<(&str, u64)> {
    run.ports.iter().map(|port| (port.name.as_str(), of(port))).collect()
}

pub(super) fn section(material: &Material<'_>) -> Section {
    let mut blocks = Vec::new();
    for colouring in [&LOAD, &PAUSE, &QUEUE] {
        let values = material.results.runs.iter().flat_map(|run| (colouring.of)(run));
        if values.into_iter().any(|(_, value)| value > 0) {
            blocks.extend(pictures(material, colouring));
        }
    }
    if blocks.is_empty() {
        blocks.extend(pictures(material, &QUEUE));
    }
    let topology = &material.scenario.topology;
    let lead = format!(
        "{} hosts (dots) below {} switches (boxes) in {} tiers. The colour of a link shows the larger value of its two \
         directions, with seed {}, on the same scale in all variants; queues and pauses at ports of hosts are not \
         included.",
        topology.hosts().len(),
        topology.switches().len(),
        topology.tiers(),
        material.shown_seed()
    );
    Section { heading: "Fabric".to_owned(), lead, blocks }
}

/// A picture of the baseline, and those of the other variants on demand.
fn pictures(material: &Material<'_>, colouring: &Colouring) -> Vec<Block> {
    let values =
        material.variants.iter().filter_map(|variant| variant.runs.first()).flat_map(|run| (colouring.of)(run));
    let greatest = values.map(|(_, value)| value).max().unwrap_or(0) as f64;
    let picture = |variant| Block::Picture(picture(material, variant, colouring, greatest));
    let mut blocks: Vec<Block> = material.variants.get(material.baseline).map(picture).into_iter().collect();
    let others = material.variants.iter().enumerate().filter(|(index, _)| *index != material.baseline);
    let others: Vec<Block> = others.map(|(_, variant)| picture(variant)).collect();
    if !others.is_empty() {
        blocks.push(Block::Folded(format!("The other variants: {}", colouring.measure), others));
    }
    blocks
}

fn picture(material: &Material<'_>, variant: &VariantView<'_>, colouring: &Colouring, greatest: f64) -> Picture {
    let topology = &material.scenario.topology;
    let mut values: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, value) in variant.runs.first().into_iter().flat_map(|run| (colouring.of)(run)) {
        values.insert(name, value as f64);
    }
    let roles = roles(material, variant);
    let host_node = |host: &srdma_fabric::Host| PictureNode {
        name: host.name.clone(),
        tier: 0,
        role: roles.get(host.name.as_str()).copied().unwrap_or_default().to_owned(),
    };
    let switch_node = |switch: &srdma_fabric::Switch| PictureNode {
        name: switch.name.clone(),
        tier: switch.tier,
        role: String::new(),
    };
    let hosts = topology.hosts().len();
    let position = |node| match node {
        NodeId::Host(host) => host.index(),
        NodeId::Switch(switch) => hosts + switch.index(),
    };
    let link = |link: &srdma_fabric::Link| {
        let [a, b] = link.ends.map(|end| topology.name(end.node));
        let both = [format!("{a}-{b}"), format!("{b}-{a}")];
        let value = both.iter().filter_map(|name| values.get(name.as_str()).copied()).fold(0.0, f64::max);
        PictureLink { ends: link.ends.map(|end| position(end.node)), value: Some(value) }
    };
    Picture {
        title: format!("{}: {}", variant.title(), colouring.measure),
        look_for: colouring.look_for.to_owned(),
        nodes: topology.hosts().iter().map(host_node).chain(topology.switches().iter().map(switch_node)).collect(),
        links: topology.links().iter().map(link).collect(),
        measure: colouring.measure.to_owned(),
        unit: colouring.unit,
        greatest: Some(greatest),
    }
}

/// Roles of hosts in the displayed run.
fn roles<'a>(material: &'a Material<'_>, variant: &VariantView<'a>) -> BTreeMap<&'a str, &'static str> {
    let (scenario, mut roles) = (material.scenario, BTreeMap::new());
    let name = |host| scenario.topology.name(NodeId::Host(host));
    for flow in variant.runs.first().into_iter().flat_map(|run| &run.flows) {
        if flow.kind == crate::results::FlowKind::Incast {
            roles.insert(flow.source.as_str(), "incast sender");
        }
    }
    for (from, to) in scenario.workloads.stream.iter().filter_map(|stream| stream.ends(&scenario.topology)) {
        roles.insert(name(from), "endpoint of the victim stream");
        roles.insert(name(to), "endpoint of the victim stream");
    }
    for receiver in scenario.workloads.incast.iter().filter_map(|incast| incast.receiver(&scenario.topology)) {
        roles.insert(name(receiver), "incast receiver");
    }
    roles
}
