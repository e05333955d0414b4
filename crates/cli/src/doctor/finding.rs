//! The finding of a check.

use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// There, but something works less well.
    Degraded,
    /// Not there.
    Missing,
    /// Neither good nor bad.
    Info,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Degraded => "degraded",
            State::Missing => "missing",
            State::Info => "info",
        }
    }

    /// The terminal's number for the color of the state.
    pub(super) const fn color(self) -> Option<u8> {
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
pub(super) struct Finding {
    /// Subject of the check.
    pub(super) theme: &'static str,
    /// The object that was checked.
    pub(super) name: String,
    /// Result of the check.
    pub(super) state: State,
    /// The result, and its purpose.
    pub(super) detail: String,
    /// The command or action that mends it.
    pub(super) remedy: Option<String>,
    /// Whether `srdma node` cannot run without it.
    pub(super) needed: bool,
}

impl Finding {
    pub(super) fn new(theme: &'static str, name: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Finding { theme, name: name.into(), state, detail: detail.into(), remedy: None, needed: false }
    }

    pub(super) fn ok(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Ok, detail)
    }

    pub(super) fn degraded(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Degraded, detail)
    }

    pub(super) fn missing(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Missing, detail)
    }

    pub(super) fn info(theme: &'static str, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(theme, name, State::Info, detail)
    }

    /// With what mends it.
    pub(super) fn mend(self, remedy: impl Into<String>) -> Self {
        Finding { remedy: Some(remedy.into()), ..self }
    }

    /// `srdma node` cannot run without it.
    pub(super) fn needed(self) -> Self {
        Finding { needed: true, ..self }
    }

    /// Whether it keeps `srdma node` from running.
    pub(super) fn stops_a_node(&self) -> bool {
        self.needed && self.state == State::Missing
    }
}
