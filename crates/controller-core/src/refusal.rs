//! Every way in which a request is refused, by name.

use srdma_api::Problem;
use std::fmt;

macro_rules! kinds {
    ($($kind:ident $name:literal $status:literal $title:literal,)*) => {
        /// What kind of refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $title] $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];

            /// Its name, which does not change.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Kind::$kind => $status,)* }
            }

            /// The kind in words.
            pub const fn title(self) -> &'static str {
                match self { $(Kind::$kind => $title,)* }
            }
        }
    };
}

kinds! {
    NotUnderstood "not-understood" 400 "The request is not what the API describes",
    NoToken "no-token" 401 "A token is needed",
    UnknownToken "unknown-token" 401 "The token is not known",
    NotAllowed "not-allowed" 403 "The token has no right to this",
    OtherTenant "other-tenant" 403 "It belongs to another tenant",
    OutsidePrefix "outside-prefix" 403 "The address is outside the tenant's prefixes",
    TooManyGroups "too-many-groups" 403 "The tenant has as many groups as it may",
    TooManyCopies "too-many-copies" 403 "A packet would have more copies than the tenant may make",
    UnknownPath "unknown-path" 404 "There is nothing at this path",
    UnknownGroup "unknown-group" 404 "There is no such group",
    UnknownReceiver "unknown-receiver" 404 "The group has no such receiver",
    UnknownNode "unknown-node" 404 "There is no such node",
    UnknownJob "unknown-job" 404 "There is no such job",
    NoFabric "no-fabric" 404 "There is no fabric to place jobs on",
    WrongMethod "wrong-method" 405 "The path does not take this method",
    UnknownSession "unknown-session" 409 "The session has ended: the node is to say hello again",
    NodeConflict "node-conflict" 409 "Another node has this name or loopback",
    GroupClosing "group-closing" 409 "The group is being closed",
    GroupEmpty "group-empty" 409 "The group has no receiver",
    AlreadyCommitted "already-committed" 409 "The group is committed already",
    JoinedAlready "joined-already" 409 "The receiver has joined with other values",
    PathMtuDiffers "path-mtu-differs" 409 "All members of a group have one path MTU",
    QueuePairInUse "queue-pair-in-use" 409 "The queue pair is in another group",
    AddressInUse "address-in-use" 409 "The address is one of a group, a node or a member",
    SourceEnded "source-ended" 409 "The group's source sends nothing more",
    TooFewReceivers "too-few-receivers" 409 "Too few receivers would be left",
    NoWay "no-way" 409 "The topology has no tree for this",
    CannotWork "cannot-work" 409 "The group would not work",
    JobConflict "job-conflict" 409 "The job cannot be placed so",
    KeyReused "key-reused" 409 "The idempotency key came with another request",
    Busy "busy" 409 "Too many changes wait",
    VersionDiffers "version-differs" 412 "It has changed meanwhile",
    TooLarge "too-large" 413 "The request is too large",
    QpnOutOfRange "qpn-out-of-range" 422 "A queue pair number has 24 bits, and 0 and 1 are reserved",
    PsnOutOfRange "psn-out-of-range" 422 "A PSN has 24 bits",
    WrongPathMtu "wrong-path-mtu" 422 "No path MTU of RDMA",
    WrongAddress "wrong-address" 422 "No address that a host can have",
    MissingRegion "missing-region" 422 "The group carries WRITE: each receiver names its memory",
    NotTheLeader "not-the-leader" 503 "Another controller leads",
    TooManyConnections "too-many-connections" 503 "As many connections as there may be are open",
    StoreFailed "store-failed" 507 "The store cannot be written: nothing was changed",
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind.
    pub kind: Kind,
    /// This case in words.
    pub detail: String,
}

impl Refusal {
    /// A refusal of this kind, in words.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Refusal { kind, detail: detail.into() }
    }

    /// As RFC 9457 has it.
    pub fn problem(&self) -> Problem {
        Problem {
            kind: format!("/problems/{}", self.kind.name()),
            title: self.kind.title().to_owned(),
            status: self.kind.status(),
            detail: self.detail.clone(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.kind.name())
    }
}

impl std::error::Error for Refusal {}
