//! A recording of a run, which the controller's page replays: JSON lines, described in docs/page.md.

use anyhow::Result;
use serde::Serialize;
use srdma_api::{
    BranchView, GroupState, GroupSummary, Receiver, ReceiverState, SourceAddress, SourceRegion, TopologyLink,
    TopologyNode, TreeNodeView,
};
use srdma_group::{Group, NodeIndex, NodeRole};
use srdma_sim::moment::BranchMoment;
use srdma_sim::scenario::Scenario;
use srdma_sim::topology::SOURCE_NAME;
use srdma_sim::{Moment, Multicast, plan};
use std::io::{self, Write};
use std::net::Ipv6Addr;

const VERSION: u32 = 1;

/// Writes a recording, sample by sample.
pub(super) struct Recorder<W> {
    output: W,
    group: u32,
    nodes: Vec<String>,
    before: Option<Moment>,
    /// What the links' rates were in the sample before.
    rates: Vec<[u64; 2]>,
}

impl<W: Write> Recorder<W> {
    /// Begins with the head.
    pub(super) fn new(mut output: W, multicast: &Multicast, scenario: &Scenario) -> Result<Self> {
        let head = Head::new(multicast, scenario);
        serde_json::to_writer(&mut output, &head)?;
        output.write_all(b"\n")?;
        let nodes: Vec<String> = multicast.group().record().tree.nodes().iter().map(|node| node.name.clone()).collect();
        let rates = vec![[0; 2]; head.topology.links.len()];
        Ok(Recorder { output, group: multicast.group().record().id.0, nodes, before: None, rates })
    }

    /// Writes what has changed since the moment before.
    pub(super) fn write(&mut self, moment: &Moment) -> io::Result<()> {
        if self.before.as_ref().is_some_and(|before| before.now_ns >= moment.now_ns) {
            return Ok(());
        }
        let rates = self.rates_until(moment);
        let links = rates.iter().zip(&self.rates).enumerate().filter(|(_, (now, before))| now != before);
        let sample = Sample {
            t_ns: moment.now_ns,
            links: links.map(|(index, ([down, up], _))| (index, *down, *up)).collect(),
            branches: self.branches(moment),
            drops: self.drops(moment),
        };
        let mut text = serde_json::to_vec(&sample)?;
        text.push(b'\n');
        self.output.write_all(&text)?;
        self.rates = rates;
        self.before = Some(moment.clone());
        Ok(())
    }

    /// Writes what is still kept back.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Octets a second, down and up, since the moment before.
    fn rates_until(&self, moment: &Moment) -> Vec<[u64; 2]> {
        let before_ns = self.before.as_ref().map_or(0, |before| before.now_ns);
        let span_ns = u128::from(moment.now_ns - before_ns).max(1);
        let rate = |now: u64, before: u64| u64::try_from(u128::from(now - before) * 1_000_000_000 / span_ns);
        let link = |(index, [down, up]): (usize, &[u64; 2])| {
            let [before_down, before_up] = self.before.as_ref().map_or([0; 2], |before| before.links[index]);
            [rate(*down, before_down), rate(*up, before_up)].map(|rate| rate.unwrap_or(u64::MAX))
        };
        moment.links.iter().enumerate().map(link).collect()
    }

    fn branches(&self, moment: &Moment) -> Vec<BranchSample> {
        let mut changed = Vec::new();
        for (node, now) in moment.nodes.iter().enumerate() {
            for (index, branch) in now.branches.iter().enumerate() {
                let before = self.before.as_ref().map(|before| before.nodes[node].branches[index]);
                if before != Some(*branch) {
                    let BranchMoment { point, lag, cnps } = *branch;
                    changed.push((self.group, node, index, point.map(|point| point.get()), lag, cnps));
                }
            }
        }
        changed
    }

    fn drops(&self, moment: &Moment) -> Vec<(&str, &'static str, u64)> {
        let mut changed = Vec::new();
        for (index, node) in moment.nodes.iter().enumerate() {
            for (reason, packets) in &node.drops {
                let before = self.before.as_ref().and_then(|before| before.nodes[index].drops.get(reason));
                if before != Some(packets) {
                    changed.push((self.nodes[index].as_str(), reason.name(), *packets));
                }
            }
        }
        changed
    }
}

/// Group, node, branch, point, lag, CNPs.
type BranchSample = (u32, usize, usize, Option<u32>, Option<u32>, u64);

#[derive(Serialize)]
struct Sample<'a> {
    t_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<(usize, u64, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<BranchSample>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drops: Vec<(&'a str, &'static str, u64)>,
}

#[derive(Serialize)]
struct Head {
    recording: &'static str,
    version: u32,
    title: String,
    root: &'static str,
    topology: Places,
    groups: [GroupHead; 1],
}

#[derive(Serialize)]
struct Places {
    unix_ms: u64,
    version: u64,
    nodes: Vec<Place>,
    links: Vec<TopologyLink>,
}

/// A node or a host.
#[derive(Serialize)]
struct Place {
    #[serde(flatten)]
    node: TopologyNode,
    is_host: bool,
}

#[derive(Serialize)]
struct GroupHead {
    #[serde(flatten)]
    summary: GroupSummary,
    source: SourceAddress,
    designated_qpn: u32,
    initial_psn: u32,
    path_mtu: u16,
    region: Option<SourceRegion>,
    members: Vec<Receiver>,
    tree: TreeHead,
    awaited: [String; 0],
}

#[derive(Serialize)]
struct TreeHead {
    nodes: Vec<TreeNodeView>,
    links: usize,
    links_of_unicast: usize,
    explanation: [&'static str; 1],
}

impl Head {
    fn new(multicast: &Multicast, scenario: &Scenario) -> Self {
        let group = multicast.group();
        let record = group.record();
        let place = |name: &str, loopback: Ipv6Addr, is_edge: bool, is_host: bool| Place {
            node: TopologyNode {
                name: name.to_owned(),
                loopback,
                is_alive: true,
                is_drained: false,
                is_edge,
                drops: 0,
            },
            is_host,
        };
        let tree = record.tree.nodes();
        let mut nodes = Vec::new();
        // The source's own software switch, where that is the headend, has its name.
        if tree[0].name != SOURCE_NAME {
            nodes.push(place(SOURCE_NAME, record.source.address, false, true));
        }
        nodes.extend(tree.iter().map(|node| place(&node.name, node.loopback, node.role == NodeRole::Edge, false)));
        let receivers = scenario.topology.receivers();
        nodes.extend(receivers.iter().map(|leaf| place(&leaf.name, plan::receiver(leaf), false, true)));
        let link = |name: &str| {
            let (upper, lower) = name.split_once('-').unwrap_or((name, name));
            let ends = [upper.to_owned(), lower.to_owned()];
            TopologyLink { ends, octets_per_second: [0.0; 2], mtu: scenario.link_mtu, groups: 1 }
        };
        let links = multicast.link_names().map(link).collect();
        Head {
            recording: "srdma",
            version: VERSION,
            title: format!("srdma demo, {} receivers, seed {}", receivers.len(), scenario.seed),
            root: SOURCE_NAME,
            topology: Places { unix_ms: 0, version: 1, nodes, links },
            groups: [GroupHead::new(group)],
        }
    }
}

impl GroupHead {
    fn new(group: &Group) -> Self {
        let record = group.record();
        let member = |receiver: &srdma_group::Receiver| Receiver {
            address: receiver.address,
            qpn: receiver.qpn.get(),
            region: None,
            state: ReceiverState::Member,
            joined_psn: None,
        };
        let region =
            record.region.map(|region| SourceRegion { base: region.base, length: region.length, rkey: region.rkey });
        GroupHead {
            summary: GroupSummary {
                id: record.id.0,
                name: "demo".to_owned(),
                tenant: String::new(),
                state: GroupState::Ready,
                proxy: record.proxy,
                receivers: u32::try_from(record.receivers.len()).unwrap_or(u32::MAX),
                epoch: record.epoch,
                version: 1,
            },
            source: SourceAddress { address: record.source.address, qpn: record.source.qpn.get() },
            designated_qpn: record.designated_qpn.get(),
            initial_psn: record.initial_psn.get(),
            path_mtu: record.path_mtu.octets(),
            region,
            members: record.receivers.iter().map(member).collect(),
            tree: TreeHead::new(group),
            awaited: [],
        }
    }
}

impl TreeHead {
    fn new(group: &Group) -> Self {
        let tree = &group.record().tree;
        let view = |(index, node): (usize, &srdma_group::TreeNode)| {
            let part = group.at(NodeIndex(index));
            let branches = part.iter().flat_map(|part| &part.branches);
            let role = match (node.parent, node.role) {
                (None, _) => "headend",
                (Some(_), NodeRole::Transit) => "transit",
                (Some(_), NodeRole::Edge) => "edge",
            };
            TreeNodeView {
                name: node.name.clone(),
                loopback: node.loopback,
                sid: node.sid,
                role: role.to_owned(),
                parent: node.parent.and_then(|parent| tree.node(parent)).map(|parent| parent.name.clone()),
                branches: branches
                    .map(|branch| BranchView { address: branch.responder, point: None, lag: None, cnps: 0 })
                    .collect(),
            }
        };
        let depth = |mut index: NodeIndex| {
            let mut links = 0;
            while let Some(parent) = tree.node(index).and_then(|node| node.parent) {
                (index, links) = (parent, links + 1);
            }
            links
        };
        let edges = tree.nodes().iter().enumerate().filter(|(_, node)| node.role == NodeRole::Edge);
        TreeHead {
            nodes: tree.nodes().iter().enumerate().map(view).collect(),
            links: tree.nodes().len() - 1,
            links_of_unicast: edges.map(|(index, _)| depth(NodeIndex(index))).sum(),
            explanation: ["the tree of the demo"],
        }
    }
}
