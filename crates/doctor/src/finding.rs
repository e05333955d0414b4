//! Result of a check.

use serde::Serialize;

/// State of a checked item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Available.
    Ok,
    /// Available with restrictions.
    Degraded,
    /// Not available.
    Missing,
    /// For information only.
    Info,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Degraded => "degraded",
            State::Missing => "missing",
            State::Info => "info",
        }
    }

    /// ANSI color number.
    pub(crate) const fn color(self) -> Option<u8> {
        match self {
            State::Ok => Some(32),
            State::Degraded => Some(33),
            State::Missing => Some(31),
            State::Info => None,
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The subject.
    pub(crate) theme: &'static str,
    /// The checked item.
    pub(crate) name: String,
    /// Its state.
    pub(crate) state: State,
    /// Details and purpose.
    pub(crate) detail: String,
    /// A command or action that fixes it.
    pub(crate) remedy: Option<String>,
    /// Whether `srdma node` requires it.
    pub(crate) needed: bool,
}

impl Finding {
    pub(crate) fn new(theme: &'static str, name: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Finding { theme, name: name.into(), state, detail: detail.into(), remedy: None, needed: false }
    }

    pub(crate) fn ok(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Ok, detail)
    }

    pub(crate) fn degraded(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Degraded, detail)
    }

    pub(crate) fn missing(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Missing, detail)
    }

    pub(crate) fn info(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Info, detail)
    }

    /// Adds a remedy.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Finding { remedy: Some(remedy.into()), ..self }
    }

    /// Marks it as a requirement of `srdma node`.
    pub(crate) fn needed(self) -> Self {
        Finding { needed: true, ..self }
    }

    /// Whether `srdma node` cannot run because of it.
    pub(crate) fn stops_a_node(&self) -> bool {
        self.needed && self.state == State::Missing
    }
}
