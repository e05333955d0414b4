//! Jobs whose flows are placed on the fabric (PP-4-1).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Jobs to place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// A jobs file (TOML), as for `srdma plan place --jobs`.
    pub jobs: String,
}

/// A placed job.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub name: String,
    pub tenant: String,
    pub flows: Vec<PlacedFlow>,
    /// Incremented with each write.
    pub version: u64,
}

/// A flow with its path.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacedFlow {
    pub job: String,
    /// The owner of the job.
    pub tenant: String,
    /// The collective of the job.
    pub collective: String,
    /// The NIC that sends.
    pub from: String,
    /// The NIC that receives.
    pub to: String,
    /// Its rate, bits per second.
    pub rate_bits_per_s: u64,
    /// The nodes on the path.
    pub path: Vec<String>,
    /// Its uSID program: the destination address, and with an SRH those that follow (RFC 9800).
    pub program: Vec<String>,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobPage {
    /// In the order of their tenants and names, without their flows.
    pub jobs: Vec<Job>,
    /// `after` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A hypothetical change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WhatIf {
    /// Jobs to add.
    pub add: Option<NewJob>,
    /// Jobs to remove, by name.
    pub remove: Vec<String>,
    /// Switches or links to drain, by name.
    pub drain: Vec<String>,
    /// Switches or links to release, by name.
    pub release: Vec<String>,
}

/// Switches or links of the fabric to be drained or released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainLinks {
    /// Names; a link is named like `leaf1-spine2`.
    pub names: Vec<String>,
    /// Whether they are drained.
    pub drained: bool,
}

/// The effect of a change.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfAnswer {
    pub added: Vec<PlacedFlow>,
    /// Number of removed flows.
    pub removed: u32,
    /// Flows with another path; for a tenant, its own.
    pub moved: Vec<PlacedFlow>,
    /// Number of flows of other tenants with another path, for a tenant.
    #[serde(default)]
    pub moved_of_others: u32,
    /// Load of the most loaded link before, as a share of its rate; for a tenant, by its own flows alone.
    pub before: f64,
    /// The same after the change.
    pub after: f64,
    /// Lower bound of the load of the most loaded link, over all placements; for a tenant, of its own flows alone.
    pub bound: f64,
    /// The deadline has ended the improvement of paths: without it, `after` might be lower.
    #[serde(default)]
    pub is_cut_short: bool,
}
