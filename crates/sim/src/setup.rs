//! Setup of a multicast transfer: hosts with queue pairs, a group, and nodes with their group entries.

use crate::addressing::{self, NodeAddresses};
use crate::fabric::{Fabric, Headend, UP_PORT};
use crate::program::{MessageOperation, ReceiveStream, SendStream};
use crate::replica::Replica;
use crate::timing::Timing;
use crate::topology::{SOURCE_NAME, Topology};
use crate::transfer::{Branching, Operation, TransferConfig};
use srdma_dataplane::{Command, MulticastRoute, SidBehavior};
use srdma_frame::PortId;
use srdma_group::{
    Group, GroupError, GroupId, NodeIndex, NodeRole, Policy, Receiver, ReceiverRegion, Record, Source, SourceRegion,
    Tree, TreeError, TreeNode,
};
use srdma_rc::{Habits, MemoryKey, QueuePairConfig, RemoteAddress};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The source's rank among the hosts; receiver R1 has rank 1.
pub(crate) const SOURCE_RANK: usize = 0;

const GROUP: GroupId = GroupId(1);

/// Address of the receivers' memory at the source (D27).
pub const GROUP_REGION_BASE: u64 = 0x1000_0000_0000;
/// Key of [`GROUP_REGION_BASE`].
pub const GROUP_RKEY: MemoryKey = MemoryKey(0x00C0_FFEE);

/// Error of the setup of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The data are empty.
    #[error("there must be at least one octet of data")]
    NoData,
    /// A message length out of range.
    #[error("a message must have 1 to {limit} octets, found {0}", limit = srdma_rc::MAX_MESSAGE_OCTETS)]
    MessageLength(u32),
    /// The group is invalid.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The tree is invalid.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A node rejected its configuration.
    #[error(transparent)]
    Node(#[from] srdma_dataplane::ConfigError),
    /// A host rejected its configuration.
    #[error(transparent)]
    QueuePair(#[from] srdma_rc::ConfigError),
}

/// Builds the network; returns it with the receivers' regions and the group.
pub(crate) fn multicast(
    scenario: &TransferConfig,
    data: &Arc<Vec<u8>>,
) -> Result<(Fabric, Vec<MemoryKey>, Group), SetupError> {
    if data.is_empty() {
        return Err(SetupError::NoData);
    }
    if !(1..=srdma_rc::MAX_MESSAGE_OCTETS).contains(&scenario.message_octets) {
        return Err(SetupError::MessageLength(scenario.message_octets));
    }
    let timing = scenario.timing();
    let mut fabric = Fabric::new(&scenario.topology, &scenario.link_settings(), scenario.headend, scenario.seed)?;
    let regions = add_receivers(&mut fabric, scenario, &timing, data)?;
    let group = Group::new(record(scenario, &timing, &regions, data.len() as u64)?)?;
    configure_nodes(&mut fabric, scenario, &group)?;
    add_source(&mut fabric, scenario, &timing, data)?;
    Ok((fabric, regions, group))
}

/// A queue pair of a host toward the group (MT-5.1-1), beginning at the group's first PSN (D28).
fn queue_pair(qpn: srdma_wire::Qpn, scenario: &TransferConfig, timing: &Timing, habits: Habits) -> QueuePairConfig {
    QueuePairConfig {
        sq_psn: scenario.first_psn,
        rq_psn: scenario.first_psn,
        path_mtu: scenario.path_mtu,
        ack_timeout: scenario.retransmission.ack_timeout(timing.ack_timeout),
        habits: Habits { retry_count_7_is_unlimited: scenario.unlimited_retries, ..habits },
        ..QueuePairConfig::new(qpn, addressing::PROXY, addressing::designated_qpn())
    }
}

fn add_receivers(
    fabric: &mut Fabric,
    scenario: &TransferConfig,
    timing: &Timing,
    data: &Arc<Vec<u8>>,
) -> Result<Vec<MemoryKey>, SetupError> {
    let mut regions = Vec::new();
    for (rank, receiver) in (1..).zip(fabric.receivers.clone()) {
        let habits = scenario.retransmission.at_receiver(rank - 1, timing.habits());
        let qpn = addressing::receiving_qpn(rank);
        let region = fabric.with_host(receiver, |host, _| {
            host.add_queue_pair(queue_pair(qpn, scenario, timing, habits))?;
            // Keys differ between receivers, as those of real hosts do.
            let region = host.add_region(Replica::empty(Arc::clone(data)), receiver_base(rank), rank as u8);
            if scenario.operation == Operation::Send {
                host.add_receive_stream(ReceiveStream::new(qpn, region, data.len() as u64, scenario.message_octets));
            }
            Ok::<_, SetupError>(region)
        })?;
        regions.push(region);
    }
    Ok(regions)
}

fn add_source(
    fabric: &mut Fabric,
    scenario: &TransferConfig,
    timing: &Timing,
    data: &Arc<Vec<u8>>,
) -> Result<(), SetupError> {
    let qpn = addressing::qpn_toward(SOURCE_RANK);
    let remote = RemoteAddress { virtual_address: GROUP_REGION_BASE, rkey: GROUP_RKEY };
    let operation = match scenario.operation {
        Operation::Write => MessageOperation::Write { remote },
        Operation::Send => MessageOperation::Send,
    };
    let habits = scenario.retransmission.at_source(timing.habits());
    fabric.with_host(fabric.source, |host, _| {
        host.add_queue_pair(queue_pair(qpn, scenario, timing, habits))?;
        let region = host.add_region(Replica::of_source(Arc::clone(data)), 0, 0);
        host.observe_responses();
        host.add_send_stream(SendStream::new(qpn, region, data.len() as u64, scenario.message_octets, operation));
        Ok(())
    })
}

/// The group's record, as a control plane would commit it.
fn record(
    scenario: &TransferConfig,
    timing: &Timing,
    regions: &[MemoryKey],
    size_octets: u64,
) -> Result<Record, SetupError> {
    let topology = &scenario.topology;
    let first_node = usize::from(scenario.headend == Headend::Host);
    let writes = scenario.operation == Operation::Write;
    let receivers = topology.receivers().iter().zip(regions).zip(1..).map(|((leaf, region), rank)| Receiver {
        region: writes.then(|| ReceiverRegion { base: receiver_base(rank), rkey: region.0 }),
        ..Receiver::new(addressing::receiver(leaf), addressing::receiving_qpn(rank), NodeIndex(first_node + leaf.edge))
    });
    Ok(Record {
        id: GROUP,
        epoch: 1,
        proxy: addressing::PROXY,
        designated_qpn: addressing::designated_qpn(),
        initial_psn: scenario.first_psn,
        path_mtu: scenario.path_mtu,
        link_mtu: scenario.link_mtu,
        source: Source { address: addressing::SOURCE, qpn: addressing::qpn_toward(SOURCE_RANK) },
        region: writes.then_some(SourceRegion { base: GROUP_REGION_BASE, length: size_octets, rkey: GROUP_RKEY.0 }),
        receivers: receivers.collect(),
        tree: Tree::new(tree_nodes(scenario))?,
        policy: Policy {
            rules: scenario.rules,
            lists: scenario.lists,
            prune_retransmit: scenario.prune_retransmit,
            t_hold: timing.t_hold,
            repair: scenario.repair_policy(),
            ..Policy::default()
        },
        more_regions: Vec::new(),
    })
}

/// Address of a receiver's memory: different from that of the group, and of other receivers (D27).
pub fn receiver_base(rank: usize) -> u64 {
    0x7000_0000_0000 + ((rank as u64) << 32)
}

/// The group's tree: the software switch, when it is the headend, then the topology's nodes.
fn tree_nodes(scenario: &TransferConfig) -> Vec<TreeNode> {
    let topology = &scenario.topology;
    let groups = MulticastGroups { topology, branching: scenario.branching };
    let mut nodes = Vec::new();
    let switch = match scenario.headend {
        Headend::FirstHop => None,
        Headend::Host => {
            let addresses = NodeAddresses::of_switch();
            nodes.push(TreeNode {
                name: SOURCE_NAME.to_owned(),
                loopback: addresses.loopback,
                sid: addresses.replication,
                parent: None,
                parent_sid: None,
                role: NodeRole::Transit,
                multicast: groups.below_switch(),
                joined: None,
                renewed: 0,
                can_repair: true,
            });
            Some(NodeIndex(0))
        }
    };
    let first_node = nodes.len();
    for (position, node) in topology.nodes().iter().enumerate() {
        let addresses = NodeAddresses::of(node);
        let role = topology.role(position, position == 0 && switch.is_none());
        let own_sid = if role.replicates() { addresses.replication } else { addresses.end_mt };
        let arriving = if position == 0 && switch.is_none() { None } else { groups.toward(position) };
        nodes.push(TreeNode {
            name: node.name.clone(),
            loopback: addresses.loopback,
            sid: arriving.unwrap_or(own_sid),
            parent: node.parent.map(|parent| NodeIndex(first_node + parent)).or(switch),
            parent_sid: None,
            role,
            multicast: groups.below(position).filter(|_| role.replicates()),
            joined: None,
            renewed: 0,
            can_repair: true,
        });
    }
    nodes
}

/// Parts of a tree that IPv6 multicast groups span (D3).
struct MulticastGroups<'a> {
    topology: &'a Topology,
    branching: Branching,
}

impl MulticastGroups<'_> {
    /// The group that data leave the software switch by.
    fn below_switch(&self) -> Option<Ipv6Addr> {
        (self.branching == Branching::Multicast).then(|| self.group_of(0))
    }

    /// The group that data reach a node by.
    fn toward(&self, position: usize) -> Option<Ipv6Addr> {
        match self.topology.nodes()[position].parent {
            Some(parent) => self.below(parent),
            None => self.below_switch(),
        }
    }

    /// The group that data leave a node by.
    fn below(&self, position: usize) -> Option<Ipv6Addr> {
        match self.branching {
            Branching::Replicate => None,
            Branching::Multicast => Some(self.group_of(0)),
            Branching::Mixed => {
                let path: Vec<usize> = self.topology.path_up(position).collect();
                // The first-hop node comes last; the one before it hands over.
                path.iter().rev().nth(1).map(|handing_over| self.group_of(*handing_over))
            }
        }
    }

    fn group_of(&self, position: usize) -> Ipv6Addr {
        NodeAddresses::of(&self.topology.nodes()[position]).multicast_group
    }
}

/// Applies the SIDs, the multicast routes and the group entry of every node.
fn configure_nodes(fabric: &mut Fabric, scenario: &TransferConfig, group: &Group) -> Result<(), SetupError> {
    let topology = &scenario.topology;
    let elements: Vec<_> = fabric.switch.into_iter().chain(fabric.nodes.iter().copied()).collect();
    let tree = &group.record().tree;
    let headend = tree.nodes()[0].loopback;
    for (index, (tree_node, element)) in tree.nodes().iter().zip(elements).enumerate() {
        let mut commands = Vec::new();
        let behavior = match tree_node.role {
            NodeRole::Edge => SidBehavior::EndMt { require_hmac: false },
            NodeRole::Transit | NodeRole::Bud => SidBehavior::EndReplicate(GROUP),
        };
        if !tree_node.sid.is_multicast() {
            commands.push(Command::AddSid { prefix: Prefix::host(tree_node.sid), behavior });
        }
        let children = tree.children(NodeIndex(index)).len() as u16;
        let outgoing: Vec<PortId> = (1..=children).map(PortId).collect();
        let is_edge = tree_node.role == NodeRole::Edge;
        if let Some(group) = tree_node.multicast.or(Some(tree_node.sid).filter(|sid| sid.is_multicast())) {
            let handed_over = !tree_node.sid.is_multicast();
            commands.push(Command::AddMulticastRoute(MulticastRoute {
                // The node that hands over finds its branches by its own address; after it packets keep the headend's.
                source: if handed_over { tree_node.loopback } else { headend },
                group,
                incoming: (!handed_over).then_some(UP_PORT),
                outgoing,
                end_mt: is_edge,
                require_hmac: false,
            }));
        }
        commands.extend(group.at(NodeIndex(index)).map(|entry| Command::AddGroup(Box::new(entry))));
        fabric.with_node(element, |node| commands.into_iter().try_for_each(|command| node.apply(command)))?;
    }
    debug_assert_eq!(topology.nodes().len() + usize::from(fabric.switch.is_some()), tree.nodes().len());
    Ok(())
}
