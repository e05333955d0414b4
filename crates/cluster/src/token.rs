//! Replay tokens: a seed (`cluster-v12:4711`) or a whole schedule (`cluster-v12:{"seed":4711,…}`) as one line of text.
//! Those of versions 3 to 11 are read, too: their schedules are those of version 12 without what has been added since.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::schedule::{Invalid, Schedule};
use std::fmt;
use std::str::FromStr;

/// Version of the meaning of seeds and of the format of schedules.
pub const VERSION: u32 = 12;

const PREFIX: &str = "cluster-v12:";

/// The schedules of a version by their seeds.
type Seeds = fn(u64) -> Schedule;

/// The versions that are read.
const VERSIONS: [(&str, Seeds); 10] = [
    (PREFIX, Schedule::from_seed),
    ("cluster-v11:", Schedule::from_seed_of_version_11),
    ("cluster-v10:", Schedule::from_seed_of_version_10),
    ("cluster-v9:", Schedule::from_seed_of_version_9),
    ("cluster-v8:", Schedule::from_seed_of_version_8),
    ("cluster-v7:", Schedule::from_seed_of_version_7),
    ("cluster-v6:", Schedule::from_seed_of_version_6),
    ("cluster-v5:", Schedule::from_seed_of_version_5),
    ("cluster-v4:", Schedule::from_seed_of_version_4),
    ("cluster-v3:", Schedule::from_seed_of_version_3),
];

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
        let text = text.trim();
        let versions = VERSIONS.into_iter();
        let mut rests =
            versions.filter_map(|(prefix, from_seed)| Some((prefix, text.strip_prefix(prefix)?, from_seed)));
        let (prefix, rest, from_seed) = rests.next().ok_or(TokenError::NoVersion)?;
        if rest.starts_with('{') {
            let schedule: Schedule = serde_json::from_str(rest)?;
            schedule.check()?;
            return Ok(ReplayToken::Schedule(Box::new(schedule)));
        }
        let seed = rest.parse().map_err(|_| TokenError::NoSeed)?;
        let is_newest = prefix == PREFIX;
        Ok(if is_newest { ReplayToken::Seed(seed) } else { ReplayToken::Schedule(Box::new(from_seed(seed))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Phase;
    use crate::schedule::Event;

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
    fn tokens_of_former_versions_have_schedules_without_what_was_added_since() {
        let of = |text: &str| text.parse::<ReplayToken>().unwrap().schedule();
        let schedule = of("cluster-v3:4711");
        assert_eq!((&schedule.etcd, schedule.has_leases, schedule.has_bfd), (&None, false, false));
        let in_full = ReplayToken::Schedule(Box::new(schedule.clone())).to_string();
        assert_eq!(of(&in_full.replace("cluster-v12:", "cluster-v3:")), schedule);
        assert_eq!(of(&in_full.replace("cluster-v12:", "cluster-v4:")), schedule);
        let of_version_4 = || (0..100).map(|seed| of(&format!("cluster-v4:{seed}")));
        assert!(of_version_4().filter(|schedule| schedule.etcd.is_some() || schedule.has_bfd).count() > 50);
        let repairs = |schedule: &Schedule| {
            !schedule.repairers.is_empty() || schedule.groups.iter().any(|group| group.repair.is_some())
        };
        assert!(!of_version_4().any(|schedule| repairs(&schedule)));
        let of_version_5 = || (0..100).map(|seed| of(&format!("cluster-v5:{seed}")));
        assert!(of_version_5().filter(repairs).count() > 50);
        assert!(!of_version_5().any(|schedule| !schedule.two_steps.is_empty()));
        let of_version_6 = || (0..100).map(|seed| of(&format!("cluster-v6:{seed}")));
        assert!(of_version_6().filter(|schedule| !schedule.two_steps.is_empty()).count() > 50);
        let has_aim =
            |schedule: &Schedule, phase: Phase| schedule.events.iter().any(|timed| timed.phase == Some(phase));
        assert!(of_version_6().filter(|schedule| has_aim(schedule, Phase::Reserving)).count() > 30);
        let resumes =
            |schedule: &Schedule| schedule.events.iter().any(|timed| matches!(timed.event, Event::Resume { .. }));
        assert!(!of_version_6().any(|schedule| resumes(&schedule)));
        let has_own_psns = |schedule: &Schedule| schedule.groups.iter().any(|group| group.own_psns);
        assert!(!(0..100).map(|seed| of(&format!("cluster-v8:{seed}"))).any(|schedule| has_own_psns(&schedule)));
        let added = || (0..100).map(|seed| of(&format!("cluster-v11:{seed}")));
        assert!(added().filter(has_own_psns).count() > 40);
        assert!(added().filter(|schedule| schedule.has_peers).count() > 15);
        let cuts =
            |schedule: &Schedule| schedule.events.iter().any(|timed| matches!(timed.event, Event::CutHostLink { .. }));
        assert!(added().filter(cuts).count() > 15);
        assert!(!(0..100).map(|seed| of(&format!("cluster-v10:{seed}"))).any(|schedule| schedule.has_peers));
        let has_second = |schedule: &Schedule| schedule.second_headend.is_some();
        assert!(!added().any(|schedule| has_second(&schedule)));
        assert!((0..100).map(|seed| of(&format!("cluster-v12:{seed}"))).filter(has_second).count() > 40);
        assert!(added().filter(resumes).count() > 40);
        assert!(added().filter(|schedule| has_aim(schedule, Phase::Succeeding)).count() > 20);
    }

    #[test]
    fn bad_tokens_are_rejected() {
        let mut wrong = Schedule::from_seed(1);
        wrong.receivers[0] = 99;
        let wrong = ReplayToken::Schedule(Box::new(wrong)).to_string();
        for (text, message) in [
            ("v1:4711", "expected a token such as"),
            ("cluster-v2:4711", "expected a token such as"),
            ("cluster-v12:-3", "expected a seed"),
            ("cluster-v12:{", "cannot parse the schedule"),
            (wrong.as_str(), "invalid schedule: receivers"),
        ] {
            let error = text.parse::<ReplayToken>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
