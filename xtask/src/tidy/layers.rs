//! The architecture's dependency rule: which crate may use which.

use super::Finding;
use crate::tree::{File, Tree};
use toml::{Table, Value};

/// Each crate and the crates of this workspace that it may depend on. The simulator and the node never depend on each
/// other.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("toml-error", &[]),
    ("group", &["wire"]),
    ("steering", &["wire"]),
    ("frame", &["wire"]),
    ("fib", &["wire"]),
    ("aggregation", &["wire"]),
    ("dataplane", &["wire", "group", "steering", "frame", "fib", "aggregation"]),
    ("node-spec", &["wire", "group", "frame", "dataplane"]),
    ("rc", &["wire"]),
    ("isis", &["wire"]),
    ("capture", &[]),
    ("fabric", &["wire", "toml-error"]),
    ("placement", &["fabric", "toml-error"]),
    ("provision", &["fabric"]),
    ("report", &[]),
    ("dissect", &["wire", "dataplane", "rc", "capture"]),
    ("api", &["group"]),
    ("agent", &["wire", "group", "api", "dataplane"]),
    ("controller-core", &["wire", "group", "api", "fabric", "placement", "toml-error"]),
    ("controller", &["wire", "group", "api", "controller-core", "fabric", "toml-error"]),
    ("random", &[]),
    ("sim", &["random", "wire", "group", "frame", "aggregation", "dataplane", "rc", "capture", "fabric"]),
    ("recording", &["group", "api", "sim"]),
    (
        "fabric-sim",
        &[
            "toml-error",
            "random",
            "wire",
            "group",
            "steering",
            "frame",
            "dataplane",
            "rc",
            "fabric",
            "placement",
            "report",
            "sim",
        ],
    ),
    ("chaos", &["random", "wire", "group", "frame", "aggregation", "dataplane", "rc", "sim"]),
    ("model-check", &["wire", "aggregation"]),
    ("io", &["wire", "frame", "fib", "capture"]),
    ("bench", &["wire", "group", "steering", "frame", "aggregation", "dataplane", "io"]),
    ("host", &["wire", "steering", "frame", "dataplane", "rc", "io", "toml-error"]),
    ("session", &["wire", "api", "host"]),
    (
        "node",
        &[
            "node-spec",
            "wire",
            "group",
            "api",
            "steering",
            "frame",
            "fib",
            "aggregation",
            "dataplane",
            "agent",
            "isis",
            "capture",
            "io",
            "toml-error",
        ],
    ),
    ("lab", &["wire", "group", "api", "steering", "capture", "io", "host", "node", "toml-error"]),
    ("doctor", &["io"]),
    ("conform", &["wire", "capture", "io", "report", "testkit", "toml-error"]),
    (
        "cli",
        &[
            "provision",
            "node-spec",
            "wire",
            "toml-error",
            "group",
            "steering",
            "frame",
            "aggregation",
            "dataplane",
            "rc",
            "capture",
            "fabric",
            "placement",
            "bench",
            "dissect",
            "report",
            "api",
            "controller",
            "random",
            "session",
            "sim",
            "fabric-sim",
            "recording",
            "chaos",
            "io",
            "host",
            "node",
            "lab",
            "conform",
            "doctor",
        ],
    ),
    ("testkit", &["wire", "group"]),
    (
        "fuzz-targets",
        &[
            "wire",
            "group",
            "steering",
            "steering",
            "frame",
            "dataplane",
            "rc",
            "isis",
            "capture",
            "node",
            "lab",
            "dissect",
            "testkit",
        ],
    ),
];

/// Further dependencies for tests.
const FOR_TESTS: [&str; 2] = ["capture", "testkit"];

/// Every dependency between crates of the workspace is one that the architecture allows.
pub(super) fn dependencies(tree: &Tree) -> Vec<Finding> {
    let is_manifest = |file: &&File| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
    tree.files.iter().filter(is_manifest).flat_map(check_manifest).collect()
}

fn check_manifest(file: &File) -> Vec<Finding> {
    let name = file.path.trim_start_matches("crates/").trim_end_matches("/Cargo.toml");
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![Finding::in_file(&file.path, format!("crate {name} has no place in the table of layers"))];
    };
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::in_file(&file.path, format!("not TOML: {error}"))],
    };
    let mut findings = Vec::new();
    for (section, used) in uses(&manifest) {
        let for_tests = section == "dev-dependencies" && FOR_TESTS.contains(&used.as_str());
        if !allowed.contains(&used.as_str()) && !for_tests {
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

    fn found(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        dependencies(&Tree::of(&[(&path, manifest)])).into_iter().map(|finding| finding.message).collect()
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
        assert_eq!(found("extra", ""), ["crate extra has no place in the table of layers"]);
    }
}
