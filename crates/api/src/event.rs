//! What has happened, as a stream, and who did it.

use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;
use std::time::Duration;
use utoipa::ToSchema;

/// How often the stream of events has a line for whom there is nothing to tell, so that a dead connection is noticed.
pub const EVENT_PULSE: Duration = Duration::from_secs(10);

/// A stream that has been silent for so long is dead: two pulses were missed, and there was time for a late one.
pub const EVENT_SILENCE: Duration = Duration::from_secs(25);

/// Something that happened. The stream has it as `id:` and `data:` of a server-sent event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Counts them from the controller's start; `id:` has it behind what names that start.
    pub number: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Whose group or job it is of; none: of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What.
    #[serde(flatten)]
    pub news: News,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum News {
    /// A group was created, and takes receivers.
    GroupCreated {
        /// The group.
        group: u32,
    },
    /// A receiver has asked to join.
    ReceiverJoining {
        /// The group.
        group: u32,
        /// Who.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// Every node has its part of an epoch.
    GroupChanged {
        /// The group.
        group: u32,
        /// The epoch.
        epoch: u32,
    },
    /// A change was given up; all is as it was before.
    ChangeGivenUp {
        /// The group.
        group: u32,
        /// Why.
        reason: String,
    },
    /// A receiver is out of the group, at every node.
    ReceiverGone {
        /// The group.
        group: u32,
        /// Who.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
    },
    /// An edge asked for an eviction.
    EvictionWanted {
        /// The group.
        group: u32,
        /// Who.
        #[schema(value_type = String, format = "ipv6")]
        receiver: Ipv6Addr,
        /// `stalled` or `failed`.
        cause: String,
        /// Why it was not granted; none: it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// No node has the group any more.
    GroupClosed {
        /// The group.
        group: u32,
    },
    /// A node has presented itself.
    NodeUp {
        /// Its name.
        node: String,
    },
    /// A node was silent for too long.
    NodeLost {
        /// Its name.
        node: String,
    },
    /// New trees go round a node, or through it again.
    NodeDrained {
        /// Its name.
        node: String,
        /// Whether they go round it.
        drained: bool,
    },
    /// A job was placed.
    JobPlaced {
        /// The job.
        job: String,
    },
    /// A job was taken away.
    JobRemoved {
        /// The job.
        job: String,
    },
    /// Whoever comes back has missed events that are no longer kept: what is shown of groups and nodes has to be asked
    /// for again. Only the stream has it, before the events behind the gap.
    EventsMissed {
        /// How many, those of other tenants included; none: the controller has been started since, and has forgotten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<u64>,
    },
}

/// A change that somebody made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counts them.
    pub number: u64,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// The name of the token; `controller` for what it did by itself.
    pub who: String,
    /// What, such as `join`.
    pub action: String,
    /// To what, such as `group 7 receiver 2001:db8:bb::1`.
    pub target: String,
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// What `after` is to be for the next page; none on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
