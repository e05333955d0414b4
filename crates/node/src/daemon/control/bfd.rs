//! BFD in the control task: log lines, hints for IS-IS and the controller, and the kernel's UDP ports.

use super::Control;
use crate::daemon::handle::Died;
use srdma_bfd::{Event, udp};
use srdma_dataplane::BfdPeer;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv6Addr, UdpSocket};

/// The UDP ports of BFD, held while drivers leave the kernel the packets that the node takes: a host answers packets to
/// a closed port with an ICMPv6 error (RFC 4443 section 3.1).
#[derive(Debug, Default)]
pub(super) struct BfdPorts(Vec<UdpSocket>);

impl BfdPorts {
    /// Holds the ports, or gives them up. Where another program has one, the kernel sends no error either.
    pub(super) fn hold(&mut self, is_wanted: bool) {
        if !is_wanted {
            self.0.clear();
        } else if self.0.is_empty() {
            let ports = [udp::SINGLE_HOP_PORT, udp::MULTI_HOP_PORT];
            self.0.extend(ports.iter().filter_map(|port| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, *port)).ok()));
        }
    }
}

/// A seed of discriminators and source ports that attackers cannot guess (D92): the keys of `RandomState` are the
/// kernel's random numbers.
pub(super) fn seed() -> u64 {
    RandomState::new().hash_one("bfd")
}

impl Control {
    /// A session has come up, or was up and has gone down.
    pub(super) async fn bfd_event(&mut self, peer: BfdPeer, change: Event) -> Result<(), Died> {
        self.data.follow_bfd(peer, change).await?;
        let BfdPeer { port, address } = peer;
        let ports = &self.configuration.spec.node.ports;
        let port = port.and_then(|port| ports.get(port.index())).map(|port| port.name.as_str());
        match change {
            Event::Up => tracing::info!(target: "bfd", port, peer = %address, "session up"),
            Event::Down { diagnostic, is_administrative: true } => {
                let diagnostic = diagnostic.name();
                tracing::info!(target: "bfd", port, peer = %address, diagnostic, "session disabled");
            }
            Event::Down { diagnostic, is_administrative: false } => {
                let diagnostic = diagnostic.name();
                tracing::warn!(target: "bfd", port, peer = %address, diagnostic, "session down");
                if let Some(isis) = &self.isis.handle {
                    isis.hint(peer);
                }
                if let Some(settings) = &self.configuration.controller {
                    self.controller.neighbour_lost(peer, settings);
                }
            }
        }
        Ok(())
    }
}
