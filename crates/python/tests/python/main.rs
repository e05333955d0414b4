//! The package as Debian's interpreter runs it: the tests of the modules beside this file.

use srdma_testkit::built;
use std::path::Path;
use std::process::Command;

/// Runs a module of tests, without warnings, with stubs of frameworks beside the package.
fn passes(module: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    built::python_package(directory.path());
    let output = Command::new("/usr/bin/python3")
        .args(["-W", "error", "-m", "unittest", "-v", module])
        .current_dir(&tests)
        .env("PYTHONPATH", std::env::join_paths([directory.path(), &tests.join("stubs")]).expect("paths"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("SRDMA_PROVIDER")
        .env_remove("SRDMA_TOKEN_FILE")
        .env_remove("SRDMA_CA")
        .output()
        .expect("python3 is installed, as `cargo xtask ci` sees to");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Ran ") && !said.contains("Ran 0"), "{said}");
}

/// What needs no network: objects that are buffers, exceptions, types, and the modules that the import brings.
#[test]
fn the_package_passes_its_tests() {
    passes("test_package");
}

/// Weights in versions (D215): what is sent, and what is refused.
#[test]
fn weights_travel_as_versions() {
    passes("test_weights");
}

/// Adapters of frameworks against stubs of their interfaces (D216, D217).
#[test]
fn adapters_keep_the_contracts_of_frameworks() {
    passes("test_frameworks");
}
