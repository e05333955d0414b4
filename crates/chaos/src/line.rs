//! A schedule as one line of text: a seed (`v1:4711`), or the whole schedule (`v1:{"seed":4711,…}`).
//!
//! The version stands in front, so that a line that was kept is either understood as it was meant or refused.

use crate::schedule::Schedule;
use crate::validity::Invalid;
use std::fmt;
use std::str::FromStr;

/// The version of what seeds mean and of how schedules are written.
pub const VERSION: u32 = 1;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The schedule that the default distribution draws for a seed.
    Seed(u64),
    /// A schedule, in full.
    Schedule(Box<Schedule>),
}

/// Why a line is none.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Nothing says which version it is.
    #[error("{0:?} has no version in front, such as v{VERSION}:4711 or v{VERSION}:{{\"seed\":4711, …}}")]
    NoVersion(String),
    /// Another version.
    #[error(
        "the line is of version {0}, but this program draws and reads version {VERSION}: a seed means another schedule \
         there; use the program that wrote the line"
    )]
    OtherVersion(u32),
    /// Neither a seed nor an object.
    #[error("after the version there must be a seed, a number below 2^64, or a schedule in braces: {0:?}")]
    Neither(String),
    /// Not a schedule's JSON.
    #[error("the schedule cannot be read: {0}")]
    NotReadable(#[from] serde_json::Error),
    /// A schedule that makes no sense.
    #[error("the schedule makes no sense: {0}")]
    Invalid(#[from] Invalid),
}

impl Line {
    /// The schedule that is meant.
    pub fn schedule(self) -> Schedule {
        match self {
            Line::Seed(seed) => Schedule::from_seed(seed),
            Line::Schedule(schedule) => *schedule,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Seed(seed) => write!(f, "v{VERSION}:{seed}"),
            Line::Schedule(schedule) => {
                let text = serde_json::to_string(schedule).map_err(|_| fmt::Error)?;
                write!(f, "v{VERSION}:{text}")
            }
        }
    }
}

impl FromStr for Line {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Line, LineError> {
        let text = text.trim();
        let (version, rest) = text
            .strip_prefix('v')
            .and_then(|text| text.split_once(':'))
            .and_then(|(version, rest)| Some((version.parse::<u32>().ok()?, rest)))
            .ok_or_else(|| LineError::NoVersion(shortened(text)))?;
        if version != VERSION {
            return Err(LineError::OtherVersion(version));
        }
        if rest.starts_with('{') {
            let schedule: Schedule = serde_json::from_str(rest)?;
            schedule.check()?;
            return Ok(Line::Schedule(Box::new(schedule)));
        }
        rest.parse().map(Line::Seed).map_err(|_| LineError::Neither(shortened(rest)))
    }
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_were_made_of() {
        for seed in 0..200 {
            let schedule = Schedule::from_seed(seed);
            assert_eq!(schedule.check(), Ok(()), "seed {seed}");
            let line = Line::Schedule(Box::new(schedule.clone())).to_string();
            assert!(!line.contains(['\n', '\'']), "it must pass through a shell in single quotes");
            assert_eq!(line.parse::<Line>().unwrap().schedule(), schedule);
            assert_eq!(Line::Seed(seed).to_string().parse::<Line>().unwrap().schedule(), schedule);
        }
    }

    #[test]
    fn a_line_of_another_version_is_refused() {
        let error = "v0:4711".parse::<Line>().unwrap_err();
        assert!(error.to_string().starts_with("the line is of version 0"), "{error}");
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for (text, message) in [
            ("4711", "no version in front"),
            ("v1", "no version in front"),
            ("v1:", "after the version there must be a seed"),
            ("v1:-3", "after the version there must be a seed"),
            ("v1:{", "cannot be read"),
            ("v1:{\"seed\":1}", "missing field `nodes`"),
        ] {
            let error = text.parse::<Line>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_schedule_that_makes_no_sense_is_refused_with_its_place() {
        let valid = Schedule::from_seed(3);
        let refused = |change: fn(&mut Schedule)| {
            let mut schedule = valid.clone();
            change(&mut schedule);
            Line::Schedule(Box::new(schedule)).to_string().parse::<Line>().unwrap_err().to_string()
        };
        let error = refused(|schedule| schedule.groups[0].members = vec![1000]);
        assert!(error.contains("groups[0].members: [1000]"), "{error}");
        let error = refused(|schedule| schedule.nodes[1].parent = Some(1));
        assert!(error.contains("nodes[1]: Some(1)"), "{error}");
        let error = refused(|schedule| schedule.receivers[0].edge = 0);
        assert!(error.contains("receivers[0]: 0"), "{error}");
        let error = refused(|schedule| schedule.link.loss_ppm = 1_000_001);
        assert!(error.contains("link.loss_ppm: 1000001"), "{error}");
        let error = refused(|schedule| schedule.nodes.clear());
        assert!(error.contains("nodes: 0"), "{error}");
    }
}
