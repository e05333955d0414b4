//! Errors of a selection from a scenario.

use super::Kind;

/// Why variants or a level cannot be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SelectionError {
    /// No variant of this name.
    #[error("there is no variant {name:?}: expected one of {}", known.join(", "))]
    UnknownVariant {
        /// The requested name.
        name: String,
        known: Vec<String>,
    },
    #[error("a scenario of kind {0} has no variants")]
    NoVariants(Kind),
    /// The kind is always simulated packet by packet.
    #[error("a scenario of kind {0} has no levels: it is simulated packet by packet")]
    NoLevels(Kind),
    /// The workloads cannot be simulated at this level.
    #[error("{0}")]
    Level(String),
    /// There are no steady states to skip.
    #[error("{0}")]
    Steady(String),
    /// Rates are not computed, or not at this interval.
    #[error("{0}")]
    Rates(String),
}
