//! Says which commit a release was built from: `SRDMA_COMMIT`, if the environment has it, or what git says.

use std::env::var;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SRDMA_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = var("PROFILE").is_ok_and(|profile| profile == "release");
    let build = match var("SRDMA_COMMIT").ok().or_else(|| is_release.then(commit).flatten()) {
        Some(commit) => commit,
        None if is_release => "unknown commit".to_owned(),
        // It would be built anew with every commit.
        None => "debug build".to_owned(),
    };
    let version = var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rustc-env=SRDMA_VERSION={version} ({build})");
}

/// The commit that is checked out, where it is.
fn commit() -> Option<String> {
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
