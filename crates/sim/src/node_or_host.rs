//! Elements of a network: nodes and hosts.

use crate::host::Host;
use crate::network::{ElementId, Network, SimElement};
use srdma_dataplane::{Node, Worker};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::Instant;
use srdma_workers::{LONGEST_HANDOVER, Workers};
use std::time::Duration;

/// A node of the dataplane or a host.
#[derive(Default)]
pub enum NodeOrHost {
    /// A node that is down, or a host that is not simulated: frames are dropped.
    #[default]
    Absent,
    /// A node.
    Node(Box<Node>),
    /// A node of several workers.
    Workers(Box<Workers>),
    /// A host.
    Host(Box<Host>),
}

impl NodeOrHost {
    /// The longest time that a packet takes from one worker of a node to another.
    pub const LONGEST_HANDOVER: Duration = LONGEST_HANDOVER;

    /// A node of so many workers, each of which `make` makes; the seed selects at which of them a flow arrives.
    ///
    /// # Errors
    ///
    /// The first one of `make`.
    pub fn of_workers<E>(count: u16, seed: u64, mut make: impl FnMut(Worker) -> Result<Node, E>) -> Result<Self, E> {
        if count == 1 {
            return Ok(NodeOrHost::Node(Box::new(make(Worker::ALONE)?)));
        }
        let workers = Worker::all(count).map(make).collect::<Result<_, E>>()?;
        Ok(NodeOrHost::Workers(Box::new(Workers::new(workers, seed))))
    }

    /// The workers of a node; none if it is no node or the node is down.
    pub fn workers(&self) -> &[Node] {
        match self {
            NodeOrHost::Node(node) => std::slice::from_ref(node),
            NodeOrHost::Workers(workers) => workers.nodes(),
            NodeOrHost::Host(_) | NodeOrHost::Absent => &[],
        }
    }

    /// The same, for changing them.
    pub fn workers_mut(&mut self) -> &mut [Node] {
        match self {
            NodeOrHost::Node(node) => std::slice::from_mut(node),
            NodeOrHost::Workers(workers) => workers.nodes_mut(),
            NodeOrHost::Host(_) | NodeOrHost::Absent => &mut [],
        }
    }

    /// Takes a node that ends out of its place, without its frames; `None` if there is none.
    pub fn end_node(&mut self, pool: &mut Pool) -> Option<NodeOrHost> {
        match self {
            NodeOrHost::Node(node) => node.release_frames(pool),
            NodeOrHost::Workers(workers) => workers.release_frames(pool),
            NodeOrHost::Host(_) | NodeOrHost::Absent => return None,
        }
        Some(std::mem::take(self))
    }
}

impl Element for NodeOrHost {
    #[inline]
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            NodeOrHost::Absent => frames.drain(..).for_each(|frame| frame.release(pool)),
            NodeOrHost::Node(node) => node.receive(now, port, frames, pool),
            NodeOrHost::Workers(workers) => workers.receive(now, port, frames, pool),
            NodeOrHost::Host(host) => host.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            NodeOrHost::Absent => {}
            NodeOrHost::Node(node) => node.tick(now, pool),
            NodeOrHost::Workers(workers) => workers.tick(now, pool),
            NodeOrHost::Host(host) => host.tick(now, pool),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            NodeOrHost::Absent => None,
            NodeOrHost::Node(node) => node.next_deadline(),
            NodeOrHost::Workers(workers) => workers.next_deadline(),
            NodeOrHost::Host(host) => host.next_deadline(),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            NodeOrHost::Absent => None,
            NodeOrHost::Node(node) => node.dequeue(now, port, pool),
            NodeOrHost::Workers(workers) => workers.dequeue(now, port, pool),
            NodeOrHost::Host(host) => host.dequeue(now, port, pool),
        }
    }

    #[inline]
    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            NodeOrHost::Absent => {}
            NodeOrHost::Node(node) => node.take_ready(wake),
            NodeOrHost::Workers(workers) => workers.take_ready(wake),
            NodeOrHost::Host(host) => host.take_ready(wake),
        }
    }
}

impl SimElement for NodeOrHost {
    fn wants_driver_layout(&self) -> bool {
        match self {
            NodeOrHost::Absent => false,
            NodeOrHost::Node(_) | NodeOrHost::Workers(_) => true,
            NodeOrHost::Host(host) => host.wants_driver_layout(),
        }
    }
}

impl Network<NodeOrHost> {
    /// A host; `None` if the element is no host.
    pub fn host(&self, id: ElementId) -> Option<&Host> {
        match self.element(id) {
            NodeOrHost::Host(host) => Some(host),
            NodeOrHost::Node(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => None,
        }
    }

    /// A node of one worker; `None` if the element is no such node or the node is down.
    pub fn node(&self, id: ElementId) -> Option<&Node> {
        match self.element(id) {
            NodeOrHost::Node(node) => Some(node),
            NodeOrHost::Host(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => None,
        }
    }

    /// The workers of a node; none if the element is no node or the node is down.
    pub fn workers(&self, id: ElementId) -> &[Node] {
        self.element(id).workers()
    }

    /// Lets `action` change the workers of a node alike; returns what it returns for each.
    pub fn with_workers<R>(&mut self, id: ElementId, mut action: impl FnMut(&mut Node) -> R) -> Vec<R> {
        self.with(id, |element, _, _| match element {
            NodeOrHost::Node(node) => vec![action(node)],
            NodeOrHost::Workers(workers) => workers.nodes_mut().iter_mut().map(action).collect(),
            NodeOrHost::Host(_) | NodeOrHost::Absent => Vec::new(),
        })
    }

    /// Lets `action` change a host; `None` if the element is no host.
    pub fn with_host<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Host) -> R) -> Option<R> {
        self.with(id, |element, _, _| match element {
            NodeOrHost::Host(host) => Some(action(host)),
            NodeOrHost::Node(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => None,
        })
    }

    /// Lets `action` change a node of one worker; `None` if the element is no node or the node is down.
    pub fn with_node<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Node) -> R) -> Option<R> {
        self.with(id, |element, _, _| match element {
            NodeOrHost::Node(node) => Some(action(node)),
            NodeOrHost::Host(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => None,
        })
    }
}
