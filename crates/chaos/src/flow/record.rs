//! The record of a group, as a controller would make it.

use super::{Flow, Participant};
use crate::address;
use crate::schedule::{ListsPlan, OperationPlan, PATH_MTU, PATH_MTU_OCTETS, PolicyPlan, Schedule};
use crate::testbed::{LINK_MTU, Testbed};
use srdma_group::{
    CnpMode, GroupId, ListMode, NodeIndex, NodeRole, OnFailure, Policy, PsnOffset, Receiver, ReceiverRegion, Record,
    RepairMode, RepairPolicy, Rules, Source, SourceRegion, Tree, TreeError, TreeNode,
};
use srdma_wire::Qpn;
use std::time::Duration;

impl Flow<'_> {
    /// The initial group record.
    pub(crate) fn first_record(&self, schedule: &Schedule, testbed: &Testbed) -> Result<Record, TreeError> {
        let mut in_tree = vec![false; schedule.nodes.len()];
        for member in &self.members {
            let mut above = Some(testbed.edge_of(member.receiver));
            while let Some(node) = above {
                in_tree[node] = true;
                above = schedule.nodes[node].parent;
            }
        }
        let mut positions = vec![NodeIndex(0); schedule.nodes.len()];
        let mut nodes = Vec::new();
        for (node, plan) in schedule.nodes.iter().enumerate().filter(|(node, _)| in_tree[*node]) {
            positions[node] = NodeIndex(nodes.len());
            let parent = plan.parent.map(|parent| positions[parent]);
            let has_receivers = self.members.iter().any(|member| testbed.edge_of(member.receiver) == node);
            let role = NodeRole::of(has_receivers, testbed.replicates(node));
            nodes.push(tree_node(node, self.number, parent, role, testbed));
        }
        let receivers = self
            .members
            .iter()
            .map(|member| self.receiver(member, positions[testbed.edge_of(member.receiver)], testbed));
        let mut regions = self.source_regions();
        Ok(Record {
            id: self.id(),
            epoch: 1,
            proxy: testbed.proxy(self.number),
            designated_qpn: address::designated_qpn(self.number),
            initial_psn: self.layout.first_psn,
            path_mtu: PATH_MTU,
            link_mtu: LINK_MTU,
            source: Source { address: testbed.source_address(self.plan.source), qpn: self.qpn },
            region: regions.next(),
            receivers: receivers.collect(),
            tree: Tree::new(nodes)?,
            policy: self.policy(),
            more_regions: regions.collect(),
        })
    }

    /// Distance of the PSNs of a receiver's queue pair from the group's: any, in a group with own PSNs.
    pub(crate) fn psn_offset(&self, qpn: Qpn) -> PsnOffset {
        let number = u64::from(qpn.get()) << 32 | self.number as u64;
        if self.plan.own_psns { address::psn_offset(number) } else { PsnOffset::ZERO }
    }

    /// Number of regions, if the group uses WRITE.
    fn regions(&self) -> usize {
        match self.plan.operation {
            OperationPlan::Write => self.plan.regions.into(),
            OperationPlan::Send => 0,
        }
    }

    fn source_regions(&self) -> impl Iterator<Item = SourceRegion> {
        let (base, rkey) = address::group_region(self.number);
        let (base_stride, key_stride) = address::REGION_STRIDE;
        let length = self.plan.octets;
        (0..self.regions() as u32).map(move |region| SourceRegion {
            base: base + u64::from(region) * base_stride,
            length,
            rkey: rkey.0 + region * key_stride,
        })
    }

    fn receiver(&self, member: &Participant, edge: NodeIndex, testbed: &Testbed) -> Receiver {
        let mut regions = self.regions_of(member);
        Receiver {
            address: testbed.receiver_address(member.receiver),
            qpn: member.qpn,
            region: regions.next(),
            edge,
            joined: member.joined,
            more_regions: regions.collect(),
            psn_offset: member.psn_offset,
            moved: 0,
        }
    }

    /// A member's memory regions, if the group uses WRITE.
    pub(crate) fn regions_of(&self, member: &Participant) -> impl Iterator<Item = ReceiverRegion> {
        let (number, receiver) = (self.number, member.receiver);
        let keys = member.keys.into_iter().take(self.regions()).enumerate();
        keys.map(move |(region, key)| ReceiverRegion {
            base: address::receiver_base(number, receiver, region),
            rkey: key.0,
        })
    }

    pub(crate) fn id(&self) -> GroupId {
        GroupId(self.number as u32 + 1)
    }

    fn policy(&self) -> Policy {
        let PolicyPlan { literal, evict, prune_retransmit, lists, t_hold_percent, trailing_cnps, .. } =
            self.plan.policy;
        Policy {
            rules: if literal { Rules::Literal } else { Rules::Default },
            lists: match lists {
                ListsPlan::Tlv => ListMode::Tlv,
                ListsPlan::Provisioned => ListMode::Provisioned,
                ListsPlan::Auto => ListMode::Auto,
            },
            prune_retransmit,
            t_hold: self.timing.t_hold * u32::from(t_hold_percent) / 100,
            cnp_mode: if trailing_cnps { CnpMode::Trailing } else { CnpMode::Leading },
            on_failure: if evict { OnFailure::Evict } else { OnFailure::Strict },
            t_stall: self.t_stall(),
            t_not_ready: self.t_not_ready(),
            min_receivers: self.plan.policy.min_receivers,
            repair: self.repair(),
            ..Policy::default()
        }
    }

    fn repair(&self) -> RepairPolicy {
        let Some(plan) = self.plan.policy.repair else { return RepairPolicy::default() };
        RepairPolicy {
            mode: if plan.edges_only { RepairMode::Edge } else { RepairMode::Tree },
            window_octets: plan.window_packets * PATH_MTU_OCTETS,
            ack_timeout: Duration::from_nanos(self.ack_timeout_ns()),
            round_trip: Duration::from_nanos(plan.round_trip_ns),
        }
    }

    pub(crate) fn t_stall(&self) -> Duration {
        Duration::from_nanos(self.ack_timeout_ns()) * u32::from(self.plan.policy.t_stall_percent) / 100
    }

    fn t_not_ready(&self) -> Option<Duration> {
        let percent = self.plan.policy.t_not_ready_percent?;
        Some(Duration::from_nanos(self.ack_timeout_ns()) * u32::from(percent) / 100)
    }
}

/// A node of the network as a node of a group's tree.
fn tree_node(node: usize, group: usize, parent: Option<NodeIndex>, role: NodeRole, testbed: &Testbed) -> TreeNode {
    TreeNode {
        name: format!("N{node}"),
        loopback: address::node(node).loopback,
        sid: testbed.sid(node, group),
        parent,
        parent_sid: None,
        role,
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: testbed.can_repair(node),
    }
}
