//! The event stream and the audit log.

use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;
use std::time::Duration;
use utoipa::ToSchema;

/// Keep-alive interval of the event stream.
pub const EVENT_PULSE: Duration = Duration::from_secs(10);

/// An event stream that is silent for so long is dead: two keep-alives were missed, and a third had time to be late.
pub const EVENT_SILENCE: Duration = Duration::from_secs(25);

/// An event: `id:` and `data:` of a server-sent event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Counted from the controller's start; `id:` is `RUN-NUMBER`.
    pub number: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// The owner of the group or job; absent for events of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[allow(missing_docs, reason = "explained by its type")]
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum EventKind {
    /// A group was created and is open.
    GroupCreated {
        /// The group.
        group: u32,
    },
    /// A receiver has requested to join.
    ReceiverJoining {
        /// The group.
        group: u32,
        /// Its address.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// Every node has committed an epoch.
    GroupChanged {
        /// The group.
        group: u32,
        /// The epoch.
        epoch: u32,
    },
    /// A change was aborted; the former epoch stays.
    ChangeAborted {
        /// The group.
        group: u32,
        /// The reason.
        reason: String,
    },
    /// A receiver was removed at every node.
    ReceiverRemoved {
        /// The group.
        group: u32,
        /// Its address.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// An edge has requested an eviction.
    EvictionRequested {
        /// The group.
        group: u32,
        /// Its address.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
        /// `stalled` or `failed`.
        cause: String,
        /// Why it was refused; absent if granted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// The group was removed at every node.
    GroupClosed {
        /// The group.
        group: u32,
    },
    /// A node has registered.
    NodeUp {
        /// Its name.
        node: String,
    },
    /// A node was silent for too long and is taken for dead.
    NodeDown {
        /// Its name.
        node: String,
    },
    /// A node was excluded from new trees, or admitted again.
    NodeDrained {
        /// Its name.
        node: String,
        /// Whether it is excluded.
        drained: bool,
    },
    /// A job was placed.
    JobPlaced {
        /// The job.
        job: String,
    },
    /// A job was removed.
    JobRemoved {
        /// The job.
        job: String,
    },
    /// The client has missed events that are no longer kept, and has to read groups and nodes again. Sent by the stream
    /// alone, before the events behind the gap.
    EventsMissed {
        /// How many, including those of other tenants; absent if the controller was restarted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<u64>,
    },
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counted from 1.
    pub number: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// The name of the token, or `controller`.
    pub who: String,
    /// Such as `join`.
    pub action: String,
    /// Such as `group 7 receiver 2001:db8:bb::1`.
    pub target: String,
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// `after` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
