//! Multicast groups in a fabric: the tree of a group, and the configuration of its nodes.
//!
//! ```text
//!   source ── switch of the source (headend) ── switches between (End.Replicate) ── switches of receivers (End.MT)
//! ```
//!
//! The tree is one of shortest paths. Groups alternate between equally short trees.

use super::build::{ADDRESSES, LINK_MTU, PREFIX};
use super::flows::PlannedFlow;
use super::scenario::FabricScenario;
use super::server::{BASE_ADDRESS, REGION_OCTETS};
use srdma_dataplane::{Command, NextHop, RouteAction, SidBehavior, TableId};
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_group::{
    CnpMode, Group, GroupError, GroupId, ListMode, NodeIndex, NodeRole, Policy, Receiver, ReceiverRegion, Record,
    Source, SourceRegion, Tree, TreeError, TreeNode,
};
use srdma_rc::MemoryKey;
use srdma_wire::{PathMtu, Prefix, Psn, Qpn};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// Third group of Proxy Addresses, after the 32 bits of the fabric; no host or switch has it.
const PROXIES: u16 = 0xffff;

/// Last group of a node's SID for group 0; other groups follow.
const FIRST_SID: u16 = 0x1000;

/// Error of the setup of a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The record is invalid.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The nodes do not form a tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// The Proxy Address of the group with this number.
pub(super) fn proxy(number: usize) -> Ipv6Addr {
    let [first, second, ..] = PREFIX.segments();
    Ipv6Addr::new(first, second, PROXIES, number as u16, 0, 0, 0, 1)
}

/// The switches of a group's tree, the headend first, parents before children; and the links between them.
struct Branches {
    switches: Vec<SwitchId>,
    /// For each but the first the position of its parent, and the parent's port toward it.
    parents: Vec<Option<(usize, PortId)>>,
}

impl Branches {
    /// The shortest paths from `root` to the switches of `receivers`; the group's number rotates the order in which
    /// equal ones are tried.
    fn new(topology: &Topology, number: usize, root: Option<SwitchId>, receivers: &[Member]) -> Self {
        let mut above: BTreeMap<SwitchId, (SwitchId, PortId)> = BTreeMap::new();
        let mut waiting: VecDeque<SwitchId> = root.into_iter().collect();
        while let Some(at) = waiting.pop_front() {
            let ports = topology.ports(NodeId::Switch(at));
            let turn = number % ports.len().max(1);
            for port in ports[turn..].iter().chain(&ports[..turn]) {
                if let NodeId::Switch(next) = port.peer.node
                    && Some(next) != root
                    && !above.contains_key(&next)
                {
                    above.insert(next, (at, PortId(port.port)));
                    waiting.push_back(next);
                }
            }
        }
        let mut branches = Branches { switches: root.into_iter().collect(), parents: vec![None; root.iter().len()] };
        for edge in receivers.iter().flat_map(|receiver| topology.attached_to(receiver.host)) {
            branches.add(edge, &above);
        }
        branches
    }

    /// Adds a switch and its ancestors; returns its position.
    fn add(&mut self, switch: SwitchId, above: &BTreeMap<SwitchId, (SwitchId, PortId)>) -> usize {
        if let Some(known) = self.switches.iter().position(|known| *known == switch) {
            return known;
        }
        let parent = above.get(&switch).map(|(parent, port)| (self.add(*parent, above), *port));
        self.switches.push(switch);
        self.parents.push(parent);
        self.switches.len() - 1
    }
}

/// A receiver of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) host: HostId,
    pub(super) qpn: Qpn,
    pub(super) region: ReceiverRegion,
}

/// A group without its tree.
#[derive(Clone, Debug)]
pub(super) struct GroupSpec {
    /// The first switch of the source's data, which owns the Proxy Address.
    pub(super) root: Option<SwitchId>,
    pub(super) source: Source,
    pub(super) region: SourceRegion,
    pub(super) receivers: Vec<Member>,
    pub(super) designated_qpn: Qpn,
    pub(super) initial_psn: Psn,
    pub(super) path_mtu: PathMtu,
    pub(super) policy: Policy,
}

/// A multicast flow's group.
pub(super) struct PlannedGroup {
    group: Group,
    branches: Branches,
}

impl PlannedGroup {
    /// The group with a number, for a flow whose queue pairs all have the number `qpn`.
    ///
    /// # Errors
    ///
    /// An invalid record.
    pub(super) fn new(
        scenario: &FabricScenario,
        number: usize,
        flow: &PlannedFlow,
        qpn: Qpn,
        region: MemoryKey,
    ) -> Result<Self, SetupError> {
        let topology = &scenario.topology;
        let member =
            |host: &HostId| Member { host: *host, qpn, region: ReceiverRegion { base: BASE_ADDRESS, rkey: region.0 } };
        let spec = GroupSpec {
            root: topology.attached_to(flow.from).next(),
            source: Source { address: ADDRESSES.host(topology, flow.from), qpn },
            region: SourceRegion { base: BASE_ADDRESS, length: REGION_OCTETS, rkey: region.0 },
            receivers: flow.receivers.iter().map(member).collect(),
            designated_qpn: qpn,
            initial_psn: Psn::new(0),
            path_mtu: scenario.hosts.path_mtu(),
            policy: Policy { lists: ListMode::Provisioned, cnp_mode: CnpMode::Leading, ..Policy::default() },
        };
        Self::with_spec(topology, number, spec)
    }

    /// The group with a number and this specification.
    ///
    /// # Errors
    ///
    /// An invalid record.
    pub(super) fn with_spec(topology: &Topology, number: usize, spec: GroupSpec) -> Result<Self, SetupError> {
        let branches = Branches::new(topology, number, spec.root, &spec.receivers);
        let edge_of = |host: HostId| {
            let edge = topology.attached_to(host).next();
            branches.switches.iter().position(|switch| Some(*switch) == edge)
        };
        let members = spec.receivers.iter().filter_map(|member| {
            Some(Receiver {
                region: Some(member.region),
                ..Receiver::new(ADDRESSES.host(topology, member.host), member.qpn, NodeIndex(edge_of(member.host)?))
            })
        });
        let members: Vec<Receiver> = members.collect();
        let nodes = branches.switches.iter().zip(&branches.parents).enumerate().map(|(position, (switch, parent))| {
            let is_edge = members.iter().any(|member| member.edge.0 == position);
            let is_above = |parent: &Option<(usize, _)>| matches!(parent, Some((above, _)) if *above == position);
            let replicates = parent.is_none() || branches.parents.iter().any(is_above);
            TreeNode {
                name: topology.name(NodeId::Switch(*switch)).to_owned(),
                loopback: ADDRESSES.loopback(topology, *switch),
                sid: sid(topology, *switch, number),
                parent: parent.map(|(parent, _)| NodeIndex(parent)),
                parent_sid: None,
                role: NodeRole::of(is_edge, replicates),
                multicast: None,
                joined: None,
                renewed: 0,
                can_repair: true,
            }
        });
        let tree = Tree::new(nodes.collect())?;
        let group = Group::new(Record {
            id: GroupId(number as u32 + 1),
            epoch: 1,
            proxy: proxy(number),
            designated_qpn: spec.designated_qpn,
            initial_psn: spec.initial_psn,
            path_mtu: spec.path_mtu,
            link_mtu: LINK_MTU,
            source: spec.source,
            region: Some(spec.region),
            receivers: members,
            tree,
            policy: spec.policy,
            more_regions: Vec::new(),
        })?;
        Ok(PlannedGroup { group, branches })
    }

    /// The group with its record.
    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// The switch at a position of the tree.
    pub(super) fn switch(&self, position: usize) -> Option<SwitchId> {
        self.branches.switches.get(position).copied()
    }

    pub(super) fn id(&self) -> GroupId {
        self.group.record().id
    }

    /// Commands for each switch of the tree.
    pub(super) fn commands(&self) -> Vec<(SwitchId, Command)> {
        let mut commands = Vec::new();
        let nodes = self.group.record().tree.nodes();
        for (position, (switch, node)) in self.branches.switches.iter().zip(nodes).enumerate() {
            let behavior = match node.role {
                NodeRole::Edge => SidBehavior::EndMt { require_hmac: false },
                NodeRole::Transit | NodeRole::Bud => SidBehavior::EndReplicate(self.group.record().id),
            };
            commands.push((*switch, Command::AddSid { prefix: Prefix::host(node.sid), behavior }));
            if let Some((parent, port)) = self.branches.parents[position] {
                let next_hop = NextHop { port, address: node.loopback };
                let (prefix, action) = (Prefix::host(node.sid), RouteAction::Via(vec![next_hop]));
                let route = Command::AddRoute { table: TableId(0), prefix, action };
                commands.push((self.branches.switches[parent], route));
            }
        }
        for (position, switch) in self.branches.switches.iter().enumerate() {
            let part = self.group.at(NodeIndex(position)).map(|part| Command::AddGroup(Box::new(part)));
            commands.extend(part.map(|command| (*switch, command)));
        }
        commands
    }

    /// The ports by which its data go from switch to switch.
    pub(super) fn ports(&self) -> impl Iterator<Item = (SwitchId, PortId)> {
        self.branches.parents.iter().flatten().map(|(parent, port)| (self.branches.switches[*parent], *port))
    }
}

/// The SID by which a group's data reach a switch.
fn sid(topology: &Topology, switch: SwitchId, number: usize) -> Ipv6Addr {
    let mut segments = ADDRESSES.locator(topology, switch).segments();
    segments[7] = FIRST_SID + number as u16;
    Ipv6Addr::from(segments)
}
