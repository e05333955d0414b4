//! A circuit: the interface of a port, and the socket for its packets.

use srdma_io::{Ipv6ProtocolSocket, Received, Turns};
use srdma_ospf::CircuitId;
use srdma_ospf::packet::{ALL_ROUTERS, PROTOCOL};
use std::io;
use std::net::Ipv6Addr;
use std::task::{Context, Poll};

/// State of a circuit's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) port: String,
    /// The interface's index, while it is there and up.
    pub(crate) index: Option<u32>,
    /// Its link-local address, if it has one.
    pub(crate) address: Option<Ipv6Addr>,
    /// The longest packet of the link, in octets.
    pub(crate) link_mtu: u16,
}

impl Link {
    /// Where a socket can be.
    fn end(&self) -> Option<(u32, Ipv6Addr)> {
        self.index.zip(self.address)
    }
}

/// A circuit. Its place among them is its number, so that it stays when the configuration has it no more.
#[derive(Debug)]
pub(super) struct Circuit {
    pub(super) link: Link,
    pub(super) metric: u16,
    /// With the interface and the address that it is of.
    socket: Option<((u32, Ipv6Addr), Ipv6ProtocolSocket)>,
    /// Reason for the missing socket, once logged.
    complaint: Option<String>,
}

impl Circuit {
    pub(super) fn new(link: Link, metric: u16) -> Self {
        Circuit { link, metric, socket: None, complaint: None }
    }

    /// The interface and the address of its socket.
    pub(super) fn end(&self) -> Option<(u32, Ipv6Addr)> {
        self.socket.as_ref().map(|(end, _)| *end)
    }

    /// Whether it has no socket and should have one.
    pub(super) fn is_missing(&self) -> bool {
        self.link.end().is_some() && self.socket.is_none()
    }

    /// Opens, closes or replaces the socket by the state of the link. Logs the reason for a missing socket, once.
    pub(super) fn settle(&mut self) {
        if self.end() == self.link.end() {
            return;
        }
        self.socket = None;
        let Some((index, address)) = self.link.end() else { return };
        match Ipv6ProtocolSocket::open(index, address, PROTOCOL, ALL_ROUTERS) {
            Ok(socket) => (self.socket, self.complaint) = (Some(((index, address), socket)), None),
            // Others may not have agreed to it yet (RFC 4862).
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_RAW",
                    _ => "",
                };
                let reason = format!("{error}{hint}");
                if self.complaint.as_ref() != Some(&reason) {
                    tracing::warn!(target: "ospf", port = self.link.port, reason, "no OSPFv3 at the port");
                    self.complaint = Some(reason);
                }
            }
        }
    }

    /// Takes the next packet. A socket that fails is closed.
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>, packet: &mut [u8]) -> Poll<Received> {
        loop {
            let Some((_, socket)) = &self.socket else { return Poll::Pending };
            match socket.poll_receive(context, packet) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(received)) => return Poll::Ready(received),
                // It may come up again.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::NetworkDown => {}
                Poll::Ready(Err(_)) => self.socket = None,
            }
        }
    }

    /// Sends a packet; whether that was possible.
    pub(super) fn send(&self, destination: Ipv6Addr, packet: &[u8]) -> bool {
        self.socket.as_ref().is_some_and(|(_, socket)| socket.send(destination, packet).is_ok())
    }
}

/// Takes the next packet of any circuit. They take turns, so that a flood on one does not starve the others.
pub(super) fn poll_receive(
    circuits: &mut [Circuit],
    turns: &mut Turns,
    context: &mut Context<'_>,
    packet: &mut [u8],
) -> Poll<(CircuitId, Received)> {
    let received = turns.poll(circuits, |circuit| circuit.poll_receive(context, packet));
    received.map(|(number, received)| (CircuitId(number), received))
}
