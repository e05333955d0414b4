//! The architecture's dependency rule: which crate may use which.

use super::Finding;
use crate::markdown::code_spans;
use crate::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Header of the table of crates: a crate, its contents, and the crates of this workspace that it may depend on.
const HEADER: &str = "| crate | contents | may use |";

/// Further dependencies for tests.
const FOR_TESTS: [&str; 4] = ["agent", "capture", "figures", "testkit"];

/// Every dependency between crates of the workspace is one that the architecture allows.
pub(super) fn dependencies(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.file(DOCUMENT) else {
        return vec![Finding::in_file(DOCUMENT, "is missing")];
    };
    let layers = layers(&document.text);
    let is_manifest = |file: &&File| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
    tree.files.iter().filter(is_manifest).flat_map(|file| check_manifest(file, &layers)).collect()
}

/// Each crate of the table with those that it may use.
fn layers(document: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let table = document.lines().skip_while(|line| *line != HEADER).skip(2).take_while(|line| line.starts_with('|'));
    table.filter_map(row).collect()
}

fn row(line: &str) -> Option<(&str, BTreeSet<&str>)> {
    let [name, _, uses] = line.trim_matches('|').split(" | ").collect::<Vec<_>>().try_into().ok()?;
    Some((code_spans(name).next()?, code_spans(uses).collect()))
}

fn check_manifest(file: &File, layers: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Finding> {
    let name = file.path.trim_start_matches("crates/").trim_end_matches("/Cargo.toml");
    let Some(allowed) = layers.get(name) else {
        return vec![Finding::in_file(&file.path, format!("crate {name} has no row in the table of {DOCUMENT}"))];
    };
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::in_file(&file.path, format!("not TOML: {error}"))],
    };
    let mut findings = Vec::new();
    for (section, used) in uses(&manifest) {
        let for_tests = section == "dev-dependencies" && FOR_TESTS.contains(&used.as_str());
        if !allowed.contains(used.as_str()) && !for_tests {
            findings.push(Finding::in_file(&file.path, format!("{name} must not use {used} in [{section}]")));
        }
    }
    findings
}

/// The sections of a manifest that name dependencies, with the workspace crates named there.
fn uses(manifest: &Table) -> Vec<(String, String)> {
    let mut uses = Vec::new();
    for (key, value) in manifest {
        match (key.as_str(), value) {
            ("target", Value::Table(targets)) => {
                uses.extend(targets.values().filter_map(Value::as_table).flat_map(self::uses));
            }
            ("dependencies" | "dev-dependencies" | "build-dependencies", Value::Table(dependencies)) => {
                let names = dependencies.keys().filter_map(|name| name.strip_prefix("srdma-"));
                uses.extend(names.map(|name| (key.clone(), name.to_owned())));
            }
            _ => {}
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHITECTURE: &str = "| crate | contents | may use |\n|---|---|---|\n| `wire` | formats | none |\n\
                                | `sim` | elements in `virtual` time | `wire`, `rc` |\n| `rc` | an endpoint | `wire` |\n\
                                \n| `extra` | in another table | `wire` |\n";

    fn found(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        let tree = Tree::of(&[(DOCUMENT, ARCHITECTURE), (&path, manifest)]);
        dependencies(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn rows_are_read() {
        let rows: Vec<_> = layers(ARCHITECTURE).into_iter().map(|(name, uses)| (name, uses.len())).collect();
        assert_eq!(rows, [("rc", 1), ("sim", 2), ("wire", 0)]);
        assert_eq!(found("sim", "[dependencies]\nsrdma-wire.workspace = true\nsrdma-rc.workspace = true\n"), [""; 0]);
    }

    #[test]
    fn a_dependency_against_the_layers_is_found() {
        let manifest = "[dependencies]\nsrdma-wire.workspace = true\nsrdma-node.workspace = true\n";
        assert_eq!(found("sim", manifest), ["sim must not use node in [dependencies]"]);
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        assert_eq!(found("rc", "[dev-dependencies]\nsrdma-testkit.workspace = true\n"), [""; 0]);
        let product = "[target.'cfg(unix)'.dependencies]\nsrdma-testkit = { path = \"../testkit\" }\n";
        assert_eq!(found("rc", product), ["rc must not use testkit in [dependencies]"]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_name_is_found() {
        assert_eq!(found("extra", ""), ["crate extra has no row in the table of ARCHITECTURE.md"]);
    }
}
