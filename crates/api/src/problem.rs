//! Problem details (RFC 9457) of refused requests.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

macro_rules! problem_types {
    ($($kind:ident $name:literal $status:literal $title:literal,)*) => {
        /// The types of problems that a controller reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemType {
            $(#[doc = $title] $kind,)*
        }

        impl ProblemType {
            /// All types.
            pub const ALL: &[ProblemType] = &[$(ProblemType::$kind,)*];

            /// The name in the `type` URI; it does not change.
            pub const fn name(self) -> &'static str {
                match self { $(ProblemType::$kind => $name,)* }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(ProblemType::$kind => $status,)* }
            }

            /// A summary of the type.
            pub const fn title(self) -> &'static str {
                match self { $(ProblemType::$kind => $title,)* }
            }
        }
    };
}

problem_types! {
    InvalidRequest "invalid-request" 400 "The request does not match the API",
    MissingToken "missing-token" 401 "A bearer token is required",
    InvalidToken "invalid-token" 401 "The bearer token is not known",
    Forbidden "forbidden" 403 "The token does not permit this request",
    OtherTenant "other-tenant" 403 "The resource belongs to another tenant",
    AddressNotPermitted "address-not-permitted" 403 "The address is outside the tenant's prefixes",
    ForeignOrigin "foreign-origin" 403 "The request is from a page of another origin",
    GroupQuotaExceeded "group-quota-exceeded" 403 "The tenant has reached its limit of groups",
    ReceiverQuotaExceeded "receiver-quota-exceeded" 403 "The group has reached the tenant's limit of receivers",
    JobQuotaExceeded "job-quota-exceeded" 403 "The tenant has reached its limit of jobs or flows",
    JobNotPermitted "job-not-permitted" 403 "The job uses a NIC or a tenant number of others",
    NodeQuotaExceeded "node-quota-exceeded" 403 "The limit of nodes is reached",
    NodeUnconfirmed "node-unconfirmed" 403 "An administrator has to confirm the registration of the node",
    UnknownPath "unknown-path" 404 "No resource has this path",
    UnknownGroup "unknown-group" 404 "The group does not exist",
    UnknownReceiver "unknown-receiver" 404 "The group has no such receiver",
    UnknownNode "unknown-node" 404 "The node has not registered",
    UnknownJob "unknown-job" 404 "The job does not exist",
    NoFabric "no-fabric" 404 "No fabric is configured",
    MethodNotAllowed "method-not-allowed" 405 "The resource does not support the method",
    RequestTimeout "request-timeout" 408 "The body of the request did not arrive in time",
    UnknownSession "unknown-session" 409 "The session has ended: the node has to register again",
    ProtocolNotSupported "protocol-not-supported" 409 "Node and controller are of versions that do not work together",
    NodeConflict "node-conflict" 409 "Another node has this name or loopback",
    NodeInUse "node-in-use" 409 "The node is in use by groups, or connected",
    PrefixOverlap "prefix-overlap" 409 "A prefix or address of the node is that of another node, a tenant or a group",
    GroupClosing "group-closing" 409 "The group is being closed",
    GroupEmpty "group-empty" 409 "The group has no receiver",
    AlreadyCommitted "already-committed" 409 "The group is already committed",
    AlreadyJoined "already-joined" 409 "The receiver has joined with other values",
    PathMtuMismatch "path-mtu-mismatch" 409 "All members of a group have one path MTU",
    QueuePairInUse "queue-pair-in-use" 409 "The queue pair belongs to another group",
    AddressInUse "address-in-use" 409 "The address belongs to a group, a node or a member",
    SourceEnded "source-ended" 409 "The group's source has ended",
    TooFewReceivers "too-few-receivers" 409 "Too few receivers would remain",
    NoPath "no-path" 409 "The topology has no tree for the group",
    InvalidGroup "invalid-group" 409 "The group would not work",
    JobConflict "job-conflict" 409 "The job cannot be placed",
    IdempotencyKeyReused "idempotency-key-reused" 409 "The idempotency key was used for another request",
    Busy "busy" 409 "Too many changes are pending",
    VersionMismatch "version-mismatch" 412 "The resource has changed",
    RequestTooLarge "request-too-large" 413 "The request is too large",
    UnsupportedMediaType "unsupported-media-type" 415 "A body has the type application/json",
    ForeignHost "foreign-host" 421 "The request names a host that this controller is not",
    InvalidQpn "invalid-qpn" 422 "A queue pair number has 24 bits, and 0 and 1 are reserved",
    InvalidPsn "invalid-psn" 422 "A PSN has 24 bits",
    InvalidPathMtu "invalid-path-mtu" 422 "Not a path MTU of RDMA",
    InvalidAddress "invalid-address" 422 "Not a unicast address of a host",
    MixedFamilies "mixed-families" 422 "Source, receivers and Proxy Address are all IPv4, or all IPv6",
    MissingRegion "missing-region" 422 "The group carries WRITE: each receiver needs a memory region",
    InvalidRegions "invalid-regions" 422 "Up to 16 regions, each with its own rkey, and one at a receiver for each",
    TooManyPlacements "too-many-placements" 429 "The limit of concurrent placements is reached",
    NotLeader "not-leader" 503 "Another controller is the leader",
    TooManyConnections "too-many-connections" 503 "The limit of open connections is reached",
    TooManyStreams "too-many-streams" 503 "The limit of open streams is reached",
    Overloaded "overloaded" 503 "The memory for requests and responses is in use",
    Recovering "recovering" 503 "The nodes have not reported their groups yet",
    PlacementTimeout "placement-timeout" 503 "The placement took too long",
    StoreFailed "store-failed" 507 "The store cannot be written: nothing was changed",
}

/// What `type` URIs begin with.
const PREFIX: &str = "/problems/";

impl ProblemType {
    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        ProblemType::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// A problem of this type.
    pub fn with(self, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("{PREFIX}{}", self.name()),
            title: self.title().to_owned(),
            status: self.status(),
            detail: detail.into(),
        }
    }
}

/// A refused request, as `application/problem+json`.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI reference: `/problems/` and the name of a [`ProblemType`].
    #[serde(rename = "type")]
    pub kind: String,
    /// A summary of the type.
    pub title: String,
    pub status: u16,
    /// This occurrence: what, where, and what to do.
    pub detail: String,
}

impl Problem {
    /// The type; `None` for one that a newer controller may have added.
    pub fn problem_type(&self) -> Option<ProblemType> {
        ProblemType::from_name(self.name())
    }

    /// The name of the type.
    pub fn name(&self) -> &str {
        self.kind.strip_prefix(PREFIX).unwrap_or(&self.kind)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.detail, self.name(), self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_distinct_names_and_are_found_by_them() {
        for kind in ProblemType::ALL {
            assert_eq!(kind.with("").problem_type(), Some(*kind));
            assert!((400..600).contains(&kind.status()), "{}", kind.name());
        }
        let unknown = Problem { kind: "/problems/of-a-newer-controller".to_owned(), ..ProblemType::Busy.with("") };
        assert_eq!(unknown.problem_type(), None);
    }
}
