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

/// Installs the Python package `srdma` below a directory, by links, as a wheel does: the module beside the sources, and the
/// entry points. The crate `python` is a dependency of the test.
///
/// # Panics
///
/// If there is no module, or a link cannot be made.
pub fn python_package(directory: &Path) {
    let package = directory.join("srdma");
    fs::create_dir_all(&package).expect("a directory");
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
    for entry in fs::read_dir(python.join("python/srdma")).expect("the package") {
        let file = entry.expect("an entry").path();
        symlink(&file, package.join(file.file_name().expect("a name"))).expect("a link");
    }
    symlink(newest("libsrdma_native", ".so"), package.join("_native.abi3.so")).expect("a link");
    let information = directory.join("srdma-0.dist-info");
    fs::create_dir_all(&information).expect("a directory");
    let project = fs::read_to_string(python.join("pyproject.toml")).expect("the project");
    fs::write(information.join("METADATA"), "Metadata-Version: 2.1\nName: srdma\nVersion: 0\n").expect("written");
    fs::write(information.join("entry_points.txt"), entry_points(&project)).expect("written");
}

/// `entry_points.txt` of a project: a section for each of its groups.
fn entry_points(project: &str) -> String {
    let mut text = String::new();
    let mut is_group = false;
    for line in project.lines() {
        if let Some(head) = line.strip_prefix('[') {
            let group = head.strip_prefix("project.entry-points.").map(|rest| rest.trim_matches(['"', ']']));
            is_group = group.is_some();
            text.extend(group.map(|group| format!("[{group}]\n")));
        } else if is_group {
            text.extend([&line.replace('"', ""), "\n"]);
        }
    }
    text
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
