//! The group's record, and the checks that make it a [`Group`].

use crate::document;
use crate::group_entry::GroupEntry;
use crate::lists::{EdgeList, Overhead, ReceiverRegion, srh_len_octets};
use crate::name::{Digest, EntryName};
use crate::policy::{ListMode, Policy};
use crate::psn_offset::PsnOffset;
use crate::tree::{NodeIndex, NodeRole, Tree};
use serde::{Deserialize, Serialize};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Regions of a group at most (D191).
pub const MAX_REGIONS: usize = 16;

/// A group's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

/// The source, as the root needs it to deliver responses (D13).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub address: Ipv6Addr,
    /// Its own queue pair.
    #[serde(with = "document::qpn")]
    pub qpn: Qpn,
}

/// The memory region that the source writes to, as it sees it (D27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRegion {
    /// First virtual address.
    pub base: u64,
    /// Octets.
    pub length: u64,
    /// Key in the source's requests.
    pub rkey: u32,
}

/// A receiver (MT-5.1-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receiver {
    /// Unicast address.
    pub address: Ipv6Addr,
    /// Its own queue pair.
    #[serde(with = "document::qpn")]
    pub qpn: Qpn,
    /// Its memory, when the group carries WRITE.
    pub region: Option<ReceiverRegion>,
    /// The edge or bud node that it hangs on.
    pub edge: NodeIndex,
    /// Its join point in a running group; `None` for a receiver that is a member from the first PSN on.
    pub joined: Option<Join>,
    /// Its memory for the group's further regions, in their order (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<ReceiverRegion>,
    /// Distance of its queue pair's PSNs from the group's (D270).
    #[serde(default, skip_serializing_if = "PsnOffset::is_zero")]
    pub psn_offset: PsnOffset,
    /// The last epoch at which it moved to its edge from another one, to which it is attached as well; 0 for a receiver
    /// that has not moved (D280).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moved: u32,
}

fn is_zero(epoch: &u32) -> bool {
    *epoch == 0
}

impl Receiver {
    /// A receiver from the first PSN on, without memory.
    pub fn new(address: Ipv6Addr, qpn: Qpn, edge: NodeIndex) -> Self {
        let (region, joined, more_regions, psn_offset, moved) = (None, None, Vec::new(), PsnOffset::ZERO, 0);
        Receiver { address, qpn, region, edge, joined, more_regions, psn_offset, moved }
    }

    /// Its memory for the group's region at a position, 0 for the first.
    pub fn region_at(&self, position: usize) -> Option<ReceiverRegion> {
        match position.checked_sub(1) {
            None => self.region,
            Some(further) => self.more_regions.get(further).copied(),
        }
    }
}

/// Join point of a member in a running group: J of D30. Part of the committed record until no earlier PSN can recur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// J: the source's next PSN when the member joined. Nothing before it is ever sent to the member.
    #[serde(with = "document::psn")]
    pub psn: Psn,
    /// Messages that the source had completed by then, modulo 2^24: the MSN of a late joiner is smaller by so many
    /// (D18).
    pub msn: u32,
}

/// A group as a control plane describes it, not yet checked.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub id: GroupId,
    /// Raised with each change of membership.
    pub epoch: u32,
    /// The common destination of source and receivers: a unicast address of the group alone (D2).
    pub proxy: Ipv6Addr,
    /// The queue pair number that all participants send to.
    #[serde(with = "document::qpn")]
    pub designated_qpn: Qpn,
    /// First PSN of the source, and what every receiver expects first (D28).
    #[serde(with = "document::psn")]
    pub initial_psn: Psn,
    /// One for all members (D28).
    #[serde(with = "document::path_mtu")]
    pub path_mtu: PathMtu,
    /// Largest IPv6 packet that every link of the tree carries, in octets.
    pub link_mtu: u16,
    pub source: Source,
    /// The remote memory of WRITE requests, if the group carries them.
    pub region: Option<SourceRegion>,
    pub receivers: Vec<Receiver>,
    pub tree: Tree,
    /// Choices.
    pub policy: Policy,
    /// Further regions, selected by the rkey of the request (D191).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<SourceRegion>,
}

impl Record {
    /// The longest inner packet: IPv6, UDP, BTH, RETH with immediate data, payload, ICRC.
    pub const fn longest_packet_octets(&self) -> usize {
        40 + 8 + 12 + 20 + self.path_mtu.octets() as usize + 4
    }

    /// Whether receiver lists in packets have the receivers' regions: one region for each receiver goes in a packet, so
    /// that the edges of a group of several take them from its record (D191).
    fn regions_in_lists(&self) -> bool {
        self.region.is_some() && self.more_regions.is_empty()
    }
}

/// Reason for which a record is no group.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A group without receivers.
    #[error("a group needs at least one receiver")]
    NoReceivers,
    /// An address that cannot be a Proxy Address.
    #[error("Proxy Address {0} must be a unicast address")]
    Proxy(Ipv6Addr),
    /// A Proxy Address belongs to one group and is no host's address (D2).
    #[error("Proxy Address {0} is the address or SID of {1}")]
    ProxyInUse(Ipv6Addr, String),
    /// An address that cannot be the source's.
    #[error("source {0}: not a unicast address that a host can have")]
    SourceAddress(Ipv6Addr),
    /// An address that cannot be a receiver's (D8).
    #[error("receiver {0}: not a unicast address that a host can have")]
    ReceiverAddress(Ipv6Addr),
    /// A member of another IP version than the Proxy Address (D273).
    #[error(
        "mixed address families: {} and Proxy Address {} are not both IPv4 or both IPv6", address.to_canonical(),
        proxy.to_canonical()
    )]
    MixedFamilies {
        /// The member's.
        address: Ipv6Addr,
        proxy: Ipv6Addr,
    },
    /// Two queue pairs of one host cannot be distinguished on the way back (D8).
    #[error("receiver {0} is in the group twice")]
    DuplicateReceiver(Ipv6Addr),
    /// 0 and 1 are no queue pairs of a Reliable Connection.
    #[error("{address}: queue pair number {qpn} is reserved")]
    ReservedQpn { address: Ipv6Addr, qpn: Qpn },
    /// A receiver hangs on a node that has no receivers by its role.
    #[error("receiver {address} hangs on node {node}, which is neither edge nor bud node of the tree")]
    NotAnEdge {
        /// The receiver.
        address: Ipv6Addr,
        /// The position of the node.
        node: usize,
    },
    /// A node of this role without a receiver: an edge would hold the whole group back.
    #[error("{} node {node} has no receiver", role.name())]
    Idle {
        /// Its name.
        node: String,
        role: NodeRole,
    },
    /// A transit node without a branch.
    #[error("transit node {0} has no node below it")]
    IdleTransit(String),
    /// More branches than a node can count.
    #[error("node {node} has {branches} branches, at most 65535 are possible")]
    TooManyBranches { node: String, branches: usize },
    /// WRITE needs a region at every receiver (D27).
    #[error("receiver {0} names no memory region, but the group has one")]
    MissingRegion(Ipv6Addr),
    /// Further regions without a first one.
    #[error("further regions need a first one")]
    NoFirstRegion,
    /// More regions than a group can have (D191).
    #[error("the group has {0} regions, at most {MAX_REGIONS} are possible")]
    TooManyRegions(usize),
    /// A request would name two regions (D191). Regions are counted from 1.
    #[error("regions {0} and {1} of the group have the same rkey: requests select a region by it")]
    DuplicateRkey(usize, usize),
    /// Each receiver has a region for each of the group's (D191).
    #[error("receiver {receiver} names {regions} memory regions, the group has {needed}")]
    RegionCount {
        /// Its address.
        receiver: Ipv6Addr,
        regions: usize,
        needed: usize,
    },
    /// The TLVs do not fit an SRH (D7).
    #[error(
        "receiver lists do not fit: TLVs for {receivers} receivers exceed an SRH of 2048 octets; provision the lists \
         instead"
    )]
    ListsExceedSrh { receivers: usize },
    /// With the TLVs a packet does not fit the link MTU (D7).
    #[error(
        "receiver lists do not fit: a packet of RDMA path MTU {path_mtu} with {receivers} receivers in TLVs needs \
         {needed} octets, the link MTU is {link_mtu}; provision the lists instead"
    )]
    ListsExceedLink {
        /// RDMA path MTU.
        path_mtu: PathMtu,
        receivers: usize,
        /// Octets of the packet.
        needed: usize,
        link_mtu: u16,
    },
    /// An edge that has lost its entry would copy to the listed receivers with the group's PSNs (D270).
    #[error("receiver {0} has PSNs of its own, which receiver lists in packets do not name: provision the lists")]
    ListsWithOwnPsns(Ipv6Addr),
    /// Even without lists a packet is too long.
    #[error("link MTU {link_mtu} is too small: a packet of RDMA path MTU {path_mtu} needs {needed} octets")]
    LinkMtu {
        /// RDMA path MTU.
        path_mtu: PathMtu,
        /// Octets of the packet.
        needed: usize,
        link_mtu: u16,
    },
}

/// A group that can work: a checked [`Record`] and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    record: Record,
    lists_in_packets: bool,
    overhead: Overhead,
    digest: Digest,
}

impl Group {
    /// Checks a record.
    pub fn new(record: Record) -> Result<Self, GroupError> {
        check_members(&record)?;
        check_tree(&record)?;
        let (lists_in_packets, overhead) = choose_lists(&record)?;
        let digest = Digest::of_record(&record);
        Ok(Group { record, lists_in_packets, overhead, digest })
    }

    /// The digest of the record.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The name of an entry of the record.
    pub fn name_of(&self, entry: &GroupEntry) -> EntryName {
        EntryName { epoch: self.record.epoch, record: self.digest, entry: Digest::of_entry(entry) }
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whether data packets carry the receiver lists as TLVs; else the edges have them provisioned.
    pub fn lists_in_packets(&self) -> bool {
        self.lists_in_packets
    }

    /// Octets that the tree adds to each inner packet.
    pub fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The receivers of one edge, in order.
    pub fn receivers_of(&self, edge: NodeIndex) -> impl Iterator<Item = &Receiver> {
        self.record.receivers.iter().filter(move |receiver| receiver.edge == edge)
    }
}

/// Branches are numbered in 16 bits.
const MAX_BRANCHES: usize = u16::MAX as usize;

fn check_members(record: &Record) -> Result<(), GroupError> {
    if record.receivers.is_empty() {
        return Err(GroupError::NoReceivers);
    }
    if !is_host_address(record.proxy) {
        return Err(GroupError::Proxy(record.proxy));
    }
    if !is_host_address(record.source.address) {
        return Err(GroupError::SourceAddress(record.source.address));
    }
    let of_nodes = record.tree.nodes().iter().flat_map(|node| [(node.loopback, &*node.name), (node.sid, &*node.name)]);
    if let Some((proxy, owner)) =
        of_nodes.chain([(record.source.address, "the source")]).find(|(address, _)| *address == record.proxy)
    {
        return Err(GroupError::ProxyInUse(proxy, owner.into()));
    }
    let qpns = [(record.proxy, record.designated_qpn), (record.source.address, record.source.qpn)];
    let of_receivers = record.receivers.iter().map(|receiver| (receiver.address, receiver.qpn));
    for (address, qpn) in qpns.into_iter().chain(of_receivers) {
        if !qpn.is_connected() {
            return Err(GroupError::ReservedQpn { address, qpn });
        }
    }
    if is_mixed(record.source.address, record.proxy) {
        return Err(GroupError::MixedFamilies { address: record.source.address, proxy: record.proxy });
    }
    let mut seen = BTreeSet::new();
    for receiver in &record.receivers {
        let address = receiver.address;
        if is_mixed(address, record.proxy) {
            return Err(GroupError::MixedFamilies { address, proxy: record.proxy });
        }
        if !is_host_address(address) || address == record.proxy {
            return Err(GroupError::ReceiverAddress(address));
        }
        if !seen.insert(address) {
            return Err(GroupError::DuplicateReceiver(address));
        }
        if record.region.is_some() && receiver.region.is_none() {
            return Err(GroupError::MissingRegion(address));
        }
        if receiver.more_regions.len() != record.more_regions.len() {
            let (regions, needed) = (1 + receiver.more_regions.len(), 1 + record.more_regions.len());
            return Err(GroupError::RegionCount { receiver: address, regions, needed });
        }
    }
    check_regions(record.region.as_ref(), &record.more_regions)
}

/// Whether a group can have these regions (D27, D191).
///
/// # Errors
///
/// If there are too many, or a request cannot select one of them.
pub fn check_regions(first: Option<&SourceRegion>, more: &[SourceRegion]) -> Result<(), GroupError> {
    if first.is_none() && !more.is_empty() {
        return Err(GroupError::NoFirstRegion);
    }
    let count = 1 + more.len();
    if count > MAX_REGIONS {
        return Err(GroupError::TooManyRegions(count));
    }
    let mut seen = BTreeMap::new();
    for (region, number) in first.into_iter().chain(more).zip(1..) {
        if let Some(earlier) = seen.insert(region.rkey, number) {
            return Err(GroupError::DuplicateRkey(earlier, number));
        }
    }
    Ok(())
}

fn check_tree(record: &Record) -> Result<(), GroupError> {
    let mut receivers = vec![0; record.tree.nodes().len()];
    for receiver in &record.receivers {
        match record.tree.node(receiver.edge) {
            Some(node) if node.role.has_receivers() => receivers[receiver.edge.0] += 1,
            _ => return Err(GroupError::NotAnEdge { address: receiver.address, node: receiver.edge.0 }),
        }
    }
    for (position, node) in record.tree.nodes().iter().enumerate() {
        let (children, receivers) = (record.tree.children(NodeIndex(position)).len(), receivers[position]);
        let (name, role) = (node.name.clone(), node.role);
        match (role, children + receivers) {
            (NodeRole::Edge | NodeRole::Bud, _) if receivers == 0 => return Err(GroupError::Idle { node: name, role }),
            (NodeRole::Transit, 0) => return Err(GroupError::IdleTransit(name)),
            (NodeRole::Edge | NodeRole::Transit | NodeRole::Bud, branches) if branches > MAX_BRANCHES => {
                return Err(GroupError::TooManyBranches { node: name, branches });
            }
            (NodeRole::Edge | NodeRole::Transit | NodeRole::Bud, _) => {}
        }
    }
    Ok(())
}

/// TLV or provisioned (D7): whether the lists travel, and the overhead that results.
fn choose_lists(record: &Record) -> Result<(bool, Overhead), GroupError> {
    let inner = record.longest_packet_octets();
    let fits = |srh: usize| inner + Overhead::of(srh).octets() <= usize::from(record.link_mtu);
    let with_hmac = record.policy.hmac_key_id.is_some();
    let with_own_psns = record.receivers.iter().find(|receiver| !receiver.psn_offset.is_zero());
    if let Some(receiver) = with_own_psns.filter(|_| record.policy.lists == ListMode::Tlv) {
        return Err(GroupError::ListsWithOwnPsns(receiver.address));
    }
    if record.policy.lists != ListMode::Provisioned && with_own_psns.is_none() {
        let receivers = record.receivers.len();
        let refusal = match srh_len_octets(&edge_lists(record), record.region.is_some(), with_hmac) {
            Some(srh) if fits(srh) => return Ok((true, Overhead::of(srh))),
            Some(srh) => GroupError::ListsExceedLink {
                path_mtu: record.path_mtu,
                receivers,
                needed: inner + Overhead::of(srh).octets(),
                link_mtu: record.link_mtu,
            },
            None => GroupError::ListsExceedSrh { receivers },
        };
        if record.policy.lists == ListMode::Tlv {
            return Err(refusal);
        }
    }
    let srh = srh_len_octets(&[], false, with_hmac).unwrap_or(srdma_wire::srh::MAX_LEN);
    if !fits(srh) {
        return Err(GroupError::LinkMtu {
            path_mtu: record.path_mtu,
            needed: inner + Overhead::of(srh).octets(),
            link_mtu: record.link_mtu,
        });
    }
    Ok((false, Overhead::of(srh)))
}

/// The receivers edge by edge, named by the edges' loopbacks (MT-5.1-4). Those of bud nodes are in no list (D246).
pub(crate) fn edge_lists(record: &Record) -> Vec<EdgeList> {
    let mut lists: Vec<EdgeList> = Vec::new();
    let edges = record.tree.nodes().iter().enumerate().filter(|(_, node)| node.role == NodeRole::Edge);
    for (position, node) in edges {
        let of_edge = record.receivers.iter().filter(|receiver| receiver.edge == NodeIndex(position));
        let region = |receiver: &Receiver| receiver.region.filter(|_| record.regions_in_lists());
        let receivers: Vec<Receiver> = of_edge
            .map(|one| Receiver { region: region(one), more_regions: Vec::new(), moved: 0, ..one.clone() })
            .collect();
        if !receivers.is_empty() {
            lists.push(EdgeList { edge: node.loopback, receivers });
        }
    }
    lists
}

/// Whether a host can have an address; one of IPv4 is IPv4-mapped, and one that packets are forwarded to (D273).
pub fn is_host_address(address: Ipv6Addr) -> bool {
    match address.to_ipv4_mapped() {
        None => !address.is_multicast() && !address.is_unspecified() && !address.is_loopback(),
        Some(address) => {
            let is_bound = address.is_loopback() || address.is_link_local() || address.octets()[0] == 0;
            !address.is_multicast() && !address.is_broadcast() && !is_bound
        }
    }
}

/// Whether a member is of another IP version than its group's Proxy Address (D273).
pub fn is_mixed(member: Ipv6Addr, proxy: Ipv6Addr) -> bool {
    member.to_ipv4_mapped().is_some() != proxy.to_ipv4_mapped().is_some()
}
