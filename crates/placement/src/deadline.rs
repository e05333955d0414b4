//! Time limits of a placement.

use std::fmt;

/// What a placement may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Place flows, and improve their paths.
    Improve,
    /// Place flows, each where there is room: paths are no longer improved.
    Place,
    /// Nothing: the placement ends with an error.
    Stop,
}

/// Time limits, as a function of the caller: this crate reads no clock. A phase is never followed by an earlier one.
#[derive(Clone, Copy, Default)]
pub struct Deadline<'a>(Option<&'a (dyn Fn() -> Phase + Sync)>);

impl<'a> Deadline<'a> {
    /// No limit: the result depends on the input alone.
    pub const NONE: Deadline<'static> = Deadline(None);

    /// Limits that this function knows.
    pub fn of(phase: &'a (dyn Fn() -> Phase + Sync)) -> Self {
        Deadline(Some(phase))
    }

    /// What may be done now.
    pub fn phase(&self) -> Phase {
        self.0.map_or(Phase::Improve, |phase| phase())
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Deadline" } else { "Deadline::NONE" })
    }
}
