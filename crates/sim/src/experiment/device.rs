//! What stands at the ends of an experiment's links: switches and servers.

use super::server::Server;
use super::watch::Watch;
use crate::network::Station;
use srdma_dataplane::{Element, Frame, Node, Pool, PortId};
use srdma_wire::Instant;

/// A switch, which is a node of the dataplane, or a server.
pub(super) enum Device {
    /// A switch.
    Switch(Box<Node>),
    /// A switch with a queue that is watched.
    Watched(Box<Node>, Box<Watch>),
    /// A server.
    Server(Box<Server>),
}

impl Device {
    /// The server; `None` when it is a switch.
    pub(super) fn server(&self) -> Option<&Server> {
        match self {
            Device::Server(server) => Some(server),
            Device::Switch(_) | Device::Watched(..) => None,
        }
    }

    /// The switch; `None` when it is a server.
    pub(super) fn switch(&self) -> Option<&Node> {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => Some(node),
            Device::Server(_) => None,
        }
    }

    /// What is watched at it.
    pub(super) fn watch(&self) -> Option<&Watch> {
        match self {
            Device::Watched(_, watch) => Some(watch),
            Device::Switch(_) | Device::Server(_) => None,
        }
    }

    /// The switch, to change it; `None` when it is a server.
    pub(super) fn switch_mut(&mut self) -> Option<&mut Node> {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => Some(node),
            Device::Server(_) => None,
        }
    }

    /// The server, to change it; `None` when it is a switch.
    pub(super) fn server_mut(&mut self) -> Option<&mut Server> {
        match self {
            Device::Server(server) => Some(server),
            Device::Switch(_) | Device::Watched(..) => None,
        }
    }
}

impl Element for Device {
    #[inline]
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            Device::Switch(node) => node.receive(now, port, frames, pool),
            Device::Watched(node, watch) => {
                watch.look(now, frames, node, pool);
                node.receive(now, port, frames, pool);
            }
            Device::Server(server) => server.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => node.tick(now, pool),
            Device::Server(server) => server.tick(now, pool),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => node.next_deadline(),
            Device::Server(server) => server.next_deadline(),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => node.dequeue(now, port, pool),
            Device::Server(server) => server.dequeue(now, port, pool),
        }
    }

    #[inline]
    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => node.take_ready(wake),
            Device::Server(server) => server.take_ready(wake),
        }
    }
}

impl Station for Device {
    /// Frames of servers have all their headers in a first segment of their own, which is all that a switch which
    /// forwards looks at: their payload stays where it is, however many hops they take. A switch that takes part in a
    /// group looks behind headers that another one has put in front.
    #[inline]
    fn wants_driver_layout(&self) -> bool {
        self.switch().is_some_and(Node::has_groups)
    }

    /// A node whose queue has fallen to XON tells the ingress PE (CN-4.1-2).
    fn answers_departures(&self) -> bool {
        self.switch().is_some_and(|node| node.notifications().is_some())
    }

    fn fetch<'f>(&self, frames: impl Iterator<Item = &'f Frame>, pool: &Pool) {
        match self {
            Device::Switch(node) | Device::Watched(node, _) => node.fetch(frames, pool),
            Device::Server(_) => {}
        }
    }
}
