//! The package as Debian's interpreter runs it: the tests of `test_package.py`.

use srdma_testkit::static_library::shared_beside_test;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// What needs no network: objects that are buffers, exceptions, the time of the import, the end of the interpreter.
#[test]
fn the_package_passes_its_tests() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The module beside the sources, as a wheel installs them.
    let package = directory.path().join("srdma");
    std::fs::create_dir(&package).expect("a directory");
    for entry in std::fs::read_dir(root.join("python/srdma")).expect("the package") {
        let file = entry.expect("an entry").path();
        symlink(&file, package.join(file.file_name().expect("a name"))).expect("a link");
    }
    symlink(shared_beside_test("libsrdma_native"), package.join("_native.abi3.so")).expect("a link");
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
