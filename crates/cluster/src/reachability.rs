//! BFD sessions between nodes, written again after `crates/node/src/daemon`: a neighbour whose session was up and goes
//! down is reported at once (D135), and in each status (D111).

use crate::adapter::Request;
use crate::controller::Party;
use crate::data_network::name_of;
use crate::world::{Task, World};
use srdma_chaos::address;
use srdma_wire::Instant;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// A session goes down after this time without packets: 3 × 50 ms, the default.
const DETECTION_NS: u64 = 150_000_000;
/// A handshake takes some of the slow intervals.
const HANDSHAKE_NS: u64 = 1_200_000_000;

/// The neighbours of a node, as its sessions see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    up: BTreeSet<usize>,
    down: BTreeSet<usize>,
}

impl Sessions {
    /// A session is down or up; returns whether it has gone down.
    fn set(&mut self, neighbour: usize, is_down: bool) -> bool {
        let was_up = self.up.contains(&neighbour);
        match (is_down, was_up) {
            (true, true) => {
                self.up.remove(&neighbour);
                self.down.insert(neighbour);
                true
            }
            // It was never up.
            (true, false) => false,
            (false, _) => {
                self.down.remove(&neighbour);
                self.up.insert(neighbour);
                false
            }
        }
    }

    /// The loopbacks of the neighbours that are not reached.
    pub(crate) fn unreachable(&self) -> Vec<Ipv6Addr> {
        self.down.iter().map(|neighbour| address::node(*neighbour).loopback).collect()
    }
}

impl World<'_> {
    /// The ends of a link have lost packets, or get them again: their sessions follow.
    pub(crate) fn note_session(&mut self, upper: usize, lower: usize) {
        if self.schedule.has_bfd {
            let delay_ns = if self.is_session_down(upper, lower) { DETECTION_NS } else { HANDSHAKE_NS };
            self.tasks.push(self.now().after_ns(delay_ns), 0, Task::Session(upper, lower));
        }
    }

    /// The same for all links of a node.
    pub(crate) fn note_sessions_of(&mut self, node: usize) {
        for (upper, lower) in self.schedule.links() {
            if upper == node || lower == node {
                self.note_session(upper, lower);
            }
        }
    }

    pub(crate) fn break_session(&mut self, upper: usize, lower: usize, until: Instant) {
        let end = self.faults.session_down_until.entry((upper, lower)).or_default();
        *end = (*end).max(until);
        self.faults.note(until);
        self.tasks.push(until, 0, Task::EndBreak(upper, lower));
        self.note_session(upper, lower);
    }

    fn is_session_down(&self, upper: usize, lower: usize) -> bool {
        let now = self.now();
        let of_link = self.faults.link_down_until.get(&(upper, lower)).copied().unwrap_or_default();
        let of_session = self.faults.session_down_until.get(&(upper, lower)).copied().unwrap_or_default();
        let is_node_down = |node: usize| now < self.faults.node_down_until[node];
        now < of_link.max(of_session) || is_node_down(upper) || is_node_down(lower)
    }

    /// Looks at the sessions of a link, and reports a neighbour that has gone.
    pub(crate) fn session(&mut self, upper: usize, lower: usize) {
        let is_down = self.is_session_down(upper, lower);
        for (node, neighbour) in [(upper, lower), (lower, upper)] {
            let host = &mut self.agents[node];
            if !host.is_down && host.sessions.set(neighbour, is_down) {
                self.count("neighbour unreachable");
                let (name, neighbours, lost_hosts) = (name_of(node), vec![neighbour], Vec::new());
                let request = Request::Unreachable { name, neighbours, lost_hosts };
                self.send_request(Party::Node(node), request);
            }
        }
    }
}
