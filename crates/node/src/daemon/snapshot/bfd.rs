//! BFD sessions of a snapshot.

use serde::{Deserialize, Serialize};
use srdma_dataplane::{BfdReport, Node};
use std::net::Ipv6Addr;

/// A BFD session.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BfdSnapshot {
    pub peer: Ipv6Addr,
    /// The port of a single hop; absent over any number of hops.
    pub port: Option<String>,
    /// The node's address.
    pub local: Ipv6Addr,
    /// State of the node's side: `admin_down`, `down`, `init` or `up`.
    pub state: String,
    /// State that the peer has reported last; `down` while it is not received.
    pub remote_state: String,
    /// Reason for the last change of state, by the names of RFC 5880 section 4.1.
    pub diagnostic: String,
    pub discriminator: u32,
    /// The peer's discriminator, while it is received.
    pub remote_discriminator: Option<u32>,
    /// Interval of sent packets before jitter, in nanoseconds; absent while the peer wants none.
    pub interval_ns: Option<u64>,
    /// Time without a packet after which the session goes down, in nanoseconds; absent while the peer is not received.
    pub detection_time_ns: Option<u64>,
    /// How often it was up and went down, other than by an administrator.
    pub downs: u64,
    /// It was up, has gone down, and is not up again: its neighbour is avoided where there are other paths.
    pub is_lost: bool,
}

/// The sessions of a node, by peer.
pub(super) fn of(node: &Node) -> Vec<BfdSnapshot> {
    let ports = &node.config().ports;
    let one = |report: BfdReport<'_>| {
        let BfdReport { peer, local, session, downs, is_lost } = report;
        let name = peer.port.and_then(|port| ports.get(port.index())).map(|port| port.name.clone());
        BfdSnapshot {
            peer: peer.address,
            port: name,
            local,
            state: session.state().name().to_owned(),
            remote_state: session.remote_state().name().to_owned(),
            diagnostic: session.diagnostic().name().to_owned(),
            discriminator: session.discriminator().get(),
            remote_discriminator: session.remote_discriminator().map(|number| number.get()),
            interval_ns: session.interval_ns(),
            detection_time_ns: session.detection_time_ns(),
            downs,
            is_lost,
        }
    };
    node.bfd_reports().map(one).collect()
}
