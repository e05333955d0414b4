//! Messages of connection management by UDP.

use anyhow::{Context, Result};
use srdma_cm::{DatagramError, Flow, Mad};
use srdma_io::udp::{Message, ReceiveBatch, Segmentation, UdpSocket};
use srdma_wire::Psn;
use srdma_wire::codepoints::ROCEV2_PORT;
use std::io::{self, IoSlice};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Duration;

/// A socket at the Proxy Address.
pub(super) struct Messages {
    socket: UdpSocket,
    proxy: Ipv6Addr,
    batch: ReceiveBatch,
    psn: Psn,
}

impl Messages {
    pub(super) fn at(proxy: Ipv6Addr) -> Result<Self> {
        let socket = UdpSocket::bind(proxy, ROCEV2_PORT, Segmentation::Software).with_context(|| {
            let proxy = proxy.to_canonical();
            let length = if proxy.is_ipv4() { 32 } else { 128 };
            format!(
                "cannot receive at {proxy}, port {ROCEV2_PORT}: the Proxy Address has to be one of this host (ip \
                 address add {proxy}/{length} dev lo), without soft-RoCE, which has the port for all addresses"
            )
        })?;
        Ok(Messages { socket, proxy, batch: ReceiveBatch::new(), psn: Psn::new(0) })
    }

    /// The Proxy Address.
    pub(super) fn proxy(&self) -> Ipv6Addr {
        self.proxy
    }

    /// Waits for messages, this long at most, and returns what came.
    pub(super) fn receive(&mut self, timeout: Duration) -> io::Result<Vec<(Ipv6Addr, Result<Mad, DatagramError>)>> {
        self.socket.wait(false, None, Some(timeout))?;
        self.socket.receive(&mut self.batch)?;
        let mut received = Vec::new();
        for datagram in self.batch.datagrams() {
            let (source, port) = (*datagram.source.ip(), datagram.source.port());
            let flow = Flow { source, destination: self.proxy, ports: (port, ROCEV2_PORT) };
            let payload = &datagram.octets[ReceiveBatch::HEADROOM..];
            let payloads = payload.chunks(datagram.segment_len.max(1));
            received.extend(payloads.map(|payload| (source, flow.parse(payload))));
        }
        Ok(received)
    }

    /// Sends a message. One that cannot leave now is one that is lost: it is sent again.
    pub(super) fn send(&mut self, to: Ipv6Addr, mad: &Mad) {
        let flow = Flow { source: self.proxy, destination: to, ports: (ROCEV2_PORT, ROCEV2_PORT) };
        let payload = flow.emit(mad, self.psn);
        self.psn = self.psn.next();
        let destination = SocketAddrV6::new(to, ROCEV2_PORT, 0, 0);
        let packets = [IoSlice::new(&payload)];
        let _ = self.socket.send(&[Message { destination, traffic_class: 0, packets: &packets }]);
    }
}
