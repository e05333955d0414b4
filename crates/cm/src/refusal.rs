//! Messages that are not accepted.

use crate::reason::Reason;
use thiserror::Error;

/// Why a message had no effect but, if it says so, a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// The port is not the one at which the Proxy Address answers. Rejected.
    #[error("a request for another service")]
    Service,
    /// Not a Reliable Connection. Rejected.
    #[error("a request for another transport than RC")]
    Transport,
    /// Its GIDs are not the sender's and the Proxy Address, or the sender cannot be a source. Rejected.
    #[error("a request with other GIDs than the sender's and the Proxy Address")]
    Gid,
    /// A path MTU that is none. Rejected.
    #[error("a request without a path MTU")]
    PathMtu,
    /// Its private data do not begin with the sender's address and the Proxy Address. Rejected.
    #[error("a request without the IP addresses of its connection")]
    NoIpAddresses,
    /// There is a client already. Rejected.
    #[error("a request of another client")]
    Busy,
    /// It names no connection of its sender.
    #[error("a message about a connection that does not exist")]
    UnknownConnection,
    /// It does not come in this state.
    #[error("a message that does not come in this state")]
    OutOfState,
    /// A request to disconnect another queue pair.
    #[error("a request to disconnect another queue pair")]
    OtherQueuePair,
}

impl Refusal {
    /// Name in counters.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Service => "service",
            Refusal::Transport => "transport",
            Refusal::Gid => "gid",
            Refusal::PathMtu => "path_mtu",
            Refusal::NoIpAddresses => "no_ip_addresses",
            Refusal::Busy => "busy",
            Refusal::UnknownConnection => "unknown_connection",
            Refusal::OutOfState => "out_of_state",
            Refusal::OtherQueuePair => "other_queue_pair",
        }
    }

    /// The reason of the rejection that answers it.
    pub(crate) fn rejection(self) -> Option<Reason> {
        match self {
            Refusal::Service => Some(Reason::INVALID_SERVICE_ID),
            Refusal::Transport => Some(Reason::INVALID_TRANSPORT_SERVICE),
            Refusal::Gid => Some(Reason::INVALID_GID),
            Refusal::PathMtu => Some(Reason::INVALID_PATH_MTU),
            Refusal::NoIpAddresses => Some(Reason::UNSUPPORTED_REQUEST),
            Refusal::Busy => Some(Reason::NO_RESOURCES),
            Refusal::UnknownConnection | Refusal::OutOfState | Refusal::OtherQueuePair => None,
        }
    }
}
