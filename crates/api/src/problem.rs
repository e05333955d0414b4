//! Why a request was refused, as RFC 9457 has it.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A refusal: `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What kind, a URI reference: `/problems/` and a name that does not change.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// This case in words: what, where, and what to do.
    pub detail: String,
}

impl Problem {
    /// The name of the kind.
    pub fn name(&self) -> &str {
        self.kind.strip_prefix("/problems/").unwrap_or(&self.kind)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.detail, self.name(), self.status)
    }
}
