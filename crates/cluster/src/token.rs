//! Replay tokens: a seed (`cluster-v3:4711`) or a whole schedule (`cluster-v3:{"seed":4711,…}`) as one line of text.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::schedule::{Invalid, Schedule};
use std::fmt;
use std::str::FromStr;

/// Version of the meaning of seeds and of the format of schedules.
pub const VERSION: u32 = 3;

const PREFIX: &str = "cluster-v3:";

/// A schedule by its seed or in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayToken {
    Seed(u64),
    Schedule(Box<Schedule>),
}

/// Why a token is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("expected a token such as {PREFIX}4711 or {PREFIX}{{\"seed\":4711, …}}")]
    NoVersion,
    #[error("expected a seed below 2^64 or a schedule in braces after {PREFIX}")]
    NoSeed,
    #[error("cannot parse the schedule: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("invalid schedule: {0}")]
    Invalid(#[from] Invalid),
}

impl ReplayToken {
    pub fn schedule(self) -> Schedule {
        match self {
            ReplayToken::Seed(seed) => Schedule::from_seed(seed),
            ReplayToken::Schedule(schedule) => *schedule,
        }
    }
}

impl fmt::Display for ReplayToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayToken::Seed(seed) => write!(f, "{PREFIX}{seed}"),
            ReplayToken::Schedule(schedule) => {
                let text = serde_json::to_string(schedule).map_err(|_| fmt::Error)?;
                write!(f, "{PREFIX}{text}")
            }
        }
    }
}

impl FromStr for ReplayToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<ReplayToken, TokenError> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(TokenError::NoVersion)?;
        if rest.starts_with('{') {
            let schedule: Schedule = serde_json::from_str(rest)?;
            schedule.check()?;
            return Ok(ReplayToken::Schedule(Box::new(schedule)));
        }
        rest.parse().map(ReplayToken::Seed).map_err(|_| TokenError::NoSeed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_schedules() {
        for seed in 0..300 {
            let schedule = Schedule::from_seed(seed);
            assert_eq!(schedule.check(), Ok(()), "seed {seed}");
            let token = ReplayToken::Schedule(Box::new(schedule.clone())).to_string();
            assert!(!token.contains(['\n', '\'']), "it must pass through a shell in single quotes");
            assert_eq!(token.parse::<ReplayToken>().unwrap().schedule(), schedule);
            assert_eq!(ReplayToken::Seed(seed).to_string().parse::<ReplayToken>().unwrap().schedule(), schedule);
        }
    }

    #[test]
    fn bad_tokens_are_rejected() {
        let mut wrong = Schedule::from_seed(1);
        wrong.receivers[0] = 99;
        let wrong = ReplayToken::Schedule(Box::new(wrong)).to_string();
        for (text, message) in [
            ("v1:4711", "expected a token such as"),
            ("cluster-v2:4711", "expected a token such as"),
            ("cluster-v3:-3", "expected a seed"),
            ("cluster-v3:{", "cannot parse the schedule"),
            (wrong.as_str(), "invalid schedule: receivers"),
        ] {
            let error = text.parse::<ReplayToken>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
