//! The profiles: the names in them exist, and what they leave out is listed.

use srdma_conform::{PROFILES, Profile, Requirement};
use std::collections::BTreeSet;

fn profiles() -> Vec<Profile> {
    PROFILES.into_iter().map(|name| name.load(None).expect("no parameters")).collect()
}

/// The families of requirements that a profile covers.
fn families(profile: &Profile) -> BTreeSet<&'static str> {
    let ids = profile.cases.iter().flat_map(|case| case.requirements.iter().copied());
    ids.filter(|id| !id.starts_with("RFC")).filter_map(|id| id.split_once('-')).map(|(family, _)| family).collect()
}

/// Each requirement of a draft is shown by a case of the profile or named as not tested, and no id is invented.
#[test]
fn every_requirement_of_a_draft_has_a_case_or_a_reason() {
    for profile in profiles() {
        let shown: BTreeSet<&str> = profile.cases.iter().flat_map(|case| case.requirements.iter().copied()).collect();
        let untested: BTreeSet<&str> = profile.untested.iter().map(|(id, _)| *id).collect();
        assert_eq!(untested.len(), profile.untested.len(), "{}", profile.name);
        for id in shown.iter().chain(&untested) {
            assert!(Requirement::of(id).is_some(), "{}: {id}", profile.name);
        }
        assert_eq!(shown.intersection(&untested).next(), None, "{}", profile.name);
        for family in families(&profile) {
            for id in Requirement::of_family(family) {
                assert!(shown.contains(id) || untested.contains(id), "{} says nothing of {id}", profile.name);
            }
        }
    }
}

#[test]
fn cases_have_unique_names_and_frames_to_send() {
    for profile in profiles() {
        let names: BTreeSet<&str> = profile.cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), profile.cases.len());
        for case in &profile.cases {
            assert!(!case.requirements.is_empty() && !case.steps.is_empty(), "{}", case.name);
            assert!(case.steps.iter().all(|step| !step.sent.is_empty()), "{}", case.name);
            let ports: BTreeSet<&str> = profile.ports.iter().map(|(name, _)| *name).collect();
            let expected = case.steps.iter().flat_map(|step| &step.expected).map(|expected| expected.port);
            let sent = case.steps.iter().flat_map(|step| &step.sent).map(|frame| frame.port);
            assert!(expected.chain(sent).all(|port| ports.contains(port)), "{}", case.name);
        }
        assert!(profile.cases.iter().any(|case| case.steps.iter().any(|step| !step.expected.is_empty())));
    }
}

/// The parameters of a file are those that `describe` lists: each value is read back unchanged.
#[test]
fn parameters_are_parsed_as_printed() {
    for name in PROFILES {
        let profile = name.load(None).expect("no parameters");
        let lines = profile.parameters.iter().map(|parameter| format!("{} = {}\n", parameter.name, parameter.value));
        let again = name.load(Some(&lines.collect::<String>())).expect("the same parameters");
        assert_eq!(again.parameters, profile.parameters);
        assert_eq!(again.configuration, profile.configuration);
        let refused = name.load(Some("wrong = 1\n")).expect_err("no such parameter").to_string();
        assert!(refused.contains("wrong") && refused.contains("line 1"), "{refused}");
    }
}
