//! The package as Debian's interpreter runs it: the tests of `test_package.py`.

use srdma_testkit::built;
use std::path::Path;
use std::process::Command;

/// What needs no network: objects that are buffers, exceptions, types, and the modules that the import brings.
#[test]
fn the_package_passes_its_tests() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    built::python_package(directory.path());
    let output = Command::new("/usr/bin/python3")
        .args(["-W", "error", "-m", "unittest", "-v", "test_package"])
        .current_dir(root.join("tests/python"))
        .env("PYTHONPATH", directory.path())
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
