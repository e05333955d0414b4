//! The programs that tests compare with. A comparison that did not take place must not look like one that passed, so
//! `cargo xtask ci` installs what is missing before it tests, or fails.

use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// A program, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 1] = [Tool { program: "tshark", package: "tshark" }];

/// Installs the tools that are missing; `false` when that is not possible here.
pub(crate) fn provide() -> Result<bool> {
    for tool in &TOOLS {
        if !is_installed(tool.program) {
            install(tool.package)?;
        }
        if !is_installed(tool.program) {
            println!("{} is missing and could not be installed: install the package {}", tool.program, tool.package);
            return Ok(false);
        }
        println!("{} is installed", tool.program);
    }
    Ok(true)
}

fn is_installed(program: &str) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Calls apt-get, never asking anything; does nothing more when there is none or it may not.
fn install(package: &str) -> Result<()> {
    let user = Command::new("id").arg("-u").output().context("cannot start id")?;
    let is_root = user.stdout.trim_ascii() == b"0";
    for arguments in [&["update", "-q"][..], &["install", "-q", "-y", "--no-install-recommends", package]] {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        if !is_root {
            command.args(["-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        }
        println!("apt-get {}", arguments.join(" "));
        let status = command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_exist_is_not_installed() {
        assert!(is_installed("cargo"));
        assert!(!is_installed("a-program-that-does-not-exist"));
    }
}
