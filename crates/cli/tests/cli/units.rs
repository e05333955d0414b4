//! The units of systemd (D108).

use std::path::Path;
use std::process::Command;

/// The greatest exposure, in tenths, that `systemd-analyze security` may find.
const MAX_EXPOSURE: u32 = 25;

/// A unit by its name in `dist`.
fn unit(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist").join(name);
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn the_services_are_confined() {
    let folder = tempfile::tempdir().unwrap();
    for (name, instance) in
        [("srdma@.service", "srdma@leaf1.service"), ("srdma-controller.service", "srdma-controller.service")]
    {
        let file = folder.path().join(instance);
        std::fs::write(&file, unit(name)).unwrap();
        let analysed = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager", &format!("--threshold={MAX_EXPOSURE}")])
            .arg(&file)
            .output()
            .expect("systemd-analyze of the package systemd");
        let text = String::from_utf8_lossy(&analysed.stdout);
        let verdict = text.lines().last().unwrap_or_default();
        assert!(analysed.status.success() && verdict.contains(instance), "{name}: {verdict}");
    }
}

/// Neither service can read the other's keys, in files or in memory, and a crash writes none to a file.
#[test]
fn the_services_have_users_of_their_own_and_are_always_restarted() {
    let sysusers = unit("srdma.sysusers");
    for (name, user) in [("srdma@.service", "srdma-node"), ("srdma-controller.service", "srdma-controller")] {
        let unit = unit(name);
        let has = |line: &str| unit.lines().any(|found| found == line);
        assert!(sysusers.lines().any(|line| line.starts_with(&format!("u {user} "))), "{user}");
        for line in [&format!("User={user}"), &format!("Group={user}")] {
            assert!(has(line), "{name}: {line}");
        }
        for line in ["UMask=0077", "LimitCORE=0", "StartLimitIntervalSec=0", "RestartPreventExitStatus=2"] {
            assert!(has(line), "{name}: {line}");
        }
    }
    assert!(unit("srdma@.service").contains("\nWatchdogSec="));
}
