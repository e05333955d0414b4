//! Refusals of requests.

use srdma_api::{Problem, ProblemType};
use std::fmt;

/// Reason for which a request is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The type of the problem.
    pub kind: ProblemType,
    /// This occurrence: what, where, and what to do.
    pub detail: String,
}

impl Refusal {
    /// A refusal of a type.
    pub fn new(kind: ProblemType, detail: impl Into<String>) -> Self {
        Refusal { kind, detail: detail.into() }
    }

    /// As problem details (RFC 9457).
    pub fn problem(&self) -> Problem {
        self.kind.with(self.detail.as_str())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.kind.name())
    }
}

impl std::error::Error for Refusal {}
