//! The schedule of a run: a cluster, its groups, and events (see `docs/chaos.md`).
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::phase::Phase;
use serde::{Deserialize, Serialize};
use srdma_group::RepairMode;
use std::collections::BTreeSet;

/// Octets of a full packet's payload.
pub const PATH_MTU_OCTETS: u32 = 1024;

/// A cluster with its groups and events. It determines the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Selects all random numbers of the run that are not in the schedule.
    pub seed: u64,
    /// Transit nodes, each linked to the headend.
    pub transits: usize,
    pub edges: Vec<EdgePlan>,
    /// The edge of each receiver, counted from 0.
    pub receivers: Vec<usize>,
    pub groups: Vec<GroupPlan>,
    pub management: ManagementPlan,
    /// Probability that a frame is lost on a link between nodes, until `faults_end_ns`.
    pub data_loss_ppm: u32,
    /// Time that a write needs to be durable.
    pub store_delay_ns: u64,
    /// The store is in etcd, else in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdPlan>,
    /// Nodes have a lease (D122).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_leases: bool,
    /// Nodes report neighbours that they do not reach (D111, D135).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_bfd: bool,
    /// Nodes that can repair (D150, D163).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairers: Vec<usize>,
    /// Receivers that join in two steps (D187).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub two_steps: Vec<usize>,
    /// Nodes that have both receivers and nodes below them (D246).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bud_nodes: Option<BudPlan>,
    /// Receivers that are attached to another node as well, and that node (D280).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dual_homed: Vec<(usize, usize)>,
    /// The node, beside the first, to which all sources are attached; they send by either (D289, D290).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_headend: Option<usize>,
    /// The nodes of a receiver pass on to each other what it sends, and it sends by either (D281).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_peers: bool,
    /// Workers of each node (D208).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub workers: u16,
    /// End of random losses, delays and duplicates.
    pub faults_end_ns: u64,
    pub events: Vec<TimedEvent>,
}

fn one() -> u16 {
    1
}

fn is_one(workers: &u16) -> bool {
    *workers == 1
}

/// Receivers at the headend and at transit nodes, and edges that carry trees to other edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudPlan {
    /// A receiver that is not at its edge, and its node.
    pub receivers: Vec<(usize, usize)>,
    /// Links between edges, counted from 0: the smaller one first.
    pub links: Vec<(usize, usize)>,
}

/// An edge node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgePlan {
    /// The transit nodes that it is linked to, counted from 0.
    pub uplinks: Vec<usize>,
    /// Its links carry packets of 1280 octets only.
    #[serde(default)]
    pub has_small_mtu: bool,
}

/// A group and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPlan {
    pub at_ns: u64,
    /// Receivers that join before the group is committed, at least one.
    pub members: Vec<usize>,
    /// `on_failure = "evict"`, else strict.
    pub evict: bool,
    pub first_psn: u32,
    /// Packets of each message.
    pub message_packets: u32,
    /// Receivers' queue pairs expect PSNs of their own, not the group's (D270).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_psns: bool,
    /// Which of the nodes that can repair it do; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairPlan>,
}

/// Repair of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairPlan {
    pub mode: RepairMode,
    /// Packets for which nodes have buffers. A source with longer messages exceeds them (D160).
    pub window_packets: u32,
}

/// The network between the controller, nodes and sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagementPlan {
    /// A message needs this time, and up to three times that.
    pub delay_ns: u64,
    pub loss_ppm: u32,
    pub duplicate_ppm: u32,
    /// Probability that a message is delayed by up to 3 s, behind later ones.
    pub late_ppm: u32,
}

/// A store in etcd, and faults of its requests until the end of random faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdPlan {
    /// Probability that a request does not arrive.
    pub lost_request_ppm: u32,
    /// Probability that a response does not arrive.
    pub lost_response_ppm: u32,
    /// Probability that a request arrives behind later ones, of whatever controller, when its sender has given it up.
    pub late_ppm: u32,
    /// Limit of operations of a transaction, so that batches of a few rows are journals, too.
    pub operations: usize,
    /// Limit of octets of a value that is not split.
    pub piece_octets: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedEvent {
    pub at_ns: u64,
    pub event: Event,
    /// It waits for this phase of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

/// A fault or a request of the application. Nodes are counted from the headend, 0, over transit nodes to edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// No message passes between a node and the controller. Data do.
    PartitionNode {
        node: usize,
        for_ns: u64,
    },
    /// No message passes between a group's source and the controller.
    PartitionSource {
        group: usize,
        for_ns: u64,
    },
    /// A node's agent does nothing for a time. Its data plane goes on.
    PauseAgent {
        node: usize,
        for_ns: u64,
    },
    /// A node loses all state and restarts after a time, or never.
    CrashNode {
        node: usize,
        for_ns: Option<u64>,
    },
    /// A link between two nodes is cut.
    CutLink {
        upper: usize,
        lower: usize,
        for_ns: u64,
    },
    /// Both ends of a link take each other for unreachable. Data pass.
    BreakSession {
        upper: usize,
        lower: usize,
        for_ns: u64,
    },
    /// A receiver's link is cut.
    CutReceiver {
        receiver: usize,
        for_ns: u64,
    },
    /// One of the two links of a receiver is cut, and its node knows, for a time or for good (D282).
    CutHostLink {
        receiver: usize,
        /// The link to its other node.
        is_second: bool,
        for_ns: Option<u64>,
    },
    /// One of the two links of a group's source is cut, and its node knows, for a time or for good (D282, D289).
    CutSourceLink {
        group: usize,
        /// The link to its other node.
        is_second: bool,
        for_ns: Option<u64>,
    },
    /// A receiver is silent from now on.
    KillReceiver {
        receiver: usize,
    },
    /// The controller crashes when so many further writes are durable, and restarts after a time.
    CrashController {
        after_writes: u32,
        for_ns: u64,
        store: StoreFate,
    },
    /// The controller loses its lease: another one starts with the durable rows. The former serves those that are
    /// connected to it until it writes, or for a time.
    Depose {
        for_ns: u64,
    },
    /// The leader does not reach etcd. Another controller leads when its lease is over.
    CutEtcd {
        for_ns: u64,
    },
    /// A write fails, and the controller reopens its store.
    FailStore,
    /// The rows of the store are copied, for [`StoreFate::Backup`].
    Backup,
    /// The controller's wall clock is set.
    JumpClock {
        by_ms: i64,
    },
    Join {
        group: usize,
        receiver: usize,
    },
    Leave {
        group: usize,
        receiver: usize,
    },
    Close {
        group: usize,
    },
    /// A group's source dies, and its next process resumes the group after a time (D193).
    Resume {
        group: usize,
        after_ns: u64,
    },
    /// A node is drained, and admitted again after a time.
    Drain {
        node: usize,
        for_ns: u64,
    },
}

/// What a controller finds in its store when it restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreFate {
    /// All durable rows.
    Kept,
    /// No row.
    Emptied,
    /// No row, and the controller runs with `--rebuild`.
    Rebuilt,
    /// The rows of the last [`Event::Backup`], if there was one.
    Backup,
}

/// Why a schedule cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Schedule {
    /// The same with so many workers in each node.
    pub fn with_workers(self, workers: u16) -> Self {
        Schedule { workers, ..self }
    }

    pub fn nodes(&self) -> usize {
        1 + self.transits + self.edges.len()
    }

    /// The node of an edge.
    pub fn edge_node(&self, edge: usize) -> usize {
        1 + self.transits + edge
    }

    /// The node that a receiver is attached to.
    pub fn node_of_receiver(&self, receiver: usize) -> usize {
        let elsewhere = self.bud_nodes.iter().flat_map(|plan| &plan.receivers);
        let at = elsewhere.filter(|(other, _)| *other == receiver).map(|(_, node)| *node).next();
        at.unwrap_or_else(|| self.edge_node(self.receivers[receiver]))
    }

    /// The other node that a receiver is attached to.
    pub fn second_node_of_receiver(&self, receiver: usize) -> Option<usize> {
        self.dual_homed.iter().find(|(other, _)| *other == receiver).map(|(_, node)| *node)
    }

    /// Links between nodes that have a receiver or source in common and pass on to each other what it sends: the
    /// smaller number first. They are no part of trees.
    pub fn peer_links(&self) -> BTreeSet<(usize, usize)> {
        let pairs = self.dual_homed.iter().filter(|_| self.has_peers).map(|(receiver, second)| {
            let first = self.node_of_receiver(*receiver);
            (first.min(*second), first.max(*second))
        });
        pairs.chain(self.second_headend.map(|second| (0, second))).collect()
    }

    /// The links between nodes: the upper and the lower end.
    pub fn links(&self) -> Vec<(usize, usize)> {
        let above = (1..=self.transits).map(|transit| (0, transit));
        let edges = self.edges.iter().enumerate();
        let below = edges.flat_map(|(edge, plan)| plan.uplinks.iter().map(move |up| (1 + up, self.edge_node(edge))));
        let between = self.bud_nodes.iter().flat_map(|plan| &plan.links);
        let between = between.map(|(upper, lower)| (self.edge_node(*upper), self.edge_node(*lower)));
        above.chain(below).chain(between).collect()
    }

    /// # Errors
    ///
    /// A position is out of range, or a part is missing.
    pub fn check(&self) -> Result<(), Invalid> {
        let invalid = |text: String| Err(Invalid(text));
        let (receivers, groups, nodes) = (self.receivers.len(), self.groups.len(), self.nodes());
        if !(1..=8).contains(&self.transits) || self.edges.is_empty() || self.edges.len() > 16 || groups > 8 {
            return invalid("expected 1 to 8 transit nodes, 1 to 16 edges and up to 8 groups".to_owned());
        }
        for (edge, plan) in self.edges.iter().enumerate() {
            if plan.uplinks.is_empty() || plan.uplinks.iter().any(|uplink| *uplink >= self.transits) {
                return invalid(format!("edges[{edge}].uplinks: {:?}", plan.uplinks));
            }
        }
        if receivers > 64 || self.receivers.iter().any(|edge| *edge >= self.edges.len()) {
            return invalid(format!("receivers: {:?}", self.receivers));
        }
        for (group, plan) in self.groups.iter().enumerate() {
            let is_wrong = plan.members.is_empty() || plan.members.iter().any(|member| *member >= receivers);
            if is_wrong || plan.first_psn >= 1 << 24 || !(1..=8).contains(&plan.message_packets) {
                return invalid(format!("groups[{group}]: {plan:?}"));
            }
        }
        let is_no_window =
            |plan: &GroupPlan| plan.repair.is_some_and(|repair| !(1..=512).contains(&repair.window_packets));
        if self.repairers.iter().any(|node| *node >= nodes) || self.groups.iter().any(is_no_window) {
            return invalid(format!("repairers: {:?}, or the window of a group", self.repairers));
        }
        if self.two_steps.iter().any(|receiver| *receiver >= receivers) {
            return invalid(format!("two_steps: {:?}", self.two_steps));
        }
        if let Some(plan) = &self.bud_nodes {
            let exists = |(receiver, node): &(usize, usize)| *receiver < receivers && *node <= self.transits;
            let connects = |(upper, lower): &(usize, usize)| upper < lower && *lower < self.edges.len();
            if !plan.receivers.iter().all(exists) || !plan.links.iter().all(connects) {
                return invalid(format!("bud_nodes: {plan:?}"));
            }
        }
        let is_edge = |node: usize| node < nodes && (node > self.transits || self.bud_nodes.is_some());
        let is_wrong = |(receiver, node): &(usize, usize)| {
            *receiver >= receivers || !is_edge(*node) || self.node_of_receiver(*receiver) == *node
        };
        if self.dual_homed.iter().any(is_wrong) {
            return invalid(format!("dual_homed: {:?}", self.dual_homed));
        }
        if self.second_headend.is_some_and(|node| node == 0 || node >= nodes) {
            return invalid(format!("second_headend: {:?}", self.second_headend));
        }
        if let Some(plan) = &self.etcd
            && (plan.operations < 3 || plan.piece_octets < 64)
        {
            return invalid(format!("etcd: {plan:?}"));
        }
        let links = self.links();
        for (position, TimedEvent { event, .. }) in self.events.iter().enumerate() {
            let is_right = match event {
                Event::PartitionNode { node, .. }
                | Event::PauseAgent { node, .. }
                | Event::CrashNode { node, .. }
                | Event::Drain { node, .. } => *node < nodes,
                Event::PartitionSource { group, .. } | Event::Close { group } | Event::Resume { group, .. } => {
                    *group < groups
                }
                Event::CutLink { upper, lower, .. } | Event::BreakSession { upper, lower, .. } => {
                    links.contains(&(*upper, *lower))
                }
                Event::CutReceiver { receiver, .. } | Event::KillReceiver { receiver } => *receiver < receivers,
                Event::CutHostLink { receiver, .. } => self.second_node_of_receiver(*receiver).is_some(),
                Event::CutSourceLink { group, .. } => *group < groups && self.second_headend.is_some(),
                Event::Join { group, receiver } | Event::Leave { group, receiver } => {
                    *group < groups && *receiver < receivers
                }
                Event::CrashController { .. }
                | Event::Depose { .. }
                | Event::CutEtcd { .. }
                | Event::FailStore
                | Event::Backup
                | Event::JumpClock { .. } => true,
            };
            if !is_right {
                return invalid(format!("events[{position}]: {event:?}"));
            }
        }
        Ok(())
    }
}

impl EtcdPlan {
    pub(crate) const fn is_rough(&self) -> bool {
        self.lost_request_ppm + self.lost_response_ppm + self.late_ppm > 0
    }
}

impl TimedEvent {
    /// An event at a time.
    pub const fn at(at_ns: u64, event: Event) -> TimedEvent {
        TimedEvent { at_ns, event, phase: None }
    }
}

impl Event {
    /// The names of the events that are aimed at phases: all but backups, which others need, and cuts of links to
    /// hosts with two, which only some schedules have.
    pub const AIMED: [&'static str; 22] = [
        "node partitioned",
        "source partitioned",
        "agent paused",
        "node crash",
        "node death",
        "link cut",
        "session broken",
        "receiver link cut",
        "receiver death",
        "controller crash",
        "store lost",
        "store rebuilt",
        "backup restored",
        "leader deposed",
        "etcd cut",
        "store failure",
        "clock jump",
        "join",
        "leave",
        "close",
        "drain",
        "source resumed",
    ];

    /// Name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Event::PartitionNode { .. } => "node partitioned",
            Event::PartitionSource { .. } => "source partitioned",
            Event::PauseAgent { .. } => "agent paused",
            Event::CrashNode { for_ns: Some(_), .. } => "node crash",
            Event::CrashNode { for_ns: None, .. } => "node death",
            Event::CutLink { .. } => "link cut",
            Event::BreakSession { .. } => "session broken",
            Event::CutReceiver { .. } => "receiver link cut",
            Event::CutHostLink { .. } => "host link cut",
            Event::CutSourceLink { .. } => "source link cut",
            Event::KillReceiver { .. } => "receiver death",
            Event::CrashController { store: StoreFate::Kept, .. } => "controller crash",
            Event::CrashController { store: StoreFate::Emptied, .. } => "store lost",
            Event::CrashController { store: StoreFate::Rebuilt, .. } => "store rebuilt",
            Event::CrashController { store: StoreFate::Backup, .. } => "backup restored",
            Event::Depose { .. } => "leader deposed",
            Event::CutEtcd { .. } => "etcd cut",
            Event::FailStore => "store failure",
            Event::Backup => "backup",
            Event::JumpClock { .. } => "clock jump",
            Event::Join { .. } => "join",
            Event::Leave { .. } => "leave",
            Event::Close { .. } => "close",
            Event::Resume { .. } => "source resumed",
            Event::Drain { .. } => "drain",
        }
    }
}
