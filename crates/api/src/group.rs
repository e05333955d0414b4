//! Groups as clients read and create them.

use crate::address;
use crate::source::{SourceService, SourceState};
use serde::{Deserialize, Serialize};
use srdma_group::{Policy, RepairMode, RepairPolicy};
use std::net::Ipv6Addr;
use std::time::Duration;
use utoipa::ToSchema;

/// A group to create. Receivers may join before and after it is committed.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub source: SourceAddress,
    /// The group's Proxy Address [default: one of the tenant's pool].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "address::optional")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub proxy: Option<Ipv6Addr>,
    /// The Designated QPN, 24 bits.
    pub designated_qpn: u32,
    /// The source's first PSN, 24 bits.
    pub initial_psn: u32,
    /// RDMA path MTU of all members: 256, 512, 1024, 2048 or 4096 octets.
    pub path_mtu: u16,
    /// The memory region that the source writes to; without it the group carries SEND only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SourceRegion>,
    /// Further regions, each with an rkey of its own: a WRITE goes to the one that its rkey names. With the first at
    /// most 16 (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<SourceRegion>,
    /// Settings that differ from the defaults.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub policy: Policy,
    /// When the source gives up [default: ACK timeout 14, 7 retries, as in many programs].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<SourceTransport>,
    /// Nodes that send lost packets again, instead of the source: `off`, `edge` or `tree` [default: that of `policy`,
    /// or `tree`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub repair: Option<RepairMode>,
    /// Octets of payload that the source has in flight at most, for which nodes have buffers [default: that of
    /// `policy`, or 524288].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_octets: Option<u32>,
    /// The group that this one resumes, whose source has died: it is closed, and its receivers find this one (D193).
    /// Name and Proxy Address that are not given are its.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<u32>,
}

impl NewGroup {
    /// A group that carries SEND from PSN 0 on with a path MTU of 4096, has a Proxy Address of the tenant's pool, and
    /// the default settings.
    pub fn new(source: SourceAddress, designated_qpn: u32) -> Self {
        NewGroup {
            name: None,
            source,
            proxy: None,
            designated_qpn,
            initial_psn: 0,
            path_mtu: 4096,
            region: None,
            more_regions: Vec::new(),
            policy: Policy::default(),
            transport: None,
            repair: None,
            window_octets: None,
            resumes: None,
        }
    }

    /// All memory regions that the source writes to.
    pub fn regions(&self) -> impl Iterator<Item = &SourceRegion> {
        self.region.iter().chain(&self.more_regions)
    }

    /// How the group is repaired (D163): its own fields before those of its policy, and the ACK timeout of its
    /// transport.
    pub fn repair_policy(&self) -> RepairPolicy {
        let given = self.policy.repair;
        let default_mode = if given.is_off() { RepairMode::Tree } else { given.mode };
        RepairPolicy {
            mode: self.repair.unwrap_or(default_mode),
            window_octets: self.window_octets.unwrap_or(given.window_octets),
            ack_timeout: self.transport.and_then(|transport| transport.timeout()).unwrap_or(given.ack_timeout),
            round_trip: given.round_trip,
        }
    }
}

/// Retransmission by the source's queue pair (IBTA volume 1, section 9.7.6.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceTransport {
    /// Local ACK Timeout: 4.096 µs times two to the power of this, at most 31; 0: no timeout, so that the source never
    /// gives up.
    pub ack_timeout: u8,
    /// Retry count, at most 7.
    pub retries: u8,
}

impl SourceTransport {
    /// What many programs set, and documentation of verbs shows.
    pub const USUAL: SourceTransport = SourceTransport { ack_timeout: 14, retries: 7 };

    /// Least time without an ACK after which the source gives up; `None`: it never does.
    pub fn retry_budget(&self) -> Option<Duration> {
        Some(self.timeout()? * u32::from(self.retries))
    }

    /// Time without an ACK after which the source sends again; `None`: it does not.
    pub fn timeout(&self) -> Option<Duration> {
        let timeout = 1_u64.checked_shl(self.ack_timeout.into()).filter(|_| self.ack_timeout != 0)?;
        Some(Duration::from_nanos(timeout.saturating_mul(4096)))
    }
}

/// The source of a group.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceAddress {
    #[serde(deserialize_with = "address::host")]
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// Its own queue pair, 24 bits.
    pub qpn: u32,
}

// The regions are the API's forms of those of srdma_group, which have no schema.

/// The memory region that the source writes to (D27).
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRegion {
    /// First virtual address.
    pub base: u64,
    pub length: u64,
    /// R_Key in the source's requests.
    pub rkey: u32,
}

impl From<SourceRegion> for srdma_group::SourceRegion {
    fn from(SourceRegion { base, length, rkey }: SourceRegion) -> Self {
        srdma_group::SourceRegion { base, length, rkey }
    }
}

impl From<srdma_group::SourceRegion> for SourceRegion {
    fn from(srdma_group::SourceRegion { base, length, rkey }: srdma_group::SourceRegion) -> Self {
        SourceRegion { base, length, rkey }
    }
}

/// A receiver that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReceiver {
    /// Its own queue pair, 24 bits.
    pub qpn: u32,
    /// The path MTU of its queue pair, equal to the group's.
    pub path_mtu: u16,
    /// Its memory region, if the group carries WRITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<MemoryRegion>,
    /// Its memory for the group's further regions, in their order (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<MemoryRegion>,
    /// A number that the host has drawn, below 2^53: the same in all groups that it receives together, by several NICs
    /// (D198).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u64>,
    /// Distance of its queue pair's PSNs from the group's, modulo 2^24: it expects its join point and this first, or
    /// the group's first PSN and this (D270).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub psn_offset: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl NewReceiver {
    /// A receiver with this queue pair and RDMA path MTU, for a group that carries SEND only.
    pub fn new(qpn: u32, path_mtu: u16) -> Self {
        NewReceiver { qpn, path_mtu, region: None, more_regions: Vec::new(), host: None, psn_offset: 0 }
    }
}

/// The memory region of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRegion {
    /// First virtual address.
    pub virtual_address: u64,
    /// Its R_Key.
    pub rkey: u32,
}

impl From<MemoryRegion> for srdma_group::ReceiverRegion {
    fn from(MemoryRegion { virtual_address: base, rkey }: MemoryRegion) -> Self {
        srdma_group::ReceiverRegion { base, rkey }
    }
}

impl From<srdma_group::ReceiverRegion> for MemoryRegion {
    fn from(srdma_group::ReceiverRegion { base: virtual_address, rkey }: srdma_group::ReceiverRegion) -> Self {
        MemoryRegion { virtual_address, rkey }
    }
}

/// A request to commit a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommitRequest {
    /// Longest wait for the group to be ready, or open again, milliseconds; at most 60000.
    pub wait_ms: u32,
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// Receivers may join; no node has the group.
    Open,
    /// The nodes prepare and commit it for the first time.
    Creating,
    /// The source may send.
    Ready,
    /// A change is in progress; the source may send, or pauses for a join.
    Changing,
    /// The controller has restarted, and not all nodes have reported yet what they have of the group: its members are
    /// those of the store, which may be older.
    Verifying,
    /// Nodes have contradicting records, newer than the store: see `failure`. It can only be closed.
    Stopped,
    /// The nodes remove it.
    Closing,
    /// No node has it, and the controller deletes it.
    Closed,
}

/// A group in a list.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupSummary {
    pub id: u32,
    /// A display name.
    pub name: String,
    pub tenant: String,
    pub state: GroupState,
    #[schema(value_type = String, format = "ipv6")]
    pub proxy: Ipv6Addr,
    /// Number of receivers, including those that are joining.
    pub receivers: u32,
    /// Incremented with each change of membership; 0 before the first commit.
    pub epoch: u32,
    /// Incremented with each write; compared with `If-Match`.
    pub version: u64,
}

/// A page of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupPage {
    /// In the order of their numbers.
    pub groups: Vec<GroupSummary>,
    /// `after` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// Groups in all.
    pub total: u64,
}

/// A group in full.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// The fields of a list entry.
    #[serde(flatten)]
    pub summary: GroupSummary,
    pub source: SourceAddress,
    #[serde(default)]
    pub source_state: SourceState,
    /// Its source has begun, and has not reported for the controller's `source_silent_after_ms`: its process has ended,
    /// or does not reach the controller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub source_is_silent: bool,
    /// Where its source serves the version that it published last; shown to those that may change the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<SourceService>,
    pub designated_qpn: u32,
    /// The source's first PSN.
    pub initial_psn: u32,
    /// RDMA path MTU, octets.
    pub path_mtu: u16,
    /// The memory region that the source writes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SourceRegion>,
    /// Its further regions (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<SourceRegion>,
    #[schema(value_type = Object)]
    pub policy: Policy,
    /// The group that it resumes (D193).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<u32>,
    /// Its receivers, by address.
    pub members: Vec<Receiver>,
    /// The tree; absent before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeView>,
    /// Names of the nodes that the change in progress waits for.
    pub awaited: Vec<String>,
    /// Why the last change was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Failures whose repair takes longer than the source waits for an ACK.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Group {
    /// All memory regions that the source writes to.
    pub fn regions(&self) -> impl Iterator<Item = &SourceRegion> {
        self.region.iter().chain(&self.more_regions)
    }
}

/// The state of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverState {
    /// It has requested to join.
    Joining,
    /// It receives.
    Member,
    /// It is a member in the store, and its nodes have not reported yet.
    Unverified,
    /// It is being removed.
    Leaving,
}

/// A receiver of a group.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receiver {
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// Its own queue pair.
    pub qpn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<MemoryRegion>,
    /// Its memory for the group's further regions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<MemoryRegion>,
    /// The number of its host, if it receives several groups together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u64>,
    pub state: ReceiverState,
    /// Join point (J): the first PSN that is sent to it; absent if it joined before the group began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_psn: Option<u32>,
    /// The join point of a receiver that has a reservation, and is no member yet (D187).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_psn: Option<u32>,
    /// It joins in two steps, and has not said that it is ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_ready: bool,
    /// Distance of its queue pair's PSNs from the group's (D270).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub psn_offset: u32,
}

/// A tree with its explanation.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeView {
    /// The headend first, parents before children.
    pub nodes: Vec<TreeNodeView>,
    /// Links of the topology that carry a copy of each packet.
    pub links: u32,
    /// Links that separate unicast paths to each edge would use.
    pub links_of_unicast: u32,
    /// The steps of its computation, as text.
    pub explanation: Vec<String>,
    pub overhead: OverheadView,
}

/// Encapsulation overhead (D7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverheadView {
    /// Whether the receiver lists go in TLVs; else they are provisioned.
    pub lists_in_packets: bool,
    /// Octets added to each inner packet.
    pub octets: u32,
    /// Octets with the lists in TLVs, if they fit an SRH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets_with_lists: Option<u32>,
    /// Octets with provisioned lists.
    pub octets_provisioned: u32,
    /// The longest packet on a link of the tree, octets.
    pub longest_packet_octets: u32,
    /// The smallest MTU of the links of the tree, octets.
    pub link_mtu: u16,
}

/// A node of a tree.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeNodeView {
    pub name: String,
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Its SID for the group's data.
    #[schema(value_type = String, format = "ipv6")]
    pub sid: Ipv6Addr,
    /// `headend`, `transit` or `edge`.
    pub role: String,
    /// The name of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its branches, with their state in the node's last status.
    pub branches: Vec<BranchView>,
}

/// A branch of a node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BranchView {
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
    pub cnps: u64,
    /// Packets sent again to it, by a node that repairs (D150).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_resent: Option<u64>,
    /// It is repaired again and again: of the packets of the last second more than 1 % were sent again to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repairing: bool,
}
