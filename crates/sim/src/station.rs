//! Elements at the ends of links: nodes and hosts.

use crate::host::Host;
use crate::network::{ElementId, Network, Station};
use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::Instant;

/// A node of the dataplane, or a host.
#[derive(Default)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Member {
    /// Nothing: a node that is down. What arrives is gone.
    #[default]
    Absent,
    Node(Box<Node>),
    Host(Box<Host>),
}

impl Element for Member {
    #[inline]
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            Member::Absent => frames.drain(..).for_each(|frame| frame.release(pool)),
            Member::Node(node) => node.receive(now, port, frames, pool),
            Member::Host(host) => host.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            Member::Absent => {}
            Member::Node(node) => node.tick(now, pool),
            Member::Host(host) => host.tick(now, pool),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Member::Absent => None,
            Member::Node(node) => node.next_deadline(),
            Member::Host(host) => host.next_deadline(),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            Member::Absent => None,
            Member::Node(node) => node.dequeue(now, port, pool),
            Member::Host(host) => host.dequeue(now, port, pool),
        }
    }

    #[inline]
    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            Member::Absent => {}
            Member::Node(node) => node.take_ready(wake),
            Member::Host(host) => host.take_ready(wake),
        }
    }
}

impl Station for Member {
    fn wants_driver_layout(&self) -> bool {
        match self {
            Member::Absent => false,
            Member::Node(_) => true,
            Member::Host(host) => host.wants_driver_layout(),
        }
    }
}

impl Network<Member> {
    /// One of the hosts; `None` when the element is none.
    pub fn host(&self, id: ElementId) -> Option<&Host> {
        match self.element(id) {
            Member::Host(host) => Some(host),
            Member::Node(_) | Member::Absent => None,
        }
    }

    /// One of the nodes; `None` when the element is none, or a node that is down.
    pub fn node(&self, id: ElementId) -> Option<&Node> {
        match self.element(id) {
            Member::Node(node) => Some(node),
            Member::Host(_) | Member::Absent => None,
        }
    }

    /// Lets `action` change one of the hosts; `None` when the element is none.
    pub fn with_host<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Host) -> R) -> Option<R> {
        self.with(id, |member, _, _| match member {
            Member::Host(host) => Some(action(host)),
            Member::Node(_) | Member::Absent => None,
        })
    }

    /// Lets `action` change one of the nodes; `None` when the element is none, or a node that is down.
    pub fn with_node<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Node) -> R) -> Option<R> {
        self.with(id, |member, _, _| match member {
            Member::Node(node) => Some(action(node)),
            Member::Host(_) | Member::Absent => None,
        })
    }
}
