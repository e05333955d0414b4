//! What stands at the ends of links: nodes and hosts.

use crate::host::Host;
use crate::network::Station;
use srdma_dataplane::{Element, Frame, Node, Pool, PortId};
use srdma_wire::Instant;

/// A node of the dataplane, or a host.
pub enum Member {
    /// A node.
    Node(Box<Node>),
    /// A host.
    Host(Box<Host>),
}

impl Element for Member {
    #[inline]
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            Member::Node(node) => node.receive(now, port, frames, pool),
            Member::Host(host) => host.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            Member::Node(node) => node.tick(now, pool),
            Member::Host(host) => host.tick(now, pool),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Member::Node(node) => node.next_deadline(),
            Member::Host(host) => host.next_deadline(),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            Member::Node(node) => node.dequeue(now, port, pool),
            Member::Host(host) => host.dequeue(now, port, pool),
        }
    }

    #[inline]
    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            Member::Node(node) => node.take_ready(wake),
            Member::Host(host) => host.take_ready(wake),
        }
    }
}

impl Station for Member {
    fn wants_driver_layout(&self) -> bool {
        match self {
            Member::Node(_) => true,
            Member::Host(host) => host.wants_driver_layout(),
        }
    }
}
