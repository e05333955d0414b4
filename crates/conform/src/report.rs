//! Results of a run: by case, and by requirement.

use crate::{Departure, Finding, Requirement};
use serde::Serialize;

/// Verdict on a case or a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The observed frames are the expected ones.
    Pass,
    /// It is not.
    Fail,
    /// Nothing was sent that would show it.
    NotTested,
}

/// A case after its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseReport {
    /// Its name.
    pub name: &'static str,
    /// Purpose.
    pub about: &'static str,
    /// The requirements that it shows.
    pub requirements: &'static [&'static str],
    /// Tests of other implementations that it is written after.
    pub sources: Vec<&'static str>,
    /// Pass or fail; not tested when the device could not be reached.
    pub verdict: Verdict,
    /// Findings, with the step, from 1.
    pub findings: Vec<(usize, Finding)>,
    /// Reason for which it was not tested.
    pub reason: Option<String>,
    /// The known departure that it is, if it failed as devices of a kind are known to.
    pub departure: Option<Departure>,
}

/// A requirement after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RequirementReport {
    #[serde(flatten)]
    pub requirement: Requirement,
    /// Fail if a case of it failed; pass if some passed and none failed.
    pub verdict: Verdict,
    pub cases: Vec<&'static str>,
    /// Reason for which it was not tested.
    pub reason: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The profile.
    pub profile: &'static str,
    /// Device under test: a command, or interfaces.
    pub device: String,
    /// The cases, in their order.
    pub cases: Vec<CaseReport>,
    /// The requirements of the profile.
    pub requirements: Vec<RequirementReport>,
}

impl Report {
    /// Whether nothing failed and something passed.
    pub fn is_pass(&self) -> bool {
        self.count(Verdict::Pass) > 0 && self.count(Verdict::Fail) == 0 && self.count(Verdict::NotTested) == 0
    }

    /// Cases with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The known departures that were found, each once.
    pub fn departures(&self) -> Vec<Departure> {
        let mut departures: Vec<Departure> = Vec::new();
        for departure in self.cases.iter().filter_map(|case| case.departure) {
            if !departures.contains(&departure) {
                departures.push(departure);
            }
        }
        departures
    }
}

/// Verdicts on the requirements: those that the cases name, then those that no case can show, with the reason.
pub(crate) fn by_requirement(
    cases: &[CaseReport],
    untested: &[(&'static str, &'static str)],
) -> Vec<RequirementReport> {
    let mut ids: Vec<&'static str> = Vec::new();
    for id in cases.iter().flat_map(|case| case.requirements) {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    ids.sort_unstable_by_key(|id| sorted(id));
    let tested = ids.into_iter().map(|id| {
        let of_it: Vec<&CaseReport> = cases.iter().filter(|case| case.requirements.contains(&id)).collect();
        let has = |verdict| of_it.iter().any(|case| case.verdict == verdict);
        let verdict = match (has(Verdict::Fail), has(Verdict::Pass)) {
            (true, _) => Verdict::Fail,
            (false, true) => Verdict::Pass,
            (false, false) => Verdict::NotTested,
        };
        let reason = of_it.iter().find_map(|case| case.reason.clone()).filter(|_| verdict == Verdict::NotTested);
        RequirementReport {
            requirement: named(id),
            verdict,
            cases: of_it.iter().map(|case| case.name).collect(),
            reason,
        }
    });
    let open = untested.iter().map(|(id, reason)| RequirementReport {
        requirement: named(id),
        verdict: Verdict::NotTested,
        cases: Vec::new(),
        reason: Some((*reason).to_owned()),
    });
    tested.chain(open).collect()
}

fn named(id: &str) -> Requirement {
    Requirement::of(id).unwrap_or_else(|| Requirement { id: id.to_owned(), text: String::new() })
}

/// Requirements of drafts before RFCs, both by the numbers in them.
fn sorted(id: &str) -> (bool, String, Vec<u32>) {
    let family: String = id.chars().take_while(|character| character.is_ascii_alphabetic()).collect();
    let numbers = id.split(|character: char| !character.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    (id.starts_with("RFC"), family, numbers.collect())
}
