//! Snapshot of a running node: one value, from which metrics, status and JSON are made.

mod backups;
mod bfd;
mod congestion;
mod isis;
mod merge;
mod of;
mod ospf;
mod repair;
mod steering;
mod worker;

pub use backups::BackupSnapshot;
pub use bfd::BfdSnapshot;
pub use congestion::{BackpressureSnapshot, ClassSnapshot, PauseSnapshot, PfcSnapshot};
pub(in crate::daemon) use isis::IsisPort;
pub use isis::{
    IsisBackupSnapshot, IsisCircuitSnapshot, IsisNodeSnapshot, IsisRouteSnapshot, IsisSidSnapshot, IsisSnapshot,
    IsisState, LspSnapshot,
};
pub use of::{DaemonState, PortState};
pub(in crate::daemon) use ospf::OspfPort;
pub use ospf::{OspfCircuitSnapshot, OspfLsaSnapshot, OspfNodeSnapshot, OspfRouteSnapshot, OspfSnapshot};
pub use repair::{BranchRepairSnapshot, RepairMemorySnapshot, RepairSnapshot};
pub use steering::{DestinationSnapshot, FlowSnapshot, PathSnapshot, SteeringSnapshot};
pub use worker::WorkerSnapshot;

use crate::process::{GroupCountersReport, TrafficReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The state of a running node at one moment. Counters begin with the process.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub name: String,
    pub loopback: Ipv6Addr,
    /// Start of the process, in seconds since 1970.
    pub started_unix_s: u64,
    /// Time since the start, in nanoseconds.
    pub uptime_ns: u64,
    /// The ports, in the order of the configuration.
    pub ports: Vec<PortSnapshot>,
    /// The SIDs, in the order of the configuration.
    pub sids: Vec<SidSnapshot>,
    /// Hosts that are attached to another node as well (D281).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_hosts: Vec<SharedHostsSnapshot>,
    /// Packets that the node originated and could not send, by reason.
    pub own_drops: BTreeMap<String, u64>,
    /// The groups, in the order of the configuration.
    pub groups: Vec<GroupSnapshot>,
    /// Prefixes in the node's tables: routes, SIDs, Proxy Addresses, neighbours and own addresses.
    pub prefixes: usize,
    /// Neighbours whose MAC address is known.
    pub neighbours: usize,
    /// Counters of Fast CNP, by the names of its document; absent while it is off.
    #[serde(default)]
    pub fast_cnp: Option<BTreeMap<String, u64>>,
    /// Backpressure: pauses sent to ingress PEs, and received from congested nodes; absent while it is off.
    #[serde(default)]
    pub backpressure: Option<BackpressureSnapshot>,
    /// IOAM traces by outcome.
    #[serde(default)]
    pub traces: BTreeMap<String, u64>,
    /// State of steering over placed paths; absent without placed paths.
    #[serde(default)]
    pub steering: Option<SteeringSnapshot>,
    /// BFD sessions, by peer.
    #[serde(default)]
    pub bfd: Vec<BfdSnapshot>,
    /// Backups, by neighbour.
    #[serde(default)]
    pub backups: Vec<BackupSnapshot>,
    /// Memory of retransmission buffers; absent at a node that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_memory: Option<RepairMemorySnapshot>,
    /// State of IS-IS; absent while the node does not run it.
    #[serde(default)]
    pub isis: Option<IsisSnapshot>,
    /// State of OSPFv3; absent while the node does not run it.
    #[serde(default)]
    pub ospf: Option<OspfSnapshot>,
    /// The controller that the node takes groups from; absent without one.
    #[serde(default)]
    pub controller: Option<ControllerSnapshot>,
    /// The applied configuration.
    pub configuration: ConfigurationSnapshot,
    /// Its data threads.
    #[serde(default)]
    pub workers: Vec<WorkerSnapshot>,
    /// Log lines that were dropped because stderr was not read in time, or could not be written.
    #[serde(default)]
    pub dropped_log_lines: u64,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerSnapshot {
    /// Address of the controller.
    pub url: String,
    /// Whether the last request was answered.
    pub is_reached: bool,
    pub error: Option<String>,
    /// Number of the node's groups that are the controller's.
    pub groups: usize,
}

/// The VLAN of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanSnapshot {
    /// The port whose link carries its frames.
    pub parent: String,
    /// VLAN identifier; 0: priority tags.
    pub id: u16,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSnapshot {
    pub name: String,
    pub interface: String,
    /// The driver that carries its frames; absent while its interface is gone.
    pub driver: Option<String>,
    /// Reason for a slower driver than configured, or none.
    pub note: Option<String>,
    /// Whether the link is up.
    pub is_up: bool,
    /// Its VLAN, on the link of another port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanSnapshot>,
    pub mac: String,
    /// The longest IPv6 packet that the link carries, in octets.
    pub link_mtu: u16,
    /// Received frames.
    pub received: TrafficReport,
    /// Frames that entered the egress queue.
    pub enqueued: TrafficReport,
    /// Frames that left the port.
    pub sent: TrafficReport,
    /// Drops of packets received here, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Counters of the driver.
    pub statistics: DriverSnapshot,
    /// The fast path; absent where the configuration wants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPathSnapshot>,
    /// Its traffic classes, by their number; none when it has one queue.
    #[serde(default)]
    pub classes: Vec<ClassSnapshot>,
}

/// The fast path of a port. Its frames are also in the counters of ports and SIDs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPathSnapshot {
    /// Whether the program at the port's interface forwards.
    pub is_on: bool,
    /// Reason for which it does not; absent while it does.
    pub reason: Option<String>,
    /// Frames received at the port that the program has forwarded.
    pub received: TrafficReport,
    /// Frames that programs have sent by the port.
    pub sent: TrafficReport,
}

/// Counters of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverSnapshot {
    /// Frames handed to the node.
    pub received: u64,
    /// Frames that the kernel accepted.
    pub sent: u64,
    /// Received frames without a free chunk or ring entry.
    pub receive_overruns: u64,
    /// Frames longer than the node accepts, or cut off by the kernel.
    pub too_long: u64,
    /// Frames that the kernel refused to send, or that found no room.
    pub send_errors: u64,
}

/// A SID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidSnapshot {
    /// The SID as a prefix.
    pub sid: String,
    /// The name of its behaviour, as `node.toml` has it.
    pub behavior: String,
    /// Packets that its behaviour processed.
    #[serde(flatten)]
    pub processed: TrafficReport,
}

/// Hosts that are attached to another node as well, their peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHostsSnapshot {
    /// The hosts as a prefix.
    pub hosts: String,
    /// Loopback of the peer.
    pub peer: Ipv6Addr,
    /// What they have sent to Proxy Addresses and this node has passed on to the peer.
    pub passed_on: TrafficReport,
    /// What the peer has passed on to receivers of this node.
    pub from_peer: TrafficReport,
}

/// Role of a node in a group's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It copies to receivers.
    Edge,
    /// It copies to nodes.
    Transit,
    /// It copies to nodes, and to receivers of its own.
    Bud,
    /// It encapsulates the source's packets, and copies to nodes, or to receivers of its own.
    Headend,
}

impl Role {
    /// The role as JSON and metrics write it.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Edge => "edge",
            Role::Transit => "transit",
            Role::Bud => "bud",
            Role::Headend => "headend",
        }
    }
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSnapshot {
    pub id: u32,
    pub epoch: u32,
    pub role: Role,
    /// Whether the node has learnt it from the lists in its packets, without a record.
    #[serde(default)]
    pub is_learnt: bool,
    pub proxy: Ipv6Addr,
    /// Destination of responses: the parent's loopback, or at the root the source's address.
    pub parent: Ipv6Addr,
    /// Whether the parent is the source.
    pub is_root: bool,
    /// The highest PSN sent down; absent before the first data packet.
    pub highest_psn: Option<u32>,
    /// Whether the headend of a new group waits for the first PSN, and drops other data.
    #[serde(default)]
    pub awaits_first_psn: bool,
    /// Repair by this node; absent where its entry has it not repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairSnapshot>,
    /// Counters of packets.
    #[serde(flatten)]
    pub counters: GroupCountersReport,
    /// Number of eviction requests for a receiver (D25).
    #[serde(default)]
    pub eviction_requests: u64,
    /// The receivers that hold the group back, and are to be evicted by a new epoch.
    #[serde(default)]
    pub to_evict: Vec<EvictionSnapshot>,
    /// The branches, in the order of the configuration.
    pub branches: Vec<BranchSnapshot>,
}

/// A receiver whose eviction is due.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvictionSnapshot {
    pub receiver: Ipv6Addr,
    pub cause: EvictionCause,
}

/// Reason for an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvictionCause {
    /// The PSN that it expects was sent again and again, without progress (D25).
    Stalled,
    /// It has answered with a fatal NAK (D24).
    Failed,
}

impl EvictionCause {
    /// State of the receiver.
    pub const fn name(self) -> &'static str {
        match self {
            EvictionCause::Stalled => "stalled",
            EvictionCause::Failed => "failed",
        }
    }
}

/// A branch of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchSnapshot {
    /// Source of its responses: a receiver, or the loopback of a node below.
    pub address: Ipv6Addr,
    /// PSN that it expects next; absent after a restart until its first response.
    pub expected_psn: Option<u32>,
    /// Packets sent down that it has not confirmed; absent without an expected PSN, or before the first data packet.
    pub lag: Option<u32>,
    /// Number of times that it had a lag and its expected PSN did not advance for a second.
    pub stalls: u64,
    /// CNPs that came from it.
    #[serde(default)]
    pub cnps: u64,
    /// Its repair, at a node that repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<BranchRepairSnapshot>,
}

/// The applied configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationSnapshot {
    /// Configurations applied since the start.
    pub generation: u64,
    /// The last reload; absent when there was none.
    pub last_reload: Option<Reload>,
}

/// An attempt to apply another configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// When, in seconds since 1970.
    pub unix_s: u64,
    /// Reason for the refusal; absent when it succeeded.
    pub error: Option<String>,
}
