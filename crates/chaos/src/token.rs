//! Replay tokens: a seed (`v7:4711`) or a whole schedule (`v7:{"seed":4711,…}`) as one line of text.
//!
//! The version in front makes sure that a stored token either keeps its meaning or is rejected.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::schedule::Schedule;
use crate::validity::Invalid;
use std::fmt;
use std::str::FromStr;

/// Version of the meaning of seeds and of the format of schedules.
pub const VERSION: u32 = 7;
/// The version before, whose schedules are read: its hosts were IPv6.
const VERSION_WITHOUT_IPV4_HOSTS: u32 = 6;
/// An earlier version, whose schedules are read: receivers had the group's PSNs.
const VERSION_WITHOUT_OWN_PSNS: u32 = 5;
/// An earlier version, whose schedules are read: receivers were at nodes with none below them.
const VERSION_WITHOUT_BUD_NODES: u32 = 4;
/// An earlier version, whose schedules are read: its groups had one region.
const VERSION_WITHOUT_REGIONS: u32 = 3;
/// An earlier version, whose schedules are read: it had no time for receivers that are not ready.
const VERSION_WITHOUT_T_NOT_READY: u32 = 2;
/// An earlier version, whose schedules in full are read: it had no repair.
const VERSION_WITHOUT_REPAIR: u32 = 1;

/// A schedule by its seed or in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayToken {
    /// The schedule that the default distribution draws for a seed.
    Seed(u64),
    Schedule(Box<Schedule>),
}

/// Why a token is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{0:?} does not begin with a version, as in v{VERSION}:4711 or v{VERSION}:{{\"seed\":4711, …}}")]
    NoVersion(String),
    #[error(
        "the token has version {0}, this program has version {VERSION}, where seeds mean other schedules: use the \
         program that wrote the token"
    )]
    OtherVersion(u32),
    #[error("expected a seed below 2^64 or a schedule in braces after the version: {0:?}")]
    NoSeed(String),
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
            ReplayToken::Seed(seed) => write!(f, "v{VERSION}:{seed}"),
            ReplayToken::Schedule(schedule) => {
                let text = serde_json::to_string(schedule).map_err(|_| fmt::Error)?;
                write!(f, "v{VERSION}:{text}")
            }
        }
    }
}

impl FromStr for ReplayToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<ReplayToken, TokenError> {
        let text = text.trim();
        let (version, rest) = text
            .strip_prefix('v')
            .and_then(|text| text.split_once(':'))
            .and_then(|(version, rest)| Some((version.parse::<u32>().ok()?, rest)))
            .ok_or_else(|| TokenError::NoVersion(shortened(text)))?;
        let is_whole = rest.starts_with('{');
        let of_seed: fn(u64) -> ReplayToken = match version {
            VERSION => ReplayToken::Seed,
            VERSION_WITHOUT_IPV4_HOSTS => {
                |seed| ReplayToken::Schedule(Box::new(Schedule::from_seed_of_version_6(seed)))
            }
            VERSION_WITHOUT_OWN_PSNS => |seed| ReplayToken::Schedule(Box::new(Schedule::from_seed_of_version_5(seed))),
            VERSION_WITHOUT_BUD_NODES => |seed| ReplayToken::Schedule(Box::new(Schedule::from_seed_of_version_4(seed))),
            VERSION_WITHOUT_REGIONS => |seed| ReplayToken::Schedule(Box::new(Schedule::from_seed_of_version_3(seed))),
            VERSION_WITHOUT_T_NOT_READY => {
                |seed| ReplayToken::Schedule(Box::new(Schedule::from_seed_of_version_2(seed)))
            }
            VERSION_WITHOUT_REPAIR if is_whole => ReplayToken::Seed,
            _ => return Err(TokenError::OtherVersion(version)),
        };
        if is_whole {
            let schedule: Schedule = serde_json::from_str(rest)?;
            schedule.check()?;
            return Ok(ReplayToken::Schedule(Box::new(schedule)));
        }
        rest.parse().map(of_seed).map_err(|_| TokenError::NoSeed(shortened(rest)))
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
    fn tokens_keep_their_schedules() {
        for seed in 0..200 {
            let schedule = Schedule::from_seed(seed);
            assert_eq!(schedule.check(), Ok(()), "seed {seed}");
            let token = ReplayToken::Schedule(Box::new(schedule.clone())).to_string();
            assert!(!token.contains(['\n', '\'']), "it must pass through a shell in single quotes");
            assert_eq!(token.parse::<ReplayToken>().unwrap().schedule(), schedule);
            assert_eq!(ReplayToken::Seed(seed).to_string().parse::<ReplayToken>().unwrap().schedule(), schedule);
        }
    }

    #[test]
    fn tokens_of_earlier_versions_keep_their_schedules() {
        type OfSeed = fn(u64) -> Schedule;
        let of_version: [(u32, OfSeed); 6] = [
            (2, Schedule::from_seed_of_version_2),
            (3, Schedule::from_seed_of_version_3),
            (4, Schedule::from_seed_of_version_4),
            (5, Schedule::from_seed_of_version_5),
            (6, Schedule::from_seed_of_version_6),
            (7, Schedule::from_seed),
        ];
        for (version, of_seed) in of_version {
            let schedule = format!("v{version}:4711").parse::<ReplayToken>().unwrap().schedule();
            assert_eq!(schedule, of_seed(4711));
            let token = format!("v{version}:{}", serde_json::to_string(&schedule).unwrap());
            assert_eq!(token.parse::<ReplayToken>().unwrap().schedule(), schedule);
        }
        for ((version, of_seed), (_, before)) in of_version[1..].iter().zip(of_version) {
            assert!((0..20).any(|seed| of_seed(seed) != before(seed)), "version {version} draws nothing new");
        }
    }

    #[test]
    fn a_token_of_another_version_is_rejected() {
        let error = "v0:4711".parse::<ReplayToken>().unwrap_err();
        assert!(error.to_string().starts_with("the token has version 0"), "{error}");
    }

    #[test]
    fn bad_tokens_are_rejected() {
        for (text, message) in [
            ("4711", "does not begin with a version"),
            ("v2", "does not begin with a version"),
            ("v4:", "expected a seed"),
            ("v1:4711", "the token has version 1"),
            ("v3:-3", "expected a seed"),
            ("v3:{", "cannot parse the schedule"),
            ("v1:{\"seed\":1}", "missing field `nodes`"),
        ] {
            let error = text.parse::<ReplayToken>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn an_invalid_schedule_is_rejected_with_its_position() {
        let valid = Schedule::from_seed(3);
        let rejected = |change: fn(&mut Schedule)| {
            let mut schedule = valid.clone();
            change(&mut schedule);
            ReplayToken::Schedule(Box::new(schedule)).to_string().parse::<ReplayToken>().unwrap_err().to_string()
        };
        let error = rejected(|schedule| schedule.groups[0].members = vec![1000]);
        assert!(error.contains("groups[0].members: [1000]"), "{error}");
        let error = rejected(|schedule| schedule.nodes[1].parent = Some(1));
        assert!(error.contains("nodes[1]: Some(1)"), "{error}");
        let error = rejected(|schedule| schedule.receivers[0].edge = 1000);
        assert!(error.contains("receivers[0]: 1000"), "{error}");
        let error = rejected(|schedule| schedule.link.loss_ppm = 1_000_001);
        assert!(error.contains("link.loss_ppm: 1000001"), "{error}");
        let error = rejected(|schedule| schedule.nodes.clear());
        assert!(error.contains("nodes: 0"), "{error}");
    }
}
