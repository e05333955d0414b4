//! The programs that tests compare with. A comparison that did not take place must not look like one that passed, so
//! `cargo xtask ci` installs what is missing before it tests, or fails.

use anyhow::{Context, Result};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

/// A program, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool { program: "tshark", package: "tshark" },
    // For Debian's own interpreter.
    Tool { program: "scapy3", package: "python3-scapy" },
    // Controllers that stand in for one another keep what they know in it.
    Tool { program: "etcd", package: "etcd-server" },
];

/// What tests in network namespaces and the labs need on top.
const LAB_TOOLS: [Tool; 11] = [
    Tool { program: "ip", package: "iproute2" },
    Tool { program: "ethtool", package: "ethtool" },
    Tool { program: "ping", package: "iputils-ping" },
    Tool { program: "smcrouted", package: "smcroute" },
    Tool { program: "qemu-system-x86_64", package: "qemu-system-x86" },
    Tool { program: "busybox", package: "busybox" },
    Tool { program: "cpio", package: "cpio" },
    Tool { program: "xz", package: "xz-utils" },
    Tool { program: "gcc", package: "gcc" },
    // Its daemons are elsewhere, in /usr/lib/frr.
    Tool { program: "vtysh", package: "frr" },
    Tool { program: "prometheus", package: "prometheus" },
];

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

/// Installs what the labs need; the reason why they cannot run when that is not possible here.
pub(crate) fn missing_for_labs() -> Result<Option<String>> {
    for tool in &LAB_TOOLS {
        if !is_installed(tool.program) {
            install(tool.package)?;
        }
        if !is_installed(tool.program) {
            return Ok(Some(format!("{} is missing: install the package {}", tool.program, tool.package)));
        }
    }
    Ok(None)
}

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> Result<bool> {
    let user = Command::new("id").arg("-u").output().context("cannot start id")?;
    Ok(user.stdout.trim_ascii() == b"0")
}

/// Whether the shell would find a program, also where only root looks.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    directories.into_iter().any(|directory| directory.join(program).is_file())
}

/// Calls apt-get, never asking anything; does nothing more when there is none or it may not. What the package brings is
/// for the tests alone: none of its daemons is started.
fn install(package: &str) -> Result<()> {
    let is_root = is_root()?;
    let _policy = is_root.then(NoDaemons::ask).flatten();
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

/// What a package's scripts ask before they start a daemon, saying no.
struct NoDaemons;

impl NoDaemons {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    /// `None` where somebody has said already what is to be started.
    fn ask() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(Self::POLICY).ok()?;
        let policy = NoDaemons;
        // 101: forbidden by policy.
        file.write_all(b"#!/bin/sh\nexit 101\n").is_ok().then_some(policy)
    }
}

impl Drop for NoDaemons {
    fn drop(&mut self) {
        // Whoever finds it would miss daemons of his own.
        if let Err(error) = fs::remove_file(Self::POLICY) {
            println!("{} could not be removed: {error}", Self::POLICY);
        }
    }
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
