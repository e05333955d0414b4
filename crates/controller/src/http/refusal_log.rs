//! Log of refused requests and connections, limited in rate, with a count for each type of problem.

use srdma_api::ProblemType;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limit of lines of one type of problem in a second. A flood of one type does not hide another.
const LINES_PER_S: u32 = 4;

/// Length of a path in a line, characters.
const MAX_PATH: usize = 128;

/// Counts refusals, and logs them.
#[derive(Debug)]
pub(crate) struct RefusalLog {
    started: Instant,
    counts: Mutex<Counts>,
}

/// A refused request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'r> {
    pub(crate) kind: ProblemType,
    pub(crate) from: Option<IpAddr>,
    /// The name of the token, if the connection has shown a valid one.
    pub(crate) token: Option<&'r str>,
    /// Method and path; empty for a connection.
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
}

/// Counts of refusals, by type.
#[derive(Debug, Default)]
struct Counts(BTreeMap<ProblemType, Count>);

#[derive(Debug, Default)]
struct Count {
    total: u64,
    /// The current second, and its lines.
    second: u64,
    lines: u32,
    /// Since the last line.
    suppressed: u64,
}

/// A line that is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    total: u64,
    suppressed: u64,
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        RefusalLog { started: Instant::now(), counts: Mutex::default() }
    }

    /// Counts a refusal, and logs it within the limit.
    pub(crate) fn note(&self, refused: Refused<'_>) {
        let line = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.note(refused.kind, self.started.elapsed())
        };
        let Some(Line { total, suppressed }) = line else { return };
        let Refused { kind, from, token, method, path } = refused;
        let from = OrUnknown(from);
        let path: String = path.chars().take(MAX_PATH).collect();
        let token = token.unwrap_or("none");
        let problem = kind.name();
        if is_of_security(kind) {
            tracing::warn!(problem, %from, token, method, path, total, suppressed, "refused a request");
        } else {
            tracing::info!(problem, %from, token, method, path, total, suppressed, "refused a request");
        }
    }
}

impl Counts {
    fn note(&mut self, kind: ProblemType, now: Duration) -> Option<Line> {
        let count = self.0.entry(kind).or_default();
        count.total += 1;
        if count.second != now.as_secs() {
            (count.second, count.lines) = (now.as_secs(), 0);
        }
        if count.lines >= LINES_PER_S {
            count.suppressed += 1;
            return None;
        }
        count.lines += 1;
        Some(Line { total: count.total, suppressed: std::mem::take(&mut count.suppressed) })
    }
}

/// Whether refusals of a type may be an attack, or keep others out.
fn is_of_security(kind: ProblemType) -> bool {
    matches!(kind.status(), 401 | 403 | 421 | 503) && kind != ProblemType::NotLeader
}

struct OrUnknown(Option<IpAddr>);

impl fmt::Display for OrUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => write!(f, "{address}"),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_for_each_type() {
        let mut counts = Counts::default();
        let at = Duration::from_millis;
        let lines = (0..1000).filter(|_| counts.note(ProblemType::InvalidToken, at(100)).is_some()).count();
        assert_eq!(lines, LINES_PER_S as usize);
        let other = counts.note(ProblemType::Forbidden, at(200));
        assert_eq!(other, Some(Line { total: 1, suppressed: 0 }), "another type is logged");
        let next = counts.note(ProblemType::InvalidToken, at(1000));
        assert_eq!(next, Some(Line { total: 1001, suppressed: 996 }));
        let next = counts.note(ProblemType::InvalidToken, at(1001));
        assert_eq!(next, Some(Line { total: 1002, suppressed: 0 }));
    }
}
