//! Libraries that cargo builds for a test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The newest static library of a crate, beside the test that runs: cargo builds it with its tests, and as a dependency
/// of others.
///
/// # Panics
///
/// If there is none.
pub fn static_library(library: &str) -> PathBuf {
    newest(library, ".a")
}

/// Installs the Python package `srdma` below a directory, by links, as a wheel does: the module beside the sources. The
/// crate `python` is a dependency of the test.
///
/// # Panics
///
/// If there is no module, or a link cannot be made.
pub fn python_package(directory: &Path) {
    let package = directory.join("srdma");
    fs::create_dir_all(&package).expect("a directory");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/python/srdma");
    for entry in fs::read_dir(sources).expect("the package") {
        let file = entry.expect("an entry").path();
        symlink(&file, package.join(file.file_name().expect("a name"))).expect("a link");
    }
    symlink(newest("libsrdma_native", ".so"), package.join("_native.abi3.so")).expect("a link");
}

fn newest(library: &str, ending: &str) -> PathBuf {
    let directory = std::env::current_exe().expect("this test").parent().expect("a directory").to_owned();
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(library) && name.ends_with(ending)
    };
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).expect("a time");
    let entries = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("an entry").path());
    entries.filter(is_it).max_by_key(modified).expect("cargo builds the library")
}
