//! The commands of `docs/start.md` work as they stand there.

use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../../../docs/start.md");

/// The lines of the shell blocks, without their `srdma`.
fn commands() -> Vec<Vec<&'static str>> {
    let blocks = DOCUMENT.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let words = |line: &'static str| line.strip_prefix("srdma ").unwrap().split_whitespace().collect();
    blocks.flat_map(str::lines).map(words).collect()
}

#[test]
fn every_command_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let fabrics = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics");
    std::os::unix::fs::symlink(fabrics, directory.path().join("fabrics")).unwrap();
    let commands = commands();
    assert!(commands.len() >= 7);
    for arguments in commands {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args(&arguments).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
}
