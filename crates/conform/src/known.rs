//! Departures from the documents that devices are known for.

use crate::Finding;
use serde::Serialize;

/// A known departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Departure {
    /// Its name.
    pub name: &'static str,
    /// Which devices depart so.
    pub devices: &'static str,
    /// What they do instead, a sentence.
    pub sentence: &'static str,
}

/// A departure with what it looks like.
struct Known {
    departure: Departure,
    /// Whether all findings of a case are this departure's.
    is_it: fn(&str, &[(usize, Finding)]) -> bool,
}

/// What was measured (Linux 6.18).
const KNOWN: [Known; 0] = [];

impl Departure {
    /// The known departure that the findings of a case are, if they are one.
    pub(crate) fn of(case: &str, findings: &[(usize, Finding)]) -> Option<Self> {
        KNOWN.iter().find(|known| (known.is_it)(case, findings)).map(|known| known.departure)
    }
}
