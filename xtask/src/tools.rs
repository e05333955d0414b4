//! External programs that the tests use. A comparison that did not run must not look like one that passed, so
//! `cargo xtask ci` installs missing programs before it tests, or fails.

use crate::external;
use crate::tree::Tree;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program, or an absolute path where `PATH` does not lead, and the Debian package that contains it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// Used by tests that any user may run.
const TEST_TOOLS: &[Tool] = &[
    tool("bash", "bash"),
    tool("c++", "g++"),
    tool("cc", "gcc"),
    tool("etcd", "etcd-server"),
    // The library, whose directory depends on the architecture; it is loaded, not linked to.
    tool("/usr/share/doc/libibverbs1/copyright", "libibverbs1"),
    tool("kill", "procps"),
    tool("mergecap", "wireshark-common"),
    tool("nm", "binutils"),
    tool("objdump", "binutils"),
    tool("openssl", "openssl"),
    tool("pkg-config", "pkgconf"),
    tool("protoc", "protobuf-compiler"),
    // scapy for Debian's own interpreter, which the tests start by this path.
    tool("/usr/bin/python3", "python3"),
    // A client of gRPC, and messages that protoc has made.
    tool("/usr/lib/python3/dist-packages/google/protobuf/message.py", "python3-protobuf"),
    tool("/usr/lib/python3/dist-packages/grpc/__init__.py", "python3-grpcio"),
    // Installs the packages below.
    tool("/usr/lib/python3/dist-packages/pip/__main__.py", "python3-pip"),
    // Of the Python package's tests.
    tool("readelf", "binutils"),
    tool("scapy3", "python3-scapy"),
    tool("setpriv", "util-linux"),
    tool("systemd-analyze", "systemd"),
    tool("tshark", "tshark"),
];

/// A package of the Python package index that tests use, of a fixed version.
struct PythonPackage {
    name: &'static str,
    version: &'static str,
}

/// Below `target/python`, each in a directory of its own.
const PYTHON_PACKAGES: &[PythonPackage] = &[
    // The schemas that Kubernetes has published, for the manifests of dist/kubernetes.
    PythonPackage { name: "kubernetes-validate", version: "1.37.0" },
];

/// Used by lab tests on top.
const LAB_TOOLS: &[Tool] = &[
    tool("/usr/include/infiniband/verbs.h", "libibverbs-dev"),
    tool("/usr/include/rdma/rdma_cma.h", "librdmacm-dev"),
    tool("/usr/include/stdio.h", "libc6-dev"),
    tool("/usr/lib/frr/isisd", "frr"),
    tool("/usr/lib/frr/ospf6d", "frr"),
    tool("apt-get", "apt"),
    tool("busybox", "busybox"),
    tool("chroot", "coreutils"),
    // Tests start Debian's interpreter, whose packages these are.
    tool("/usr/lib/python3/dist-packages/torch/version.py", "python3-torch"),
    tool("cp", "coreutils"),
    tool("cpio", "cpio"),
    tool("dpkg-deb", "dpkg"),
    tool("ethtool", "ethtool"),
    tool("gcc", "gcc"),
    tool("ib_write_bw", "perftest"),
    tool("ip", "iproute2"),
    tool("ld", "binutils"),
    tool("ldd", "libc-bin"),
    tool("mount", "mount"),
    tool("nsenter", "util-linux"),
    tool("pgrep", "procps"),
    tool("ping", "iputils-ping"),
    tool("prometheus", "prometheus"),
    tool("python3", "python3"),
    tool("qemu-system-x86_64", "qemu-system-x86"),
    tool("sh", "dash"),
    tool("smcrouted", "smcroute"),
    tool("strip", "binutils"),
    tool("tc", "iproute2"),
    tool("unshare", "util-linux"),
    tool("vtysh", "frr"),
    tool("xz", "xz-utils"),
];

/// Used by the tests of the controller's page.
const PAGE_TOOLS: &[Tool] = &[tool("/usr/bin/chromium", "chromium"), tool("npm", "npm")];

/// Installs missing programs, those of the page's and of lab tests on request; `false` when some are still missing.
pub(crate) fn provide(with_page: bool, with_labs: bool) -> Result<bool> {
    let page = PAGE_TOOLS.iter().filter(|_| with_page);
    let tools = TEST_TOOLS.iter().chain(page).chain(LAB_TOOLS.iter().filter(|_| with_labs));
    let problem = match missing_after_install(tools)? {
        None => missing_python_packages()?,
        problem => problem,
    };
    match problem {
        None => {
            println!("all programs are installed");
            Ok(true)
        }
        Some(problem) => {
            println!("{problem}");
            Ok(false)
        }
    }
}

/// Installs missing programs of the lab tests; an error message when some are still missing.
pub(crate) fn missing_for_labs() -> Result<Option<String>> {
    missing_after_install(TEST_TOOLS.iter().chain(LAB_TOOLS))
}

/// Installs missing packages of Python by pip; an error message when that fails. A directory has its name when the
/// package is whole.
fn missing_python_packages() -> Result<Option<String>> {
    for PythonPackage { name, version } in PYTHON_PACKAGES {
        let wanted = format!("{name}=={version}");
        let directory = Tree::root().join("target/python").join(format!("{name}-{version}"));
        if directory.is_dir() {
            continue;
        }
        let partial = directory.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        println!("pip install {wanted}");
        let mut pip = Command::new("/usr/bin/python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]);
        let status = pip.arg("--target").arg(&partial).arg(&wanted).stdin(Stdio::null()).status();
        if !status.context("cannot start /usr/bin/python3")?.success() {
            return Ok(Some(format!("missing: the Python package {wanted}")));
        }
        fs::rename(&partial, &directory)?;
    }
    Ok(None)
}

fn missing_after_install(tools: impl Iterator<Item = &'static Tool> + Clone) -> Result<Option<String>> {
    let missing = missing(tools.clone());
    if missing.is_empty() {
        return Ok(None);
    }
    install(&packages(&missing))?;
    let missing = self::missing(tools);
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let packages: Vec<&str> = packages(&missing).into_iter().collect();
    let problem =
        || format!("missing: {}; install them with: apt-get install {}", programs.join(", "), packages.join(" "));
    Ok((!missing.is_empty()).then(problem))
}

fn missing(tools: impl Iterator<Item = &'static Tool>) -> Vec<&'static Tool> {
    tools.filter(|tool| !is_installed(tool.program)).collect()
}

fn packages(tools: &[&'static Tool]) -> BTreeSet<&'static str> {
    tools.iter().map(|tool| tool.package).collect()
}

/// True if this process has the rights of root.
pub(crate) fn is_root() -> Result<bool> {
    let user = Command::new("id").arg("-u").output().context("cannot start id")?;
    Ok(user.stdout.trim_ascii() == b"0")
}

fn is_installed(program: &str) -> bool {
    external::find(Path::new(program)).is_some()
}

/// Installs packages by one non-interactive call of apt-get. Its failure is not an error here: programs that are
/// missing afterwards are reported. The packages serve the tests alone, so that none of their daemons is started.
fn install(packages: &BTreeSet<&'static str>) -> Result<()> {
    let is_root = is_root()?;
    let _policy = is_root.then(NoDaemons::new).flatten();
    // An update may fail because one of several sources is down; the packages may still be available.
    apt_get(is_root, &["update", "-q"]);
    let arguments = ["install", "-q", "-y", "--no-install-recommends"];
    apt_get(is_root, &arguments.into_iter().chain(packages.iter().copied()).collect::<Vec<_>>());
    Ok(())
}

fn apt_get(is_root: bool, arguments: &[&str]) {
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.args(["-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    }
    println!("apt-get {}", arguments.join(" "));
    match command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {}
        Ok(status) => println!("apt-get {}: {status}", arguments[0]),
        Err(error) => println!("apt-get {} cannot be started: {error}", arguments[0]),
    }
}

/// A policy that forbids packages to start daemons, while it exists.
struct NoDaemons;

impl NoDaemons {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    /// `None` where the machine has a policy already.
    fn new() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(Self::POLICY).ok()?;
        let policy = NoDaemons;
        // 101: forbidden by policy.
        file.write_all(b"#!/bin/sh\nexit 101\n").is_ok().then_some(policy)
    }
}

impl Drop for NoDaemons {
    fn drop(&mut self) {
        // If it stayed, daemons that the administrator installs later would not start.
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
        assert!(is_installed("cargo") && is_installed("/etc/passwd"));
        assert!(!is_installed("a-program-that-does-not-exist") && !is_installed("/etc/a-file-that-does-not-exist"));
    }

    /// Every program that a test starts by a literal name has a package.
    #[test]
    fn every_program_that_tests_start_is_a_tool() {
        let tree = Tree::of_repository().unwrap();
        let known: BTreeSet<&str> = TEST_TOOLS.iter().chain(LAB_TOOLS).map(|tool| tool.program).collect();
        let mut unknown = BTreeSet::new();
        for file in tree.with_suffix(".rs").filter(|file| file.path.contains("/tests/")) {
            let calls = file.text.split("Command::new(\"").skip(1).filter_map(|rest| rest.split('"').next());
            unknown.extend(calls.filter(|program| !known.contains(program)).map(|program| (program, &file.path)));
        }
        assert!(unknown.is_empty(), "no package in xtask/src/tools.rs for {unknown:?}");
    }
}
