//! The profiles: the names in them exist, and what they leave out is listed; `docs/conform.md` has the same sources, tests
//! of VPP and of Linux, and the same cases after them.

use srdma_conform::{PROFILES, Profile, Requirement};
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../docs/conform.md");

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

/// A source, a profile, and a case of it.
type Pair = (String, String, String);

/// The parts of a text that are in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The rows of the table: sources, and the cell of cases.
fn rows() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let (_, section) = DOCUMENT.split_once("### Tests of VPP and of the kernel").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a section behind it");
    let table = section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once(" | "));
    // The first backtick of a row belongs to its prefix.
    table.map(|(sources, cases)| (sources.split('`').step_by(2).collect(), cases))
}

/// Pairs of a row such as `a`, `b` of `usid`; `c` of `ipv4`.
fn pairs(sources: &[&str], cases: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (names, profile) in cases.split("; ").map(|part| part.split_once(" of ").expect("cases of a profile")) {
        for (source, case) in
            sources.iter().flat_map(|source| quoted(names).into_iter().map(move |case| (source, case)))
        {
            pairs.push(((*source).to_owned(), profile.trim_matches('`').to_owned(), case.to_owned()));
        }
    }
    pairs
}

#[test]
fn the_document_names_the_sources_of_the_cases() {
    let mut documented: BTreeSet<Pair> = BTreeSet::new();
    for (sources, cases) in rows().filter(|(_, cases)| !cases.starts_with("none: ")) {
        for pair in pairs(&sources, cases) {
            assert!(documented.insert(pair.clone()), "twice: {pair:?}");
        }
    }
    let mut named: BTreeSet<Pair> = BTreeSet::new();
    for profile in profiles() {
        for case in &profile.cases {
            let pair = |source: &&str| ((*source).to_owned(), profile.name.to_owned(), case.name.to_owned());
            named.extend(case.sources.iter().map(pair));
        }
    }
    assert_eq!(documented.difference(&named).collect::<Vec<_>>(), Vec::<&Pair>::new(), "in the document alone");
    assert_eq!(named.difference(&documented).collect::<Vec<_>>(), Vec::<&Pair>::new(), "at cases alone");
    for needed in ["VPP test_srv6.py: test_SRv6_End_X_with_PSP", "Linux selftests: srv6_end_dt46_l3vpn_test.sh"] {
        assert!(named.iter().any(|(source, _, _)| source == needed), "{needed}");
    }
}

/// What has no case has a reason, and no case names it.
#[test]
fn tests_without_a_case_have_a_reason() {
    let profiles = profiles();
    let cases = profiles.iter().flat_map(|profile| &profile.cases);
    let named: BTreeSet<&str> = cases.flat_map(|case| case.sources.iter().copied()).collect();
    let mut without = BTreeSet::new();
    for (sources, cell) in rows() {
        let Some(reason) = cell.strip_prefix("none: ") else { continue };
        assert!(reason.len() > 10, "{sources:?}: {reason}");
        for source in sources {
            let stem = source.trim_end_matches('*');
            assert!(
                !named.iter().any(|named| named.starts_with(stem) && (stem != source || *named == source)),
                "{source}"
            );
            without.insert(source);
        }
    }
    for needed in ["VPP test_srv6_mobile.py", "Linux selftests: srv6_iptunnel_cache.sh"] {
        assert!(without.contains(needed), "{needed}: {without:?}");
    }
}
