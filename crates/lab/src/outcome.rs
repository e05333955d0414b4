//! The result of a transfer.

use crate::counters::LinkCounters;
use crate::guest::Unicast;
use crate::host::HostOutcome;
use crate::topology::{Link, Transfer};
use serde::Serialize;
use srdma_node::daemon::{SidSnapshot, Snapshot};
use std::collections::BTreeMap;

/// The result of a transfer.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub lab: String,
    pub source_name: String,
    /// The requested transfer.
    pub transfer: Transfer,
    /// Largest IPv6 packet of the tree's links, in octets, where a group has one.
    pub link_mtu: Option<u16>,
    /// Octets that the tree adds to each packet.
    pub overhead_octets: Option<usize>,
    /// The group, where the lab's controller has created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controlled: Option<ControlledOutcome>,
    /// At the source.
    pub source: HostOutcome,
    /// At the receivers.
    pub receivers: Vec<ReceiverOutcome>,
    /// At the pairs after the first, where several transfer at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_pairs: Vec<PairOutcome>,
    pub links: Vec<LinkOutcome>,
    /// At the nodes.
    pub nodes: Vec<NodeOutcome>,
    /// The same by unicast to each receiver, where that was requested.
    pub unicast: Option<Unicast>,
}

/// A group that the lab's controller has created.
#[derive(Clone, Debug, Serialize)]
pub struct ControlledOutcome {
    /// The URL of the controller, and the group's number behind it.
    pub url: String,
    /// The tree that the controller has made, the headend first.
    pub tree: Vec<TreeNodeOutcome>,
}

/// A node of such a tree.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct TreeNodeOutcome {
    pub name: String,
    /// `headend`, `transit` or `edge`.
    pub role: String,
    /// The name of the node above.
    pub parent: Option<String>,
}

/// Result of a pair's transfer.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct PairOutcome {
    pub source_name: String,
    /// At the source.
    pub source: HostOutcome,
    /// At its receiver.
    pub receiver: ReceiverOutcome,
}

/// Result of a receiver.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct ReceiverOutcome {
    pub name: String,
    /// It has all data of the source, and nothing else.
    pub is_identical: bool,
    /// The rest.
    #[serde(flatten)]
    pub outcome: HostOutcome,
}

/// Counters of a link since its creation.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct LinkOutcome {
    pub name: String,
    /// Its rate, when it is limited.
    pub rate_bits_per_s: Option<u64>,
    /// Probability of loss.
    pub loss: f64,
    #[serde(flatten)]
    pub counters: LinkCounters,
}

/// Counters of a node since its start.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Serialize)]
pub struct NodeOutcome {
    pub name: String,
    /// The drivers of its ports, each once.
    pub drivers: Vec<String>,
    /// Packets to its SIDs.
    pub sids: Vec<SidOutcome>,
    /// Packets of the group that came down.
    pub data_packets: u64,
    /// Copies made of them.
    pub copies: u64,
    /// ACKs that came up.
    pub acks_received: u64,
    /// ACKs sent up.
    pub acks_sent: u64,
    /// NAKs that came up.
    pub naks_received: u64,
    /// NAKs sent up.
    pub naks_sent: u64,
    /// Counters of its repair by name; empty if it repairs no group.
    pub repair: BTreeMap<String, u64>,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Frames that its drivers lost.
    pub lost_frames: u64,
}

/// Packets to a SID.
#[derive(Clone, Debug, Serialize)]
pub struct SidOutcome {
    /// The SID as a prefix.
    pub sid: String,
    /// The name of its behaviour.
    pub behavior: String,
    /// Packets that its behaviour took.
    pub packets: u64,
}

impl Outcome {
    /// Whether all receivers have all data.
    pub fn is_good(&self) -> bool {
        let is_well = |pair: &PairOutcome| pair.source.error.is_none() && pair.receiver.is_identical;
        self.source.error.is_none()
            && self.receivers.iter().all(|receiver| receiver.is_identical)
            && self.other_pairs.iter().all(is_well)
    }
}

impl ControlledOutcome {
    pub(crate) fn of(url: String, group: &srdma_api::Group) -> Self {
        let nodes = group.tree.iter().flat_map(|tree| &tree.nodes);
        let nodes = nodes.map(|node| TreeNodeOutcome {
            name: node.name.clone(),
            role: node.role.clone(),
            parent: node.parent.clone(),
        });
        ControlledOutcome { url, tree: nodes.collect() }
    }
}

impl LinkOutcome {
    pub(crate) fn of(link: &Link, counters: LinkCounters) -> Self {
        LinkOutcome { name: link.name.clone(), rate_bits_per_s: link.rate_bits_per_s, loss: link.loss, counters }
    }
}

impl SidOutcome {
    fn of(snapshot: &SidSnapshot) -> Self {
        let SidSnapshot { sid, behavior, processed } = snapshot;
        SidOutcome { sid: sid.clone(), behavior: behavior.clone(), packets: processed.frames }
    }
}

impl NodeOutcome {
    pub(crate) fn of(name: &str, snapshot: &Snapshot) -> Self {
        let mut drivers: Vec<String> = snapshot.ports.iter().filter_map(|port| port.driver.clone()).collect();
        drivers.sort();
        drivers.dedup();
        let mut drops: BTreeMap<String, u64> = BTreeMap::new();
        let by_port = snapshot.ports.iter().map(|port| &port.drops);
        for (reason, count) in by_port.chain([&snapshot.own_drops]).flatten().filter(|(_, count)| **count > 0) {
            *drops.entry(reason.clone()).or_default() += count;
        }
        let sum = |of: fn(&srdma_node::daemon::GroupSnapshot) -> u64| snapshot.groups.iter().map(of).sum();
        let mut repair: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in
            snapshot.groups.iter().filter_map(|group| group.repair.as_ref()).flat_map(|of| &of.counters)
        {
            *repair.entry(name.clone()).or_default() += count;
        }
        let lost = snapshot.ports.iter().map(|port| {
            let statistics = &port.statistics;
            statistics.receive_overruns + statistics.too_long + statistics.send_errors
        });
        NodeOutcome {
            name: name.to_owned(),
            drivers,
            sids: snapshot.sids.iter().map(SidOutcome::of).collect(),
            data_packets: sum(|group| group.counters.data_packets),
            copies: sum(|group| group.counters.copies),
            acks_received: sum(|group| group.counters.acks_received),
            acks_sent: sum(|group| group.counters.acks_sent),
            naks_received: sum(|group| group.counters.naks_received),
            naks_sent: sum(|group| group.counters.naks_sent),
            repair,
            drops,
            lost_frames: lost.sum(),
        }
    }
}
