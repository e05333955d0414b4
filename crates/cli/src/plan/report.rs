//! `srdma plan place --report`: a placement as a page.

use super::placed::{Placed, PlacedFlow};
use super::text::{switches, written};
use super::why::bound_by;
use srdma_fabric::{NodeId, Port, SwitchId, Topology};
use srdma_placement::{Direction, Loads, Placement};
use srdma_report::{
    Axis, Block, HeatMap, LinePlot, Page, Picture, PictureLink, PictureNode, Reference, Section, Series, Shape, Table,
    Unit, cumulative,
};

/// Flows that are listed, at most. `--json` has all.
const MOST_FLOWS: usize = 1000;

/// Rows and columns of a heat map, at most: those that carry most are shown.
const MOST_ROWS: usize = 64;
const MOST_COLUMNS: usize = 64;

/// Colours of lines.
const PLACED: usize = 0;
const HASHED: usize = 1;

pub(super) fn page(topology: &Topology, placement: &Placement<'_>, placed: &Placed) -> Page {
    let (most, bound, ecmp) = (&placed.most_loaded, placed.bound, &placed.ecmp);
    let gap = 100.0 * (most.load / bound - 1.0).max(0.0);
    let summary = vec![
        format!(
            "{} flows between {} NICs. The most loaded link, {} to {}, carries {:.3} of its rate. No placement gets \
             below {bound:.3}, which comes from {}: this one is {gap:.1} % above.",
            placed.flows.len(),
            topology.hosts().len(),
            most.from,
            most.to,
            most.load,
            bound_by(topology, placement),
        ),
        format!(
            "Hashes of the 5-tuple (ECMP) would make a link carry {:.3} of its rate: the median of {} seeds, from \
             {:.3} to {:.3}.",
            ecmp.median, ecmp.seeds, ecmp.least, ecmp.most
        ),
    ];
    let both = [("placed", placement.loads()), ("ECMP", &ecmp.loads)];
    let greatest = most.load.max(ecmp.median);
    let pictures = both.map(|(name, loads)| Block::Picture(picture(topology, loads, name, greatest)));
    let sections = vec![
        Section {
            heading: "Loads of links".to_owned(),
            lead: "A link's load is the sum of its flows in one direction, relative to its rate.".to_owned(),
            blocks: vec![Block::Lines(distribution(topology, both, bound))],
        },
        Section {
            heading: "The fabric".to_owned(),
            lead: "The larger load of both directions of each link, on the same scale in both pictures.".to_owned(),
            blocks: pictures.into(),
        },
        heat(topology, both, greatest),
        flows(placed),
    ];
    Page {
        title: "Placement of flows".to_owned(),
        summary,
        sections,
        colophon: format!("Written by srdma {}.", env!("CARGO_PKG_VERSION")),
    }
}

/// All directions of links that have not failed.
fn directions(topology: &Topology) -> impl Iterator<Item = Direction> {
    let open = topology.link_ids().filter(|link| !topology.is_failed(*link));
    open.flat_map(|link| [false, true].map(|is_backward| Direction { link, is_backward }))
}

fn distribution(topology: &Topology, both: [(&str, &Loads); 2], bound: f64) -> LinePlot {
    let series = both.into_iter().zip([PLACED, HASHED]).map(|((name, loads), colour)| {
        let shares: Vec<f64> = directions(topology).map(|own| loads.share_with(topology, own, 0)).collect();
        // The share of links as the horizontal axis: the load of the k-th least loaded.
        let points = cumulative(&shares).into_iter().map(|(load, percent)| (percent, load)).collect();
        Series { name: name.to_owned(), colour, shape: Shape::Line, points }
    });
    LinePlot {
        title: "How evenly links are loaded".to_owned(),
        look_for: "Where the lines end on the right is the most loaded link.".to_owned(),
        x: Axis { greatest: Some(100.0), ..Axis::new("links, from the least loaded", Unit::Percent) },
        y: Axis::new("load", Unit::Times),
        series: series.collect(),
        references: vec![Reference { name: "bound".to_owned(), value: bound }],
    }
}

fn picture(topology: &Topology, loads: &Loads, name: &str, greatest: f64) -> Picture {
    let hosts = topology.hosts().len();
    let position = |node| match node {
        NodeId::Host(host) => host.index(),
        NodeId::Switch(switch) => hosts + switch.index(),
    };
    let host_nodes =
        topology.hosts().iter().map(|host| PictureNode { name: host.name.clone(), tier: 0, role: String::new() });
    let switch_nodes = topology.switches().iter().map(|switch| PictureNode {
        name: switch.name.clone(),
        tier: switch.tier,
        role: String::new(),
    });
    let link = |id| {
        let shares =
            [false, true].map(|is_backward| loads.share_with(topology, Direction { link: id, is_backward }, 0));
        let ends = topology.links()[id.index()].ends.map(|end| position(end.node));
        PictureLink { ends, value: (!topology.is_failed(id)).then_some(shares[0].max(shares[1])) }
    };
    Picture {
        title: format!("Load, {name}"),
        look_for: "Strong colours are links that carry most.".to_owned(),
        nodes: host_nodes.chain(switch_nodes).collect(),
        links: topology.link_ids().map(link).collect(),
        measure: "load".to_owned(),
        unit: Unit::Times,
        greatest: Some(greatest),
    }
}

/// A heat map for each tier that has links up, or across, and each direction of them; ECMP beside.
fn heat(topology: &Topology, both: [(&str, &Loads); 2], greatest: f64) -> Section {
    let mut blocks = Vec::new();
    for tier in 1..=topology.tiers() {
        let lower: Vec<(SwitchId, Vec<&Port>)> = topology
            .switch_ids()
            .filter(|id| topology.switches()[id.index()].tier == tier)
            .map(|id| (id, upward(topology, id)))
            .filter(|(_, ports)| !ports.is_empty())
            .collect();
        if lower.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(format!("Tier {tier}")));
        for is_up in [true, false] {
            let maps =
                both.map(|(name, loads)| Block::Heat(heat_map(topology, &lower, loads, (name, is_up), greatest)));
            blocks.push(Block::Beside(maps.into()));
        }
    }
    Section {
        heading: "Heat maps".to_owned(),
        lead:
            "Each row is a switch, each column one of its links to the tier above, or to its own. Bold is above 1: the \
               link cannot carry that."
                .to_owned(),
        blocks,
    }
}

/// A switch's ports to switches of its own tier and of those above.
fn upward(topology: &Topology, switch: SwitchId) -> Vec<&Port> {
    let tier = topology.switches()[switch.index()].tier;
    let is_upward = |port: &&Port| match port.peer.node {
        NodeId::Switch(peer) => topology.switches()[peer.index()].tier >= tier,
        NodeId::Host(_) => false,
    };
    topology.ports(NodeId::Switch(switch)).iter().filter(is_upward).collect()
}

fn heat_map(
    topology: &Topology,
    lower: &[(SwitchId, Vec<&Port>)],
    loads: &Loads,
    (name, is_up): (&str, bool),
    greatest: f64,
) -> HeatMap {
    let value = |switch: SwitchId, port: &Port| {
        let up = Direction::from(topology, NodeId::Switch(switch), port.link);
        let own = if is_up { up } else { up.reversed() };
        (!topology.is_failed(port.link)).then(|| loads.share_with(topology, own, 0))
    };
    let peers = |ports: &[&Port]| -> Vec<NodeId> { ports.iter().map(|port| port.peer.node).collect() };
    let width = lower.iter().map(|(_, ports)| ports.len()).max().unwrap_or(0).min(MOST_COLUMNS);
    // Columns have the names of the upper switches where these are the same for all rows.
    let first = lower.first().map(|(_, ports)| peers(ports)).unwrap_or_default();
    let is_same = lower.iter().all(|(_, ports)| peers(ports) == first);
    let column = |index: usize| match first.get(index).filter(|_| is_same) {
        Some(peer) => topology.name(*peer).to_owned(),
        None => format!("link {}", index + 1),
    };
    let mut rows: Vec<(String, Vec<Option<f64>>)> = lower
        .iter()
        .map(|(switch, ports)| {
            let mut values: Vec<Option<f64>> = ports.iter().take(width).map(|port| value(*switch, port)).collect();
            values.resize(width, None);
            (topology.name(NodeId::Switch(*switch)).to_owned(), values)
        })
        .collect();
    let all = rows.len();
    if all > MOST_ROWS {
        let most = |row: &(String, Vec<Option<f64>>)| row.1.iter().flatten().copied().fold(0.0, f64::max);
        rows.sort_by(|one, other| most(other).total_cmp(&most(one)));
        rows.truncate(MOST_ROWS);
    }
    let way = if is_up { "up" } else { "down" };
    let caption = match rows.len() < all {
        true => format!("{name}, {way}: {MOST_ROWS} of {all}, those that carry most"),
        false => format!("{name}, {way}"),
    };
    let columns = (0..width).map(column).collect();
    let corner = if is_up { "from" } else { "to" }.to_owned();
    HeatMap { caption, corner, columns, rows, unit: Unit::Times, greatest, limit: Some(1.0) }
}

fn flows(placed: &Placed) -> Section {
    let columns = ["from", "to", "job", "collective", "rate", "by", "destination", "backup", "reverse"];
    let row = |flow: &PlacedFlow| {
        vec![
            flow.from.clone(),
            flow.to.clone(),
            flow.job.clone(),
            flow.collective.clone(),
            Unit::BitsPerSecond.format(flow.rate_bits_per_s as f64),
            switches(&flow.path),
            written(&flow.program),
            flow.backup.as_ref().map_or("none".to_owned(), written),
            written(&flow.reverse),
        ]
    };
    let all = placed.flows.len();
    let lead = match all > MOST_FLOWS {
        true => format!("The first {MOST_FLOWS} of {all}; srdma plan place --json has the others."),
        false => "Each flow with its program, a way around, and the way back for acknowledgements.".to_owned(),
    };
    let table = Table {
        caption: "Flows".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: placed.flows.iter().take(MOST_FLOWS).map(row).collect(),
    };
    Section { heading: "Flows".to_owned(), lead, blocks: vec![Block::Table(table)] }
}
