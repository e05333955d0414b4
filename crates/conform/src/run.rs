//! Runs the cases of a profile on a device.

use crate::report::by_requirement;
use crate::{Case, CaseReport, Departure, Device, DeviceError, Profile, Report, Verdict, compare};

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Cases that are done.
    pub done: usize,
    /// Number of all cases.
    pub all: usize,
    /// The case that is next.
    pub case: &'static str,
}

/// Puts the cases of a profile to a device, all or those whose name contains `filter`.
///
/// # Errors
///
/// If the device cannot be used at all: a command that does not start, an interface that does not exist. A missing
/// answer is a verdict.
pub fn run(
    profile: &Profile,
    filter: &str,
    device: &mut dyn Device,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, DeviceError> {
    let chosen: Vec<&Case> = profile.cases.iter().filter(|case| case.name.contains(filter)).collect();
    let mut cases = Vec::new();
    for case in &chosen {
        progress(Progress { done: cases.len(), all: chosen.len(), case: case.name });
        cases.push(run_case(case, device)?);
    }
    let requirements = by_requirement(&cases, &profile.untested);
    Ok(Report { profile: profile.name, device: device.name(), cases, requirements })
}

fn run_case(case: &Case, device: &mut dyn Device) -> Result<CaseReport, DeviceError> {
    let observed = match device.put(&case.steps) {
        Ok(observed) => Ok(observed),
        Err(DeviceError::NoAnswer(reason)) => Err(reason),
        Err(error) => return Err(error),
    };
    let mut findings = Vec::new();
    let mut reason = None;
    match observed {
        Ok(observed) => {
            for (index, (step, frames)) in case.steps.iter().zip(&observed).enumerate() {
                findings.extend(compare(&step.expected, frames).into_iter().map(|finding| (index + 1, finding)));
            }
        }
        Err(why) => reason = Some(why),
    }
    let verdict = match (&reason, findings.is_empty()) {
        (Some(_), _) => Verdict::NotTested,
        (None, true) => Verdict::Pass,
        (None, false) => Verdict::Fail,
    };
    let departure = if verdict == Verdict::Fail { Departure::of(case.name, &findings) } else { None };
    Ok(CaseReport {
        name: case.name,
        about: case.about,
        requirements: case.requirements,
        sources: case.sources.clone(),
        verdict,
        findings,
        reason,
        departure,
    })
}
