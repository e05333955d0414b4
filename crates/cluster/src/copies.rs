//! The check that edges copy only to receivers whose acknowledgement they wait for (D96).

use crate::data_network::DataNetwork;
use crate::outcome::{Finding, ViolationKind};
use crate::world::World;
use srdma_chaos::address;
use srdma_dataplane::Node;
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// A copy that left before an order was executed arrives within this time.
pub(crate) const IN_FLIGHT_NS: u64 = 1_000_000;

/// What receivers had at the last look.
#[derive(Default)]
pub(crate) struct Copies {
    /// Complete octets, by flow, queue pair and its first PSN: memory before that counts as complete.
    octets: BTreeMap<(usize, u32, Option<u32>), u64>,
    /// The last order that each node executed.
    executed_at: BTreeMap<usize, Instant>,
}

impl Copies {
    /// A node has executed an order.
    pub(crate) fn executed(&mut self, node: usize, now: Instant) {
        self.executed_at.insert(node, now);
    }
}

impl World<'_> {
    /// A receiver that has new data is a branch of its edge's entry, if that has one. Of a receiver with two edges it
    /// is not known which has copied.
    pub(crate) fn check_copies(&mut self, receiver: usize) {
        let nodes: Vec<usize> = self.testbed.nodes_of_receiver(receiver).collect();
        let mut unawaited = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            for participant in flow.participants_at(receiver) {
                let memory = flow.memory(receiver, participant, &self.testbed, &self.network);
                let Some(octets) = memory.map(|memory| memory.complete_octets()) else { continue };
                let key = (number, participant.qpn.get(), participant.connected);
                let before = self.checks.copies.octets.insert(key, octets);
                if before.is_some_and(|before| before < octets) {
                    unawaited.push((number, flow.group));
                }
            }
        }
        if let (Some((flow, _)), [node]) = (unawaited.first(), &nodes[..]) {
            self.check_lease(*node, *flow, "copies to a receiver");
        }
        let is_recent = |at: &Instant| self.now() < at.after_ns(IN_FLIGHT_NS);
        let has_changed = |node| self.checks.copies.executed_at.get(node).is_some_and(is_recent);
        if unawaited.is_empty() || nodes.iter().any(has_changed) {
            return;
        }
        let workers = |node: &usize| self.network.workers(self.testbed.nodes[*node]);
        let is_awaited =
            |group, node| workers(node).iter().all(|edge| is_awaited(edge, group, receiver, &self.testbed));
        unawaited.retain(|(_, group)| !nodes.iter().any(|node| is_awaited(*group, node)));
        for (flow, _) in unawaited {
            let finding = if self.faults.store_changed { Finding::OtherStore } else { Finding::Unknown };
            let text =
                format!("flow {flow}: {nodes:?} copy to receiver {receiver}, which is no branch of their entries");
            self.violation(ViolationKind::Unawaited, finding, flow, text);
        }
    }
}

/// Whether a receiver is a branch of a group at its edge. An edge without an entry copies to all that are listed.
fn is_awaited(edge: &Node, group: usize, receiver: usize, testbed: &DataNetwork) -> bool {
    let mut entries = edge.groups().filter_map(|id| edge.group_entry(id));
    let entry = entries.find(|entry| entry.proxy == address::proxy(group));
    let address = testbed.receiver_address(receiver);
    entry.is_none_or(|entry| entry.branches.iter().any(|branch| branch.responder == address))
}
