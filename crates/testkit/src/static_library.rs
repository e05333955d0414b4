//! Libraries that cargo builds for a test.

use std::fs;
use std::path::PathBuf;

/// The newest static library of a crate, beside the test that runs: cargo builds it with its tests, and as a dependency
/// of others.
///
/// # Panics
///
/// If there is none.
pub fn beside_test(library: &str) -> PathBuf {
    newest(library, ".a")
}

/// The same for a shared library.
///
/// # Panics
///
/// If there is none.
pub fn shared_beside_test(library: &str) -> PathBuf {
    newest(library, ".so")
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
