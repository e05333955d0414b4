//! Why a violation occurs: the known findings by the facts of the world at that time.

use crate::adapter;
use crate::data_network::{name_of, node_of};
use crate::outcome::Finding;
use crate::world::World;
use srdma_api::{Group, Receiver, ReceiverState};
use srdma_dataplane::{DropReason, Node};
use srdma_frame::PortId;

impl World<'_> {
    /// A node that differs from what the API shows.
    pub(crate) fn diagnose_node(&self, node: usize) -> Finding {
        if self.faults.store_changed {
            return Finding::OtherStore;
        }
        let left_before_start = self.left_before_start(node);
        let is_up = !self.network.workers(self.testbed.nodes[node]).is_empty();
        // What was decided without a node that has just returned was decided while it was silent.
        let is_settled = self.now().since(self.faults.unheard_at[node]).as_millis() > 500;
        match (is_up, self.is_heard(node) && is_settled) {
            (true, true) if self.faults.restarts > 0 => Finding::StaleNodeAccepted,
            (true, true) => Finding::Unknown,
            (true, false) => Finding::SilentNodeSkipped,
            (false, _) if left_before_start => Finding::DeathUnnoticed,
            (false, _) => Finding::DeadNodeNotNamed,
        }
    }

    /// A response that covers what a receiver does not have.
    pub(crate) fn diagnose_response(&self, flow: usize, receiver: Option<usize>) -> Finding {
        if self.faults.store_changed {
            return Finding::OtherStore;
        }
        let Some(group) = self.view(flow) else { return Finding::Unknown };
        let path = receiver.map(|receiver| self.path(&group, self.testbed.node_of_receiver(receiver)));
        let differing: Vec<usize> = self.differences(&group).into_iter().map(|(node, _)| node).collect();
        let on_path = path.into_iter().flatten().filter(|node| differing.contains(node));
        let findings = on_path.map(|node| self.diagnose_node(node));
        findings.min().unwrap_or(Finding::Unknown)
    }

    /// A group that is neither ready nor closed.
    pub(crate) fn diagnose_group(&self, flow: usize, group: Option<&Group>) -> Finding {
        let Some(group) = group.filter(|_| !self.faults.store_changed) else {
            return if self.faults.store_changed { Finding::OtherStore } else { Finding::Unknown };
        };
        let awaited = group.awaited.iter().filter_map(|name| node_of(name));
        if awaited.clone().any(|node| self.faults.is_dead(node) && self.left_before_start(node)) {
            return Finding::DeathUnnoticed;
        }
        if awaited.clone().any(|node| self.faults.is_dead(node)) {
            return Finding::DeadNodeAwaited;
        }
        let id = group.summary.id;
        if awaited.clone().any(|node| adapter::newest_epoch(&self.agents[node].agent, id) > group.summary.epoch) {
            return Finding::NodeAhead;
        }
        // A join waits for a source that waits for a dead node.
        let mut differing = self.differences(group).into_iter().map(|(node, _)| node);
        let blamed = differing.find(|node| !awaited.clone().any(|one| one == *node));
        blamed.map_or_else(|| self.diagnose_progress(flow, group), |node| self.diagnose_node(node))
    }

    /// Whether a node has not registered since the controller's last start.
    fn left_before_start(&self, node: usize) -> bool {
        self.faults.restarts > 0 && !self.faults.is_registered[node]
    }

    /// A source that makes no progress.
    pub(crate) fn diagnose_progress(&self, flow: usize, group: &Group) -> Finding {
        if self.faults.store_changed {
            return Finding::OtherStore;
        }
        let nodes = group.tree.iter().flat_map(|tree| &tree.nodes).filter_map(|node| node_of(&node.name));
        if nodes.clone().any(|node| self.drops_too_big(node)) {
            return Finding::LinkMtuKept;
        }
        if group.members.iter().any(|member| member.state == ReceiverState::Leaving) {
            return Finding::LeaveForgotten;
        }
        let has_left = |member: &Receiver| {
            let receiver = self.testbed.receiver_of(member.address);
            let known = receiver.and_then(|receiver| self.flows[flow].participants.get(&receiver));
            known.is_none_or(|known| known.qpn.get() != member.qpn)
        };
        if group.members.iter().any(has_left) {
            return Finding::LeaveRefused;
        }
        Finding::Unknown
    }

    /// Whether the controller has a session with a node, as the API shows.
    pub(crate) fn is_heard(&self, node: usize) -> bool {
        let core = self.controller.as_ref().map(|controller| controller.core());
        core.is_some_and(|core| adapter::is_shown_alive(core, &name_of(node)))
    }

    fn drops_too_big(&self, node: usize) -> bool {
        let ports = self.testbed.port_count(node);
        let drops = |worker: &Node| {
            let of_ports = (0..ports).filter_map(|port| worker.port_counters(PortId(port as u16)));
            let mut drops = of_ports.map(|counters| &counters.drops).chain([worker.own_drops()]);
            drops.any(|drops| drops.get(DropReason::PacketTooBig) > 0)
        };
        self.network.workers(self.testbed.nodes[node]).iter().any(drops)
    }

    /// The nodes from an edge up to the headend, as the API shows them.
    fn path(&self, group: &Group, edge: usize) -> Vec<usize> {
        let mut path = vec![edge];
        let mut name = name_of(edge);
        let nodes = || group.tree.iter().flat_map(|tree| &tree.nodes);
        while let Some(parent) = nodes().find(|node| node.name == name).and_then(|node| node.parent.clone())
            && path.len() <= self.agents.len()
        {
            path.extend(node_of(&parent));
            name = parent;
        }
        path
    }
}
