//! A circuit: the interface of a port, and the socket for its frames.

use srdma_frame::PortId;
use srdma_io::{LlcSocket, Turns};
use srdma_isis::{CircuitId, frame};
use srdma_wire::MacAddress;
use std::io;
use std::net::Ipv6Addr;
use std::task::{Context, Poll};

/// State of a circuit's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) port: String,
    pub(crate) id: PortId,
    /// The interface's index, while it is there and up.
    pub(crate) index: Option<u32>,
    pub(crate) mac: MacAddress,
    /// Its link-local addresses, by which neighbours send here.
    pub(crate) addresses: Vec<Ipv6Addr>,
    /// The longest packet of the link, in octets.
    pub(crate) link_mtu: u16,
    /// Whether its neighbours get BFD sessions.
    pub(crate) has_bfd: bool,
}

/// A circuit. Its place among them is its number, so that it stays when the configuration has it no more.
#[derive(Debug)]
pub(super) struct Circuit {
    pub(super) link: Link,
    pub(super) metric: u32,
    /// With the interface that it is of.
    socket: Option<(u32, LlcSocket)>,
    /// Reason for the missing socket, once logged.
    complaint: Option<String>,
}

impl Circuit {
    pub(super) fn new(link: Link, metric: u32) -> Self {
        Circuit { link, metric, socket: None, complaint: None }
    }

    /// The interface that frames come from.
    pub(super) fn index(&self) -> Option<u32> {
        self.socket.as_ref().map(|(index, _)| *index)
    }

    /// Whether it has no socket and should have one.
    pub(super) fn is_missing(&self) -> bool {
        self.link.index.is_some() && self.socket.is_none()
    }

    /// Opens, closes or replaces the socket by the state of the link. Logs the reason for a missing socket, once.
    pub(super) fn settle(&mut self) {
        if self.index() == self.link.index {
            return;
        }
        self.socket = None;
        let Some(index) = self.link.index else { return };
        match LlcSocket::open(index, &frame::GROUPS) {
            Ok(socket) => (self.socket, self.complaint) = (Some((index, socket)), None),
            Err(error) => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_RAW",
                    _ => "",
                };
                let reason = format!("{error}{hint}");
                if self.complaint.as_ref() != Some(&reason) {
                    tracing::warn!(target: "isis", port = self.link.port, reason, "no IS-IS at the port");
                    self.complaint = Some(reason);
                }
            }
        }
    }

    /// Takes the next frame. A socket that fails is closed.
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>, frame: &mut [u8]) -> Poll<usize> {
        loop {
            let Some((_, socket)) = &mut self.socket else { return Poll::Pending };
            match socket.poll_receive(context, frame) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(len)) => return Poll::Ready(len),
                // It may come up again, and is logged once.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::NetworkDown => {}
                Poll::Ready(Err(_)) => self.socket = None,
            }
        }
    }

    /// Sends a frame; whether that was possible.
    pub(super) fn send(&self, frame: &[u8]) -> bool {
        self.socket.as_ref().is_some_and(|(_, socket)| socket.send(frame).is_ok())
    }
}

/// Takes the next frame of any circuit. They take turns, so that a flood on one does not starve the others.
pub(super) fn poll_receive(
    circuits: &mut [Circuit],
    turns: &mut Turns,
    context: &mut Context<'_>,
    frame: &mut [u8],
) -> Poll<(CircuitId, usize)> {
    let received = turns.poll(circuits, |circuit| circuit.poll_receive(context, frame));
    received.map(|(number, len)| (CircuitId(number), len.min(frame.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
    use std::future::poll_fn;

    /// Many frames wait at the first circuit, one at the second.
    #[test]
    #[ignore = "needs root"]
    fn a_flood_on_one_circuit_does_not_starve_another() {
        let [node, peer] = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").expect("a namespace"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let circuit = |namespace: &NamespaceGuard, interface: &str| {
            let index = namespace.run(&["cat", &format!("/sys/class/net/{interface}/ifindex")]).expect("it is there");
            let index = Some(index.trim().parse().expect("a number"));
            let (port, mac, addresses) = (interface.to_owned(), MacAddress([2; 6]), Vec::new());
            let link = Link { port, id: PortId(0), index, mac, addresses, link_mtu: 1500, has_bfd: false };
            let mut circuit = Circuit::new(link, 10);
            let settle = || {
                let _inside = runtime.enter();
                circuit.settle();
            };
            namespace.enter(settle).expect("entered");
            assert!(!circuit.is_missing());
            circuit
        };
        let pairs = ["v0", "v1"].map(|interface| {
            let end = |namespace| VethEnd { namespace, interface, mac: None, addresses: &[] };
            veth(1500, [end(&node), end(&peer)]).expect("a link");
            (circuit(&node, interface), circuit(&peer, interface))
        });
        let frame = frame::wrap(MacAddress([2; 6]), &[0; 60]).expect("short");
        for (peer, count) in [(&pairs[0].1, 100), (&pairs[1].1, 1)] {
            (0..count).for_each(|_| assert!(peer.send(&frame)));
        }
        let mut circuits = pairs.map(|(circuit, _)| circuit);
        let (mut turns, mut buffer) = (Turns::default(), [0; 1514]);
        let mut next =
            || runtime.block_on(poll_fn(|context| poll_receive(&mut circuits, &mut turns, context, &mut buffer))).0;
        let first = [next(), next()];
        assert!(first.contains(&CircuitId(1)), "{first:?}");
    }
}
