//! External programs that chores need and that are no part of a Rust toolchain.

use anyhow::{Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that comes from a crate.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The crate that it is in.
    pub(crate) package: &'static str,
    /// Arguments with which it reports its presence, and ends.
    pub(crate) question: &'static [&'static str],
}

impl Program {
    /// That it is there, or how it comes there.
    pub(crate) fn check(&self) -> Result<()> {
        let mut command = Command::new(self.name);
        command.args(self.question).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            bail!("{} is not installed: `cargo install {} --locked`", self.name, self.package);
        }
        Ok(())
    }
}

/// The path of a program that is there, by its own path or where a shell would find it, in the directories of root too.
/// It holds in any working directory.
pub(crate) fn find(program: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let places: Vec<PathBuf> = match program.components().count() {
        1 => directories.map(|directory| directory.join(program)).collect(),
        _ => vec![program.to_owned()],
    };
    let found = places.into_iter().find(|place| place.is_file())?;
    std::path::absolute(found).ok()
}

/// The cargo that has started this program, without what it has set for this package: build scripts of dependencies
/// (ring's) run again when these variables change, and all that depends on them is built again.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_of_package = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix)))
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_of_package).for_each(|name| {
        cargo.env_remove(name);
    });
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_the_way_to_get_it() {
        let program = |name| Program { name, package: "some-crate", question: &["--version"] };
        assert!(program("cargo").check().is_ok());
        let error = program("a-program-that-does-not-exist").check().unwrap_err().to_string();
        assert_eq!(error, "a-program-that-does-not-exist is not installed: `cargo install some-crate --locked`");
    }
}
