//! Groups as clients see them.

use crate::source::SourceState;
use serde::{Deserialize, Serialize};
use srdma_group::Policy;
use std::net::Ipv6Addr;
use utoipa::ToSchema;

/// A group to create. It takes receivers until it is committed, and more of them later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The source.
    pub source: SourceAddress,
    /// The Proxy Address, of the group alone; if there is none, the controller takes one of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub proxy: Option<Ipv6Addr>,
    /// The Designated QPN, 24 bits.
    pub designated_qpn: u32,
    /// The source's first PSN, 24 bits.
    pub initial_psn: u32,
    /// RDMA path MTU of all members: 256, 512, 1024, 2048 or 4096 octets.
    pub path_mtu: u16,
    /// The memory that the source believes to write to; without it the group carries SEND only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SourceRegion>,
    /// Choices that differ from the defaults.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub policy: Policy,
}

/// The source of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceAddress {
    /// Its address.
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// Its own queue pair, 24 bits.
    pub qpn: u32,
}

/// The memory that the source believes to write to (D27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRegion {
    /// First virtual address.
    pub base: u64,
    /// Octets.
    pub length: u64,
    /// Key in the source's requests.
    pub rkey: u32,
}

/// A receiver that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReceiver {
    /// Its own queue pair, 24 bits.
    pub qpn: u32,
    /// The path MTU that its queue pair has: the group's.
    pub path_mtu: u16,
    /// Its memory, when the group carries WRITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<MemoryRegion>,
}

/// Memory of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRegion {
    /// First virtual address.
    pub virtual_address: u64,
    /// Its key.
    pub rkey: u32,
}

/// A request to commit a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommitRequest {
    /// Answer only when the group is ready or closed again, or after so many milliseconds; at most 60000.
    pub wait_ms: u32,
}

/// How far a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupState {
    /// Receivers join; no node knows of it.
    Open,
    /// The nodes prepare and commit it for the first time.
    Creating,
    /// The source may send.
    Ready,
    /// The source may send, or pauses for a join, while a change is made.
    Changing,
    /// The nodes let go of it.
    Closing,
    /// No node has it, and the controller forgets it.
    Closed,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupSummary {
    /// Its number.
    pub id: u32,
    /// What people call it.
    pub name: String,
    /// Whose it is.
    pub tenant: String,
    /// How far it is.
    pub state: GroupState,
    /// The Proxy Address.
    #[schema(value_type = String, format = "ipv6")]
    pub proxy: Ipv6Addr,
    /// How many receivers it has, or will have.
    pub receivers: u32,
    /// Raised with each change of membership; 0 before the first commit.
    pub epoch: u32,
    /// Raised with each answered write: what `If-Match` compares.
    pub version: u64,
}

/// A page of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupPage {
    /// In the order of their numbers.
    pub groups: Vec<GroupSummary>,
    /// What `after` is to be for the next page; none on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// Groups in all.
    pub total: u64,
}

/// A group in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// What a list shows.
    #[serde(flatten)]
    pub summary: GroupSummary,
    /// The source.
    pub source: SourceAddress,
    /// How far the source is. A controller that does not say has heard nothing of it.
    #[serde(default)]
    pub source_state: SourceState,
    /// The Designated QPN.
    pub designated_qpn: u32,
    /// The source's first PSN.
    pub initial_psn: u32,
    /// RDMA path MTU, octets.
    pub path_mtu: u16,
    /// The memory that the source believes to write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<SourceRegion>,
    /// Its choices.
    #[schema(value_type = Object)]
    pub policy: Policy,
    /// Its receivers, by address.
    pub members: Vec<Receiver>,
    /// The tree, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeView>,
    /// Nodes that the change in progress waits for, by name.
    pub awaited: Vec<String>,
    /// Why the last change was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How far a receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverState {
    /// It has asked to join.
    Joining,
    /// It receives.
    Member,
    /// It was asked to be taken out, by itself or another.
    Leaving,
}

/// A receiver of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receiver {
    /// Its address.
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// Its own queue pair.
    pub qpn: u32,
    /// Its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<MemoryRegion>,
    /// How far it is.
    pub state: ReceiverState,
    /// J of D30, for one that joined after the group had begun: nothing before this PSN is sent to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_psn: Option<u32>,
}

/// A tree, with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeView {
    /// The headend first, parents before children.
    pub nodes: Vec<TreeNodeView>,
    /// Links of the topology that carry a copy of each packet.
    pub links: u32,
    /// Links that one path for each edge would use, each path by itself: what replication saves is the difference.
    pub links_of_unicast: u32,
    /// How it was found, in words.
    pub explanation: Vec<String>,
    /// What it adds to each packet.
    pub overhead: OverheadView,
}

/// What encapsulation costs (D7).
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeNodeView {
    /// Its name.
    pub name: String,
    /// Its loopback.
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Its SID for the group's data.
    #[schema(value_type = String, format = "ipv6")]
    pub sid: Ipv6Addr,
    /// `headend`, `transit` or `edge`.
    pub role: String,
    /// The name of the node above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What its branches say, as far as the node has told.
    pub branches: Vec<BranchView>,
}

/// A branch of a node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BranchView {
    /// A receiver's address, or a child's loopback.
    #[schema(value_type = String, format = "ipv6")]
    pub address: Ipv6Addr,
    /// What it has acknowledged: the PSN that it expects next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// Packets behind what was sent to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u32>,
    /// CNPs that came from it.
    pub cnps: u64,
}
