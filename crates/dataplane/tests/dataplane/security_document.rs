//! `docs/security.md` names tests and drop reasons that exist.

use srdma_dataplane::DropReason;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = include_str!("../../../../docs/security.md");

/// The sources of all tests of the workspace, those beside the code included, by the name of their file.
fn tests() -> BTreeMap<String, String> {
    let mut tests: BTreeMap<String, String> = BTreeMap::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let both = |member: PathBuf| ["src", "tests"].map(|directory| member.join(directory));
    let mut open: Vec<PathBuf> = entries(&crates).into_iter().flat_map(both).collect();
    while let Some(directory) = open.pop() {
        for entry in entries(&directory) {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.file_stem().unwrap().to_string_lossy().into_owned();
                tests.entry(name).or_default().push_str(&std::fs::read_to_string(&entry).unwrap());
            }
        }
    }
    tests
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = directory.read_dir() else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Text between back quotes in the cells of a table's column.
fn quoted<'d>(heading: &str, column: usize) -> Vec<Vec<&'d str>> {
    let (_, section) = DOCUMENT.split_once(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cell = |line: &'d str| line.split('|').nth(column + 1).unwrap_or("");
    table.skip(2).map(|line| cell(line).split('`').skip(1).step_by(2).collect()).collect()
}

#[test]
fn every_threat_names_tests_that_exist() {
    let tests = tests();
    let rows = quoted("## Threats", 4);
    assert!(rows.len() > 20);
    for row in rows {
        assert!(!row.is_empty(), "a threat without a test");
        for name in row {
            let (file, test) = name.split_once("::").unwrap_or_else(|| panic!("{name} is no FILE::TEST"));
            let text = tests.get(file).unwrap_or_else(|| panic!("there is no {file}.rs"));
            assert!(text.contains(&format!("fn {test}(")), "there is no test {name}");
        }
    }
}

#[test]
fn drops_at_the_boundary_have_these_names() {
    let names: Vec<&str> = quoted("## The boundary", 2).concat();
    assert_eq!(names.len(), 7);
    for name in names {
        assert!(DropReason::ALL.iter().any(|reason| reason.name() == name), "there is no drop reason {name}");
    }
}
