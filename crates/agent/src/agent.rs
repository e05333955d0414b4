//! The state that a node holds for its controller.

use crate::{AllowedSids, EvictionRequests, GroupTable};
use srdma_api::{EvictionRequest, NodeStatus, Registration};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// The controller's groups at a node, and its pending reports.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// The controller's groups at this node.
    pub table: GroupTable,
    /// Receivers that are to be evicted.
    pub evictions: EvictionRequests,
    /// The next status to be sent.
    status: Option<NodeStatus>,
    is_registered: bool,
    /// Reason for an unreachable controller; `None`: it is reachable, or was not tried yet.
    error: Option<String>,
}

/// A report beside the answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    #[allow(missing_docs, reason = "explained by its type")]
    pub eviction_requests: Vec<EvictionRequest>,
    /// `None`: unchanged.
    pub status: Option<NodeStatus>,
}

impl Agent {
    /// An agent without groups.
    pub fn new(allowed: AllowedSids) -> Self {
        Agent { table: GroupTable::new(allowed), ..Agent::default() }
    }

    /// The registration of a node that holds this agent's groups. `node`: its description.
    pub fn registration(&self, node: Registration) -> Registration {
        Registration { groups: self.table.held(), ..node }
    }

    /// The controller has accepted the registration.
    pub fn registered(&mut self) {
        self.evictions.forget();
        self.table.forget_removed();
        self.is_registered = true;
        self.error = None;
    }

    /// Replaces the status that is sent next.
    pub fn set_status(&mut self, status: NodeStatus) {
        self.status = Some(status);
    }

    /// Adds a neighbour to the status that is sent next: it is from before the neighbour was lost.
    pub fn add_unreachable(&mut self, neighbour: Ipv6Addr) {
        if let Some(status) = self.status.as_mut().filter(|status| !status.unreachable.contains(&neighbour)) {
            status.unreachable.push(neighbour);
        }
    }

    /// Adds hosts to the status that is sent next: it is from before their links went down.
    pub fn add_lost_hosts(&mut self, hosts: &[Prefix]) {
        if let Some(status) = &mut self.status {
            let more = hosts.iter().filter(|prefix| !status.lost_hosts.contains(prefix)).copied();
            let more: Vec<Prefix> = more.collect();
            status.lost_hosts.extend(more);
        }
    }

    /// Takes the due report.
    pub fn report(&mut self, now_ns: u64) -> Report {
        Report { eviction_requests: self.evictions.take(now_ns), status: self.status.take() }
    }

    /// The controller was not reached, or has refused; returns whether it was reached before.
    pub fn failed(&mut self, reason: String) -> bool {
        self.error.replace(reason).is_none()
    }

    /// The controller has answered within its session; returns whether it was not reached before.
    pub fn answered(&mut self) -> bool {
        self.error.take().is_some()
    }

    /// Whether the node is registered and the controller was reached last time.
    pub fn is_connected(&self) -> bool {
        self.is_registered && self.error.is_none()
    }

    /// Reason for an unreachable controller.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}
