//! Report of a run: the node's counters.

use serde::{Deserialize, Serialize};
use srdma_dataplane::{DropCounters, GroupCounters, Node, Traffic};
use srdma_frame::PortId;
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// The counters of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Packets that were read from the captures.
    pub packets: u64,
    /// Those of them that are longer than a frame of the node can be, 15,360 octets; it never saw them.
    pub too_long: u64,
    /// The node's time at the first packet, in nanoseconds since 1970; absent without packets.
    pub first_time_ns: Option<u64>,
    /// The node's time at the end.
    pub end_time_ns: u64,
    /// The ports, in the order of the configuration.
    pub ports: Vec<PortReport>,
    /// Packets that the node originated and could not send, by reason.
    pub own_drops: BTreeMap<&'static str, u64>,
    /// The SIDs, in the order of the configuration.
    pub sids: Vec<SidReport>,
    /// The groups, in the order of the configuration.
    pub groups: Vec<GroupReport>,
}

/// Frames and octets, without FCS.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficReport {
    pub frames: u64,
    pub octets: u64,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortReport {
    pub name: String,
    /// Received frames.
    pub received: TrafficReport,
    /// Frames that were written to its capture.
    pub sent: TrafficReport,
    /// Drops of packets received here, by reason.
    pub drops: BTreeMap<&'static str, u64>,
}

/// A SID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SidReport {
    /// The SID as a prefix.
    pub sid: String,
    /// Packets that its behaviour processed.
    #[serde(flatten)]
    pub processed: TrafficReport,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    pub id: u32,
    /// Counters of packets.
    #[serde(flatten)]
    pub counters: GroupCountersReport,
}

/// Counters of a group at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCountersReport {
    /// Data packets received.
    pub data_packets: u64,
    /// Copies made of them.
    pub copies: u64,
    /// ACKs received from branches.
    pub acks_received: u64,
    /// NAKs of all kinds received from branches.
    pub naks_received: u64,
    /// CNPs received from branches.
    pub cnps_received: u64,
    /// ACKs sent upstream.
    pub acks_sent: u64,
    /// NAKs of all kinds sent upstream.
    pub naks_sent: u64,
    /// CNPs sent upstream.
    pub cnps_sent: u64,
}

impl Report {
    pub(super) fn new(node: &Node, packets: u64, too_long: u64, first: Option<Instant>, end: Instant) -> Self {
        let ports = node.config().ports.iter().zip(0..).filter_map(|(port, id)| {
            let counters = node.port_counters(PortId(id))?;
            Some(PortReport {
                name: port.name.clone(),
                received: counters.received.into(),
                sent: node.sent(PortId(id))?.into(),
                drops: by_name(&counters.drops),
            })
        });
        let groups =
            node.groups().filter_map(|id| Some(GroupReport { id: id.0, counters: node.group_counters(id)?.into() }));
        Report {
            packets,
            too_long,
            first_time_ns: first.map(Instant::as_ns),
            end_time_ns: end.as_ns(),
            ports: ports.collect(),
            own_drops: by_name(node.own_drops()),
            sids: node
                .sid_counters()
                .map(|(sid, traffic)| SidReport { sid: sid.to_string(), processed: traffic.into() })
                .collect(),
            groups: groups.collect(),
        }
    }
}

impl From<Traffic> for TrafficReport {
    fn from(traffic: Traffic) -> Self {
        TrafficReport { frames: traffic.frames, octets: traffic.octets }
    }
}

impl From<GroupCounters> for GroupCountersReport {
    fn from(counters: GroupCounters) -> Self {
        GroupCountersReport {
            data_packets: counters.data_packets,
            copies: counters.copies,
            acks_received: counters.acks_received,
            naks_received: counters.naks_received,
            cnps_received: counters.cnps_received,
            acks_sent: counters.acks_sent,
            naks_sent: counters.naks_sent,
            cnps_sent: counters.cnps_sent,
        }
    }
}

/// Drops by the names of their reasons.
pub(crate) fn by_name<N: From<&'static str> + Ord>(drops: &DropCounters) -> BTreeMap<N, u64> {
    drops.iter().map(|(reason, count)| (reason.name().into(), count)).collect()
}
