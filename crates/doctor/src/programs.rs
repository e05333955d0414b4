//! Programs that labs and tests call. Nodes call none.

use crate::finding::Finding;
use std::path::PathBuf;

const THEME: &str = "Programs for labs and tests";

/// A program, its Debian package, and its purpose.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("ip", "iproute2", "builds networks"),
    ("tc", "iproute2", "limits the rate of links"),
    ("ethtool", "ethtool", "sets up veth for AF_XDP"),
    ("ping", "iputils-ping", "tests connectivity"),
    ("qemu-system-x86_64", "qemu-system-x86", "runs guests with soft-RoCE"),
    ("busybox", "busybox", "is the user space of a guest"),
    ("cpio", "cpio", "packs a guest"),
    ("xz", "xz-utils", "unpacks a guest's modules"),
    ("gcc", "gcc", "builds the test program of guests"),
    ("tshark", "tshark", "decodes captures independently"),
    ("smcrouted", "smcroute", "configures multicast routing of Linux routers, in the lab kernel-transit"),
    ("tcpdump", "tcpdump", "captures packets"),
];

/// The programs, and a command that installs the missing ones.
pub(crate) fn check() -> Vec<Finding> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    findings(|program| directories.iter().map(|directory| directory.join(program)).find(|file| file.is_file()))
}

fn findings(find: impl Fn(&str) -> Option<PathBuf>) -> Vec<Finding> {
    let mut packages = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for (program, package, purpose) in PROGRAMS {
        findings.push(match find(program) {
            Some(_) => Finding::ok(THEME, program, purpose),
            None => {
                if !packages.contains(&package) {
                    packages.push(package);
                }
                Finding::missing(THEME, program, format!("{purpose}; package {package}"))
            }
        });
    }
    if !packages.is_empty() {
        let detail = format!("{} missing", packages.len());
        let remedy = format!("apt-get install --no-install-recommends {}", packages.join(" "));
        findings.push(Finding::missing(THEME, "packages", detail).with_remedy(remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_installs_all_missing_packages() {
        let all = findings(|program| Some(program.into()));
        assert_eq!((all.len(), all.iter().any(|finding| finding.remedy.is_some())), (PROGRAMS.len(), false));
        let some = findings(|program| (!["ip", "tc", "xz"].contains(&program)).then(|| program.into()));
        let last = some.last().unwrap();
        assert_eq!(last.remedy.as_deref(), Some("apt-get install --no-install-recommends iproute2 xz-utils"));
        assert!(!some.iter().any(Finding::stops_a_node));
    }
}
