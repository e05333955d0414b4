//! Errors of topologies.

/// The element of a [`Plan`](crate::Plan) that is wrong, so that the reader of a file can name the
/// line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The host at this position.
    Host(usize),
    /// The switch at this position.
    Switch(usize),
    /// The link at this position.
    Link(usize),
    /// A parameter of a generator, by the name of its field.
    Parameter(&'static str),
    /// The plan as a whole.
    Whole,
}

/// The reason why a plan is no valid topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TopologyError {
    /// Cause of the error.
    pub place: Place,
    /// The error, the found value, and the remedy.
    pub problem: String,
}

impl TopologyError {
    pub(crate) fn new(place: Place, problem: impl Into<String>) -> Self {
        TopologyError { place, problem: problem.into() }
    }
}
