//! Events.

use crate::errors::{name, name_of_over};
use pyo3::prelude::*;

/// Something that has happened to a group.
#[pyclass(frozen, get_all, module = "srdma")]
pub(crate) struct Event {
    /// `published`, `slow`, `failed`, `joined`, `version`, `rejected`, `source_silent`, `resumed`,
    /// `rank_attached`, `rank_detached`, `rank_holds`, `owner_lost`, `over`, `lost`, or another one of a later version.
    kind: &'static str,
    /// The version, if it is one of a version and known.
    version: Option<u64>,
    /// A sentence.
    message: String,
    /// At `over`: the name of the exception in `srdma.errors` that calls raise from now on.
    error: Option<&'static str>,
}

impl Event {
    pub(crate) fn of(event: &srdma::Event) -> Self {
        let (kind, version, error) = match event {
            srdma::Event::Published { version } => ("published", Some(*version), None),
            srdma::Event::Slow { version } => ("slow", Some(*version), None),
            srdma::Event::Failed { version, .. } => ("failed", Some(*version), None),
            srdma::Event::Joined => ("joined", None, None),
            srdma::Event::Version { version } => ("version", Some(*version), None),
            srdma::Event::Rejected { version, .. } => ("rejected", *version, None),
            srdma::Event::SourceSilent => ("source_silent", None, None),
            srdma::Event::Resumed { .. } => ("resumed", None, None),
            srdma::Event::RankAttached { .. } => ("rank_attached", None, None),
            srdma::Event::RankDetached { .. } => ("rank_detached", None, None),
            srdma::Event::RankHolds { version, .. } => ("rank_holds", Some(*version), None),
            srdma::Event::OwnerLost => ("owner_lost", None, None),
            srdma::Event::Over(over) => ("over", None, Some(name_of_over(over))),
            srdma::Event::Lost(_) => ("lost", None, None),
            _ => ("other", None, Some(name::Error)),
        };
        Event { kind, version, message: event.to_string(), error }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        match self.version {
            Some(version) => format!("Event({}, version={version}: {})", self.kind, self.message),
            None => format!("Event({}: {})", self.kind, self.message),
        }
    }
}
