//! Views of the state for clients.

use super::commit::links_of_unicast;
use super::{Core, Group, Node};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::MemberRow;
use srdma_api::ProblemType;
use srdma_api::{
    BranchView, GroupPage, GroupState, GroupSummary, NodeIdentity, NodePage, NodeStatus, OverheadView, Receiver,
    ReceiverState, Topology, TopologyLink, TopologyNode, TreeNodeView, TreeView,
};
use srdma_group::{EdgeList, NodeIndex, NodeRole, Overhead, Receiver as StoredReceiver, TreeNode, srh_len_octets};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Bound;

/// Entries of a page: maximum and default.
const MAX_PAGE: usize = 10_000;
const PAGE: usize = 100;

impl Core {
    /// A group in full, with its version.
    pub fn group(&self, principal: &Principal, id: u32) -> Result<(srdma_api::Group, u64), Refusal> {
        let group = self.seen(id, principal)?;
        let request = &group.row.request;
        let view = srdma_api::Group {
            summary: self.summary(group),
            source: request.source,
            source_state: group.row.source,
            source_is_silent: self.is_source_silent(group),
            service: group.row.service.clone().filter(|_| principal.may_change(&group.row.tenant).is_ok()),
            designated_qpn: request.designated_qpn,
            initial_psn: request.initial_psn,
            path_mtu: request.path_mtu,
            region: request.region,
            more_regions: request.more_regions.clone(),
            policy: request.policy,
            resumes: group.row.ancestors.last().copied(),
            members: self.members(group),
            tree: self.tree(group),
            awaited: self.awaited(group),
            failure: self.failure(group),
            warnings: self.repair_warnings(group),
        };
        Ok((view, group.row.version))
    }

    /// The names of the nodes that a group waits for.
    fn awaited(&self, group: &Group) -> Vec<String> {
        let of_lifecycle = group.lifecycle.iter().flat_map(|lifecycle| lifecycle.awaited());
        let awaited: BTreeSet<Ipv6Addr> = of_lifecycle.chain(self.awaited_edges(group)).collect();
        awaited.into_iter().map(|node| self.network.name(node)).collect()
    }

    /// The last failure of a change, what its nodes have instead of a record, the receivers that hold it back, and the
    /// nodes that are lost.
    fn failure(&self, group: &Group) -> Option<String> {
        let failures = [
            group.row.failure.clone(),
            self.foreign_record(group),
            self.lost_stream(group),
            group.receivers_in_arrears(),
            self.lost_nodes(group),
        ];
        let failures: Vec<String> = failures.into_iter().flatten().collect();
        (!failures.is_empty()).then(|| failures.join("; "))
    }

    /// The source goes on with a group that the store knows as a new one, as a failure (D137).
    fn lost_stream(&self, group: &Group) -> Option<String> {
        let completed = group.completed?.get();
        let headend = group.record.as_ref()?.tree.nodes().first()?.loopback;
        let status = self.nodes.get(&headend)?.status.as_ref()?;
        let status = status.groups.iter().find(|status| status.group == group.row.id)?;
        let first = group.row.request.initial_psn;
        status.awaits_first_psn.then(|| {
            format!(
                "the headend waits for PSN {first}, the group's first, and the source has completed everything before \
                 PSN {completed}, for a record that the store has lost: close the group and create it again"
            )
        })
    }

    /// Which nodes of a group's tree are lost, as a failure.
    fn lost_nodes(&self, group: &Group) -> Option<String> {
        let is_lost = |node: &&Ipv6Addr| self.nodes.get(*node).is_none_or(|node| node.was_dead);
        let lost: Vec<String> = group.nodes.iter().filter(is_lost).map(|node| self.network.name(*node)).collect();
        (!lost.is_empty()).then(|| format!("the controller has lost the connection of {}", lost.join(", ")))
    }

    /// The state of a group; `None` when it does not exist.
    pub fn group_state(&self, id: u32) -> Option<GroupState> {
        self.groups.get(&id).map(|group| self.state(group))
    }

    /// Whether the nodes of a group may have another record than the store.
    pub(super) fn is_verifying(&self, group: &Group) -> bool {
        self.state(group) == GroupState::Verifying
    }

    /// A receiver of a group, with the group's version.
    pub fn receiver(&self, principal: &Principal, id: u32, address: Ipv6Addr) -> Result<(Receiver, u64), Refusal> {
        let group = self.seen(id, principal)?;
        let receiver = self.member(group, address);
        let receiver = receiver.ok_or_else(|| {
            Refusal::new(ProblemType::UnknownReceiver, format!("{address} is not a receiver of group {id}"))
        })?;
        Ok((receiver, group.row.version))
    }

    /// A page of the groups that the principal may read.
    pub fn groups(
        &self,
        principal: &Principal,
        tenant: Option<&str>,
        after: Option<u32>,
        limit: Option<usize>,
    ) -> Result<GroupPage, Refusal> {
        let tenant = match (&principal.tenant, tenant) {
            (Some(own), None) => Some(own.as_str()),
            (_, tenant) => tenant,
        };
        principal.may_read(tenant.unwrap_or_default())?;
        let most = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let is_meant = |group: &Group| tenant.is_none_or(|tenant| group.row.tenant == tenant);
        let mut behind = self.groups.range((first, Bound::Unbounded)).filter(|(_, group)| is_meant(group));
        let groups: Vec<GroupSummary> = behind.by_ref().take(most).map(|(_, group)| self.summary(group)).collect();
        let next = behind.next().and(groups.last()).map(|group| group.id);
        let total = match tenant {
            Some(tenant) => self.groups_of_tenant.get(tenant).copied().unwrap_or(0),
            None => self.groups.len(),
        };
        Ok(GroupPage { groups, next, total: total as u64 })
    }

    /// A page of the nodes.
    pub fn nodes(&self, principal: &Principal, after: Option<&str>, limit: Option<usize>) -> Result<NodePage, Refusal> {
        principal.may_read_network()?;
        let known = self.nodes.iter().map(|(loopback, node)| (&node.name, Some((*loopback, node))));
        let mut nodes: Vec<_> = known.chain(self.unconfirmed.keys().map(|name| (name, None))).collect();
        nodes.retain(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        nodes.sort_by_key(|(name, _)| *name);
        let most = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let next = (nodes.len() > most).then(|| nodes[most - 1].0.clone());
        let nodes = nodes.into_iter().take(most).filter_map(|(name, node)| match node {
            Some((loopback, node)) => Some(self.node_view(loopback, node)),
            None => self.unconfirmed.get(name).map(|identity| unconfirmed_view(name, identity)),
        });
        Ok(NodePage { nodes: nodes.collect(), next })
    }

    /// A node.
    pub fn node(&self, principal: &Principal, name: &str) -> Result<srdma_api::Node, Refusal> {
        principal.may_read_network()?;
        if let Some(identity) = self.unconfirmed.get(name) {
            return Ok(unconfirmed_view(name, identity));
        }
        let loopback = self.loopback_of(name)?;
        Ok(self.node_view(loopback, &self.nodes[&loopback]))
    }

    /// Whether a node of this name is shown as alive.
    pub fn is_alive(&self, name: &str) -> bool {
        self.loopback_of(name).is_ok_and(|loopback| self.nodes[&loopback].is_alive())
    }

    fn node_view(&self, loopback: Ipv6Addr, node: &Node) -> srdma_api::Node {
        let used = node.used();
        let said = node.registration.identity();
        srdma_api::Node {
            name: node.name.clone(),
            loopback,
            is_alive: node.is_alive(),
            protocol: node.session.map(|_| node.protocol),
            is_drained: node.is_drained,
            is_removing: node.is_removing,
            unconfirmed: (!node.is_removing && used.identity() != said).then_some(said),
            end_mt: used.end_mt,
            replication: used.replication,
            hosts: used.hosts,
            links: used.links,
            groups: self.groups_of_node.count(loopback) as u32,
            status: node.status.clone(),
        }
    }

    /// Nodes and links with their load.
    pub fn topology(&self, principal: &Principal, unix_ms: u64) -> Result<Topology, Refusal> {
        principal.may_read_network()?;
        let mut nodes = Vec::new();
        let mut links = Vec::new();
        for (loopback, node) in &self.nodes {
            let drops = node.status.as_ref().map_or(0, |status| status.drops.values().sum());
            nodes.push(TopologyNode {
                name: node.name.clone(),
                loopback: *loopback,
                is_alive: node.is_alive(),
                is_drained: node.is_drained,
                is_edge: self.network.node(*loopback).is_some_and(|node| node.end_mt.is_some()),
                drops,
            });
            for hop in self.network.hops(*loopback).filter(|hop| *loopback < hop.to) {
                links.push(TopologyLink {
                    ends: [node.name.clone(), self.network.name(hop.to)],
                    octets_per_second: [self.rate(*loopback, hop.to), self.rate(hop.to, *loopback)],
                    mtu: hop.mtu,
                    groups: self.load.of((*loopback, hop.to)),
                });
            }
        }
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Topology { unix_ms, version: self.network_version, nodes, links })
    }

    /// Octets per second that a node sends to another.
    fn rate(&self, from: Ipv6Addr, to: Ipv6Addr) -> f64 {
        let Some(node) = self.nodes.get(&from) else { return 0.0 };
        let (Some(status), Some((_, rates))) = (&node.status, &node.rates) else { return 0.0 };
        let ports = status.ports.iter().filter(|port| port.to == Some(to));
        ports.filter_map(|port| rates.get(&port.name)).sum()
    }

    /// The number for the group's record; counted anew for a recovered one.
    fn links_of_unicast(&self, group: &Group, record: &srdma_group::Record) -> u32 {
        group.links_of_unicast.unwrap_or_else(|| links_of_unicast(&self.network, record, None))
    }

    /// The name of a node of a tree; that of the record if it is not known any more.
    fn shown_name(&self, node: &TreeNode) -> String {
        self.nodes.get(&node.loopback).map_or_else(|| node.name.clone(), |known| known.name.clone())
    }

    fn tree(&self, group: &Group) -> Option<TreeView> {
        let committed = group.lifecycle.as_ref()?.newest()?;
        let record = committed.record();
        let nodes = record.tree.nodes();
        let views = nodes.iter().enumerate().map(|(position, node)| {
            let status = self.nodes.get(&node.loopback).and_then(|node| node.status.as_ref());
            TreeNodeView {
                name: self.shown_name(node),
                loopback: node.loopback,
                sid: node.sid,
                role: match node.role {
                    _ if position == 0 => "headend",
                    role => role.name(),
                }
                .to_owned(),
                parent: node.parent.and_then(|parent| nodes.get(parent.0)).map(|parent| self.shown_name(parent)),
                branches: branches(committed, position, status),
            }
        });
        let views = views.collect();
        let lists: Vec<EdgeList> = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.role == NodeRole::Edge)
            .map(|(position, node)| EdgeList {
                edge: node.loopback,
                receivers: committed.receivers_of(NodeIndex(position)).cloned().collect(),
            })
            .collect();
        let with_hmac = record.policy.hmac_key_id.is_some();
        let octets = |srh: usize| Overhead::of(srh).octets() as u32;
        let overhead = committed.overhead().octets() as u32;
        Some(TreeView {
            nodes: views,
            links: nodes.len() as u32 - 1,
            links_of_unicast: self.links_of_unicast(group, record),
            explanation: group.explanation.clone(),
            overhead: OverheadView {
                lists_in_packets: committed.lists_in_packets(),
                octets: overhead,
                octets_with_lists: srh_len_octets(&lists, record.region.is_some(), with_hmac).map(octets),
                octets_provisioned: srh_len_octets(&[], false, with_hmac).map_or(overhead, octets),
                longest_packet_octets: record.longest_packet_octets() as u32 + overhead,
                link_mtu: record.link_mtu,
            },
        })
    }
}

/// A node that is not confirmed.
fn unconfirmed_view(name: &str, identity: &NodeIdentity) -> srdma_api::Node {
    srdma_api::Node {
        name: name.to_owned(),
        loopback: identity.loopback,
        is_alive: false,
        protocol: None,
        is_drained: false,
        is_removing: false,
        unconfirmed: Some(identity.clone()),
        end_mt: None,
        replication: None,
        hosts: Vec::new(),
        links: Vec::new(),
        groups: 0,
        status: None,
    }
}

impl Core {
    /// All receivers.
    fn members(&self, group: &Group) -> Vec<Receiver> {
        let stored = group.record.iter().flat_map(|record| &record.receivers);
        let stored: BTreeMap<Ipv6Addr, &StoredReceiver> = stored.map(|receiver| (receiver.address, receiver)).collect();
        let former: BTreeSet<Ipv6Addr> = former(group).collect();
        let view = |(address, row): (&Ipv6Addr, &MemberRow)| {
            self.receiver_view(group, *address, row, stored.get(address).copied(), former.contains(address))
        };
        group.members.iter().map(view).collect()
    }

    fn state(&self, group: &Group) -> GroupState {
        match &group.lifecycle {
            _ if group.row.is_closing => GroupState::Closing,
            _ if group.is_stopped() => GroupState::Stopped,
            None if group.row.is_committed && self.awaits_predecessor(group) => GroupState::Creating,
            // Nodes may have a record that the store lacks (D115).
            None if group.row.is_committed || self.may_have_record(group) => GroupState::Verifying,
            None => GroupState::Open,
            Some(lifecycle) if lifecycle.group().is_none() || group.record.is_none() => GroupState::Creating,
            Some(_) if !group.is_verified() => GroupState::Verifying,
            Some(lifecycle) if lifecycle.is_steady() && group.joining.is_empty() => GroupState::Ready,
            // The source is released when all nodes have answered the first commit.
            Some(lifecycle) if lifecycle.source_order().is_none() && group.before.is_none() => GroupState::Creating,
            Some(_) => GroupState::Changing,
        }
    }

    fn summary(&self, group: &Group) -> GroupSummary {
        let request = &group.row.request;
        GroupSummary {
            id: group.row.id,
            name: request.name.clone().unwrap_or_default(),
            tenant: group.row.tenant.clone(),
            state: self.state(group),
            proxy: request.proxy.unwrap_or(Ipv6Addr::UNSPECIFIED),
            receivers: group.members.len() as u32,
            epoch: group.record.as_ref().map_or(0, |record| record.epoch),
            version: group.row.version,
        }
    }

    pub(super) fn member(&self, group: &Group, address: Ipv6Addr) -> Option<Receiver> {
        let row = group.members.get(&address)?;
        let stored = group.record.iter().flat_map(|record| &record.receivers).find(|one| one.address == address);
        let was_there = former(group).any(|former| former == address);
        Some(self.receiver_view(group, address, row, stored, was_there))
    }

    fn receiver_view(
        &self,
        group: &Group,
        address: Ipv6Addr,
        row: &MemberRow,
        stored: Option<&StoredReceiver>,
        was_there: bool,
    ) -> Receiver {
        let state = match stored {
            _ if row.is_leaving => ReceiverState::Leaving,
            Some(_) if !was_there => ReceiverState::Joining,
            Some(_) if !group.is_verified() => ReceiverState::Unverified,
            Some(_) => ReceiverState::Member,
            None if group.lifecycle.is_none() && self.may_be_installed(group) => ReceiverState::Unverified,
            None => ReceiverState::Joining,
        };
        let is_joining = state == ReceiverState::Joining && row.in_two_steps;
        Receiver {
            address,
            qpn: row.receiver.qpn,
            region: row.receiver.region,
            more_regions: row.receiver.more_regions.clone(),
            host: row.receiver.host,
            state,
            joined_psn: stored.and_then(|receiver| receiver.joined).map(|join| join.psn.get()),
            reserved_psn: is_joining.then(|| self.reserved_psn(group, address)).flatten(),
            awaits_ready: group.awaits_ready(address, row),
            psn_offset: row.receiver.psn_offset,
        }
    }
}

/// A node's branches, with their state in the node's last status.
fn branches(group: &srdma_group::Group, position: usize, status: Option<&NodeStatus>) -> Vec<BranchView> {
    let id = group.record().id.0;
    let reported = status.and_then(|status| status.groups.iter().find(|one| one.group == id));
    let branches = group.at(NodeIndex(position)).map(|part| part.branches).unwrap_or_default();
    let views = branches.into_iter().map(|branch| {
        let reported = reported.and_then(|group| group.branches.iter().find(|one| one.address == branch.responder));
        BranchView {
            address: branch.responder,
            expected_psn: reported.and_then(|reported| reported.expected_psn),
            lag: reported.and_then(|reported| reported.lag),
            cnps: reported.map_or(0, |reported| reported.cnps),
            packets_resent: reported.and_then(|reported| reported.packets_resent),
            is_repairing: reported.is_some_and(|reported| reported.is_repairing),
        }
    });
    views.collect()
}

/// The receivers of the record that all nodes had before the change in progress, or have: the others of the record are
/// joining, until all nodes have committed.
fn former(group: &Group) -> impl Iterator<Item = Ipv6Addr> {
    let record = group.before.as_ref().or(group.record.as_ref());
    record.into_iter().flat_map(|record| &record.receivers).map(|receiver| receiver.address)
}
