//! Devices at the ends of an experiment's links: switches and servers.

use super::group_host::GroupHost;
use super::queue_monitor::QueueMonitor;
use super::server::Server;
use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_sim::network::SimElement;
use srdma_wire::Instant;

/// A switch, which is a node of the dataplane, or a host.
pub(super) enum Device {
    /// A switch that is down: frames are dropped.
    Absent,
    Switch(Box<Node>),
    /// A switch with a queue monitor.
    Monitored(Box<Node>, Box<QueueMonitor>),
    Server(Box<Server>),
    /// A host with memory of its own, the source of a group or a receiver.
    GroupHost(Box<GroupHost>),
}

impl Device {
    /// The server; `None` for other devices.
    pub(super) fn server(&self) -> Option<&Server> {
        match self {
            Device::Server(server) => Some(server),
            Device::Absent | Device::Switch(_) | Device::Monitored(..) | Device::GroupHost(_) => None,
        }
    }

    /// The switch; `None` for other devices.
    pub(super) fn switch(&self) -> Option<&Node> {
        match self {
            Device::Switch(node) | Device::Monitored(node, _) => Some(node),
            Device::Absent | Device::Server(_) | Device::GroupHost(_) => None,
        }
    }

    /// Its queue monitor, if it has one.
    pub(super) fn queue_monitor(&self) -> Option<&QueueMonitor> {
        match self {
            Device::Monitored(_, queue_monitor) => Some(queue_monitor),
            Device::Switch(_) | Device::Absent | Device::Server(_) | Device::GroupHost(_) => None,
        }
    }

    /// The host with memory of its own; `None` for other devices.
    pub(super) fn member(&self) -> Option<&GroupHost> {
        match self {
            Device::GroupHost(member) => Some(member),
            Device::Absent | Device::Switch(_) | Device::Monitored(..) | Device::Server(_) => None,
        }
    }

    /// The same, mutable.
    pub(super) fn member_mut(&mut self) -> Option<&mut GroupHost> {
        match self {
            Device::GroupHost(member) => Some(member),
            Device::Absent | Device::Switch(_) | Device::Monitored(..) | Device::Server(_) => None,
        }
    }

    /// The switch, mutable; `None` for other devices.
    pub(super) fn switch_mut(&mut self) -> Option<&mut Node> {
        match self {
            Device::Switch(node) | Device::Monitored(node, _) => Some(node),
            Device::Absent | Device::Server(_) | Device::GroupHost(_) => None,
        }
    }

    /// The server, mutable; `None` for other devices.
    pub(super) fn server_mut(&mut self) -> Option<&mut Server> {
        match self {
            Device::Server(server) => Some(server),
            Device::Absent | Device::Switch(_) | Device::Monitored(..) | Device::GroupHost(_) => None,
        }
    }
}

impl Element for Device {
    #[inline]
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            Device::Absent => frames.drain(..).for_each(|frame| frame.release(pool)),
            Device::Switch(node) => node.receive(now, port, frames, pool),
            Device::Monitored(node, queue_monitor) => {
                queue_monitor.look(now, frames, node, pool);
                node.receive(now, port, frames, pool);
            }
            Device::Server(server) => server.receive(now, port, frames, pool),
            Device::GroupHost(member) => member.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            Device::Absent => {}
            Device::Switch(node) | Device::Monitored(node, _) => node.tick(now, pool),
            Device::Server(server) => server.tick(now, pool),
            Device::GroupHost(member) => member.tick(now, pool),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Device::Absent => None,
            Device::Switch(node) | Device::Monitored(node, _) => node.next_deadline(),
            Device::Server(server) => server.next_deadline(),
            Device::GroupHost(member) => member.next_deadline(),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            Device::Absent => None,
            Device::Switch(node) | Device::Monitored(node, _) => node.dequeue(now, port, pool),
            Device::Server(server) => server.dequeue(now, port, pool),
            Device::GroupHost(member) => member.dequeue(now, port, pool),
        }
    }

    #[inline]
    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            Device::Absent => {}
            Device::Switch(node) | Device::Monitored(node, _) => node.take_ready(wake),
            Device::Server(server) => server.take_ready(wake),
            Device::GroupHost(member) => member.take_ready(wake),
        }
    }
}

impl SimElement for Device {
    /// Frames of servers have all their headers in a first segment of their own, which is all that a switch which
    /// forwards looks at: their payload stays where it is, however many hops they take. A switch that takes part in a
    /// group looks behind headers that another one has put in front.
    #[inline]
    fn wants_driver_layout(&self) -> bool {
        self.switch().is_some_and(Node::has_groups)
    }

    /// A node whose queue has fallen to XON notifies the ingress PE (CN-4.1-2).
    fn reacts_to_departures(&self) -> bool {
        self.switch().is_some_and(|node| node.backpressure().is_some())
    }

    fn prefetch<'f>(&self, frames: impl Iterator<Item = &'f Frame>, pool: &Pool) {
        match self {
            Device::Switch(node) | Device::Monitored(node, _) => node.prefetch(frames, pool),
            Device::Absent | Device::Server(_) | Device::GroupHost(_) => {}
        }
    }
}
