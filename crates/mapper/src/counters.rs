//! The counters of a mapper.

/// Events since the start.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub probes_sent: u64,
    /// Returned in time.
    pub probes_returned: u64,
    /// Not returned in time.
    pub probes_lost: u64,
    /// Returned later.
    pub probes_late: u64,
    /// No probes of this mapper, damaged, or returned twice.
    pub probes_foreign: u64,
    /// Times that a path was denied.
    pub denied: u64,
    /// Times that a denied path was allowed.
    pub allowed: u64,
}
