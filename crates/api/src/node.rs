//! Messages of nodes and the controller. Each side ignores keys that it does not know (D112).

use crate::unreadable::{self, UnreadableOrder};
use crate::{NodeIdentity, prefix, protocol};
use serde::{Deserialize, Serialize};
use srdma_group::{EntryName, GroupEntry, Held};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use utoipa::ToSchema;

/// Limit of a controller's wait for an order, in milliseconds; also the interval of status reports. A controller hears
/// nothing of a node for so long.
pub const POLL_INTERVAL_MS: u32 = 1000;

/// The registration of a node: sent when it starts, and when the controller does not know its session.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registration {
    /// The newest protocol that the node speaks; absent: 1.
    #[serde(default = "protocol::first", skip_serializing_if = "protocol::is_first")]
    pub protocol: u32,
    pub name: String,
    /// Its loopback, which no other node has.
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Its End.MT SID, if it can be an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub end_mt: Option<Ipv6Addr>,
    /// Prefix for the Replication SIDs of groups, if it can replicate: at most /96.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "prefix::optional")]
    #[schema(value_type = Option<String>)]
    pub replication: Option<Prefix>,
    pub links: Vec<Link>,
    /// Prefixes of its attached hosts.
    #[serde(with = "prefix::list")]
    #[schema(value_type = Vec<String>)]
    pub hosts: Vec<Prefix>,
    /// Groups of a controller that it holds: none after a restart.
    pub groups: Vec<HeldGroup>,
    /// Whether it has memory for packets to send again, and knows the keys of entries that are about that (D163). From
    /// protocol 2 on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairs: bool,
}

impl Registration {
    /// The same by a protocol, without what controllers of that protocol refuse (D112).
    pub fn by(self, protocol: u32) -> Self {
        Registration { protocol, repairs: self.repairs && protocol != protocol::FIRST_PROTOCOL, ..self }
    }
}

/// A link to another node, used only if both ends have registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// The other's loopback.
    #[schema(value_type = String, format = "ipv6")]
    pub to: Ipv6Addr,
    /// Largest IPv6 packet that it carries, octets.
    pub mtu: u16,
    /// Its cost in the computation of trees.
    #[serde(default = "one")]
    pub cost: u32,
}

fn one() -> u32 {
    1
}

/// A group that a registering node holds.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldGroup {
    /// Identity of the store that it is from.
    pub store: u64,
    pub group: u32,
    #[schema(value_type = String, format = "ipv6")]
    pub proxy: Ipv6Addr,
    pub designated_qpn: u32,
    /// The names of its entries, as they were received.
    #[schema(value_type = Object)]
    pub entries: Held,
    /// The recovery snapshots of its entries, at the headend; the newest is the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery_snapshots: Vec<String>,
}

/// A group that nodes have and the controller's store does not.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForeignGroup {
    /// Identity of the store that it is from, 16 hexadecimal digits.
    pub store: String,
    pub group: u32,
    #[schema(value_type = String, format = "ipv6")]
    pub proxy: Ipv6Addr,
    pub designated_qpn: u32,
    /// The newest epoch that a node has.
    pub epoch: u32,
    /// The nodes that have reported it since the controller's start.
    pub nodes: Vec<String>,
    /// Whether it is of the controller's own store, so that it can be adopted.
    pub is_adoptable: bool,
    /// Whether its removal was requested, and nodes have it still.
    #[serde(default)]
    pub is_removing: bool,
}

/// All foreign groups.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForeignGroups {
    /// Identity of the controller's own store.
    pub store: String,
    pub groups: Vec<ForeignGroup>,
}

/// The identity of a store from its text.
///
/// # Errors
///
/// It is not 16 hexadecimal digits.
pub fn store_identity(text: &str) -> Result<u64, String> {
    let is_hexadecimal = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let identity = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
    identity.ok_or_else(|| {
        format!("store {text}: expected 16 hexadecimal digits, as `srdma group foreign list` prints them")
    })
}

/// What a node reports at once, beside its polls, which may be waiting: neighbours whose BFD session has gone down
/// (D135), and hosts whose links have (D291). It adds to what the node's status has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreachableReport {
    /// Loopbacks of the neighbours.
    #[schema(value_type = Vec<String>)]
    pub unreachable: Vec<Ipv6Addr>,
    /// As in a status. An earlier controller ignores it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "prefix::list")]
    #[schema(value_type = Vec<String>)]
    pub lost_hosts: Vec<Prefix>,
}

/// The response to a [`Registration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Identifies the session in reports; another registration of the node ends it.
    pub session: u64,
    /// Identity of the controller's store.
    pub store: u64,
    /// Timeout after which a silent node is dead, milliseconds.
    pub dead_after_ms: u32,
    /// The protocol of the session, the newest that both speak; absent: 1.
    #[serde(default = "protocol::first")]
    pub protocol: u32,
    /// Time after sending its last answered report at which the node stops to acknowledge for the controller's groups,
    /// milliseconds; 0: it does not (D122). Nodes of protocol 1 have no lease.
    #[serde(default)]
    pub lease_ms: u32,
}

/// Limit of eviction requests in a report.
pub const MAX_EVICTION_REQUESTS: usize = 256;

/// A report of a node, and a poll for orders.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sync {
    /// From [`Session`].
    pub session: u64,
    /// Answers to its orders.
    #[serde(default, deserialize_with = "unreadable::readable")]
    pub answers: Vec<NodeAnswer>,
    /// At most 256.
    #[serde(default)]
    pub eviction_requests: Vec<EvictionRequest>,
    /// Its status, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    /// Longest wait for an order, milliseconds; at most 10000.
    #[serde(default)]
    pub wait_ms: u32,
}

/// Orders to a node, to be executed in this sequence.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(from = "unreadable::Received")]
pub struct SyncAnswer {
    pub orders: Vec<NodeOrder>,
    /// Orders that this version cannot read.
    #[serde(skip)]
    #[schema(ignore)]
    pub unreadable: Vec<UnreadableOrder>,
}

/// An order to a node, about a group of this store. An entry is named by epoch and digests, which the node returns as
/// they are (D97). A node refuses an entry whose epoch is before the newest that it has, and every order about a group
/// that it has from another store.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "order")]
pub enum NodeOrder {
    /// Prepare a group entry. Answer: prepared or refused.
    Prepare {
        store: u64,
        #[schema(value_type = Object)]
        name: EntryName,
        #[schema(value_type = Object)]
        entry: Box<GroupEntry>,
        /// At the headend: the recovery snapshot, from which a lost store of the controller is rebuilt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery_snapshot: Option<String>,
    },
    /// Commit the prepared group entry. Answer: committed, or refused if none of this name is prepared.
    Commit {
        store: u64,
        group: u32,
        #[schema(value_type = Object)]
        name: EntryName,
        /// The group is new: its headend waits for the first PSN (D137).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_first: bool,
    },
    /// Drop the prepared group entry of this name. No answer.
    Abort {
        store: u64,
        group: u32,
        #[schema(value_type = Object)]
        name: EntryName,
    },
    /// Restore a lost group entry: both phases at once, with unknown branches. Answer: committed.
    Restore {
        store: u64,
        #[schema(value_type = Object)]
        name: EntryName,
        #[schema(value_type = Object)]
        entry: Box<GroupEntry>,
        /// As with prepare.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery_snapshot: Option<String>,
    },
    /// Remove the group. Answer: removed.
    Remove {
        store: u64,
        group: u32,
        /// The first epoch without the node.
        epoch: u32,
    },
}

/// The answer to an order.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum NodeAnswer {
    /// The group entry is prepared.
    Prepared {
        group: u32,
        #[schema(value_type = Object)]
        name: EntryName,
    },
    /// The group entry is invalid or outdated, or none was prepared.
    Refused {
        group: u32,
        #[schema(value_type = Object)]
        name: EntryName,
        reason: String,
    },
    /// The group entry is in effect.
    Committed {
        group: u32,
        #[schema(value_type = Object)]
        name: EntryName,
    },
    /// The node has removed the group.
    Removed { store: u64, group: u32, epoch: u32 },
}

/// A request of an edge to remove a receiver (D25).
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvictionRequest {
    pub group: u32,
    /// Address of the receiver.
    #[schema(value_type = String, format = "ipv6")]
    pub receiver: Ipv6Addr,
    /// `stalled` or `failed`.
    pub cause: String,
}

/// The status of a node. Counters start at 0 with the node.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    #[serde(default)]
    pub ports: Vec<PortStatus>,
    #[serde(default)]
    pub groups: Vec<GroupStatus>,
    /// Drops by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// Destinations of steered flows, each with its uSID program.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Loopbacks of neighbours whose BFD session was up and is down: hints to use other paths, no proof that they are
    /// dead (D90, D111). From protocol 2 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub unreachable: Vec<Ipv6Addr>,
    /// Hosts that are attached to another node as well, and whose links to this node are down (D282). From protocol 2
    /// on.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "prefix::list")]
    #[schema(value_type = Vec<String>)]
    pub lost_hosts: Vec<Prefix>,
}

/// A port of a node.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortStatus {
    pub name: String,
    /// Loopback of the node at its other end; absent if that is no node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub to: Option<Ipv6Addr>,
    /// Whether it has a driver.
    pub is_up: bool,
    pub received_octets: u64,
    pub sent_octets: u64,
}

/// A group at a node.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupStatus {
    pub group: u32,
    /// The highest PSN that it has forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_psn: Option<u32>,
    /// Whether the headend of a new group waits for the group's first PSN, and drops other data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_first_psn: bool,
    /// Its repair, where its entry has the node repair; from protocol 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<GroupRepairStatus>,
    pub branches: Vec<BranchStatus>,
}

/// Repair of a group at a node (D150).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupRepairStatus {
    /// The node has no memory for the group's buffer, and does not repair it (D162).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_memory: bool,
    /// Packets sent again to one branch.
    #[serde(default)]
    pub packets_resent: u64,
    /// Requests sent to the parent.
    #[serde(default)]
    pub requests_sent: u64,
    /// Gaps that were left to the source.
    #[serde(default)]
    pub gaps_given_up: u64,
    /// How often the source had more in flight than its window: the group goes on without repair until its next epoch.
    #[serde(default)]
    pub windows_exceeded: u64,
    /// Packets in the buffer.
    #[serde(default)]
    pub kept: u64,
}

/// A branch of a group at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BranchStatus {
    /// A receiver's address, or a child's loopback.
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// The next PSN that it expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_psn: Option<u32>,
    /// Packets sent to it that it has not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u32>,
    /// Number of CNPs received from it.
    #[serde(default)]
    pub cnps: u64,
    /// Packets sent again to it, at a node that repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_resent: Option<u64>,
    /// It is repaired again and again: of the packets of the last second more than 1 % were sent again to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repairing: bool,
}

/// The state of a node.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: String,
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Whether it has a live session.
    pub is_alive: bool,
    /// The protocol of its session: below 2 it has no lease (D112, D122).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// Whether it is excluded from new trees.
    pub is_drained: bool,
    /// Whether it is being removed: it is deleted when no group has it any more.
    #[serde(default)]
    pub is_removing: bool,
    /// What it has registered and is not confirmed, if that differs from what is used. A node without any confirmed
    /// registration has no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<NodeIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub end_mt: Option<Ipv6Addr>,
    /// Prefix of its Replication SIDs.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "prefix::optional")]
    #[schema(value_type = Option<String>)]
    pub replication: Option<Prefix>,
    /// Prefixes of its attached hosts.
    #[serde(with = "prefix::list")]
    #[schema(value_type = Vec<String>)]
    pub hosts: Vec<Prefix>,
    pub links: Vec<Link>,
    pub groups: u32,
    /// Its last status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
}

/// All nodes, a page of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodePage {
    /// In the order of their names.
    pub nodes: Vec<Node>,
    /// `after` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Excludes a node from new trees, or admits it again. Existing trees are rerouted where there is another path.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    pub drained: bool,
}
