//! The event stream and the audit log.

use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;
use std::time::Duration;
use utoipa::ToSchema;

/// Keep-alive interval of the event stream.
pub const EVENT_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Timeout of a silent event stream: two keep-alive intervals and a margin.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(25);

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
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum EventKind {
    /// A group was created and is open.
    GroupCreated { group: u32 },
    /// A receiver has requested to join.
    ReceiverJoining {
        group: u32,
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// Every node has committed an epoch.
    GroupChanged { group: u32, epoch: u32 },
    /// A change was aborted; the former epoch stays.
    ChangeAborted { group: u32, reason: String },
    /// A receiver was removed at every node.
    ReceiverRemoved {
        group: u32,
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// An edge has requested an eviction.
    EvictionRequested {
        group: u32,
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
        /// `stalled` or `failed`.
        cause: String,
        /// Why it was refused; absent if granted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// The group was removed at every node.
    GroupClosed { group: u32 },
    /// A node has registered.
    NodeUp { node: String },
    /// A node was silent for longer than the timeout, and is dead.
    NodeDown { node: String },
    /// A node was excluded from new trees, or admitted again.
    NodeDrained {
        node: String,
        /// Whether it is excluded.
        drained: bool,
    },
    /// A node has registered what is not confirmed.
    NodeUnconfirmed { node: String },
    /// The registration of a node was confirmed.
    NodeConfirmed { node: String },
    /// A node was renamed.
    NodeRenamed {
        node: String,
        /// Its new name.
        name: String,
    },
    /// A node was removed.
    NodeRemoved { node: String },
    /// A job was placed.
    JobPlaced { job: String },
    /// A job was removed.
    JobRemoved { job: String },
    /// The client has missed events that are no longer kept, and has to read groups and nodes again. The stream sends
    /// it before the events behind the gap.
    EventsMissed {
        /// Number of missed events, including those of other tenants; absent if the controller was restarted.
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
    /// The name of the token, or `controller` for its own changes.
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
